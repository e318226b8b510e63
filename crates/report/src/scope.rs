//! What most of a report is of: one cell of a run, with its trials.

use std::ops::Deref;

use brownout_analysis::{CellFindings, Findings, TrialFindings, Validity};
use brownout_record::Arm;

/// So many trials of a cell are shown one by one on a terminal.
const ONE_BY_ONE: usize = 6;

/// One cell of a run.
#[derive(Clone)]
pub struct Scope<'a> {
    /// The run.
    pub findings: &'a Findings,
    cell: &'a CellFindings,
    /// Its trials, every attempt, and those without a fault that it is compared with.
    pub trials: Vec<&'a TrialFindings>,
}

impl<'a> Scope<'a> {
    /// All cells of a run, each by itself. Where there is one, all trials are its own.
    pub fn all(findings: &'a Findings) -> Vec<Scope<'a>> {
        findings.cells.iter().map(|cell| Scope::of(findings, cell)).collect()
    }

    fn of(findings: &'a Findings, cell: &'a CellFindings) -> Scope<'a> {
        let is_of = |trial: &&TrialFindings| {
            let own = trial.cell == cell.cell && (trial.arm == Arm::Fault || cell.planned_faults.is_empty());
            findings.cells.len() == 1 || own || cell.compared_with.contains(&trial.trial)
        };
        Scope { findings, cell, trials: findings.trials.iter().filter(is_of).collect() }
    }

    /// The same with those first that show most: with its faults, and valid.
    pub fn telling_first(&self) -> Scope<'a> {
        let mut scope = self.clone();
        scope.trials.sort_by_key(|trial| (trial.arm == Arm::None, trial.validity != Validity::Valid));
        scope
    }

    /// The same with as many trials as a terminal has room for: of many the first valid one with the faults, the first valid one
    /// without, and the last attempt at each of which none is valid.
    pub fn brief(&self) -> Scope<'a> {
        let mut scope = self.clone();
        if scope.trials.len() <= ONE_BY_ONE {
            return scope;
        }
        let valid = || self.trials.iter().filter(|trial| trial.validity == Validity::Valid);
        let first = |arm| valid().find(|trial| trial.arm == arm).map(|trial| trial.trial);
        let first = [first(Arm::Fault), first(Arm::None)];
        let of = |planned: u32| self.trials.iter().filter(move |trial| trial.planned == planned);
        scope.trials.retain(|trial| {
            let never_valid = valid().all(|other| other.planned != trial.planned);
            let is_last = of(trial.planned).all(|other| other.attempt <= trial.attempt);
            first.contains(&Some(trial.trial)) || (never_valid && is_last)
        });
        scope
    }

    /// What a trial of it is called.
    pub fn name(&self, trial: &TrialFindings) -> String {
        let without = trial.arm == Arm::None && !self.planned_faults.is_empty();
        format!("trial {}{}", trial.label(), if without { ", no fault" } else { "" })
    }

    /// Those of its trials that have its faults.
    pub fn own(&self) -> impl Iterator<Item = &'a TrialFindings> + '_ {
        self.trials.iter().copied().filter(|trial| trial.arm == Arm::Fault || self.planned_faults.is_empty())
    }
}

impl Deref for Scope<'_> {
    type Target = CellFindings;

    fn deref(&self) -> &CellFindings {
        self.cell
    }
}
