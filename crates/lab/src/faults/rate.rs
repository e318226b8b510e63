//! `rate`: what a host sends passes a bottleneck.

use brownout_network::Impairment;

use super::{
    links::{LinkFault, Struck},
    names::join,
};
use crate::{
    experiment::{Complaint, RateFault, limit},
    hosts::Hosts,
};

/// Each link of the hosts carries so many bits per second.
pub fn fault(entry: &RateFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let rate = Some(limit(entry.rate, entry.queue, entry.overhead)?);
    let struck = Struck { names: &entry.host, direction: entry.direction, hosts };
    LinkFault::of_hosts("rate", struck, Impairment { rate, ..Impairment::NONE }, |struck, traffic| {
        let whose = join(struck);
        let effect = format!(
            "RTTs to and from {whose} grow by the queueing delay at the bottleneck; those of lone small \
             packets do not"
        );
        (format!("{traffic} passes at most {} on each link", entry.rate), effect)
    })
}
