//! The least latency that the declared topology allows.

use serde::Serialize;

use super::{
    Model,
    paths::{Operation, Way},
    subjects::Delays,
};
use crate::{Part, PhaseFindings};

/// The least latency of an operation in a phase, and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Floor {
    /// The phase: `baseline` or `fault`.
    pub phase: String,
    /// The operation.
    pub operation: String,
    /// What packets alone take, ns: the median over operations. What lies above it, hosts and the database took.
    pub floor_ns: f64,
    /// The median that was measured, ns; none without operations.
    pub p50_ns: Option<u64>,
    /// Measured less floor, ns.
    pub above_ns: Option<f64>,
    /// The median lies below what any choice of coordinators, replicas and packets allows: the latencies are wrong. None where that
    /// cannot be said: a fault loses, stops or limits something, and some take other ways.
    pub impossible: Option<bool>,
}

impl Way {
    /// What the load waits for at least, ns: the way to its coordinator and back, and the best choice of replicas.
    pub(super) fn least(&self, load: usize, delays: &Delays) -> f64 {
        self.client(load, delays) + self.best(&|path| delays.path(path))
    }

    pub(super) fn client(&self, load: usize, delays: &Delays) -> f64 {
        delays.hop((load, self.coordinator)) + delays.hop((self.coordinator, load))
    }
}

/// Of what is counted, and with which delays.
pub(super) struct Looked<'a> {
    pub(super) phase: &'a PhaseFindings,
    /// The floor that is shown.
    pub(super) quick: &'a Delays,
    /// What nothing can be below; none where operations may take ways that no plan has.
    pub(super) quickest: Option<&'a Delays>,
}

pub(super) fn floors(model: &Model<'_>, looked: &Looked<'_>) -> Vec<Floor> {
    let of = |operation: &Operation<'_>| {
        let part = looked.phase.statements.iter().find(|part| part.name == operation.plan.operation);
        let floor_ns = quantile(model, operation, looked.quick, 0.5);
        let p50_ns = part.and_then(|part| part.response).map(|response| response.p50.value_ns);
        let impossible = looked.quickest.zip(part).zip(p50_ns).map(|((quickest, part), p50)| {
            let least = quantile(model, operation, quickest, surely_below(operation, part));
            // The histogram knows a value to three digits.
            (p50 as f64) * 1.002 < least
        });
        Floor {
            phase: looked.phase.name.clone(),
            operation: operation.plan.operation.clone(),
            floor_ns,
            p50_ns,
            above_ns: p50_ns.map(|p50| p50 as f64 - floor_ns),
            impossible,
        }
    };
    model.operations.iter().map(of).collect()
}

/// The least latency that so many of the operations have at most.
fn quantile(model: &Model<'_>, operation: &Operation<'_>, delays: &Delays, share: f64) -> f64 {
    let mut all: Vec<(f64, f64)> =
        operation.ways.iter().map(|way| (way.least(model.hosts.load(), delays), way.share)).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut sum = 0.0;
    for (ns, own) in &all {
        sum += own;
        // Shares of thirds do not add up to the last bit.
        if sum >= share - 1e-9 {
            return *ns;
        }
    }
    all.last().map_or(0.0, |last| last.0)
}

/// Of the half of the operations that were faster than the median, so many are surely among the fastest of all that were due: those
/// that failed or were never sent may have been the slow ones; and chance does not deal rows and turns evenly (four standard errors
/// of a half).
fn surely_below(operation: &Operation<'_>, part: &Part) -> f64 {
    let measured = (part.ok + part.timed_out) as f64;
    let lost = (part.failed + part.never_sent.unwrap_or(0)) as f64;
    let rows = operation.plan.rows.max(1) as f64;
    0.5 * measured / (measured + lost).max(1.0) - 2.0 / measured.max(1.0).sqrt() - 2.0 / rows.sqrt()
}
