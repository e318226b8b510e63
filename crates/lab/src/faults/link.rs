//! `link`: any impairment on single links.

use brownout_network::Impairment;
use brownout_units::Delay;

use super::{
    links::{LinkFault, ends},
    names::join,
    provable::provable,
};
use crate::{
    experiment::{Complaint, LinkEntry},
    hosts::Hosts,
};

/// What an entry says of the links from some hosts (or sites) to others.
pub fn fault(entry: &LinkEntry, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let hit = hosts.links(entry)?;
    let impairment = entry.impairment()?;
    if impairment == Impairment::NONE {
        return Err(Complaint::at("", "no impairment is given for these links; write delay: 100ms, loss: 1%, …"));
    }
    provable(&impairment)?;
    let arrow = if entry.both { "↔" } else { "→" };
    let rtt = if entry.both { 2 * impairment.delay.ns() } else { impairment.delay.ns() };
    let effect = match rtt {
        0 => "RTTs do not change".to_owned(),
        rtt => format!("RTTs between {} and {} grow by {}", entry.from, entry.to, Delay::from_ns(rtt)),
    };
    Ok(LinkFault {
        kind: "link",
        subject: join(&ends(&hit)),
        text: format!("on {} {arrow} {}: {impairment}", entry.from, entry.to),
        effect: format!("{effect}; no other link changes"),
        hit,
        impairment,
    })
}
