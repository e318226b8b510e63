//! The trials of a side, each with its phases whole and in halves.

use brownout_record::{Objective, Run};

use super::object::{Setting, Side};
use crate::{
    AnalysisError, PhaseFindings, TrialEvidence, TrialFindings,
    evidence::{PhaseWindow, phase},
    findings,
    sums::PhaseSums,
};

/// A valid trial.
pub(super) struct Trial {
    pub(super) seed: u64,
    /// By name, in order.
    pub(super) phases: Vec<TrialPhase>,
    /// What the faults took from goodput, a share of the baseline.
    pub(super) degradation: Option<f64>,
}

/// A phase of it.
pub(super) struct TrialPhase {
    pub(super) whole: PhaseFindings,
    /// Its first and its second half: what they differ by is the noise of one trial.
    pub(super) halves: [PhaseFindings; 2],
}

impl Trial {
    pub(super) fn phase(&self, name: &str) -> Option<&TrialPhase> {
        self.phases.iter().find(|phase| phase.whole.name == name)
    }
}

/// Reads a side; what counts as good is the comparison's.
pub(super) fn side(runs: &[Run], objective: &Objective) -> Result<(Side, Vec<Trial>), AnalysisError> {
    let mut side = Side { runs: Vec::new(), name: String::new(), trials: 0, left_out: Vec::new() };
    let mut trials = Vec::new();
    for run in runs {
        let path = run.path().display().to_string();
        let found = findings(run)?;
        let same_objective = found.cells.first().is_some_and(|cell| cell.objective == *objective);
        if side.name.is_empty() {
            side.name.clone_from(&found.name);
        }
        if found.trials.is_empty() {
            side.left_out.push(format!("{path} has no trial"));
        }
        for (row, known) in run.trials()?.iter().zip(&found.trials) {
            if let Some(why) = unfit(known) {
                side.left_out.push(format!("trial {} of {path}: {why}", known.trial));
                continue;
            }
            let evidence = TrialEvidence::read(run, row)?;
            let mut phases = Vec::new();
            for window in evidence.phases.iter().filter(|window| phase::MEASURED.contains(&window.name.as_str())) {
                phases.extend(in_halves(&evidence, window, objective));
            }
            let degradation = known.effect.degradation.filter(|_| same_objective);
            trials.push(Trial { seed: known.seed, phases, degradation });
        }
        side.runs.push(path);
    }
    side.trials = trials.len() as u32;
    Ok((side, trials))
}

/// Why a trial proves nothing.
fn unfit(trial: &TrialFindings) -> Option<String> {
    if trial.cut {
        return Some("it was cut short".to_owned());
    }
    trial.invalid.first().map(|reason| reason.lines().next().unwrap_or_default().to_owned())
}

fn in_halves(evidence: &TrialEvidence, window: &PhaseWindow, objective: &Objective) -> Option<TrialPhase> {
    let intervals: Vec<_> = evidence.intervals_of(window).collect();
    let (first, second) = intervals.split_at(intervals.len() / 2);
    let of = |part: &[&_]| PhaseSums::of_intervals(window, part.iter().copied(), objective);
    let whole = of(&intervals).findings(objective);
    let halves = [first, second].map(|half| of(half).findings(objective));
    whole.rates.is_some().then_some(TrialPhase { whole, halves })
}

/// What the two sides do not have in common, of what was asked for and what it ran on.
pub(super) fn differing(a: &[Run], b: &[Run]) -> Result<Vec<Setting>, AnalysisError> {
    let (a, b) = (settings(a)?, settings(b)?);
    let differ = a.into_iter().zip(b).filter(|((_, a), (_, b))| a != b);
    Ok(differ.map(|((name, a), (_, b))| Setting { name: name.to_owned(), a, b }).collect())
}

/// All settings of a side's runs, in words.
fn settings(runs: &[Run]) -> Result<Vec<(&'static str, String)>, AnalysisError> {
    let mut all: Vec<(&'static str, Vec<String>)> = Vec::new();
    for run in runs {
        let plan = run.description()?;
        let environment = run.environment()?.unwrap_or_default();
        let nodes = plan.hosts.iter().filter(|host| host.role == "node").count();
        let phases: Vec<String> = plan
            .phases
            .iter()
            .map(|phase| format!("{} {}", phase.name, brownout_units::format_ns(phase.length_ns as f64)))
            .collect();
        let objective = &plan.objective;
        let good = format!(
            "{:.2}% within {}{}",
            objective.share * 100.0,
            brownout_units::format_ns(objective.response_ns as f64),
            objective.operation.as_ref().map_or_else(String::new, |name| format!(" of {name}"))
        );
        let given = [
            ("system", plan.system),
            ("its settings", environment.system_settings),
            ("java", environment.java),
            ("nodes", nodes.to_string()),
            ("network", plan.network.join("; ")),
            ("load", plan.load.text),
            ("consistency", plan.load.consistency),
            ("replication", plan.load.replication.to_string()),
            ("time-out", brownout_units::format_ns(plan.load.timeout_ns as f64)),
            ("good", good),
            ("phases", phases.join(", ")),
            ("faults", plan.faults.join("; ")),
            ("brownout", environment.version),
            ("kernel", environment.kernel),
            ("processor", format!("{} × {}", environment.cores, environment.cpu)),
        ];
        for (name, text) in given {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, texts)) if texts.contains(&text) => {}
                Some((_, texts)) => texts.push(text),
                None => all.push((name, vec![text])),
            }
        }
    }
    Ok(all.into_iter().map(|(name, texts)| (name, texts.join(" | "))).collect())
}
