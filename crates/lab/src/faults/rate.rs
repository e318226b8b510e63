//! `rate`: what a host sends has to pass a bottleneck.

use brownout_network::Impairment;
use brownout_units::BitRate;

use super::{
    join, known,
    links::{LinkFault, direction_words, pairs, traffic},
};
use crate::{
    experiment::{Complaint, RateFault, checked, limit},
    hosts::Hosts,
};

/// What a burst measures on this machine: less takes minutes to show, more is not told from no limit at all.
const PROVABLE: std::ops::RangeInclusive<u64> = 64_000..=500_000_000;

/// Each link of the hosts carries so many bits per second.
pub fn fault(entry: &RateFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let struck = known(&entry.host, hosts)?;
    if !PROVABLE.contains(&entry.rate.bits_per_second()) {
        let bits = |bits: &u64| BitRate::new(*bits).map_or_else(String::new, |rate| rate.to_string());
        let (least, most) = (bits(PROVABLE.start()), bits(PROVABLE.end()));
        return Err(Complaint::at("rate", format!("{} cannot be proven; write {least} to {most}", entry.rate)));
    }
    let rate = Some(limit(entry.rate, entry.queue, entry.overhead)?);
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
        impairment: checked(Impairment { rate, ..Impairment::NONE })?,
        words: |impairment| impairment.rate.map_or_else(String::new, |limit| limit.rate.to_string()),
    })
}
