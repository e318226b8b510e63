//! `slow`: everything a host sends is late.

use brownout_network::{Impairment, ImpairmentGuard, Link, NetworkError};
use brownout_record::{Expectation, Quantity};
use brownout_units::Delay;

use super::Links;
use crate::hosts::Hosts;

/// Half of the least tolerance: what scheduling noise can add to a median on a busy two-core machine.
const NOISE: Delay = Delay::from_ms(1);
/// The share of the delay that may be missing or too much.
const TOLERANCE: f64 = 0.02;
/// The median of n uniform values within ± J has a standard deviation of J ÷ √n; with the 90 probes that the plan asks
/// for, this is 2.8 of them.
const JITTER_TOLERANCE: f64 = 0.3;

/// Everything `host` sends arrives `delay` later, give or take `jitter`.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    /// The sending host.
    pub host: String,
    /// One way, added to each packet.
    pub delay: Delay,
    /// Each packet's delay lies uniformly within ± this.
    pub jitter: Delay,
}

impl Slow {
    pub(super) fn text(&self) -> String {
        let jitter = if self.jitter == Delay::ZERO { String::new() } else { format!(" ± {}", self.jitter) };
        format!("everything {} sends is {}{jitter} late (direction: out)", self.host, self.delay)
    }

    pub(super) fn effect(&self) -> String {
        format!("every RTT to and from {} grows by {}; no other changes", self.host, self.delay)
    }

    pub(super) fn unsettled(&self) -> Delay {
        // A probe sent before the change is still on its way for the longest delay there is.
        Delay::from_ns(self.delay.ns() + self.jitter.ns() + brownout_analysis::SETTLE_NS)
    }

    /// ns. A delay below twice the noise is judged against half of itself, so that "none" can never pass for it.
    fn tolerance(&self) -> f64 {
        let delay = self.delay.ns() as f64;
        (delay * TOLERANCE + self.jitter.ns() as f64 * JITTER_TOLERANCE).max(NOISE.ns() as f64).min(delay / 2.0)
    }

    pub(super) fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        let expectation = |from: &str, to: &str| {
            let hit = from == self.host;
            Expectation {
                from: from.to_owned(),
                to: to.to_owned(),
                quantity: Quantity::OneWayDelay,
                hit,
                asked: if hit { self.delay.ns() as f64 } else { 0.0 },
                tolerance: self.tolerance(),
            }
        };
        hosts.pairs().map(|(from, to)| expectation(&from.name, &to.name)).collect()
    }

    pub(super) fn inject(&self, hosts: &Hosts, links: &dyn Links) -> Result<ImpairmentGuard, NetworkError> {
        let hit: Vec<Link> = hosts.iter().filter_map(|to| links.link(&self.host, &to.name)).collect();
        links.control().impair(&hit, &Impairment { delay: self.delay, jitter: self.jitter, ..Impairment::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(delay: Delay) -> Slow {
        Slow { host: "n2".to_owned(), delay, jitter: Delay::ZERO }
    }

    #[test]
    fn what_the_host_sends_is_hit_and_all_else_is_spared() {
        let expectations = slow(Delay::from_ms(100)).expectations(&Hosts::new(3));
        assert_eq!(expectations.len(), 12);
        for expectation in expectations {
            assert_eq!(expectation.hit, expectation.from == "n2", "{expectation:?}");
            assert_eq!(expectation.asked, if expectation.hit { 100e6 } else { 0.0 }, "{expectation:?}");
        }
    }

    #[test]
    fn no_delay_can_pass_for_a_small_one() {
        for delay in [Delay::from_ns(50_000), Delay::from_ms(1), Delay::from_ms(100), Delay::from_secs(2)] {
            let slow = slow(delay);
            assert!(slow.tolerance() <= delay.ns() as f64 / 2.0, "{delay}");
        }
    }
}
