//! What a search has found, from its record alone.

use crate::common::{MS, Synthetic};
use brownout_analysis::{Findings, Judge, Lesson, Outcome, ThresholdOutcome, Validity, findings};
use brownout_record::{Run, SearchDescription};

/// What everything n2 sends is late by, ms: from 56 on, a third of the operations takes longer than the objective's 50 ms.
const LEVELS: &[u64] = &[10, 14, 20, 28, 40, 56, 79, 112, 158, 224, 316, 447, 631];

fn zone() -> SearchDescription {
    SearchDescription::DangerZone { thresholds: vec![0.1, 0.5], from: "10ms".to_owned(), to: "631ms".to_owned() }
}

/// The severities so often, with six trials without a fault each time.
fn run(times: u32) -> Synthetic {
    Synthetic {
        trials: times,
        planned_trials: times,
        without: 6,
        levels: LEVELS,
        search: Some(zone()),
        seconds: [1, 2, 6, 8, 3],
        ..Synthetic::default()
    }
}

fn found(run: &Synthetic) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&run.run(directory.path())).unwrap()
}

/// What a search learns from the first trial of a run.
fn learned(run: &Run) -> Lesson {
    Judge::new(run).unwrap().judged(&run.trials().unwrap()[0]).unwrap().lesson.unwrap()
}

#[test]
fn a_finished_search_tells_where_each_threshold_is_passed() {
    let found = found(&run(2));
    let search = found.search.as_ref().unwrap();
    assert!(search.is_over && search.is_told, "{search:?}");
    assert_eq!((search.kind, search.factor.as_str(), search.without_fault), ("danger-zone", "delay", 12));
    let [ten, fifty] = &search.thresholds[..] else { panic!("{search:?}") };
    assert_eq!(
        (ten.outcome, ten.low.as_deref(), ten.high.as_deref()),
        (ThresholdOutcome::Between, Some("40ms"), Some("56ms"))
    );
    assert_eq!(
        (fifty.outcome, fifty.low.as_deref(), fifty.high.as_deref()),
        (ThresholdOutcome::NotReached, Some("631ms"), None)
    );
    let levels: Vec<&str> = search.levels.iter().map(|level| level.level.as_str()).collect();
    assert_eq!(levels, LEVELS.iter().map(|level| format!("{level}ms")).collect::<Vec<_>>());
    assert!(search.levels.iter().all(|level| level.trials == 2 && level.losses.len() == 2));
    assert!((search.levels[12].loss.unwrap() - 0.333).abs() < 0.02, "{:?}", search.levels[12]);
    assert_eq!((found.verdict.validity, found.verdict.exit_code), (Validity::Valid, 0), "{:?}", found.verdict);
    assert!(found.verdict.sentence.contains("passes 10% between delay 40ms and 56ms"), "{}", found.verdict.sentence);
    assert!(found.verdict.sentence.contains("50% of the goodput is not reached up to delay 631ms"));
    assert!(found.cells.iter().all(|cell| cell.effect.outcome == Outcome::NotJudged), "no cell has blocks of its own");
    assert!(found.factors.is_empty());
    assert!(found.cells[12].sentence.starts_with("Lost 33."), "{}", found.cells[12].sentence);
}

#[test]
fn a_search_that_would_go_on_is_interrupted() {
    // After the first look it would look between 40 and 56 ms.
    let found = found(&run(1));
    let search = found.search.as_ref().unwrap();
    assert!(!search.is_over && search.trials == 19, "{search:?}");
    assert_eq!((found.verdict.validity, found.verdict.exit_code), (Validity::Interrupted, 130));
    assert!(found.verdict.sentence.contains("the search has not ended after 19 trials"), "{}", found.verdict.sentence);
}

#[test]
fn only_valid_trials_teach_and_one_that_may_be_repeated_is_not_settled() {
    let spoilt = found(&Synthetic { spoilt: &[3], ..run(1) });
    let search = spoilt.search.unwrap();
    assert_eq!(search.trials, 19);
    assert!(search.levels.iter().all(|level| (level.trials, level.untold) == (1, 0)), "its second attempt is valid");
    // None of three attempts: two are not enough to go on without it.
    let all = found(&Synthetic { invented: 1, ..run(1) });
    assert_eq!(all.search.unwrap().trials, 0);
}

#[test]
fn a_trial_keeps_an_objective_by_all_operations_that_were_due_in_its_fault_phase() {
    for (within, failing, kept) in [(50, 0.0, Some(false)), (200, 0.0, Some(true)), (200, 0.02, Some(false))] {
        let search = SearchDescription::MaxRate {
            share: 0.99,
            response_ns: within * MS,
            from: "300/s".to_owned(),
            to: "3k/s".to_owned(),
            precision: 0.1,
        };
        let fails: fn(u32, &str, u64) -> f64 =
            if failing > 0.0 { |_, phase, _| if phase == "fault" { 0.02 } else { 0.0 } } else { |_, _, _| 0.0 };
        let directory = tempfile::tempdir().unwrap();
        let run = Synthetic { trials: 1, search: Some(search.clone()), failing: fails, ..Synthetic::default() };
        let lesson = learned(&run.run(directory.path()));
        assert_eq!((lesson.kept, lesson.log_ratio), (kept, None), "{within} ms");
        let directory = tempfile::tempdir().unwrap();
        let invalid = Synthetic { invented: 1, ..run }.run(directory.path());
        assert_eq!(learned(&invalid).kept, None);
    }
}
