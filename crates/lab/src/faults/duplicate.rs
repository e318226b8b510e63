//! `duplicate`: a share of what a host sends arrives twice.

use brownout_network::{Chance, Impairment};

use super::{
    links::{LinkFault, Struck},
    names::join,
    provable::provable_share,
};
use crate::{
    experiment::{Complaint, ShareFault},
    hosts::Hosts,
};

/// A share of the packets that the hosts send (or are sent) arrives twice.
pub fn fault(entry: &ShareFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let ShareFault { share, correlation, direction, .. } = *entry;
    provable_share("share", share)?;
    let impairment = Impairment { duplicate: Chance { share, correlation }, ..Impairment::NONE };
    LinkFault::of_hosts("duplicate", Struck { names: &entry.host, direction, hosts }, impairment, |struck, traffic| {
        let effect = format!("RTTs do not change; TCP at the other end of {} discards the copies", join(struck));
        (format!("{share} of {traffic} arrives twice"), effect)
    })
}
