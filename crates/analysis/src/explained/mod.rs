//! What arithmetic explains: what the plan of a run says before it is made, beside what was measured.
//!
//! The plan says where rows lie, who is asked for them and how far hosts stand apart ([`Placement`]). So for every operation all its
//! ways can be enumerated: who coordinates it, which replicas hold its row, and which answers its consistency waits for. From these
//! follow the share of operations that a fault can touch, the least latency that the topology allows, and what a delay costs if
//! the database does nothing about it (and if it always chooses best). What is left over is what the database did.

mod closed_loop;
mod delayed;
mod floor;
mod level;
mod loops;
mod places;
mod ring;
mod shifted;
#[cfg(test)]
mod tests;
mod touched;
mod ways;

use brownout_record::{Description, FaultRecord, Placement, Quantity};
use serde::Serialize;

pub(crate) use self::closed_loop::over_trials;
pub use self::{closed_loop::Loss, delayed::Delayed, floor::Floor, shifted::Shifted, touched::Touched};
use self::{
    closed_loop::goodput_loss,
    delayed::Extra,
    floor::Looked,
    loops::Loops,
    places::{Delays, Hosts, Packet},
    ways::Operation,
};
use crate::{
    ClosedLoop, Effect, Latencies, PhaseFindings, TrialEvidence, evidence::phase, little, segments::longest_delay,
    sums::PhaseSums,
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
}

impl<'a> Model<'a> {
    fn new(placement: &'a Placement, load: &'a str) -> Result<Self, String> {
        let hosts = Hosts::new(placement, load);
        let usual = Delays::of(placement, &hosts, &[], Packet::Usual);
        Ok(Model { operations: ways::operations(placement)?, hosts, usual })
    }
}

/// The share of the operations that each of these faults can touch, by the plan alone. `Err` with the reason where that follows from
/// no plan.
pub fn touchable(description: &Description, faults: &[FaultRecord]) -> Result<Vec<Touched>, String> {
    let load = description.hosts.iter().find(|host| host.role == "load");
    let Some((placement, load)) = description.placement.as_ref().zip(load) else {
        return Err("the plan does not tell where rows lie".to_owned());
    };
    let model = Model::new(placement, &load.name)?;
    Ok(touched::touched(&model, &faults.iter().collect::<Vec<_>>()))
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
    let model = match Model::new(placement, &load.name) {
        Ok(model) => model,
        Err(why) => return Some(Explained { inapplicable: Some(why), ..Explained::default() }),
    };
    let faults: Vec<&FaultRecord> = evidence.faults.iter().collect();
    let changing = little::changing(evidence);
    let why = changing.clone().or_else(|| match faults.iter().any(|fault| longest_delay(fault) > 0) {
        _ if faults.is_empty() => Some("there is no fault".to_owned()),
        true => None,
        false => Some("no fault asks for a delay, and what other faults cost follows from no plan".to_owned()),
    });
    let prediction = if why.is_none() { prediction(description, placement, &model, &faults, measured) } else { None };
    Some(Explained {
        touched: touched::touched(&model, &faults),
        floors: floors(placement, &model, &faults, measured, changing.is_none()),
        inapplicable: why.or_else(|| {
            prediction.is_none().then(|| "the baseline or the fault phase has no answers to compare with".to_owned())
        }),
        prediction,
    })
}

/// Of the baseline, and of the fault phase if the same is in force in all of it.
fn floors(
    placement: &Placement,
    model: &Model<'_>,
    faults: &[&FaultRecord],
    measured: &Measured<'_>,
    constant: bool,
) -> Vec<Floor> {
    // Who is late and nothing else keeps connections, coordinators and replicas as they were.
    let only_late =
        places::hits(faults).all(|one| matches!(one.quantity, Quantity::OneWayDelay | Quantity::DelaySpread));
    let mut all = Vec::new();
    for (name, faults, planned) in [(phase::BASELINE, &[][..], true), (phase::FAULT, faults, only_late)] {
        let Some(phase) = measured.phases.iter().find(|phase| phase.name == name) else { continue };
        if name == phase::FAULT && (faults.is_empty() || !constant) {
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
            "half of all {}s in the {} took {} at most, and by the declared distances it is {} at least: rows, coordinators or \
             distances are not as planned, or the load's latencies are wrong",
            floor.operation,
            floor.phase,
            floor.p50_ns.map_or_else(String::new, |p50| ns(p50 as f64)),
            ns(floor.floor_ns)
        )
    });
    words.collect()
}
