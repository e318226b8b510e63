//! What arithmetic alone says about an open loop while nodes stand still.
//!
//! Operations of an open loop start when they are to, whether anybody answers or not. One that needs a node which stands still
//! is answered when that goes on, so it waits for the rest of the stall: one of length s makes those wait longer than x that start in its
//! first s − x. When a share k of the operations needs the node, the stalls s₁ … sₙ of a phase of length T make
//!
//!   P(response > x) = k·Σ max(0, sᵢ − x) ÷ T + (1 − k·Σ sᵢ ÷ T)·P₀(response > x),
//!
//! P₀ being the baseline. With stalls of one length every P seconds, and a baseline that is fast, that is k·(s − x) ÷ P, so the
//! 99th percentile is s − P ÷ 100k, or not touched at all if that is negative. A measured percentile that equals this says nothing
//! about the database but that it had caught up at once.

use std::collections::BTreeSet;

use brownout_record::{Description, Expectation, Quantity, Subject};
use serde::Serialize;

use crate::{Part, PhaseFindings, TrialEvidence, evidence::phase, segments::Span, sums::PhaseSums};

/// The percentiles that are predicted.
const QUANTILES: [f64; 4] = [0.95, 0.99, 0.999, 1.0];

/// One percentile of the response time in the fault phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StandstillQuantile {
    /// 0.99; 1 is the largest.
    pub quantile: f64,
    /// If only operations wait whose coordinator stands still, ns.
    pub least_ns: u64,
    /// If those wait, too, that another node coordinates and that need an answer of it, ns; none where that cannot be said.
    pub most_ns: Option<u64>,
    /// Measured, ns.
    pub measured_ns: u64,
}

/// An open loop while nodes stand still, explained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standstill {
    /// How often a node stood still.
    pub stalls: u64,
    /// The median length of a stall, as it was, ns.
    pub length_ns: u64,
    /// The share of the fault phase in which a node stood still, 0 to 1.
    pub stalled: f64,
    /// The share of the operations that needs a node which stands still because it coordinates them, 0 to 1; the mean over stalls.
    pub coordinated: f64,
    /// The same with those that another node coordinates: of a read at a level of R of N replicas (R − 1) ÷ (N − 1), which is how it would
    /// be if a coordinator asked itself and chose the others evenly, and never asked one more for a slow one; of a write
    /// none but at ALL. None where that cannot be said.
    pub needed: Option<f64>,
    /// A quarter of the median stall, ns: what is slower than this was delayed.
    pub slower_than_ns: u64,
    /// The share of operations slower than that, if only the coordinators count.
    pub least_share: f64,
    /// The same with what others coordinate.
    pub most_share: Option<f64>,
    /// The share of operations slower than that, as measured.
    pub measured_share: f64,
    /// Percentiles.
    pub quantiles: Vec<StandstillQuantile>,
}

/// A node stood still.
struct Stall {
    length_ns: u64,
    /// Shares of the operations that need the node.
    coordinated: f64,
    needed: Option<f64>,
}

/// Explains an open loop; none where any of the load is closed, or where anything but pauses was in force.
pub(crate) fn standstill(
    description: &Description,
    evidence: &TrialEvidence,
    sums: &[PhaseSums],
    phases: &[PhaseFindings],
) -> Option<Standstill> {
    let parts = &description.load.parts;
    let closed = description.load.threads.is_some() || parts.iter().any(|part| part.threads.is_some());
    if closed || evidence.faults.iter().any(|fault| fault.kind != "pause") {
        return None;
    }
    let window = evidence.phase(phase::FAULT)?;
    let span = (window.measured_from_ns, window.measured_to_ns);
    let of = |name: &str| sums.iter().find(|sums| sums.name() == name).map(PhaseSums::response);
    let (before, during) = (of(phase::BASELINE)?, of(phase::FAULT)?);
    let baseline = phases.iter().find(|one| one.name == phase::BASELINE)?;
    let stalls = stalls(description, evidence, baseline, span);
    if stalls.is_empty() || before.count() == 0 || during.count() == 0 || span.1 <= span.0 {
        return None;
    }
    let above = |x: u64, weight: fn(&Stall) -> Option<f64>| -> Option<f64> {
        let of = |x: u64| -> Option<f64> {
            let waits = stalls.iter().map(|one| Some(weight(one)? * one.length_ns.saturating_sub(x) as f64));
            Some((waits.sum::<Option<f64>>()? / (span.1 - span.0) as f64).min(1.0))
        };
        Some(of(x)? + (1.0 - of(0)?) * before.share_above(x))
    };
    let least = |x: u64| above(x, |one| Some(one.coordinated));
    let most = |x: u64| above(x, |one| one.needed);
    // Nothing waits for longer than the longest stall; what the client gave up took its time-out.
    let longest = stalls.iter().map(|one| one.length_ns).max().unwrap_or(0);
    let bound = longest.max(before.quantile(1.0)?.value_ns).min(description.load.timeout_ns);
    let quantile = |above: &dyn Fn(u64) -> Option<f64>, q: f64| {
        let (mut low, mut high) = (0, bound);
        while low < high {
            let middle = low + (high - low) / 2;
            if above(middle)? <= 1.0 - q { high = middle } else { low = middle + 1 }
        }
        Some(low)
    };
    let quantiles = QUANTILES.iter().filter_map(|q| {
        let (least_ns, most_ns) = (quantile(&least, *q)?, quantile(&most, *q));
        Some(StandstillQuantile { quantile: *q, least_ns, most_ns, measured_ns: during.quantile(*q)?.value_ns })
    });
    let mut lengths: Vec<u64> = stalls.iter().map(|one| one.length_ns).collect();
    lengths.sort_unstable();
    let length_ns = lengths[lengths.len() / 2];
    let slower_than_ns = length_ns / 4;
    let count = stalls.len() as f64;
    Some(Standstill {
        stalls: stalls.len() as u64,
        length_ns,
        stalled: lengths.iter().sum::<u64>() as f64 / (span.1 - span.0) as f64,
        coordinated: stalls.iter().map(|one| one.coordinated).sum::<f64>() / count,
        needed: stalls.iter().map(|one| one.needed).sum::<Option<f64>>().map(|sum| sum / count),
        slower_than_ns,
        least_share: least(slower_than_ns)?,
        most_share: most(slower_than_ns),
        measured_share: during.share_above(slower_than_ns),
        quantiles: quantiles.collect(),
    })
}

/// Every stall of every node, as long as it was in the fault phase.
fn stalls(description: &Description, evidence: &TrialEvidence, baseline: &PhaseFindings, span: Span) -> Vec<Stall> {
    let mut all = Vec::new();
    for fault in &evidence.faults {
        for period in &fault.periods {
            let (Some(from), Some(to)) = (period.injected, period.healed) else { continue };
            let length_ns = to.at_ns.min(span.1).saturating_sub(from.at_ns.max(span.0));
            let expectations = fault.severities.get(period.severity as usize).map_or(&[][..], |one| &one.expectations);
            let stopped = |one: &&Expectation| one.quantity == Quantity::Running && one.hit && one.asked < 0.0;
            let nodes: BTreeSet<&str> = (expectations.iter().filter(stopped))
                .filter_map(|one| match &one.subject {
                    Subject::Host { host } => Some(host.as_str()),
                    _ => None,
                })
                .collect();
            if nodes.is_empty() {
                continue;
            }
            let ended = |part: &Part| part.ok + part.timed_out;
            let operations: u64 = baseline.coordinators.iter().map(ended).sum();
            let own = baseline.coordinators.iter().filter(|part| nodes.contains(part.name.as_str())).map(ended);
            let coordinated = own.sum::<u64>() as f64 / operations.max(1) as f64;
            let behind = (nodes.len() == 1).then(|| behind_others(description, baseline)).flatten();
            let needed = behind.map(|behind| coordinated + (1.0 - coordinated) * behind);
            all.push(Stall { length_ns, coordinated, needed });
        }
    }
    all.retain(|one| one.length_ns > 0);
    all
}

/// The share of the operations that another node coordinates which need one certain replica. It can be said where every node has every
/// row, so that every coordinator is a replica itself, and what is read and written is known by its name.
fn behind_others(description: &Description, baseline: &PhaseFindings) -> Option<f64> {
    let nodes = description.hosts.iter().filter(|host| host.role == "node").count() as u32;
    let replicas = description.load.replication;
    if replicas != nodes || replicas < 2 {
        return None;
    }
    let awaited = awaited(&description.load.consistency, replicas)?;
    let ended = |name: &str| -> u64 {
        baseline.statements.iter().filter(|part| part.name == name).map(|part| part.ok + part.timed_out).sum()
    };
    let (reads, writes) = (ended("read") as f64, ended("write") as f64);
    let all: u64 = baseline.statements.iter().map(|part| part.ok + part.timed_out).sum();
    if reads + writes < all as f64 || all == 0 {
        return None;
    }
    let of_read = f64::from(awaited.min(replicas) - 1) / f64::from(replicas - 1);
    let of_write = if awaited >= replicas { 1.0 } else { 0.0 };
    Some((reads * of_read + writes * of_write) / (reads + writes))
}

/// How many of `replicas` a read or write at this level waits for; none for a level that depends on more.
pub(crate) fn awaited(consistency: &str, replicas: u32) -> Option<u32> {
    Some(match consistency.to_ascii_lowercase().replace('-', "_").as_str() {
        "one" | "local_one" => 1,
        "two" => 2,
        "three" => 3,
        "quorum" | "local_quorum" => replicas / 2 + 1,
        "all" => replicas,
        _ => return None,
    })
}
