//! What nodes count together with the time that it took: of each, the mean.

use std::collections::BTreeMap;

use brownout_record::EvidenceRow;
use serde::Serialize;

use crate::PhaseWindow;

/// What a node did in a phase, and how long it took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mean {
    /// `wal-fsync`, `apply`, …: see `docs/definitions.md`.
    pub name: String,
    /// Of what: another node; empty where there is only one.
    pub subject: String,
    /// How often.
    pub count: f64,
    /// The mean of all, ns.
    pub mean_ns: f64,
}

/// The same over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// As in [`Mean`].
    pub name: &'static str,
    /// As in [`Mean`].
    pub subject: String,
    /// From reading to reading, in order.
    pub steps: Vec<TimedStep>,
}

/// What was done between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedStep {
    /// When the latter was, ns since the run's zero.
    pub at_ns: u64,
    /// How often.
    pub count: f64,
    /// How long all of it took, ns.
    pub total_ns: f64,
}

/// Name, counter, and counter of the time.
const NAMES: [(&str, &str, &str); 5] = [
    ("wal-fsync", "wal-fsyncs", "wal-fsync-time"),
    ("backend-commit", "backend-commits", "backend-commit-time"),
    ("apply", "applies", "apply-time"),
    ("peer-round-trip", "peer-round-trips", "peer-round-trip-time"),
    ("gc-pause", "gc-pauses", "gc-pause-time"),
];

/// Whether a counter is one of a pair, which is told as a mean.
pub(crate) fn is_paired(name: &str) -> bool {
    NAMES.iter().any(|(_, count, time)| [*count, *time].contains(&name))
}

/// What one node counted so, by what it is and of what.
pub fn timed(rows: &[EvidenceRow], node: &str) -> Vec<Timed> {
    let mut all = Vec::new();
    for (name, counter, time) in NAMES {
        // Both are of the same reading: one row of each, of the same moment.
        let mut readings: BTreeMap<&str, BTreeMap<u64, [Option<f64>; 2]>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.node == node) {
            let Some(which) = [counter, time].iter().position(|one| row.name == *one) else { continue };
            readings.entry(&row.subject).or_default().entry(row.at_ns).or_default()[which] = Some(row.value);
        }
        for (subject, moments) in readings {
            let both = moments.into_iter().filter_map(|(at_ns, [count, total])| Some((at_ns, count?, total?)));
            let both: Vec<(u64, f64, f64)> = both.collect();
            all.push(Timed { name, subject: subject.to_owned(), steps: steps(&both) });
        }
    }
    all
}

/// A counter that falls has been begun anew, with its node.
fn steps(readings: &[(u64, f64, f64)]) -> Vec<TimedStep> {
    let step = |pair: &[(u64, f64, f64)]| {
        let [(_, count, total), (at_ns, next, next_total)] = *pair else { return None };
        let (count, total_ns) = if next < count { (next, next_total) } else { (next - count, next_total - total) };
        (count > 0.0).then_some(TimedStep { at_ns, count, total_ns })
    };
    readings.windows(2).filter_map(step).collect()
}

/// The means of a phase; nothing of what was not done in it.
pub(crate) fn means(timed: &[Timed], window: &PhaseWindow) -> Vec<Mean> {
    let of = |one: &Timed| {
        let is_within = |step: &&TimedStep| (window.measured_from_ns..window.measured_to_ns).contains(&step.at_ns);
        let within = || one.steps.iter().filter(is_within);
        let count: f64 = within().map(|step| step.count).sum();
        let total_ns: f64 = within().map(|step| step.total_ns).sum();
        let (name, subject) = (one.name.to_owned(), one.subject.clone());
        (count > 0.0).then(|| Mean { name, subject, count, mean_ns: total_ns / count })
    };
    timed.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_the_rise_of_the_time_over_that_of_the_count() {
        let steps = steps(&[(1, 10.0, 5e6), (2, 20.0, 8e6), (3, 20.0, 8e6), (4, 22.0, 28e6)]);
        let found: Vec<(u64, f64, f64)> = steps.iter().map(|one| (one.at_ns, one.count, one.total_ns)).collect();
        assert_eq!(found, [(2, 10.0, 3e6), (4, 2.0, 20e6)]);
    }

    #[test]
    fn a_node_that_was_started_again_counts_from_nought() {
        let steps = steps(&[(1, 1_000.0, 5e9), (2, 4.0, 8e6)]);
        assert_eq!(steps, [TimedStep { at_ns: 2, count: 4.0, total_ns: 8e6 }]);
    }
}
