//! `slow`: what a host sends is late.

use brownout_network::Impairment;
use brownout_units::Delay;

use super::{
    join, known,
    links::{LinkFault, direction_words, pairs, rtt_effect, traffic},
    provable::provable_delay,
};
use crate::{
    experiment::{Complaint, SlowFault, checked},
    hosts::Hosts,
};

/// Everything that the hosts send (or are sent) arrives later.
pub fn fault(entry: &SlowFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let struck = known(&entry.host, hosts)?;
    provable_delay("delay", entry.delay)?;
    if entry.jitter > entry.delay {
        let message =
            format!("{} exceeds the delay of {}: some packets would have to arrive early", entry.jitter, entry.delay);
        return Err(Complaint::at("jitter", message));
    }
    let impairment = checked(Impairment {
        delay: entry.delay,
        jitter: entry.jitter,
        distribution: entry.distribution,
        delay_correlation: entry.correlation,
        ..Impairment::NONE
    })?;
    let direction = entry.direction;
    let jitter = match entry.jitter {
        Delay::ZERO => String::new(),
        jitter if entry.distribution == Default::default() => format!(" ± {jitter}"),
        jitter => format!(" ± {jitter} ({})", entry.distribution),
    };
    Ok(LinkFault {
        kind: "slow",
        subject: join(&struck),
        text: format!("{} is {}{jitter} late {}", traffic(&struck, direction), entry.delay, direction_words(direction)),
        effect: rtt_effect(&struck, direction, entry.delay),
        hit: pairs(&struck, direction, hosts),
        impairment,
        words: |impairment| impairment.delay.to_string(),
    })
}
