//! What arithmetic alone says about a closed loop.
//!
//! N virtual users, each with one operation at a time, complete N ÷ (mean response time) operations
//! per second, whatever the database does (Little, "A Proof for the Queuing Formula L = λW", 1961).
//! When a share k of the operations meets an extra delay D, the throughput falls by
//! D ÷ (L₀/k + D) = kD ÷ (L₀ + kD), L₀ being the mean response time before. A measured loss that
//! equals this says nothing about how the database takes the fault.

use brownout_record::{Description, FaultRecord, Quantity, Subject};
use serde::Serialize;

use crate::{PhaseFindings, Rates, TrialEvidence, evidence::phase, segments::longest_delay, stats};

/// Little's law in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Little {
    /// The phase.
    pub phase: String,
    /// N ÷ mean response time of the operations answered ok and those that timed out, per second.
    pub predicted: f64,
    /// So many of these ended per second.
    pub measured: f64,
    /// Their mean response time, ns.
    pub mean_ns: f64,
    /// The mean that the throughput tells: N ÷ measured, ns. It is larger where users also waited for what is in neither:
    /// operations that failed. None if nothing ended.
    pub by_throughput_ns: Option<f64>,
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
    /// Why there is no such delay: the faults do not delay all of the fault phase alike.
    pub inapplicable: Option<String>,
    /// Loss of throughput that this delay alone explains, 0 to 1.
    pub predicted_loss: Option<f64>,
    /// Loss of throughput measured, of the same operations: answered ok or timed out. 0 to 1; negative when the fault phase
    /// was faster.
    pub measured_loss: Option<f64>,
}

/// Explains a closed loop; none for an open one, where throughput is what was offered.
pub(crate) fn closed_loop(
    description: &Description,
    evidence: &TrialEvidence,
    phases: &[PhaseFindings],
) -> Option<ClosedLoop> {
    let threads = description.load.threads?;
    // In the warm-up the table is filled first, with more operations at a time than there are users.
    let rows = phases.iter().filter(|phase| phase.name != phase::WARM_UP).filter_map(|phase| {
        let (rates, response) = (phase.rates?, phase.response?);
        let measured = throughput(rates);
        (response.mean_ns > 0.0).then(|| Little {
            phase: phase.name.clone(),
            predicted: f64::from(threads) / (response.mean_ns / 1e9),
            measured,
            mean_ns: response.mean_ns,
            by_throughput_ns: (measured > 0.0).then(|| f64::from(threads) * 1e9 / measured),
        })
    });
    let find = |name: &str| phases.iter().find(|phase| phase.name == name);
    let baseline = find(phase::BASELINE);
    let rate = |phase: Option<&PhaseFindings>| phase.and_then(|phase| phase.rates).map(throughput);
    let inapplicable = changing(evidence);
    let constant = baseline.filter(|_| inapplicable.is_none());
    let extra_delay_ns = constant.and_then(|baseline| extra_delay(description, evidence, baseline));
    let before = baseline.and_then(|baseline| baseline.response).map(|response| response.mean_ns);
    Some(ClosedLoop {
        threads,
        phases: rows.collect(),
        extra_delay_ns,
        inapplicable,
        predicted_loss: extra_delay_ns.zip(before).map(|(extra, before)| extra / (before + extra)),
        measured_loss: stats::loss(rate(baseline), rate(find(phase::FAULT))),
    })
}

/// What frees a virtual user and has a response time: answered ok, or timed out.
fn throughput(rates: Rates) -> f64 {
    rates.delivered + rates.timed_out
}

/// Of the fault phase, this share may be without a fault that is said to fill it.
const MISSED: f64 = 0.02;

/// Which fault with a delay is not in force, alike, through all of the fault phase.
pub(crate) fn changing(evidence: &TrialEvidence) -> Option<String> {
    let window = evidence.phase(phase::FAULT)?;
    let length = window.measured_to_ns.saturating_sub(window.measured_from_ns) as f64;
    let part = |fault: &&FaultRecord| {
        let inside = fault.periods.iter().filter_map(|period| {
            let from = period.injected?.at_ns.max(window.measured_from_ns);
            let to = period.healed.map_or(u64::MAX, |healed| healed.at_ns).min(window.measured_to_ns);
            Some(to.saturating_sub(from))
        });
        fault.severities.len() > 1 || (inside.sum::<u64>() as f64) < (1.0 - MISSED) * length
    };
    let delays = evidence.faults.iter().filter(|fault| longest_delay(fault) > 0);
    delays.clone().find(part).map(|fault| {
        format!("the delay changes within the fault phase: \"{}\" is not in force alike through all of it", fault.text)
    })
}

fn extra_delay(description: &Description, evidence: &TrialEvidence, baseline: &PhaseFindings) -> Option<f64> {
    let load = &description.hosts.iter().find(|host| host.role == "load")?.name;
    let round_trip = |coordinator: &str| -> f64 {
        let ways = [Subject::pair(load, coordinator), Subject::pair(coordinator, load)];
        let severities = evidence.faults.iter().flat_map(|fault| &fault.severities);
        severities
            .flat_map(|severity| &severity.expectations)
            .filter(|one| one.quantity == Quantity::OneWayDelay && one.hit && ways.contains(&one.subject))
            .map(|one| one.asked)
            .sum()
    };
    let asked: u64 = baseline.coordinators.iter().map(|part| part.ok + part.timed_out).sum();
    let weighted = baseline.coordinators.iter().map(|part| (part.ok + part.timed_out) as f64 * round_trip(&part.name));
    let extra = weighted.sum::<f64>() / asked.max(1) as f64;
    (extra > 0.0).then_some(extra)
}
