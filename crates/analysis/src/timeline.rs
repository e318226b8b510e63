//! A trial interval by interval, for plots.

use std::collections::BTreeMap;

use brownout_record::Objective;

use crate::{
    Interval, Latencies, PhaseWindow, Quantile, Response, TrialEvidence,
    sums::{Ended, good},
};

/// One interval of a trial.
#[derive(Debug, Clone)]
pub struct Point {
    /// Its start, ns since the run's zero.
    pub starts_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// Whether all of its operations have ended.
    pub settled: bool,
    /// Operations intended to start in it, per second.
    pub offered: f64,
    /// Of these answered ok, per second.
    pub delivered: f64,
    /// Of these good, per second.
    pub good: f64,
    /// Of these failed or timed out, per second.
    pub bad: f64,
    /// Response times of operations answered ok or timed out; none without operations.
    pub response: Option<Response>,
    /// Their median by coordinator.
    pub coordinators: BTreeMap<String, Quantile>,
    /// Their median by operation.
    pub operations: BTreeMap<String, Quantile>,
}

/// The load of a trial over time.
pub fn timeline(evidence: &TrialEvidence, objective: &Objective) -> Vec<Point> {
    evidence.intervals.iter().filter(|interval| interval.length_ns > 0).map(|one| point(one, objective)).collect()
}

fn point(interval: &Interval, objective: &Objective) -> Point {
    let (mut coordinators, mut operations) = (BTreeMap::new(), BTreeMap::new());
    let mut response = Latencies::new();
    for row in &interval.latencies {
        response.add_row(row);
        group(&mut coordinators, &row.coordinator).add_row(row);
        group(&mut operations, &row.statement).add_row(row);
    }
    let ended = Ended::of(interval);
    let per_second = |count: u64| count as f64 / (interval.length_ns as f64 / 1e9);
    Point {
        starts_ns: interval.starts_ns,
        length_ns: interval.length_ns,
        settled: interval.settled,
        offered: per_second(interval.scheduled + interval.withheld),
        delivered: per_second(ended.ok),
        good: per_second(good(interval, objective)),
        bad: per_second(ended.failed + ended.timed_out),
        response: response.response(),
        coordinators: medians(coordinators),
        operations: medians(operations),
    }
}

fn group<'a>(groups: &'a mut BTreeMap<String, Latencies>, name: &str) -> &'a mut Latencies {
    groups.entry(name.to_owned()).or_default()
}

fn medians(groups: BTreeMap<String, Latencies>) -> BTreeMap<String, Quantile> {
    groups.into_iter().filter_map(|(name, own)| Some((name, own.quantile(0.5)?))).collect()
}

/// The response times of a phase of a trial, for percentile curves.
pub fn phase_latencies(evidence: &TrialEvidence, window: &PhaseWindow) -> Latencies {
    let mut response = Latencies::new();
    for row in evidence.intervals_of(window).flat_map(|interval| &interval.latencies) {
        response.add_row(row);
    }
    response
}
