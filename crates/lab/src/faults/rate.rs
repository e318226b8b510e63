//! `rate`: what a host sends has to pass a bottleneck.

use brownout_network::Impairment;

use super::{
    join, known,
    links::{LinkFault, direction_words, pairs, traffic},
    provable::provable,
};
use crate::{
    experiment::{Complaint, RateFault, checked, limit},
    hosts::Hosts,
};

/// Each link of the hosts carries so many bits per second.
pub fn fault(entry: &RateFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let struck = known(&entry.host, hosts)?;
    let rate = Some(limit(entry.rate, entry.queue, entry.overhead)?);
    let impairment = checked(Impairment { rate, ..Impairment::NONE })?;
    provable(&impairment)?;
    let direction = entry.direction;
    Ok(LinkFault {
        kind: "rate",
        subject: join(&struck),
        text: format!(
            "{} passes at most {} on each link {}",
            traffic(&struck, direction),
            entry.rate,
            direction_words(direction)
        ),
        effect: format!(
            "RTTs to and from {} grow by what waits before the bottleneck; small ones alone stay",
            join(&struck)
        ),
        hit: pairs(&struck, direction, hosts),
        impairment,
        words: |impairment| impairment.rate.map_or_else(String::new, |limit| limit.rate.to_string()),
    })
}
