//! On slower processors the same work takes more CPU time, though nobody takes any: a trial beside the others shows it.

use crate::common::Synthetic;
use brownout_analysis::{Validity, findings};

const NONE: [&str; 0] = [];

/// What is said of trials that took more CPU time than others.
fn told(trials: u32, made: Synthetic) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { trials, planned_trials: trials, ..made };
    let found = findings(&run.run(directory.path())).unwrap();
    assert_eq!(found.verdict.validity, Validity::Valid, "{:?}", found.verdict.reasons);
    found.warnings.into_iter().filter(|warning| warning.contains("more CPU time")).collect()
}

fn only(warnings: Vec<String>) -> String {
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    warnings.concat()
}

/// By how much more nodes and Brownout take in each trial.
fn dearer(dearer: fn(u32) -> (f64, f64)) -> Synthetic {
    Synthetic { dearer, ..Synthetic::default() }
}

fn both(more: f64) -> (f64, f64) {
    (more, more)
}

#[test]
fn a_trial_in_which_everything_took_more_cpu_time_is_told_with_what_it_can_be() {
    let warning = only(told(4, dearer(|trial| if trial == 3 { (0.21, 0.22) } else { both(0.0) })));
    let begins = "trial 3: an operation of its baseline took 21% more CPU time than in the median of 3 other trials \
                  (nodes +21%, Brownout itself +22%): the processors themselves may have been slower";
    assert!(warning.starts_with(begins), "{warning}");
    // An attempt that is not valid is neither told nor compared with.
    let repeated = |slow: fn(u32) -> (f64, f64)| told(4, Synthetic { spoilt: &[4], ..dearer(slow) });
    assert_eq!(repeated(|trial| both(if trial == 4 { 0.5 } else { 0.0 })), NONE);
    let warning = only(repeated(|trial| both(if trial == 5 { 0.5 } else { 0.0 })));
    assert!(warning.starts_with("trial 4, attempt 2: an operation of its baseline took 50% more"), "{warning}");
}

#[test]
fn nodes_that_alone_took_more_may_have_had_more_to_do() {
    let warning = only(told(4, dearer(|trial| if trial == 1 { (0.5, 0.0) } else { both(0.0) })));
    assert!(warning.contains("(nodes +50%, Brownout itself +0%): its nodes may have done more"), "{warning}");
}

#[test]
fn what_equal_trials_differ_by_is_no_slower_processor() {
    assert_eq!(told(4, dearer(|trial| both(if trial == 4 { 0.13 } else { 0.0 }))), NONE);
    assert_eq!(told(4, dearer(|trial| both(if trial == 4 { -0.3 } else { 0.0 }))), NONE);
    // What is much where the others are alike is little where they are not.
    let last = told(4, dearer(|trial| both([0.0, 0.01, -0.01, 0.18][trial as usize - 1])));
    assert!(only(last).starts_with("trial 4: "));
    assert_eq!(told(4, dearer(|trial| both([0.0, 0.1, -0.1, 0.18][trial as usize - 1]))), NONE);
}

#[test]
fn beside_few_others_it_takes_more_to_be_told() {
    for trials in [2, 3] {
        assert_eq!(told(trials, dearer(|trial| both(if trial == 2 { 0.2 } else { 0.0 }))), NONE);
        let warning = only(told(trials, dearer(|trial| both(if trial == 2 { 0.3 } else { 0.0 }))));
        let others = if trials == 2 { "the other trial" } else { "the median of 2 other trials" };
        assert!(warning.contains(&format!("took 30% more CPU time than in {others} (")), "{warning}");
    }
    assert_eq!(told(1, dearer(|_| both(0.5))), NONE);
}

#[test]
fn trials_that_plan_another_baseline_are_not_compared() {
    let uneven = dearer(|trial| both(if trial.is_multiple_of(2) { 0.5 } else { 0.0 }));
    let cells = |apart| told(3, Synthetic { levels: &[10, 100], apart, ..uneven.clone() });
    assert_eq!(cells(false).len(), 3, "cells that differ in their faults alone plan the same baseline");
    assert_eq!(cells(true), NONE);
}
