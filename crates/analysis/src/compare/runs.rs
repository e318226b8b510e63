//! The runs of a side, each with its valid trials.

use brownout_record::{Arm, Objective, Run};

use super::object::Side;
use crate::{
    AnalysisError, CellFindings, PhaseFindings, TrialEvidence, TrialFindings, evidence::phase, findings,
    sums::PhaseSums,
};

/// The valid trials of a run's cell with its faults, at least one.
pub(super) struct RunTrials(pub(super) Vec<Trial>);

/// Of each cell, by its levels in words, what each run has; in the order of the first run.
pub(super) type Cells = Vec<(String, Vec<RunTrials>)>;

/// A valid trial: its measured phases, in order.
pub(super) struct Trial(Vec<PhaseFindings>);

impl Trial {
    pub(super) fn phase(&self, name: &str) -> Option<&PhaseFindings> {
        self.0.iter().find(|phase| phase.name == name)
    }
}

/// Reads a side; what counts as good is the comparison's.
pub(super) fn side(runs: &[Run], objective: &Objective) -> Result<(Side, Cells), AnalysisError> {
    let mut side = Side { runs: Vec::new(), name: String::new(), compared: 0, trials: 0, left_out: Vec::new() };
    let mut compared: Cells = Vec::new();
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
        let mut cells: Vec<(&CellFindings, Vec<Trial>)> = found.cells.iter().map(|cell| (cell, Vec::new())).collect();
        for (row, known) in run.trials()?.iter().zip(&found.trials) {
            if let Some(why) = unfit(known) {
                side.left_out.push(format!("trial {} of {path}: {why}", known.label()));
                continue;
            }
            // Those without a fault are what the cell's own effect is judged by.
            let is_of = |cell: &CellFindings| {
                cell.cell == known.cell && (known.arm == Arm::Fault || cell.planned_faults.is_empty())
            };
            let Some((cell, trials)) = cells.iter_mut().find(|(cell, _)| is_of(cell)) else { continue };
            let mut phases = match cell.objective == *objective {
                true => known.phases.clone(),
                false => {
                    let evidence = TrialEvidence::read(run, row)?;
                    let of = |window| PhaseSums::of(&evidence, window, objective).findings(objective);
                    evidence.phases.iter().map(of).collect()
                }
            };
            phases.retain(|one| phase::MEASURED.contains(&one.name.as_str()) && one.rates.is_some());
            trials.push(Trial(phases));
        }
        let trials: usize = cells.iter().map(|(_, trials)| trials.len()).sum();
        side.trials += trials as u32;
        side.compared += u32::from(trials > 0);
        for (cell, trials) in cells.into_iter().filter(|(_, trials)| !trials.is_empty()) {
            match compared.iter_mut().find(|(text, _)| *text == cell.text) {
                Some((_, runs)) => runs.push(RunTrials(trials)),
                None => compared.push((cell.text.clone(), vec![RunTrials(trials)])),
            }
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
