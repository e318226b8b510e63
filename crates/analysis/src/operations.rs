//! What the fault cost each operation: single tables, where the load has several.

use serde::Serialize;

use crate::{PhaseFindings, Range, TrialFindings, evidence::phase, stats};

/// One operation's goodput before and with the fault, all trials together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationEffect {
    /// Its name, as the load has it.
    pub name: String,
    /// Good ones per second of the baseline: answered ok within the objective's response time, whichever operation the
    /// objective itself is of.
    pub baseline: Option<f64>,
    /// Good ones per second of the fault phase.
    pub fault: Option<f64>,
    /// (baseline − fault) ÷ baseline; negative when the fault phase was better.
    pub degradation: Option<f64>,
    /// The same of single trials: the smallest and the largest.
    pub trials: Option<Range>,
}

/// The effect on each operation that the baseline or the fault phase has.
pub(crate) fn effects(union: &[PhaseFindings], trials: &[&TrialFindings]) -> Vec<OperationEffect> {
    let (Some(baseline), Some(fault)) = (find(union, phase::BASELINE), find(union, phase::FAULT)) else {
        return Vec::new();
    };
    let mut names: Vec<&str> =
        baseline.statements.iter().chain(&fault.statements).map(|part| part.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let effect = |name: &str| {
        let of_trials = trials.iter().filter_map(|trial| {
            let (before, during) = (find(&trial.phases, phase::BASELINE)?, find(&trial.phases, phase::FAULT)?);
            stats::loss(goodput(before, name), goodput(during, name))
        });
        let range = of_trials.fold(None, |range: Option<Range>, value| {
            let range = range.unwrap_or(Range { min: value, max: value });
            Some(Range { min: range.min.min(value), max: range.max.max(value) })
        });
        let (before, during) = (goodput(baseline, name), goodput(fault, name));
        OperationEffect {
            name: name.to_owned(),
            baseline: before,
            fault: during,
            degradation: stats::loss(before, during),
            trials: range,
        }
    };
    names.into_iter().map(effect).collect()
}

fn find<'a>(phases: &'a [PhaseFindings], name: &str) -> Option<&'a PhaseFindings> {
    phases.iter().find(|phase| phase.name == name)
}

/// 0 if the phase was measured without any of it.
fn goodput(phase: &PhaseFindings, name: &str) -> Option<f64> {
    let part = phase.statements.iter().find(|part| part.name == name);
    phase.rates.map(|_| part.and_then(|part| part.goodput).unwrap_or(0.0))
}
