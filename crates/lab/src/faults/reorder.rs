//! `reorder`: a share of what a host sends overtakes the rest.

use brownout_network::{Impairment, Reorder};

use super::{
    links::{LinkFault, Struck},
    names::join,
    provable::{provable_delay, provable_share},
};
use crate::{
    experiment::{Complaint, ReorderFault, gap},
    hosts::Hosts,
};

/// A share of the packets that the hosts send (or are sent) skips the delay that all others have.
pub fn fault(entry: &ReorderFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let ReorderFault { share, delay, correlation, direction, .. } = *entry;
    provable_share("share", share)?;
    provable_delay("delay", delay)?;
    let reorder = Reorder { share, correlation, gap: gap(entry.gap)? };
    let every = if reorder.gap > 1 { format!(" every {}th packet at most,", reorder.gap) } else { String::new() };
    let impairment = Impairment { delay, reorder, ..Impairment::NONE };
    LinkFault::of_hosts("reorder", Struck { names: &entry.host, direction, hosts }, impairment, |struck, traffic| {
        let effect = format!("most RTTs to and from {} grow as with slow, the others do not change", join(struck));
        (format!("{traffic} is delayed by {delay}, but {share}{every} overtakes"), effect)
    })
}
