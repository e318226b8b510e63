//! What the load experienced in each phase.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Due, Response, Short};

/// Operations of a phase by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Intended to start in the phase.
    pub scheduled: u64,
    /// Sent.
    pub sent: u64,
    /// Given up before they could be sent.
    pub never_sent: u64,
    /// Due in it, and called for by a schedule of users of whom none was free: no part of `scheduled`.
    pub withheld: u64,
    /// Answered without error within the client's time-out.
    pub ok: u64,
    /// Answered ok within the objective's response time.
    pub good: u64,
    /// Answered with an error.
    pub failed: u64,
    /// The same by class of error.
    pub failed_by_class: BTreeMap<String, u64>,
    /// Not answered within the client's time-out.
    pub timed_out: u64,
    /// Those of the timed out that were answered later.
    pub late: u64,
    /// Reads that returned an older version than one acknowledged before they were sent.
    pub stale: u64,
    /// Acknowledged writes that a read was the first to look for; see `docs/definitions.md`, "Lost writes".
    pub looked_for: u64,
    /// Those of `looked_for` that it did not find.
    pub lost: u64,
    /// Not ended when the run was cut.
    pub open: u64,
}

/// Counts per second of intended time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Operations per second that were due: scheduled or withheld.
    pub offered: f64,
    /// Operations answered ok per second.
    pub delivered: f64,
    /// Operations answered ok within the objective per second: the goodput.
    pub good: f64,
    /// Failed operations per second.
    pub failed: f64,
    /// Timed-out operations per second.
    pub timed_out: f64,
    /// Operations never sent per second.
    pub never_sent: f64,
}

/// The operations of one coordinator or of one kind of statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The coordinator or the statement.
    pub name: String,
    /// Answered ok.
    pub ok: u64,
    /// Answered ok within the objective's response time.
    pub good: u64,
    /// Answered ok per second of intended time.
    pub delivered: Option<f64>,
    /// Good ones per second of intended time.
    pub goodput: Option<f64>,
    /// Good ÷ all that were sent and ended, 0 to 1; none if there are none.
    pub good_share: Option<f64>,
    /// Answered with an error.
    pub failed: u64,
    /// Timed out.
    pub timed_out: u64,
    /// Of these, answered later.
    pub late: u64,
    /// Given up before they could be sent. None for a coordinator: what was sent to nobody is nobody's; nor for an
    /// operation of a run whose record has only the sum of all.
    pub never_sent: Option<u64>,
    /// Response times, of operations answered ok and those that timed out.
    pub response: Option<Response>,
    /// Sent − intended.
    pub wait: Option<Short>,
    /// Ended − sent.
    pub service: Option<Short>,
}

/// How far trials lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The smallest of all trials.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The spread of a phase over the trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// Trials that have the phase.
    pub trials: u32,
    /// Operations answered ok per second.
    pub delivered: Option<Range>,
    /// Goodput, operations per second.
    pub good: Option<Range>,
    /// Response p50, ns.
    pub p50_ns: Option<Range>,
    /// Response p99, ns.
    pub p99_ns: Option<Range>,
    /// Response p99.9, ns.
    pub p999_ns: Option<Range>,
}

/// One phase of one trial, or of all trials together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseFindings {
    /// `set-up`, `warm-up`, `baseline`, `fault`, `recovery`.
    pub name: String,
    /// Its start, ns since the run's zero; none over all trials.
    pub starts_ns: Option<u64>,
    /// From its start to its end, ns; over all trials the sum.
    pub duration_ns: u64,
    /// `time`, `stationary`, `limit`, `interrupt`, `failure`; none if it did not end, or if trials differ.
    pub ended_by: Option<String>,
    /// Whether it came to its end (in every trial).
    pub finished: bool,
    /// Intervals that lie wholly inside: the ones all figures here are drawn from.
    pub intervals: u64,
    /// Their length together, ns.
    pub measured_ns: u64,
    /// Operations.
    pub counts: Counts,
    /// Operations per second; none without intervals.
    pub rates: Option<Rates>,
    /// Response times from the intended start, of operations answered ok and those that timed out.
    pub response: Option<Response>,
    /// The same of all that were due, failed and never sent ones too.
    pub due: Option<Due>,
    /// Sent − intended.
    pub wait: Option<Short>,
    /// Ended − sent.
    pub service: Option<Short>,
    /// By the node that was asked.
    pub coordinators: Vec<Part>,
    /// By kind of operation.
    pub statements: Vec<Part>,
    /// Good ÷ scheduled, 0 to 1; none without operations.
    pub objective_share: Option<f64>,
    /// Whether that reaches the objective.
    pub objective_met: Option<bool>,
    /// Over all trials: how far they lie apart.
    pub spread: Option<Spread>,
}

/// How far the trials lie apart in a phase.
pub(crate) fn spread(trials: &[PhaseFindings]) -> Spread {
    let range = |value: &dyn Fn(&PhaseFindings) -> Option<f64>| {
        trials.iter().filter_map(value).fold(None, |range: Option<Range>, value| {
            let range = range.unwrap_or(Range { min: value, max: value });
            Some(Range { min: range.min.min(value), max: range.max.max(value) })
        })
    };
    Spread {
        trials: trials.len() as u32,
        delivered: range(&|phase| phase.rates.map(|rates| rates.delivered)),
        good: range(&|phase| phase.rates.map(|rates| rates.good)),
        p50_ns: range(&|phase| phase.response.map(|response| response.p50.value_ns as f64)),
        p99_ns: range(&|phase| phase.response.map(|response| response.p99.value_ns as f64)),
        p999_ns: range(&|phase| phase.response.map(|response| response.p999.value_ns as f64)),
    }
}
