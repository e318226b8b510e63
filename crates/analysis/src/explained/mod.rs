//! What arithmetic explains: what the plan of a run says before it is made, beside what was measured.
//!
//! The plan says where rows lie, who is asked for them and how far hosts stand apart ([`Placement`]). So for every operation all its
//! ways can be enumerated: who coordinates it, which replicas hold its row, and which answers its consistency waits for. From these
//! follow the share of operations that a fault can touch, the least latency that the topology allows, and what a delay costs if
//! the database does nothing about it (and if it always chooses best). What is left over is what the database did.
//!
//! Of a database that a leader decides for (etcd), who leads is in no plan: its members say so ([`Leadership`]), and the ways
//! are those with it.

mod closed_loop;
mod delayed;
mod floor;
mod level;
mod loops;
mod paths;
mod raft;
mod ring;
mod shifted;
mod subjects;
#[cfg(test)]
mod tests;
mod touched;
mod ways;

use brownout_record::{Description, FaultRecord, Placement, Quantity};
use serde::Serialize;

pub use self::{closed_loop::Loss, delayed::Delayed, floor::Floor, shifted::Shifted, touched::Touched};
use self::{
    closed_loop::goodput_loss,
    delayed::Extra,
    floor::Looked,
    loops::Loops,
    paths::Operation,
    subjects::{Delays, Hosts, Packet},
};
use crate::{
    ClosedLoop, Effect, Latencies, Leadership, PhaseFindings, Routes, TrialEvidence, evidence::phase, leaders, little,
    segments::longest_delay, sums::PhaseSums, words,
};

/// What arithmetic explains of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Explained {
    /// The share of the operations that each fault can touch.
    pub touched: Vec<Touched>,
    /// The least latency that the topology allows, by phase and operation.
    pub floors: Vec<Floor>,
    /// What the delays of the faults cost; none where that follows from no plan.
    pub prediction: Option<Prediction>,
    /// Why there is no prediction, or nothing at all.
    pub inapplicable: Option<String>,
    /// Who led when the faults came, where a leader decides: all of this is with that one.
    pub leader: Option<String>,
}

/// What the delays that the faults ask for cost, by the plan and the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// What is added to the operations if the database chooses the best replicas for each.
    pub least: Delayed,
    /// The same if it chooses the worst.
    pub most: Delayed,
    /// Losses.
    pub losses: Vec<Loss>,
    /// Percentiles of the response time.
    pub latencies: Vec<Shifted>,
}

/// All ways of all operations.
struct Model<'a> {
    hosts: Hosts<'a>,
    operations: Vec<Operation<'a>>,
    /// Between the hosts without any fault.
    usual: Delays,
    /// Whether a leader decides.
    is_led: bool,
}

impl<'a> Model<'a> {
    /// `leader`: who leads, where a leader decides.
    fn new(placement: &'a Placement, load: &'a str, routes: &Routes, leader: Option<&str>) -> Result<Self, String> {
        let hosts = Hosts::new(placement, load, routes);
        let usual = Delays::of(placement, &hosts, &[], Packet::Usual);
        let operations = ways::operations(placement, leader)?;
        Ok(Model { operations, hosts, usual, is_led: raft::is_led(placement) })
    }
}

/// The links that the ways between hosts take.
fn routes(description: &Description) -> Routes {
    let hosts: Vec<String> = description.hosts.iter().map(|host| host.name.clone()).collect();
    Routes::new(&description.overlay, &hosts)
}

/// A fault as the record has it, if it hits a node; and whether that leads. None: that is not said.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The node.
    pub node: String,
    /// Whether it is the leader; else it is a follower.
    pub leads: bool,
    /// What the fault is then.
    pub fault: FaultRecord,
}

/// The share of the operations that each of these faults can touch, by the plan alone. Where a leader decides, whoever that is: what
/// must be with each of them, and what may be with one. `Err` with the reason where that follows from no plan.
pub fn touchable(description: &Description, faults: &[FaultRecord]) -> Result<Vec<Touched>, String> {
    let faults: Vec<&FaultRecord> = faults.iter().collect();
    let leaders = leaders_to_be(description);
    let each = leaders.into_iter().map(|leader| with_leader(description, leader, &faults));
    Ok(touched::whoever(each.collect::<Result<_, _>>()?))
}

/// The same of one fault that hits one of these nodes, whichever is drawn when it is injected.
pub fn touchable_by_role(description: &Description, candidates: &[Candidate]) -> Result<Vec<Touched>, String> {
    let of = |candidate: &Candidate| {
        let suits = |leader: &str| (leader == candidate.node) == candidate.leads;
        let is_possible = |leader: &Option<&str>| leader.is_none_or(suits);
        let leaders = leaders_to_be(description).into_iter().filter(is_possible);
        leaders.map(|leader| with_leader(description, leader, &[&candidate.fault])).collect::<Vec<_>>()
    };
    let each = candidates.iter().flat_map(of);
    Ok(touched::whoever(each.collect::<Result<_, _>>()?))
}

/// Who may lead; `None` alone where nobody does.
fn leaders_to_be(description: &Description) -> Vec<Option<&str>> {
    match description.placement.as_ref().filter(|placement| raft::is_led(placement)) {
        Some(placement) => placement.ring.iter().map(|node| Some(node.node.as_str())).collect(),
        None => vec![None],
    }
}

fn with_leader(
    description: &Description,
    leader: Option<&str>,
    faults: &[&FaultRecord],
) -> Result<Vec<Touched>, String> {
    let load = description.hosts.iter().find(|host| host.role == "load");
    let Some((placement, load)) = description.placement.as_ref().zip(load) else {
        return Err("the plan does not say where rows lie".to_owned());
    };
    let model = Model::new(placement, &load.name, &routes(description), leader)?;
    Ok(touched::touched(&model, faults))
}

/// What was measured and computed of a trial before.
pub(crate) struct Measured<'a> {
    pub(crate) sums: &'a [PhaseSums],
    pub(crate) phases: &'a [PhaseFindings],
    pub(crate) closed_loop: Option<&'a ClosedLoop>,
    pub(crate) effect: &'a Effect,
}

/// Explains a trial; none where the record does not tell where rows lie.
pub(crate) fn explained(
    description: &Description,
    evidence: &TrialEvidence,
    measured: &Measured<'_>,
) -> Option<Explained> {
    let placement = description.placement.as_ref()?;
    let load = description.hosts.iter().find(|host| host.role == "load")?;
    let leader = if raft::is_led(placement) { leader(evidence) } else { None };
    let model = match Model::new(placement, &load.name, &routes(description), leader.as_deref()) {
        Ok(model) => model,
        Err(why) => return Some(Explained { inapplicable: Some(why), ..Explained::default() }),
    };
    let faults: Vec<&FaultRecord> = evidence.faults.iter().collect();
    let changing = little::changing(evidence);
    let led_else = |name: &str| another(evidence, leader.as_deref()?, name);
    let why = changing.clone().or_else(|| match faults.iter().any(|fault| longest_delay(fault) > 0) {
        _ if faults.is_empty() => Some("there is no fault".to_owned()),
        true => led_else(phase::BASELINE).or_else(|| led_else(phase::FAULT)),
        false => Some("no fault asks for a delay, and what other faults cost follows from no plan".to_owned()),
    });
    let prediction = if why.is_none() { prediction(description, placement, &model, &faults, measured) } else { None };
    let is_steady = |name: &str| led_else(name).is_none() && (name == phase::BASELINE || changing.is_none());
    Some(Explained {
        touched: touched::touched(&model, &faults),
        floors: floors(placement, &model, &faults, measured, &is_steady),
        inapplicable: why.or_else(|| {
            prediction.is_none().then(|| "the baseline or the fault phase has no answers to compare with".to_owned())
        }),
        prediction,
        leader,
    })
}

/// Who led when the faults came.
fn leader(evidence: &TrialEvidence) -> Option<String> {
    let leaders = leaders::leaders(&evidence.database, &evidence.phases);
    let ends_ns = evidence.phase(phase::BASELINE).map_or(evidence.ends_ns, |baseline| baseline.measured_to_ns);
    leaders::at(&leaders, ends_ns)?.node.clone()
}

/// Who else led in a phase, in words; none if this leader did all through it.
fn another(evidence: &TrialEvidence, leader: &str, name: &str) -> Option<String> {
    let window = evidence.phase(name)?;
    let leaders = leaders::leaders(&evidence.database, &evidence.phases);
    let first = leaders::at(&leaders, window.measured_from_ns)?;
    let is_within = |one: &&Leadership| (window.measured_from_ns..window.measured_to_ns).contains(&one.at_ns);
    let mut all = [first].into_iter().chain(leaders.iter().filter(is_within));
    let other = all.find(|one| one.node.as_deref() != Some(leader) || one.term != first.term)?;
    let who = match &other.node {
        Some(node) => format!("{node} led from term {} on", other.term),
        None => "for some of it nobody did".to_owned(),
    };
    Some(format!("{leader} did not lead all through the {name}: {who}, and the ways of operations changed with that"))
}

/// Of the baseline, and of the fault phase, if the same is in force in all of it.
fn floors(
    placement: &Placement,
    model: &Model<'_>,
    faults: &[&FaultRecord],
    measured: &Measured<'_>,
    is_steady: &dyn Fn(&str) -> bool,
) -> Vec<Floor> {
    // Who is late and nothing else keeps connections, coordinators and replicas as they were.
    let only_late =
        subjects::hits(faults).all(|one| matches!(one.quantity, Quantity::OneWayDelay | Quantity::DelaySpread));
    let mut all = Vec::new();
    for (name, faults, planned) in [(phase::BASELINE, &[][..], true), (phase::FAULT, faults, only_late)] {
        let Some(phase) = measured.phases.iter().find(|phase| phase.name == name) else { continue };
        if name == phase::FAULT && faults.is_empty() || !is_steady(name) {
            continue;
        }
        let delays = |packet| Delays::of(placement, &model.hosts, faults, packet);
        let (quick, quickest) = (delays(Packet::Quick), delays(Packet::Quickest));
        all.extend(floor::floors(model, &Looked { phase, quick: &quick, quickest: planned.then_some(&quickest) }));
    }
    all
}

fn prediction(
    description: &Description,
    placement: &Placement,
    model: &Model<'_>,
    faults: &[&FaultRecord],
    measured: &Measured<'_>,
) -> Option<Prediction> {
    let timeout_ns = description.load.timeout_ns;
    let of = |name: &str| measured.sums.iter().find(|sums| sums.name() == name);
    let (baseline, fault) = (of(phase::BASELINE)?, of(phase::FAULT)?);
    if baseline.response().count() == 0 || fault.response().count() == 0 {
        return None;
    }
    let with = Delays::of(placement, &model.hosts, faults, Packet::Usual);
    // What the plan does not know is as in the baseline.
    let share = |operation: &Operation<'_>| {
        let own = baseline.response_of(&operation.plan.operation).map_or(0, Latencies::count);
        operation.plan.share.unwrap_or(own as f64 / baseline.response().count() as f64)
    };
    let each: Vec<(f64, Vec<Extra>)> = (model.operations.iter())
        .map(|operation| (share(operation), delayed::of_operation(model, operation, &with, timeout_ns)))
        .collect();
    let all = delayed::of_all(&each);
    let ends: [fn(&Extra) -> f64; 2] = [|one| one.least_ns, |one| one.most_ns];
    let [least, most] = ends.map(|end| delayed::delayed(&all, end));

    let mut losses = Vec::new();
    let (before, during) = (baseline.response().mean_ns(), fault.response().mean_ns());
    let loops = Loops { load: &description.load, baseline, operations: &model.operations, each: &each };
    if let Some(closed_loop) = measured.closed_loop.filter(|_| !loops.are_mixed()) {
        let by_latency = (during > 0.0).then(|| 1.0 - before / during);
        let slower = (loops.slower(None, ends[0]), loops.slower(None, ends[1]));
        losses.push(Loss::new("throughput", closed_loop.measured_loss, slower, by_latency));
    }
    let objective = &description.objective;
    let judged = match &objective.operation {
        None if loops.shift() => None,
        None => Some((baseline.response(), &all)),
        Some(name) => {
            let at = model.operations.iter().position(|operation| operation.plan.operation == *name);
            at.and_then(|at| Some((baseline.response_of(name)?, &each.get(at)?.1)))
        }
    };
    if let Some((latencies, extras)) = judged {
        let loss = |end| {
            let slower = loops.slower(objective.operation.as_deref(), end);
            Some(1.0 - (1.0 - slower) * (1.0 - goodput_loss(latencies, objective, extras, end)?))
        };
        if let Some(both) = loss(ends[0]).zip(loss(ends[1])) {
            losses.push(Loss::new("goodput", measured.effect.degradation, both, None));
        }
    }

    let mut latencies = match loops.shift() {
        true => Vec::new(),
        false => shifted::shifted(None, baseline.response(), fault.response(), &all, timeout_ns),
    };
    if model.operations.len() > 1 {
        for (operation, (_, extras)) in model.operations.iter().zip(&each) {
            let name = operation.plan.operation.as_str();
            let Some((before, during)) = baseline.response_of(name).zip(fault.response_of(name)) else { continue };
            latencies.extend(shifted::shifted(Some(name), before, during, extras, timeout_ns));
        }
    }
    Some(Prediction { least, most, losses, latencies })
}

/// Which medians are faster than packets, in words.
pub(crate) fn impossible(explained: Option<&Explained>) -> Vec<String> {
    let floors = explained.into_iter().flat_map(|explained| &explained.floors);
    let impossible = floors.filter(|floor| floor.impossible == Some(true));
    let words = impossible.map(|floor| {
        let ns = |ns: f64| brownout_units::format_ns(ns);
        format!(
            "half of all {} in the {} took {} at most, and by the declared distances it is {} at least: rows, coordinators or \
             distances are not as planned, or the load's latencies are wrong",
            words::operations(&floor.operation),
            floor.phase,
            floor.p50_ns.map_or_else(String::new, |p50| ns(p50 as f64)),
            ns(floor.floor_ns)
        )
    });
    words.collect()
}
