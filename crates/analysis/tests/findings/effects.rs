//! What is said of effects, and what may not be said.

use crate::common::Synthetic;
use brownout_analysis::{
    CellEffect, FactorOutcome, Findings, Outcome, PhaseFindings, TrialFindings, effects, factors, findings,
    trial_effect,
};
use brownout_record::{Arm, CellRow};

/// The findings of a made-up run, and its cells as they are in the record.
fn analysed(made: &Synthetic) -> (Findings, Vec<CellRow>) {
    let directory = tempfile::tempdir().unwrap();
    let run = made.run(directory.path());
    (findings(&run).unwrap(), run.cells().unwrap())
}

/// Two blocks with one trial without a fault each; the fault adds 100 ms.
fn two_blocks() -> Synthetic {
    Synthetic { without: 1, ..Synthetic::default() }
}

fn phase<'a>(trial: &'a mut TrialFindings, name: &str) -> &'a mut PhaseFindings {
    trial.phases.iter_mut().find(|phase| phase.name == name).unwrap()
}

/// What is said of p99 if the trials are changed so.
fn p99(made: &Synthetic, change: impl Fn(&mut TrialFindings)) -> CellEffect {
    let (found, rows) = analysed(made);
    let mut trials = found.trials;
    trials.iter_mut().for_each(change);
    let [.., p99] = effects(&rows, &trials, brownout_analysis::MARGIN).remove(0);
    assert_eq!(p99.figure, "p99");
    p99
}

#[test]
fn a_percentile_among_time_outs_may_be_larger_and_is_never_the_same_or_smaller() {
    let bound =
        |trial: &mut TrialFindings, name: &str| phase(trial, name).response.as_mut().unwrap().p99.at_least = true;
    // With the fault it is larger, whatever it is.
    let larger = p99(&two_blocks(), |trial| {
        if trial.arm == Arm::Fault {
            bound(trial, "fault");
        }
    });
    assert_eq!(larger.outcome, Outcome::Worse, "{}", larger.reason);
    assert!(larger.reason.ends_with("or more: in a fault phase it lies among operations that timed out"));
    // As large as in the baseline, by what was seen: perhaps much larger.
    let same = p99(&two_blocks(), |trial| {
        let before = phase(trial, "baseline").response.unwrap().p99;
        phase(trial, "fault").response.as_mut().unwrap().p99 = before;
        if trial.arm == Arm::Fault {
            bound(trial, "fault");
        }
    });
    assert_eq!((same.outcome, same.more_blocks), (Outcome::Inconclusive, None), "{}", same.reason);
    // What it is compared with is not known.
    for (arm, name) in [(Arm::None, "fault"), (Arm::None, "baseline"), (Arm::Fault, "baseline")] {
        let unknown = p99(&two_blocks(), |trial| {
            if trial.arm == arm {
                bound(trial, name);
            }
        });
        assert_eq!(unknown.outcome, Outcome::NotJudged, "{arm:?}, {name}: {}", unknown.reason);
        assert!(unknown.reason.contains("only a lower bound is known"), "{}", unknown.reason);
    }
    let (mut found, _) = analysed(&two_blocks());
    assert!(trial_effect(&found.trials[0], "p99").is_some());
    bound(&mut found.trials[0], "baseline");
    assert_eq!(trial_effect(&found.trials[0], "p99"), None);
}

#[test]
fn operations_that_time_out_are_read_from_the_record_as_a_lower_bound() {
    // One in thirty, in the fault phase of every trial.
    let (found, _) = analysed(&Synthetic { time_outs: 5, ..two_blocks() });
    let of = |name: &str| found.cells[0].figures.iter().find(|one| one.figure == name).unwrap().clone();
    assert_eq!(of("p99").outcome, Outcome::NotJudged, "{}", of("p99").reason);
    assert_ne!(of("p50").outcome, Outcome::NotJudged, "{}", of("p50").reason);
}

#[test]
fn a_verdict_says_what_so_few_blocks_can_show_and_what_they_cannot() {
    let (found, _) = analysed(&two_blocks());
    let effect = &found.cells[0].effect;
    assert_eq!(effect.outcome, Outcome::Worse);
    assert!(effect.reason.starts_with("over 2 blocks with 1 trial without a fault in each the 95% interval"));
    assert!(effect.reason.contains("four of five such runs would detect a change beyond -"), "{}", effect.reason);
    assert!(effect.reason.ends_with("most would miss one half as large"), "{}", effect.reason);
}

#[test]
fn an_inconclusive_factor_says_how_many_more_blocks_would() {
    // The second level's trials are slower by 6 %, 0 and 3 %, whatever the fault.
    let (found, _) = analysed(&Synthetic {
        trials: 3,
        planned_trials: 3,
        without: 1,
        levels: &[5, 10],
        drift: |trial| match trial {
            2 => 0.06,
            8 => 0.03,
            _ => 0.0,
        },
        ..Synthetic::default()
    });
    let p50 = found.factors.iter().find(|one| one.figure == "p50, baseline").unwrap();
    assert_eq!((p50.outcome, p50.blocks), (FactorOutcome::Inconclusive, 3), "{p50:?}");
    assert!(p50.more_blocks.unwrap() >= 2 && p50.smallest_seen > p50.change, "{p50:?}");
    for one in &found.factors {
        assert!(one.smallest_seen > 0.0 && one.no_larger_than >= one.change.abs() * 0.99, "{one:?}");
        match one.outcome {
            FactorOutcome::NoDifference => assert!(one.no_larger_than < 0.01 && one.more_blocks.is_none(), "{one:?}"),
            FactorOutcome::Inconclusive => assert!(one.more_blocks.is_none_or(|more| more > 0), "{one:?}"),
            FactorOutcome::More | FactorOutcome::Less => assert_eq!(one.more_blocks, None, "{one:?}"),
        }
    }
}

/// Levels with trials without a fault of their own, as those of another consistency have them.
#[test]
fn what_a_level_does_without_a_fault_is_no_part_of_what_the_fault_does_there() {
    let made = Synthetic { trials: 3, planned_trials: 3, without: 1, levels: &[5, 100], ..Synthetic::default() };
    let (found, mut rows) = analysed(&made);
    let lost = |rows: &[CellRow], trials: &[TrialFindings]| {
        let told = factors(&found.design, rows, trials);
        told.into_iter().find(|one| one.figure == "goodput, fault ÷ baseline").unwrap()
    };
    let shared = lost(&rows, &found.trials);
    assert_eq!(shared.outcome, FactorOutcome::Less);
    let mut trials = found.trials.clone();
    let own = trials.iter().filter(|trial| trial.arm == Arm::None).cloned();
    let own: Vec<TrialFindings> = own.map(|trial| TrialFindings { cell: 2, ..trial }).collect();
    trials.extend(own);
    rows[1].compared_with = 2;
    for trial in trials.iter_mut().filter(|trial| trial.cell == 2) {
        trial.effect.log_ratio = trial.effect.log_ratio.map(|ratio| ratio + 0.3);
    }
    let apart = lost(&rows, &trials);
    assert!((apart.change - shared.change).abs() < 1e-9, "{apart:?} {shared:?}");
    // Nothing is said of a level's effect without any.
    trials.retain(|trial| trial.arm == Arm::Fault || trial.cell == 1);
    let told = factors(&found.design, &rows, &trials);
    assert!(told.iter().all(|one| one.figure != "goodput, fault ÷ baseline"), "{told:?}");
}
