//! A machine that sends operations is lost in the middle of a trial: what is missing is counted, and where it is too much, the trial
//! says nothing.

use brownout_analysis::{LOST_SHARE, TrialFindings, Validity, findings};
use brownout_record::{Event, MachineRole, MachineRow, Recorder, Run};

use super::common::{SECOND, Synthetic};

/// The only trial of a run, and its warnings, in which one of so many loads is lost so many seconds after its beginning.
fn without_one_of(loads: usize, lost_s: u64) -> (TrialFindings, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    drop(Synthetic { trials: 1, planned_trials: 1, ..Synthetic::default() }.run(directory.path()));
    let mut recorder = Recorder::resume(&directory.path().join("run.db"), 0, 0).unwrap();
    recorder
        .batch(|recorder| {
            for load in 0..loads {
                let machine =
                    MachineRow { machine: format!("load-{load}"), role: MachineRole::Load, hosts: Vec::new() };
                recorder.machine(1, &machine)?;
            }
            recorder.event(&Event {
                trial: Some(1),
                at_ns: lost_s * SECOND,
                error_ns: 0,
                kind: "load-lost".to_owned(),
                subject: "load-1".to_owned(),
                text: "it has ended without a word".to_owned(),
            })
        })
        .unwrap();
    recorder.finish().unwrap();
    let mut found = findings(&Run::open(directory.path()).unwrap()).unwrap();
    (found.trials.remove(0), found.warnings)
}

/// Phases of 2, 4, 10, 10, 10 s: the fault begins at 16 s.
#[test]
fn a_trial_that_lacks_a_part_of_its_load_is_invalid_and_says_how_much_of_which_phase() {
    let (trial, _) = without_one_of(2, 21);
    assert_eq!(trial.validity, Validity::Invalid);
    let lost = trial.machines[1].lost.as_ref().unwrap();
    assert!(trial.machines[0].lost.is_none());
    let shares = ["baseline", "fault", "recovery"].map(|phase| (lost.shares[phase] * 100.0).round());
    assert_eq!(shares, [0.0, 25.0, 50.0], "{lost:?}");
    let reason = trial.invalid.iter().find(|reason| reason.contains("load-1 was lost at 21.0 s")).unwrap();
    assert!(reason.contains("of that of the fault, 50.0% of that of the recovery"), "{reason}");
}

#[test]
fn what_hardly_matters_is_a_warning() {
    // Of 200 loads one is 0.5 %.
    let (trial, warnings) = without_one_of(200, 21);
    assert_eq!((trial.validity, LOST_SHARE), (Validity::Valid, 0.01), "{:?}", trial.invalid);
    assert!(warnings.iter().any(|warning| warning.contains("load-1 was lost at 21.0 s")), "{warnings:?}");
}

#[test]
fn one_that_was_lost_when_all_was_sent_lacks_nothing() {
    let (trial, warnings) = without_one_of(2, 36);
    assert_eq!(trial.validity, Validity::Valid, "{:?}", trial.invalid);
    assert!(
        warnings.iter().any(|warning| warning.contains("all of its measured load was sent before")),
        "{warnings:?}"
    );
}
