//! `flaky`: a share of what a host sends is lost.

use brownout_network::{Impairment, Loss};

use super::{
    links::{LinkFault, Struck},
    names::join,
    provable::provable_share,
};
use crate::{
    experiment::{Complaint, FlakyFault},
    hosts::Hosts,
};

/// A share of the packets that the hosts send (or are sent) vanishes.
pub fn fault(entry: &FlakyFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let loss = entry.model()?;
    let share = loss.mean();
    provable_share("loss", share)?;
    let bursts = match loss {
        Loss::None | Loss::Independent(_) => String::new(),
        _ => loss.mean_burst().map_or_else(String::new, |burst| format!(", in bursts of {burst:.1} on average")),
    };
    let struck = Struck { names: &entry.host, direction: entry.direction, hosts };
    LinkFault::of_hosts("flaky", struck, Impairment { loss, ..Impairment::NONE }, |struck, traffic| {
        let effect = format!("RTTs do not change; TCP retransmits what is lost to or from {}, later", join(struck));
        (format!("{share} of {traffic} is lost{bursts}"), effect)
    })
}
