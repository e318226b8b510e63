//! What differs between first trials on a stand and later ones is told with its size, and nothing else is.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use brownout_analysis::{Findings, TrialFindings, Validity};
use brownout_record::Arm;
use brownout_studies::reuse::{Reused, differing, reuse};
use common::Synthetic;

/// Twelve trials without a fault on three stands, one after the other; `value` says what each is, by its place on its stand.
fn made(value: impl Fn(&mut TrialFindings, usize)) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    let mut findings = brownout_analysis::findings(&Synthetic::default().run(directory.path())).unwrap();
    let template = findings.trials[0].clone();
    let trial = |at: usize| {
        let mut trial = TrialFindings {
            trial: at as u32 + 1,
            stand: at as u32 / 4 + 1,
            arm: Arm::None,
            validity: Validity::Valid,
            ..template.clone()
        };
        trial.effect.log_ratio = Some([0.001, -0.001, 0.0005][at % 3]);
        value(&mut trial, at % 4);
        trial
    };
    findings.trials = (0..12).map(trial).collect();
    findings
}

fn goodput(findings: &Findings) -> Reused {
    reuse(findings).into_iter().find(|one| one.what.starts_with("goodput")).unwrap()
}

#[test]
fn equal_trials_do_not_differ() {
    let equal = made(|_, _| ());
    assert!(differing(&reuse(&equal)).is_empty());
    let told = goodput(&equal);
    assert_eq!((told.fresh, told.reused), (3, 3));
    let difference = told.difference.unwrap();
    assert!(difference.p > 0.05 && difference.no_larger_than() < 0.01, "{difference:?}");
}

#[test]
fn what_later_trials_lose_is_told_with_its_size() {
    let worse = made(|trial, place| {
        if place > 0 {
            trial.effect.log_ratio = trial.effect.log_ratio.map(|value| value - 0.05);
        }
    });
    assert_eq!(differing(&reuse(&worse)), [&goodput(&worse)]);
    let told = goodput(&worse);
    let difference = told.difference.unwrap();
    assert!(difference.p < 0.001 && (difference.effect + 0.05).abs() < 0.002, "{difference:?}");
}

/// Trials on one cluster have it in common: nine of them on three stands are three values, not nine.
#[test]
fn what_stands_have_in_common_is_no_difference_between_their_trials() {
    let told = goodput(&made(|trial, _| {
        let of_stand = [0.04, -0.05, 0.02][trial.stand as usize - 1];
        trial.effect.log_ratio = Some(of_stand + f64::from(trial.trial % 2) * 1e-3);
    }));
    let difference = told.difference.unwrap();
    assert!(difference.error > 0.03, "{difference:?}");
}

#[test]
fn a_stand_whose_first_trial_is_not_valid_has_no_first_one() {
    let told = goodput(&made(|trial, place| {
        if place == 0 {
            trial.validity = Validity::Disturbed;
        }
    }));
    assert_eq!((told.fresh, told.reused, told.difference), (0, 3, None));
}
