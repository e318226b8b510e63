//! What two sides say of each other.

#![allow(clippy::unwrap_used)] // What supports tests may unwrap, too.

mod common;

use brownout_analysis::{Compared, Comparison, Outcome, compare};
use brownout_record::{Run, TrialState};
use common::{MS, Synthetic};

fn sides(a: &Synthetic, b: &Synthetic) -> Comparison {
    let (of_a, of_b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    compare(&[a.run(of_a.path())], &[b.run(of_b.path())]).unwrap()
}

/// Nothing is too slow; what fails is given.
fn trials(count: u32, failing: fn(u32, &str, u64) -> f64) -> Synthetic {
    Synthetic {
        trials: count,
        planned_trials: count,
        asked: 10 * MS,
        shown: 10 * MS,
        counted: 10 * MS,
        slower: 10 * MS,
        objective_ns: 2_000 * MS,
        objective_phases: &[],
        failing,
        ..Synthetic::default()
    }
}

fn figure<'a>(comparison: &'a Comparison, phase: &str, name: &str) -> &'a Compared {
    let mut of = comparison.figures.iter().filter(|figure| figure.phase == phase && figure.operation.is_none());
    of.find(|figure| figure.figure == name).unwrap()
}

#[test]
fn a_run_is_no_different_from_itself() {
    for count in [2, 6] {
        let comparison = sides(&trials(count, |_, _, _| 0.0), &trials(count, |_, _, _| 0.0));
        let delivered = figure(&comparison, "baseline", "delivered");
        assert_eq!(delivered.outcome, Outcome::NoDifference, "{delivered:?}");
        assert_eq!(delivered.interval.is_some(), count >= 5);
        assert!((delivered.superiority - 0.5).abs() < 0.01, "{delivered:?}");
        assert!(comparison.figures.iter().all(|one| !matches!(one.outcome, Outcome::Worse | Outcome::Better)));
        assert!(comparison.differs.is_empty(), "{:?}", comparison.differs);
    }
}

#[test]
fn what_one_side_loses_is_worse_there_and_better_on_the_other() {
    let (whole, failing) =
        (trials(6, |_, _, _| 0.0), trials(6, |_, phase, _| if phase == "fault" { 0.1 } else { 0.0 }));
    let comparison = sides(&whole, &failing);
    let goodput = figure(&comparison, "fault", "goodput");
    assert_eq!(goodput.outcome, Outcome::Worse, "{goodput:?}");
    let (low, high) = goodput.interval.unwrap();
    assert!(low < -0.09 && (-0.11..0.0).contains(&high), "{goodput:?}");
    assert_eq!(goodput.superiority, 0.0);
    assert_eq!(figure(&comparison, "fault", "errors").outcome, Outcome::Worse);
    assert_eq!(figure(&comparison, "baseline", "goodput").outcome, Outcome::NoDifference);
    assert!(comparison.sentence.starts_with("B is worse in "), "{}", comparison.sentence);
    let reverse = sides(&failing, &whole);
    assert_eq!(figure(&reverse, "fault", "goodput").outcome, Outcome::Better);
}

#[test]
fn sides_that_overlap_cannot_be_told_apart() {
    let some = trials(2, |trial, phase, _| if phase == "fault" && trial == 1 { 0.2 } else { 0.0 });
    let comparison = sides(&trials(2, |_, _, _| 0.0), &some);
    assert_eq!(figure(&comparison, "fault", "goodput").outcome, Outcome::Inconclusive);
}

#[test]
fn one_trial_tells_nothing_and_says_so() {
    let comparison = sides(&trials(1, |_, _, _| 0.0), &trials(1, |_, _, _| 0.1));
    assert!(comparison.figures.iter().all(|figure| figure.outcome == Outcome::NotJudged));
    assert!(figure(&comparison, "baseline", "goodput").change.unwrap() < -0.05, "the figures are shown all the same");
    assert!(comparison.sentence.contains("one trial"), "{}", comparison.sentence);
    assert!(comparison.is_evidence());
}

#[test]
fn several_runs_make_one_side() {
    let directories: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let runs: Vec<Run> = directories.iter().map(|directory| trials(1, |_, _, _| 0.0).run(directory.path())).collect();
    let comparison = compare(&runs[..2], &runs[2..]).unwrap();
    assert_eq!((comparison.a.trials, comparison.b.trials), (2, 2));
    assert_eq!(figure(&comparison, "baseline", "delivered").outcome, Outcome::NoDifference);
}

#[test]
fn trials_that_prove_nothing_are_left_out() {
    let broken = Synthetic { invented: 5, ..trials(2, |_, _, _| 0.0) };
    let comparison = sides(&trials(2, |_, _, _| 0.0), &broken);
    assert!(!comparison.b.left_out.is_empty(), "{:?}", comparison.b);
    let cut = Synthetic { cut_at: Some(9_000 * MS), cut_state: TrialState::Interrupted, ..trials(1, |_, _, _| 0.0) };
    let comparison = sides(&trials(2, |_, _, _| 0.0), &cut);
    assert!(!comparison.is_evidence());
    assert!(comparison.sentence.starts_with("Invalid: B has no valid trial"), "{}", comparison.sentence);
}

#[test]
fn a_percentile_among_time_outs_is_never_the_smaller_one() {
    let all = Synthetic { time_outs: 1, objective_phases: &[], ..trials(2, |_, _, _| 0.0) };
    let comparison = sides(&all, &all);
    let bounded = comparison.figures.iter().filter(|figure| figure.a.at_least && figure.b.at_least);
    let bounded: Vec<_> = bounded.collect();
    assert!(!bounded.is_empty(), "no percentile lies among time-outs");
    assert!(bounded.iter().all(|figure| figure.outcome == Outcome::Inconclusive), "{bounded:?}");
}

#[test]
fn both_sides_are_judged_by_the_same_objective() {
    let strict = Synthetic { objective_ns: MS / 1_000, ..trials(2, |_, _, _| 0.0) };
    let comparison = sides(&trials(2, |_, _, _| 0.0), &strict);
    assert_eq!(figure(&comparison, "baseline", "goodput").outcome, Outcome::NoDifference);
    let differs: Vec<&str> = comparison.differs.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(differs, ["good"]);
}
