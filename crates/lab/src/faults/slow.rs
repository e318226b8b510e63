//! `slow`: what a host sends arrives late.

use brownout_network::Impairment;
use brownout_units::Delay;

use super::{
    links::{LinkFault, Struck, rtt_effect},
    provable::provable_delay,
};
use crate::{
    experiment::{Complaint, SlowFault},
    hosts::Hosts,
};

/// Everything that the hosts send (or are sent) arrives later.
pub fn fault(entry: &SlowFault, hosts: &Hosts) -> Result<LinkFault, Complaint> {
    let SlowFault { delay, jitter, distribution, direction, .. } = *entry;
    provable_delay("delay", delay)?;
    if jitter > delay {
        let message = format!("{jitter} exceeds the delay of {delay}: some packets would have to arrive early");
        return Err(Complaint::at("jitter", message));
    }
    let delay_correlation = entry.correlation;
    let impairment = Impairment { delay, jitter, distribution, delay_correlation, ..Impairment::NONE };
    let spread = match jitter {
        Delay::ZERO => String::new(),
        jitter if distribution == Default::default() => format!(" ± {jitter}"),
        jitter => format!(" ± {jitter} ({distribution})"),
    };
    LinkFault::of_hosts("slow", Struck { names: &entry.host, direction, hosts }, impairment, |struck, traffic| {
        (format!("{traffic} is delayed by {delay}{spread}"), rtt_effect(struck, direction, delay))
    })
}
