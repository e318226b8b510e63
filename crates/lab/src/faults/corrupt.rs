//! `corrupt`: a share of what a host sends arrives with flipped bits.

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

/// A share of the packets that the hosts send (or are sent) arrives with one bit flipped.
pub fn fault(entry: &ShareFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let ShareFault { share, correlation, direction, .. } = *entry;
    provable_share("share", share)?;
    let impairment = Impairment { corrupt: Chance { share, correlation }, ..Impairment::NONE };
    LinkFault::of_hosts("corrupt", Struck { names: &entry.host, direction, hosts }, impairment, |struck, traffic| {
        let whose = join(struck);
        let effect =
            format!("RTTs do not change; checksums catch it, so a damaged packet to or from {whose} counts as lost");
        (format!("{share} of {traffic} arrives with a flipped bit"), effect)
    })
}
