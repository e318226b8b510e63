//! What arithmetic alone says about a closed loop.
//!
//! N virtual users, each with one operation at a time, complete N ÷ (mean response time) operations
//! per second, whatever the database does (Little, "A Proof for the Queuing Formula L = λW", 1961).
//! When a share k of the operations meets an extra delay D, the throughput falls by
//! D ÷ (L₀/k + D) = kD ÷ (L₀ + kD), L₀ being the mean response time before. A measured loss that
//! equals this says nothing about how the database takes the fault.

use brownout_record::{Description, Quantity};
use serde::Serialize;

use crate::{PhaseFindings, TrialEvidence, evidence::phase};

/// Little's law in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Little {
    /// The phase.
    pub phase: String,
    /// N ÷ mean response time, operations per second.
    pub predicted: f64,
    /// Operations answered ok per second.
    pub measured: f64,
}

/// The closed loop of a trial, explained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClosedLoop {
    /// Virtual users.
    pub threads: u32,
    /// Throughput by Little's law and as measured, by phase.
    pub phases: Vec<Little>,
    /// Extra delay of a mean operation (k·D): the round trips between the load and the coordinators that the fault
    /// slows, weighted by their share of the baseline's operations, ns. What happens behind a
    /// coordinator is not in it: that is the database's own answer to the fault.
    pub extra_delay_ns: Option<f64>,
    /// Loss of throughput that this delay alone explains, 0 to 1.
    pub predicted_loss: Option<f64>,
    /// Loss of throughput measured, 0 to 1.
    pub measured_loss: Option<f64>,
}

/// Explains a closed loop; none for an open one, where throughput is what was offered.
pub(crate) fn closed_loop(
    description: &Description,
    evidence: &TrialEvidence,
    phases: &[PhaseFindings],
    measured_loss: Option<f64>,
) -> Option<ClosedLoop> {
    let threads = description.load.threads?;
    let rows = phases.iter().filter_map(|phase| {
        let (rates, response) = (phase.rates?, phase.response?);
        (response.mean_ns > 0.0).then(|| Little {
            phase: phase.name.clone(),
            predicted: f64::from(threads) / (response.mean_ns / 1e9),
            measured: rates.delivered,
        })
    });
    let baseline = phases.iter().find(|phase| phase.name == phase::BASELINE);
    let extra_delay_ns = baseline.and_then(|baseline| extra_delay(description, evidence, baseline));
    let before = baseline.and_then(|baseline| baseline.response).map(|response| response.mean_ns);
    Some(ClosedLoop {
        threads,
        phases: rows.collect(),
        extra_delay_ns,
        predicted_loss: extra_delay_ns.zip(before).map(|(extra, before)| extra / (before + extra)),
        measured_loss,
    })
}

fn extra_delay(description: &Description, evidence: &TrialEvidence, baseline: &PhaseFindings) -> Option<f64> {
    let load = &description.hosts.iter().find(|host| host.role == "load")?.name;
    let round_trip = |coordinator: &str| -> f64 {
        let expectations = evidence.faults.iter().flat_map(|fault| &fault.expectations);
        expectations
            .filter(|pair| pair.quantity == Quantity::OneWayDelay && pair.hit)
            .filter(|pair| {
                (pair.from == *load && pair.to == coordinator) || (pair.from == coordinator && pair.to == *load)
            })
            .map(|pair| pair.asked)
            .sum()
    };
    let asked: u64 = baseline.coordinators.iter().map(|part| part.ok + part.timed_out).sum();
    let weighted = baseline.coordinators.iter().map(|part| (part.ok + part.timed_out) as f64 * round_trip(&part.name));
    let extra = weighted.sum::<f64>() / asked.max(1) as f64;
    (extra > 0.0).then_some(extra)
}
