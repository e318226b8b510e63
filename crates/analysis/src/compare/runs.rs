//! The runs of a side, each with its valid trials.

use brownout_record::{Objective, Run};

use super::object::Side;
use crate::{AnalysisError, PhaseFindings, TrialEvidence, TrialFindings, evidence::phase, findings, sums::PhaseSums};

/// A run: its valid trials, at least one.
pub(super) struct RunTrials(pub(super) Vec<Trial>);

/// A valid trial: its measured phases, in order.
pub(super) struct Trial(Vec<PhaseFindings>);

impl Trial {
    pub(super) fn phase(&self, name: &str) -> Option<&PhaseFindings> {
        self.0.iter().find(|phase| phase.name == name)
    }
}

/// Reads a side; what counts as good is the comparison's.
pub(super) fn side(runs: &[Run], objective: &Objective) -> Result<(Side, Vec<RunTrials>), AnalysisError> {
    let mut side = Side { runs: Vec::new(), name: String::new(), compared: 0, trials: 0, left_out: Vec::new() };
    let mut compared = Vec::new();
    for run in runs {
        let path = run.path().display().to_string();
        if side.runs.contains(&path) {
            side.left_out.push(format!("{path} is named twice: it is no other run"));
            continue;
        }
        let found = findings(run)?;
        if side.name.is_empty() {
            side.name.clone_from(&found.name);
        }
        if found.trials.is_empty() {
            side.left_out.push(format!("{path} has no trial"));
        }
        let same_objective = found.objective == *objective;
        let mut trials = Vec::new();
        for (row, known) in run.trials()?.iter().zip(found.trials) {
            if let Some(why) = unfit(&known) {
                side.left_out.push(format!("trial {} of {path}: {why}", known.trial));
                continue;
            }
            let mut phases = match same_objective {
                true => known.phases,
                false => {
                    let evidence = TrialEvidence::read(run, row)?;
                    let of = |window| PhaseSums::of(&evidence, window, objective).findings(objective);
                    evidence.phases.iter().map(of).collect()
                }
            };
            phases.retain(|one| phase::MEASURED.contains(&one.name.as_str()) && one.rates.is_some());
            trials.push(Trial(phases));
        }
        side.trials += trials.len() as u32;
        if !trials.is_empty() {
            side.compared += 1;
            compared.push(RunTrials(trials));
        }
        side.runs.push(path);
    }
    Ok((side, compared))
}

/// Why a trial proves nothing.
fn unfit(trial: &TrialFindings) -> Option<String> {
    if trial.cut {
        return Some("it was cut short".to_owned());
    }
    trial.invalid.first().map(|reason| reason.lines().next().unwrap_or_default().to_owned())
}
