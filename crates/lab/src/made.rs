//! What sessions of a run have made so far, as its file has it.

use std::{collections::BTreeMap, fs, path::Path};

use brownout_analysis::{Judge, Judged, Validity};
use brownout_record::{Run, TrialRow, TrialState};

use crate::{LabError, planner::Settled};

/// What earlier sessions have made.
pub(crate) struct Made {
    /// The last number of a trial.
    pub(crate) trials: u32,
    /// The last number of a stand.
    pub(crate) stands: u32,
    /// Whether the environment is known.
    pub(crate) environment: bool,
    /// Planned trials that need not be tried again.
    pub(crate) settled: Settled,
    /// Attempts at planned trials, by their numbers. One that was cut short is none, nor is one that never had a stand and with
    /// which its session ended: it says nothing of the trial.
    pub(crate) attempts: BTreeMap<u32, u32>,
}

impl Made {
    /// Reads a run, by its directory or file.
    pub(crate) fn read(path: &Path, most_attempts: u32) -> Result<Made, LabError> {
        let run = Run::open(path)?;
        let mut made = Made {
            trials: 0,
            stands: run.path().parent().map_or(0, last_stand),
            environment: run.environment()?.is_some(),
            settled: Settled::new(),
            attempts: BTreeMap::new(),
        };
        let rows = run.trials()?;
        let judge = judge(&run)?;
        for (at, row) in rows.iter().enumerate() {
            made.trials = made.trials.max(row.trial);
            made.stands = made.stands.max(row.stand);
            let ended_its_session = rows.get(at + 1).is_none_or(|next| next.session != row.session);
            let never_stood = row.state == TrialState::Failed && row.stand == 0 && ended_its_session;
            if matches!(row.state, TrialState::Done | TrialState::Failed) && !never_stood {
                let attempts = made.attempts.entry(row.planned).or_default();
                *attempts += 1;
                let judged = judged(&judge, row)?;
                let is_valid = row.state == TrialState::Done && judged.validity == Validity::Valid;
                if is_valid || (*attempts >= most_attempts && !made.settled.contains_key(&row.planned)) {
                    made.settled.insert(row.planned, judged.lesson);
                }
            }
        }
        Ok(made)
    }
}

fn judge(run: &Run) -> Result<Judge<'_>, LabError> {
    Judge::new(run).map_err(|error| LabError::Trial(format!("{} cannot be judged: {error}", run.path().display())))
}

fn judged(judge: &Judge<'_>, row: &TrialRow) -> Result<Judged, LabError> {
    let trial = row.trial;
    judge.judged(row).map_err(|error| LabError::Trial(format!("trial {trial} cannot be judged: {error}")))
}

/// What a trial that has just ended has shown, and whether that can be used.
pub(crate) fn judged_now(path: &Path, trial: u32) -> Result<Judged, LabError> {
    let run = Run::open(path)?;
    let row = run.trials()?.into_iter().find(|row| row.trial == trial);
    let row = row.ok_or_else(|| LabError::Trial(format!("trial {trial} is not in {}", path.display())))?;
    judged(&judge(&run)?, &row)
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
    use brownout_record::{Arm, Recorder};

    use super::*;
    use crate::{design::Design, experiment::Source};

    #[test]
    fn an_attempt_that_never_had_a_stand_counts_unless_its_session_ended_with_it() {
        let file = "load: { rate: 400/s }\nphases: { warm-up: 20s, baseline: 5s }\nobjective: { p95: 1s }\n";
        let source = Source::from_text(Path::new("some.yaml"), file.to_owned()).unwrap();
        let cells = Design::new(&source).unwrap().cell_rows(|_| String::new());
        let failed = |trial: u32, session: u32, stand: u32| TrialRow {
            trial,
            session,
            stand,
            ends_ns: Some(2),
            state: TrialState::Failed,
            ..TrialRow::single(1, 1, Arm::None)
        };
        let rows = [failed(1, 1, 0), failed(2, 1, 1), failed(3, 1, 0), failed(4, 2, 0)];
        let directory = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
        recorder
            .batch(|recorder| {
                cells.iter().try_for_each(|row| recorder.cell(row))?;
                rows.iter().try_for_each(|row| recorder.trial(row))
            })
            .unwrap();
        recorder.finish().unwrap();
        let made = |most| Made::read(directory.path(), most).unwrap();
        assert_eq!((made(3).trials, made(3).stands, made(3).attempts), (4, 1, BTreeMap::from([(1, 2)])));
        assert_eq!((made(3).settled.len(), made(2).settled.len()), (0, 1));
    }

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
