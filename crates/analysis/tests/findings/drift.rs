//! A run whose baselines change in its course, or within themselves, says so.

use crate::common::Synthetic;
use brownout_analysis::{Findings, Validity, findings};

fn found(trials: u32, made: Synthetic) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { trials, planned_trials: trials, ..made };
    let found = findings(&run.run(directory.path())).unwrap();
    assert_eq!(found.verdict.validity, Validity::Valid);
    found
}

fn warned(trials: u32, drift: fn(u32) -> f64) -> Option<String> {
    let found = found(trials, Synthetic { drift, ..Synthetic::default() });
    found.warnings.into_iter().find(|warning| warning.contains("in the course of the run"))
}

#[test]
fn a_baseline_that_rises_over_the_trials_is_told_with_its_size_and_its_time() {
    // 3 % more each trial, and 20 % more from the fifth on.
    let warning = warned(8, |trial| 0.03 * f64::from(trial) + if trial > 4 { 0.2 } else { 0.0 }).unwrap();
    assert!(warning.starts_with("the baseline's p50, of those ok and timed out, rose by "), "{warning}");
    assert!(warning.contains("a trend over 8 trials") && warning.contains("between trials 4 and 5"), "{warning}");
    // Trials of 36 s; the baseline of the fifth begins 6 s into it.
    assert!(warning.contains("150 s into the run"), "{warning}");
    let warning = warned(8, |trial| 0.3 - 0.03 * f64::from(trial)).unwrap();
    assert!(warning.starts_with("the baseline's p50, of those ok and timed out, fell by "), "{warning}");
}

#[test]
fn baselines_that_only_scatter_have_no_drift() {
    assert_eq!(warned(8, |_| 0.0), None);
    assert_eq!(warned(8, |trial| [0.0, 0.08, 0.02, 0.06][trial as usize % 4]), None);
}

#[test]
fn fewer_trials_than_can_show_a_trend_show_none() {
    let rising = |trial| 0.2 * f64::from(trial);
    assert_eq!(warned(4, rising), None);
    assert!(warned(5, rising).is_some());
}

#[test]
fn baselines_that_begin_before_latency_has_settled_are_told_over_trials() {
    let of = |trials, unsettled| found(trials, Synthetic { unsettled, ..Synthetic::default() });
    let told = |found: &Findings| {
        found.warnings.iter().find(|warning| warning.contains("in the course of the baselines")).cloned()
    };
    let falling = of(4, 0.5);
    // From 1.5 to 1: ln 1.5 is 0.41.
    assert!(falling.trials.iter().all(|trial| trial.baseline_change.unwrap() < -0.2), "{:?}", falling.trials[0]);
    let warning = told(&falling).unwrap();
    assert!(warning.starts_with("p50 of those ok and timed out fell by "), "{warning}");
    assert!(warning.contains("slopes of 4 trials"), "{warning}");
    assert!(warning.contains("give phases.warm-up more time"), "{warning}");
    let rising = told(&of(4, -0.4)).unwrap();
    assert!(rising.starts_with("p50 of those ok and timed out rose by "), "{rising}");
    assert!(rising.contains("builds up"), "{rising}");
    // One trial tells nothing: its seconds depend on each other.
    assert_eq!(told(&of(1, 0.5)), None);
    let short = Synthetic { seconds: [2, 4, 5, 10, 10], ..Synthetic::default() };
    assert_eq!(found(2, short).trials[0].baseline_change, None, "of four intervals");
}
