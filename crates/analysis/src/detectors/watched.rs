//! What a monitoring system would have seen of a trial, step by step.
//!
//! The record counts operations by when they were to start; whoever watches learns of one when it ends. So an operation counts here in
//! the step in which it *ended*: its start, spread evenly over its interval, plus its response time. It is what an application
//! in front of the database can log of its own requests.

use std::collections::HashMap;

use brownout_record::{Description, EncodedTimes, ProbeRow, ProbeSample};

use super::heartbeats::{self, Heartbeats};
use crate::{TrialEvidence, evidence::phase, latency::OperationOutcome};

/// A step is as many intervals as make this, ns: nobody watches a cluster more closely.
const LEAST_STEP_NS: u64 = 1_000_000_000;
/// Steps that there must be to learn from.
pub const LEAST_LEARNT: usize = 5;
/// A baseline that is shorter than this, ns, has too few steps in its first half, which detectors learn from.
pub const LEAST_BASELINE_NS: u64 = 2 * LEAST_LEARNT as u64 * LEAST_STEP_NS;
/// The share of operations that may be bad where the objective names none.
const BAD_SHARE: f64 = 0.01;

/// Operations of one kind at one coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// The index of the coordinator in [`Watched::coordinators`].
    pub coordinator: usize,
    /// `read`, `write`, …
    pub operation: String,
}

/// Times of operations, each with how many took so long: parts of an operation where it may have ended in this step or the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times(Vec<(u64, f64)>);

impl Times {
    /// Adds so many that took so many ns.
    pub fn add(&mut self, ns: u64, count: f64) {
        self.0.push((ns, count));
    }

    /// Adds all of another.
    pub fn add_all(&mut self, other: &Times) {
        self.0.extend(&other.0);
    }

    /// How many.
    pub fn count(&self) -> f64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// How many took longer than this.
    pub fn above(&self, limit_ns: u64) -> f64 {
        self.0.iter().filter(|(ns, _)| *ns > limit_ns).map(|(_, count)| count).sum()
    }

    /// Σ ln of the times in ns.
    pub fn sum_of_logs(&self) -> f64 {
        self.0.iter().map(|(ns, count)| count * ((*ns).max(1) as f64).ln()).sum()
    }

    /// The times and how many took each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.0.iter().copied()
    }
}

/// What ended of one stream in one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ended {
    /// Answered without error.
    pub ok: Times,
    /// Not answered within the client's time-out, with that time.
    pub timed_out: Times,
    /// Failed.
    pub failed: f64,
}

impl Ended {
    /// All of them.
    pub fn count(&self) -> f64 {
        self.ok.count() + self.timed_out.count() + self.failed
    }
}

/// One step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// By stream.
    pub ended: Vec<Ended>,
    /// Operations that nobody could be given, given up in this step.
    pub unsent: f64,
    /// By pair, in the order of [`Watched::pairs`].
    pub heartbeats: Vec<Heartbeats>,
}

/// What the users call bad.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Longer than this is bad, ns.
    pub response_ns: u64,
    /// The share that may be.
    pub bad_share: f64,
    /// The operation that it is of; none: all.
    pub operation: Option<String>,
}

/// What a monitoring system would have seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Start of the first step, ns since the run's zero.
    pub starts_ns: u64,
    /// Length of a step, ns.
    pub step_ns: u64,
    /// So many of the first steps are to learn from.
    pub learnt: usize,
    /// The client's time-out, ns.
    pub timeout_ns: u64,
    /// What is bad.
    pub limit: Limit,
    /// The nodes that were asked.
    pub coordinators: Vec<String>,
    /// What was asked of them.
    pub streams: Vec<Stream>,
    /// The hosts that send heartbeats to each other.
    pub hosts: Vec<String>,
    /// The pairs of them, by their indices in `hosts`.
    pub pairs: Vec<[usize; 2]>,
    /// The steps, in order of time.
    pub steps: Vec<Step>,
}

impl Watched {
    /// From the start of the baseline to the end of the last phase; the first half of the baseline, as it was planned to end, is there
    /// to learn from. None if that is too short.
    pub(crate) fn of(description: &Description, evidence: &TrialEvidence) -> Option<Watched> {
        let baseline = evidence.phase(phase::BASELINE)?;
        let ends_ns = evidence.phases.iter().map(|one| one.ends_ns).max()?.min(evidence.ends_ns);
        let step_ns = step_of_intervals(description.interval_ns);
        let grid = evidence.intervals.first().map_or(baseline.starts_ns, |interval| interval.starts_ns) % step_ns;
        let starts_ns = baseline.starts_ns + (step_ns + grid - baseline.starts_ns % step_ns) % step_ns;
        let count = |to: u64| (to.saturating_sub(starts_ns) / step_ns) as usize;
        let learnt = count(baseline.ends_ns) / 2;
        if learnt < LEAST_LEARNT {
            return None;
        }
        let hosts: Vec<String> = description.hosts.iter().map(|host| host.name.clone()).collect();
        let pairs = (0..hosts.len()).flat_map(|one| (one + 1..hosts.len()).map(move |other| [one, other])).collect();
        let objective = &description.objective;
        let bad_share = if objective.share > 0.0 { 1.0 - objective.share } else { BAD_SHARE };
        let mut watched = Watched {
            starts_ns,
            step_ns,
            learnt,
            timeout_ns: description.load.timeout_ns,
            limit: Limit { response_ns: objective.response_ns, bad_share, operation: objective.operation.clone() },
            coordinators: Vec::new(),
            streams: Vec::new(),
            hosts,
            pairs,
            steps: vec![Step::default(); count(ends_ns)],
        };
        watched.name_streams(evidence);
        watched.add_load(evidence);
        watched.add_heartbeats(&evidence.probes);
        Some(watched)
    }

    /// Gives every step the heartbeats that ended in it.
    fn add_heartbeats(&mut self, probes: &[ProbeRow]) {
        let mut ways: HashMap<(&str, &str), Vec<&ProbeSample>> = HashMap::new();
        for row in probes {
            ways.entry((&row.from, &row.to)).or_default().extend(&row.samples);
        }
        for way in ways.values_mut() {
            way.sort_by_key(|sample| sample.sent_ns);
        }
        for step in &mut self.steps {
            step.heartbeats = vec![Heartbeats::default(); self.pairs.len()];
        }
        for (pair, [one, other]) in self.pairs.clone().into_iter().enumerate() {
            let (one, other) = (self.hosts[one].clone(), self.hosts[other].clone());
            let (there, back) = (ways.get(&(&one[..], &other[..])), ways.get(&(&other[..], &one[..])));
            let (Some(there), Some(back)) = (there, back) else { continue };
            for there in heartbeats::every(there) {
                let Some((known_ns, round_trip)) = heartbeats::answer(there, back) else { continue };
                let Some(step) = self.step_of(known_ns) else { continue };
                let heartbeats = &mut self.steps[step].heartbeats[pair];
                match round_trip {
                    Some(ns) => heartbeats.round_trips.push(ns),
                    None => heartbeats.lost += 1,
                }
            }
        }
    }

    /// When a step ends, ns since the run's zero.
    pub fn end_of(&self, step: usize) -> u64 {
        self.starts_ns.saturating_add((step as u64 + 1).saturating_mul(self.step_ns))
    }

    /// What ended at a coordinator in a step, all streams together.
    pub fn at_coordinator(&self, step: usize, coordinator: usize) -> Ended {
        let mut sum = Ended::default();
        for (stream, ended) in self.streams.iter().zip(&self.steps[step].ended) {
            if stream.coordinator == coordinator {
                sum.ok.add_all(&ended.ok);
                sum.timed_out.add_all(&ended.timed_out);
                sum.failed += ended.failed;
            }
        }
        sum
    }

    /// The step that a moment lies in.
    pub(super) fn step_of(&self, at_ns: u64) -> Option<usize> {
        let step = (at_ns.checked_sub(self.starts_ns)? / self.step_ns) as usize;
        (step < self.steps.len()).then_some(step)
    }

    fn name_streams(&mut self, evidence: &TrialEvidence) {
        let rows = || evidence.intervals.iter().flat_map(|interval| &interval.latencies);
        let mut names: Vec<(&str, &str)> =
            rows().map(|row| (row.coordinator.as_str(), row.statement.as_str())).collect();
        names.sort_unstable();
        names.dedup();
        for (coordinator, operation) in names {
            if self.coordinators.last().is_none_or(|last| last != coordinator) {
                self.coordinators.push(coordinator.to_owned());
            }
            self.streams.push(Stream { coordinator: self.coordinators.len() - 1, operation: operation.to_owned() });
        }
        for step in &mut self.steps {
            step.ended = vec![Ended::default(); self.streams.len()];
        }
    }

    fn add_load(&mut self, evidence: &TrialEvidence) {
        for interval in &evidence.intervals {
            let span = (interval.starts_ns, interval.length_ns);
            for row in &interval.latencies {
                let of = |stream: &Stream| {
                    stream.operation == row.statement && self.coordinators[stream.coordinator] == row.coordinator
                };
                let Some(stream) = self.streams.iter().position(of) else { continue };
                let outcome = OperationOutcome::of(&row.outcome);
                for (least, count) in row.response.iter() {
                    let (ns, count) = (EncodedTimes::most_of(least), count as f64);
                    self.spread(span, ns, count, |step, part| {
                        let ended = &mut step.ended[stream];
                        match outcome {
                            OperationOutcome::Ok => ended.ok.add(ns, part),
                            OperationOutcome::TimedOut => ended.timed_out.add(ns, part),
                            OperationOutcome::Failed(_) => ended.failed += part,
                            // Counted as timed out already.
                            OperationOutcome::Late => {}
                        }
                    });
                }
            }
            if interval.never_sent > 0 {
                let (after, count) = (self.timeout_ns, interval.never_sent as f64);
                self.spread(span, after, count, |step, part| step.unsent += part);
            }
        }
    }

    /// Gives operations that began evenly over an interval to the steps in which they ended.
    fn spread(
        &mut self,
        (starts_ns, length_ns): (u64, u64),
        took: u64,
        count: f64,
        mut add: impl FnMut(&mut Step, f64),
    ) {
        let length_ns = length_ns.max(1);
        let from = starts_ns.saturating_add(took);
        let to = from.saturating_add(length_ns);
        let mut at = from.max(self.starts_ns);
        while at < to {
            let Some(step) = self.step_of(at) else { break };
            let until = self.end_of(step).min(to);
            add(&mut self.steps[step], count * (until - at) as f64 / length_ns as f64);
            at = until;
        }
    }
}

/// The length of a step, ns, where intervals are so long.
fn step_of_intervals(interval_ns: u64) -> u64 {
    let interval_ns = interval_ns.max(1);
    interval_ns.saturating_mul(LEAST_STEP_NS.div_ceil(interval_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn watched(steps: usize) -> Watched {
        Watched {
            starts_ns: 10 * SECOND,
            step_ns: SECOND,
            learnt: 0,
            timeout_ns: 0,
            limit: Limit { response_ns: 0, bad_share: 0.01, operation: None },
            coordinators: Vec::new(),
            streams: Vec::new(),
            hosts: Vec::new(),
            pairs: Vec::new(),
            steps: vec![Step::default(); steps],
        }
    }

    fn ended(starts_ns: u64, took: u64) -> Vec<f64> {
        let mut watched = watched(4);
        watched.spread((starts_ns, SECOND), took, 100.0, |step, part| step.unsent += part);
        watched.steps.iter().map(|step| step.unsent.round()).collect()
    }

    #[test]
    fn an_operation_counts_where_it_ended_and_not_where_it_began() {
        assert_eq!(ended(10 * SECOND, 0), [100.0, 0.0, 0.0, 0.0]);
        assert_eq!(ended(10 * SECOND, SECOND / 4), [75.0, 25.0, 0.0, 0.0]);
        assert_eq!(ended(10 * SECOND, 2 * SECOND + SECOND / 2), [0.0, 0.0, 50.0, 50.0]);
        assert_eq!(ended(9 * SECOND, SECOND / 2), [50.0, 0.0, 0.0, 0.0], "of what began before");
        assert_eq!(ended(13 * SECOND, SECOND / 2), [0.0, 0.0, 0.0, 50.0], "the rest ends after all");
        assert_eq!(ended(10 * SECOND, u64::MAX), [0.0; 4]);
        assert_eq!(ended(0, SECOND), [0.0; 4]);
    }

    #[test]
    fn steps_are_whole_intervals_and_never_shorter_than_a_second() {
        let ms = |ms: u64| ms * 1_000_000;
        for (interval, step) in [(100, 1000), (300, 1200), (1000, 1000), (5000, 5000)] {
            assert_eq!(step_of_intervals(ms(interval)), ms(step));
        }
    }
}
