//! What arithmetic alone says about a closed loop.
//!
//! N virtual users, each with one operation at a time, complete N ÷ (mean response time) operations
//! per second, whatever the database does (Little, "A Proof for the Queuing Formula L = λW", 1961).
//! When a share k of the operations meets an extra delay D, the throughput falls by
//! D ÷ (L₀/k + D) = kD ÷ (L₀ + kD), L₀ being the mean response time before. A measured loss that
//! equals this says nothing about how the database takes the fault.

use brownout_record::{Description, FaultRecord, LoadPart, Quantity, Subject};
use serde::Serialize;

use crate::{PhaseFindings, Rates, Routes, TrialEvidence, evidence::phase, segments::longest_delay, stats};

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
    /// Virtual users, of all operations together.
    pub threads: u32,
    /// Throughput by Little's law and as measured, by phase.
    pub phases: Vec<Little>,
    /// Extra delay of a mean operation (k·D): the round trips between the load and the coordinators that the fault
    /// slows, weighted by their share of the baseline's operations, ns; each the time-out at most, since an operation waits
    /// no longer. What happens behind a coordinator is not in it: that is the database's own answer to the fault.
    pub extra_delay_ns: Option<f64>,
    /// Why there is no such delay: the faults do not delay all of the fault phase alike; or why there is nothing at all: a part
    /// of the load is open.
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
    let beside = description.load.closed_beside_open();
    if !beside.is_empty() {
        return Some(beside_open(&beside));
    }
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
    let predicted_loss = extra_delay_ns
        .zip(baseline)
        .and_then(|(extra, baseline)| predicted_loss(&description.load.parts, baseline, extra));
    Some(ClosedLoop {
        threads,
        phases: rows.collect(),
        extra_delay_ns,
        inapplicable,
        predicted_loss,
        measured_loss: stats::loss(rate(baseline), rate(find(phase::FAULT))),
    })
}

/// Little's law is of users and operations that are the same ones: nothing is said of all operations where a clock starts some of
/// them.
fn beside_open(closed: &[&LoadPart]) -> ClosedLoop {
    let names = closed.iter().map(|part| part.operation.as_str()).collect::<Vec<_>>().join(" and ");
    ClosedLoop {
        threads: closed.iter().filter_map(|part| part.threads).sum(),
        phases: Vec::new(),
        extra_delay_ns: None,
        inapplicable: Some(format!(
            "only {names} is closed; the rest of the load is open, and its throughput is what is offered"
        )),
        predicted_loss: None,
        measured_loss: None,
    }
}

/// kD ÷ (L₀ + kD); where operations have users of their own, that of each by its own L₀, together by their throughputs.
fn predicted_loss(parts: &[LoadPart], baseline: &PhaseFindings, extra_ns: f64) -> Option<f64> {
    if parts.len() < 2 {
        return baseline.response.map(|before| extra_ns / (before.mean_ns + extra_ns));
    }
    let of = |part: &LoadPart| {
        let own = baseline.statements.iter().find(|own| own.name == part.operation)?;
        let (threads, before_ns) = (f64::from(part.threads?), own.response?.mean_ns);
        (before_ns > 0.0).then(|| (threads / before_ns, threads / (before_ns + extra_ns)))
    };
    let each: Option<Vec<(f64, f64)>> = parts.iter().map(of).collect();
    let (before, after) = each?.into_iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (before > 0.0).then(|| 1.0 - after / before)
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
    let hosts: Vec<String> = description.hosts.iter().map(|host| host.name.clone()).collect();
    let routes = Routes::new(&description.overlay, &hosts);
    let round_trip = |coordinator: &str| -> f64 {
        let links = routes.of(load, coordinator).into_iter().chain(routes.of(coordinator, load));
        let ways: Vec<Subject> = links.map(|(from, to)| Subject::pair(from, to)).collect();
        let severities = evidence.faults.iter().flat_map(|fault| &fault.severities);
        severities
            .flat_map(|severity| &severity.expectations)
            .filter(|one| one.quantity == Quantity::OneWayDelay && one.hit && ways.contains(&one.subject))
            .map(|one| one.asked)
            .sum::<f64>()
            .min(description.load.timeout_ns as f64)
    };
    let asked: u64 = baseline.coordinators.iter().map(|part| part.ok + part.timed_out).sum();
    let weighted = baseline.coordinators.iter().map(|part| (part.ok + part.timed_out) as f64 * round_trip(&part.name));
    let extra = weighted.sum::<f64>() / asked.max(1) as f64;
    (extra > 0.0).then_some(extra)
}
