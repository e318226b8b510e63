//! What sessions of a run have made so far, as its file has it.

use std::{collections::BTreeMap, fs, path::Path};

use brownout_analysis::Validity;
use brownout_record::{Run, TrialState};

use crate::{
    LabError,
    design::{Design, PlannedTrial},
};

/// What earlier sessions have made.
pub(crate) struct Made {
    /// The last number of a trial.
    pub(crate) trials: u32,
    /// The last number of a stand.
    pub(crate) stands: u32,
    /// Whether the environment is known.
    pub(crate) environment: bool,
    /// Attempts by the number of the planned trial, and whether one is valid. One that was cut short is none.
    attempts: BTreeMap<u32, (u32, bool)>,
}

impl Made {
    /// Reads a run, by its directory or file.
    pub(crate) fn read(path: &Path) -> Result<Made, LabError> {
        let run = Run::open(path)?;
        let mut made = Made {
            trials: 0,
            stands: run.path().parent().map_or(0, last_stand),
            attempts: BTreeMap::new(),
            environment: run.environment()?.is_some(),
        };
        for row in run.trials()? {
            made.trials = made.trials.max(row.trial);
            made.stands = made.stands.max(row.stand);
            let is_valid = row.state == TrialState::Done && validity(&run, row.trial)?.0 == Validity::Valid;
            let known = made.attempts.entry(row.planned).or_default();
            if matches!(row.state, TrialState::Done | TrialState::Failed) {
                *known = (known.0 + 1, known.1 || is_valid);
            }
        }
        Ok(made)
    }

    /// How often a trial was tried, and whether one attempt was valid.
    pub(crate) fn attempts(&self, trial: PlannedTrial) -> (u32, bool) {
        self.attempts.get(&trial.number).copied().unwrap_or_default()
    }

    /// Whether a trial is still to be tried.
    pub(crate) fn lacks(&self, design: &Design, trial: PlannedTrial) -> bool {
        let (attempts, is_valid) = self.attempts(trial);
        !is_valid && attempts < design.attempts
    }
}

/// Whether a trial's evidence can be used, and why not.
pub(crate) fn validity(run: &Run, trial: u32) -> Result<(Validity, Option<String>), LabError> {
    brownout_analysis::validity(run, trial)
        .map(|(validity, reasons)| (validity, reasons.into_iter().next()))
        .map_err(|error| LabError::Trial(format!("trial {trial} cannot be judged: {error}")))
}

/// The last stand that has begun to log: one that was killed while it was built is in no trial's row, and what it left is not to be
/// mixed with another's.
fn last_stand(run: &Path) -> u32 {
    let logs = fs::read_dir(run.join("logs")).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix("stand-")?.parse().ok();
    logs.filter_map(|entry| number(entry.file_name().to_str()?)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stands_that_only_began_to_log_are_counted() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(last_stand(run.path()), 0);
        for name in ["stand-2", "stand-10", "stand-x", "other"] {
            fs::create_dir_all(run.path().join("logs").join(name)).unwrap();
        }
        assert_eq!(last_stand(run.path()), 10);
    }
}
