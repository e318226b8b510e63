//! Heartbeats between hosts, made of the probes.
//!
//! Probes measure one way alone, on one clock for all hosts: no monitoring system has that. What many have is a request and its
//! answer, timed by who asked (Guo et al., "Pingmesh", SIGCOMM 2015). Such a round trip is made here of a probe and of the first one
//! that went back after it had arrived.

use brownout_record::ProbeSample;

use crate::stats;

/// A pair sends one heartbeat in this time, ns.
pub const HEARTBEAT_EVERY_NS: u64 = 100_000_000;
/// One that is not answered within this time, ns, is lost, and known as such then.
pub const HEARTBEAT_TIMEOUT_NS: u64 = 1_000_000_000;

/// The heartbeats of a pair of which the answer came, or had to come, in a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heartbeats {
    /// Round trips, ns.
    pub round_trips: Vec<u64>,
    /// Those that were not answered in time.
    pub lost: u64,
}

impl Heartbeats {
    /// How many.
    pub fn count(&self) -> f64 {
        self.round_trips.len() as f64 + self.lost as f64
    }

    /// The median round trip, ns; none if there is none. The median, because a heartbeat that waited for a processor says nothing of a network.
    pub fn median_ns(&self) -> Option<f64> {
        stats::median(&mut self.round_trips.clone())
    }

    /// The share that was lost; none without heartbeats.
    pub fn lost_share(&self) -> Option<f64> {
        (self.count() > 0.0).then(|| self.lost as f64 / self.count())
    }
}

/// The first probe of each [`HEARTBEAT_EVERY_NS`].
pub(super) fn every<'a>(samples: &'a [&'a ProbeSample]) -> impl Iterator<Item = &'a ProbeSample> {
    let mut last = None;
    samples.iter().copied().filter(move |sample| {
        last.replace(sample.sent_ns / HEARTBEAT_EVERY_NS) != Some(sample.sent_ns / HEARTBEAT_EVERY_NS)
    })
}

/// When the answer came or was given up, and the round trip if it came; none if the record ends before.
pub(super) fn answer(there: &ProbeSample, back: &[&ProbeSample]) -> Option<(u64, Option<u64>)> {
    let lost = (there.sent_ns.saturating_add(HEARTBEAT_TIMEOUT_NS), None);
    let Some(there_ns) = there.delay_ns.filter(|ns| *ns < HEARTBEAT_TIMEOUT_NS) else { return Some(lost) };
    let arrived = there.sent_ns.saturating_add(there_ns);
    let back = back.get(back.partition_point(|sample| sample.sent_ns < arrived))?;
    let round_trip = back.delay_ns.map(|ns| ns.saturating_add(there_ns)).filter(|ns| *ns < HEARTBEAT_TIMEOUT_NS);
    Some(match round_trip {
        Some(ns) => (back.sent_ns.saturating_add(ns - there_ns), Some(ns)),
        None => lost,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    fn sample(sent_ns: u64, delay_ns: Option<u64>) -> ProbeSample {
        ProbeSample { seq: 0, sent_ns, delay_ns, copies: 1, reordered: false }
    }

    #[test]
    fn a_round_trip_is_a_probe_and_the_first_that_goes_back_after_it_came() {
        let back = [sample(0, Some(7)), sample(20, Some(9)), sample(40, None)];
        let back: Vec<&ProbeSample> = back.iter().collect();
        assert_eq!(answer(&sample(5, Some(3)), &back), Some((29, Some(12))));
        let given_up = |sent: u64| Some((sent + HEARTBEAT_TIMEOUT_NS, None));
        assert_eq!(answer(&sample(5, None), &back), given_up(5));
        assert_eq!(answer(&sample(22, Some(1)), &back), given_up(22), "the answer was lost");
        assert_eq!(answer(&sample(5, Some(HEARTBEAT_TIMEOUT_NS)), &back), given_up(5));
        assert_eq!(answer(&sample(50, Some(1)), &back), None, "nobody knows");
    }

    #[test]
    fn a_pair_sends_ten_heartbeats_a_second_however_many_probes_it_has() {
        let probes: Vec<ProbeSample> = (0..200).map(|at| sample(at * 20_000_000 + 3, Some(1))).collect();
        assert_eq!(every(&probes.iter().collect::<Vec<_>>()).count(), 40);
    }
}
