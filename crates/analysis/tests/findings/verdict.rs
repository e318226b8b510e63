//! What follows from a run, and what a program ends with.

use crate::common::{MS, SECOND, Synthetic};
use brownout_analysis::{
    CellEffect, FactorOutcome, Findings, ObjectiveMiss, Outcome, PhaseFindings, Validity, exit_code, findings,
};
use brownout_record::{Recorder, Run, TrialState};

fn analysed(synthetic: &Synthetic) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&synthetic.run(directory.path())).unwrap()
}

/// So many blocks, each with a trial with the fault and one without; only failures make a difference.
fn blocks(count: u32, failing: fn(u32, &str, u64) -> f64) -> Synthetic {
    let seconds = [1, 2, 8, 8, 8];
    let (asked, shown, counted, slower) = (10 * MS, 10 * MS, 10 * MS, 10 * MS);
    Synthetic {
        trials: count,
        planned_trials: count,
        without: 1,
        asked,
        shown,
        counted,
        slower,
        seconds,
        failing,
        objective_phases: &[],
        ..Synthetic::default()
    }
}

fn effect(found: &Findings) -> &CellEffect {
    &found.cells[0].effect
}

#[test]
fn a_loss_in_every_block_is_worse() {
    let found = analysed(&Synthetic { without: 1, ..Synthetic::default() });
    assert_eq!((effect(&found).outcome, exit_code(&found)), (Outcome::Worse, 0));
    let sentence = &found.verdict.sentence;
    assert!(
        sentence.starts_with("Worse: the fault costs 33.3% of the goodput (33.")
            && sentence.ends_with("over 2 blocks)."),
        "{sentence}"
    );
    let p50 = found.cells[0].figures.iter().find(|one| one.figure == "p50").unwrap();
    assert_eq!((p50.blocks, p50.without_fault), (2, 1));
}

#[test]
fn without_trials_without_a_fault_there_is_no_verdict() {
    let found = analysed(&Synthetic::default());
    assert_eq!((effect(&found).outcome, exit_code(&found)), (Outcome::NotJudged, 0));
    assert!(found.verdict.sentence.contains("no trials without a fault to compare with"), "{}", found.verdict.sentence);
    assert!((effect(&found).change.unwrap() + 1.0 / 3.0).abs() < 1e-3, "what single trials show is told");
}

#[test]
fn the_four_verdicts_between_a_few_blocks() {
    type Failing = fn(u32, &str, u64) -> f64;
    let table: [(Failing, Outcome, u8); 4] = [
        (|_, phase, _| if phase == "fault" { 0.1 } else { 0.0 }, Outcome::Worse, 0),
        (|_, phase, _| if phase == "fault" { 0.0 } else { 0.1 }, Outcome::Better, 0),
        (|_, _, _| 0.0, Outcome::NoDifference, 0),
        (|block, phase, _| if phase == "fault" && block == 1 { 0.1 } else { 0.0 }, Outcome::Inconclusive, 3),
    ];
    for (failing, outcome, code) in table {
        let found = analysed(&blocks(2, failing));
        assert_eq!((effect(&found).outcome, exit_code(&found)), (outcome, code), "{}", found.verdict.sentence);
    }
    let found = analysed(&blocks(2, table[3].0));
    let (smallest, more) = (effect(&found).smallest_seen.unwrap(), effect(&found).more_blocks.unwrap());
    assert!(smallest > 0.3 && more >= 2, "{smallest} {more}");
    assert!(found.verdict.sentence.contains("more blocks would"), "{}", found.verdict.sentence);
}

#[test]
fn a_change_smaller_than_the_file_s_margin_is_none() {
    let lost: fn(u32, &str, u64) -> f64 = |_, phase, _| if phase == "fault" { 0.02 } else { 0.0 };
    let found = analysed(&blocks(3, lost));
    assert_eq!(effect(&found).outcome, Outcome::Worse, "{}", found.verdict.sentence);
    let found = analysed(&Synthetic { margin: Some(0.03), ..blocks(3, lost) });
    assert_eq!(
        (effect(&found).outcome, found.design.margin),
        (Outcome::NoDifference, 0.03),
        "{}",
        found.verdict.sentence
    );
    assert_eq!(
        effect(&found).interval.map(|(low, high)| low < -0.019 && high > -0.021),
        Some(true),
        "the size is told"
    );
}

#[test]
fn what_the_order_of_phases_does_by_itself_is_no_effect() {
    // Every trial loses a tenth in its fault phase, with the fault or without.
    let lost: fn(u32, &str, u64) -> f64 = |_, phase, _| if phase == "fault" { 0.1 } else { 0.0 };
    let found = analysed(&Synthetic { failing_without: lost, ..blocks(3, lost) });
    assert_eq!(effect(&found).outcome, Outcome::NoDifference, "{}", found.verdict.sentence);
    assert!(found.trials.iter().all(|trial| trial.effect.degradation.unwrap() > 0.09));
}

#[test]
fn the_interval_covers_what_blocks_differ_by() {
    let failing = |block, phase: &str, _| if phase == "fault" { 0.1 + 0.02 * f64::from(block) } else { 0.0 };
    let found = analysed(&blocks(5, failing));
    let (low, high) = effect(&found).interval.unwrap();
    assert_eq!(effect(&found).outcome, Outcome::Worse);
    assert!(-0.22 < low && low < -0.16 && -0.16 < high && high < -0.10, "{low} {high}");
}

#[test]
fn one_trial_is_not_judged() {
    let found = analysed(&blocks(1, |_, phase, _| if phase == "fault" { 0.1 } else { 0.0 }));
    assert_eq!((effect(&found).outcome, exit_code(&found)), (Outcome::NotJudged, 0));
    assert!(found.verdict.sentence.contains("run at least two"), "{}", found.verdict.sentence);
}

#[test]
fn one_trial_beside_many_without_a_fault_shows_that_it_differs_and_not_by_how_much() {
    let without: fn(u32, &str, u64) -> f64 =
        |number, phase, _| if phase == "fault" { 0.01 * f64::from(number) } else { 0.0 };
    let lost: fn(u32, &str, u64) -> f64 = |_, phase, _| if phase == "fault" { 0.5 } else { 0.0 };
    let found = analysed(&Synthetic { without: 5, failing_without: without, ..blocks(1, lost) });
    assert_eq!((effect(&found).outcome, exit_code(&found)), (Outcome::Changed, 0), "{}", found.verdict.sentence);
    assert!(effect(&found).interval.is_none());
    let alike: fn(u32, &str, u64) -> f64 = |_, phase, _| if phase == "fault" { 0.03 } else { 0.0 };
    let found = analysed(&Synthetic { without: 5, failing_without: without, ..blocks(1, alike) });
    assert_eq!(effect(&found).outcome, Outcome::NotJudged, "{}", found.verdict.sentence);
}

#[test]
fn a_run_without_a_fault_is_valid_and_not_judged() {
    let found = analysed(&Synthetic { no_fault: true, ..Synthetic::default() });
    assert_eq!((found.verdict.validity, effect(&found).outcome), (Validity::Valid, Outcome::NotJudged));
}

#[test]
fn a_trial_that_is_repeated_until_it_is_valid_counts_once() {
    let found = analysed(&Synthetic { without: 1, spoilt: &[1, 4], ..Synthetic::default() });
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Valid, 0), "{:?}", found.verdict.reasons);
    assert_eq!((found.trials.len(), effect(&found).blocks), (6, 2));
    assert_eq!(effect(&found).outcome, Outcome::Worse);
    let labels: Vec<String> = found.trials.iter().map(|trial| trial.label()).collect();
    assert_eq!(labels, ["1", "1, attempt 2", "2", "3", "4", "4, attempt 2"]);
    assert_eq!(found.cells[0].valid_trials, [2, 4], "in the order in which they were run");
    let told = found.warnings.iter().find(|warning| warning.contains("was repeated")).unwrap();
    assert!(told.starts_with("trial 1 is invalid, and was repeated: the balance sheet"), "{told}");
}

#[test]
fn cells_of_a_design_are_judged_by_themselves_and_share_the_trials_without_a_fault() {
    let made = Synthetic { trials: 3, planned_trials: 3, without: 1, levels: &[5, 10, 100], ..Synthetic::default() };
    let found = analysed(&made);
    assert_eq!(exit_code(&found), 0, "{:?}", found.verdict.reasons);
    let outcomes: Vec<Outcome> = found.cells.iter().map(|cell| cell.effect.outcome).collect();
    assert_eq!(outcomes, [Outcome::NoDifference, Outcome::NoDifference, Outcome::Worse], "{}", found.verdict.sentence);
    assert_eq!(found.cells[2].text, "delay 100ms");
    assert_eq!(found.cells.iter().map(|cell| cell.compared_with.clone()).collect::<Vec<_>>(), vec![vec![4, 8, 12]; 3]);
    assert_eq!(found.verdict.sentence, "Of 3 cells 1 is worse with the fault, 2 show no difference of 1% or more.");
    let p50 = |cell: usize| found.cells[cell].figures.iter().find(|one| one.figure == "p99").unwrap().clone();
    assert_eq!((p50(1).outcome, p50(2).outcome), (Outcome::Worse, Outcome::Worse), "latency tells more than goodput");
    // The factor says the same as the cells: 100 ms against 0 ms.
    let of = |figure: &str, level: &str| {
        let all = &found.factors;
        all.iter().find(|one| one.figure == figure && one.levels == [level]).unwrap().clone()
    };
    let lost = of("goodput, fault ÷ baseline", "100ms");
    assert_eq!((lost.outcome, lost.against.as_slice()), (FactorOutcome::Less, &["5ms".to_owned()][..]));
    assert!((lost.change + 1.0 / 3.0).abs() < 0.01, "{lost:?}");
    assert_eq!(of("p50, baseline", "100ms").blocks, 3);
}

#[test]
fn an_objective_missed_where_it_must_hold_is_exit_1_and_elsewhere_is_not() {
    let missed = Synthetic { objective_phases: &["baseline", "fault"], ..Synthetic::default() };
    let found = analysed(&missed);
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Valid, 1));
    assert_eq!(found.verdict.objective_misses.len(), 2, "the fault phase of both trials");
    assert!(found.verdict.sentence.contains("missed in the fault of trial 1"), "{}", found.verdict.sentence);
    assert_eq!(analysed(&Synthetic::default()).verdict.objective_misses, []);
}

#[test]
fn a_sheet_that_does_not_balance_makes_the_run_invalid() {
    let found = analysed(&Synthetic { invented: 1, ..Synthetic::default() });
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Invalid, 3));
    assert!(!found.trials[0].balance.balances);
    assert!(
        found.verdict.reasons[0].contains("does not balance: the interval at 7.000 s"),
        "{:?}",
        found.verdict.reasons
    );
}

#[test]
fn what_was_due_and_found_no_user_counts_against_the_objective() {
    let of = |withheld| {
        let found = analysed(&Synthetic { withheld, ..Synthetic::default() });
        assert!(found.trials[0].balance.balances, "none of them was scheduled");
        found
    };
    let (none, some) = (of(0), of(50));
    let baseline =
        |found: &Findings| found.cells[0].phases.iter().find(|phase| phase.name == "baseline").unwrap().clone();
    let (before, after) = (baseline(&none), baseline(&some));
    assert_eq!((before.counts.withheld, after.counts.withheld), (0, 50 * after.intervals));
    assert_eq!(before.response, after.response, "of those that were sent it tells nothing else");
    assert!(before.due.unwrap().p99.is_some() && after.due.unwrap().p99.is_none());
    let offered = |phase: &PhaseFindings| phase.rates.unwrap().offered;
    assert!((offered(&after) - offered(&before) - 50.0).abs() < 1e-9);
    let share = |phase: &PhaseFindings| phase.objective_share.unwrap();
    let expected = share(&before) * offered(&before) / offered(&after);
    assert!((share(&after) - expected).abs() < 1e-9, "{} instead of {expected}", share(&after));
    assert_eq!((exit_code(&none), exit_code(&some)), (0, 1));
}

#[test]
fn a_late_instrument_makes_the_run_invalid() {
    // Late during all of the fault phase: a third of what is measured.
    let found = analysed(&Synthetic { lateness: 20 * MS, ..Synthetic::default() });
    assert!(found.trials[0].instrument.too_late);
    assert_eq!(found.trials[0].instrument.late_intervals.len(), 9);
    assert_eq!(exit_code(&found), 3);
    assert!(found.verdict.reasons[0].contains("the instrument was late in 9 of 28"), "{:?}", found.verdict.reasons);
}

#[test]
fn a_load_that_stood_still_is_late_though_few_operations_show_it() {
    let found = analysed(&Synthetic { stood_still: 101 * MS, ..Synthetic::default() });
    let instrument = &found.trials[0].instrument;
    assert!(instrument.too_late && instrument.late_intervals.len() == 9, "{:?}", instrument.punctuality);
    assert_eq!(exit_code(&found), 3);
    // A tenth of the interval is the limit.
    assert!(!analysed(&Synthetic { stood_still: 100 * MS, ..Synthetic::default() }).trials[0].instrument.too_late);
}

#[test]
fn packets_and_answers_that_waited_unseen_make_an_instrument_late() {
    let stalled = analysed(&Synthetic { stall: 20 * MS, ..Synthetic::default() });
    assert!(stalled.trials[0].instrument.too_late, "{:?}", stalled.trials[0].instrument.punctuality);
    let waited = analysed(&Synthetic { waited: 200 * MS, ..Synthetic::default() });
    assert!(waited.trials[0].instrument.too_late, "{:?}", waited.trials[0].instrument.punctuality);
    let carried = analysed(&Synthetic { overlay_waited: 200 * MS, ..Synthetic::default() });
    assert!(carried.trials[0].instrument.too_late, "{:?}", carried.trials[0].instrument.punctuality);
    for harmless in [
        Synthetic { stall: 2 * MS, ..Synthetic::default() },
        Synthetic { waited: 50 * MS, ..Synthetic::default() },
        Synthetic { overlay_waited: 50 * MS, ..Synthetic::default() },
    ] {
        assert!(!analysed(&harmless).trials[0].instrument.too_late);
    }
}

#[test]
fn what_the_emulator_drops_because_it_ran_out_makes_the_interval_late() {
    // Packets that it had no memory for, and packets that it did not read in time.
    for ran_out in
        [Synthetic { overrun: 1, ..Synthetic::default() }, Synthetic { unread_packets: 1, ..Synthetic::default() }]
    {
        let found = analysed(&ran_out);
        let instrument = &found.trials[0].instrument;
        assert!(instrument.too_late && instrument.late_intervals.len() == 9, "{:?}", instrument.punctuality);
        assert_eq!(exit_code(&found), 3);
    }
}

#[test]
fn an_instrument_that_is_late_in_one_phase_is_not_saved_by_the_others() {
    let found = analysed(&Synthetic { lateness: 20 * MS, late_for: 3, ..Synthetic::default() });
    assert!(found.trials[0].instrument.late_share < brownout_analysis::LATE_SHARE);
    assert!(found.trials[0].instrument.too_late);
    assert_eq!(exit_code(&found), 3);
    assert!(found.verdict.reasons[0].contains("3 of 28 intervals; 3 of 9 in the fault"), "{:?}", found.verdict.reasons);
}

#[test]
fn a_machine_that_others_use_in_the_fault_phase_is_a_warning() {
    let found = analysed(&Synthetic { foreign: 0.5, stolen: 0.15, ..Synthetic::default() });
    assert_eq!(found.verdict.validity, Validity::Valid);
    assert_eq!(found.trials[0].instrument.saturated, ["fault"]);
    for part in [
        "trial 1: the machine was 90% busy in the fault",
        "trial 1: programs outside of the lab took 0% of the machine in the baseline and 50% in the fault phase",
        "trial 2: the hypervisor took for other machines 1% of the machine in the baseline and 15% in the fault phase",
    ] {
        assert!(found.warnings.iter().any(|warning| warning.starts_with(part)), "{part}: {:?}", found.warnings);
    }
    assert!(!analysed(&Synthetic::default()).warnings.iter().any(|warning| warning.contains("of the machine")));
}

#[test]
fn what_many_trials_warn_of_is_one_line_with_the_worst_of_them() {
    let few = analysed(&Synthetic { trials: 3, planned_trials: 3, without: 0, busy: 0.9, ..Synthetic::default() });
    let busy = |found: &Findings| -> Vec<String> {
        found.warnings.iter().filter(|warning| warning.contains("busy in the")).cloned().collect()
    };
    assert_eq!(busy(&few).len(), 3, "{:?}", few.warnings);
    let many = analysed(&Synthetic { trials: 8, planned_trials: 8, without: 0, busy: 0.9, ..Synthetic::default() });
    let told = busy(&many);
    assert_eq!(told.len(), 1, "{:?}", many.warnings);
    assert!(told[0].starts_with("in 8 trials, at worst in trial 1: the machine was 90% busy in the"), "{told:?}");
    assert!(told[0].contains("90% busy in the baseline"), "{told:?}");
}

#[test]
fn a_saturated_machine_is_a_warning() {
    let found = analysed(&Synthetic { busy: 0.9, ..Synthetic::default() });
    assert_eq!(found.verdict.validity, Validity::Valid);
    assert!(found.warnings.iter().any(|warning| warning.contains("90% busy in the baseline")), "{:?}", found.warnings);
    let cpu = found.trials[0].instrument.cpu.iter().find(|cpu| cpu.phase == "baseline").unwrap();
    assert!((cpu.busy - 0.9).abs() < 1e-6 && (cpu.cores - 2.0).abs() < 1e-9);
    assert!((cpu.nodes["n1"] - 0.9 * 0.27).abs() < 1e-6);
}

#[test]
fn a_node_that_dies_unasked_makes_the_run_invalid() {
    let found = analysed(&Synthetic { death: true, ..Synthetic::default() });
    assert_eq!(found.trials[0].deaths[0].node, "n3");
    assert!(found.trials[0].deaths[0].text.contains("out of memory"));
    assert_eq!(exit_code(&found), 3);
}

#[test]
fn a_node_that_a_fault_ended_is_no_invalidity() {
    let events = &[(Some(1), "node-ended", "n3 was killed by the fault \"n3 dies\"")];
    let found = analysed(&Synthetic { events, ..Synthetic::default() });
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Valid, 0));
    assert_eq!(found.trials[0].deaths, []);
}

#[test]
fn an_interrupted_run_is_exit_130_whatever_else_it_shows() {
    let cut = Synthetic { cut_at: Some(9 * SECOND), cut_state: TrialState::Interrupted, ..Synthetic::default() };
    let found = analysed(&cut);
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Interrupted, 130));
    assert!(found.verdict.sentence.contains("trial 2 was interrupted"), "{}", found.verdict.sentence);
}

#[test]
fn a_trial_that_failed_makes_the_run_invalid() {
    let failed = Synthetic { cut_at: Some(9 * SECOND), cut_state: TrialState::Failed, ..Synthetic::default() };
    let found = analysed(&failed);
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Invalid, 3));
}

#[test]
fn a_failure_before_the_first_trial_is_invalid_and_says_why() {
    let events = &[(None, "failed", "n1 died: exit status 1; the last lines of its log:\n  no memory")];
    let found = analysed(&Synthetic { trials: 0, events, ..Synthetic::default() });
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Invalid, 3));
    assert_eq!(found.verdict.reasons[0], events[0].2);
    assert!(
        found
            .verdict
            .sentence
            .starts_with("Invalid: n1 died: exit status 1; the last lines of its log: … No conclusion"),
        "{}",
        found.verdict.sentence
    );
    let interrupted = &[(None, "interrupted", "interrupted")];
    let found = analysed(&Synthetic { trials: 0, events: interrupted, ..Synthetic::default() });
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Interrupted, 130));
    assert_eq!(found.verdict.reasons[0], "the run was interrupted");
}

#[test]
fn a_failure_in_a_trial_is_told_with_the_trial() {
    let plan = Synthetic { cut_at: Some(9 * SECOND), cut_state: TrialState::Failed, ..Synthetic::default() };
    for (trial, first) in [(None, "the disk is full"), (Some(2), "trial 2: the disk is full")] {
        let events: &'static [_] = if trial.is_none() {
            &[(None, "failed", "the disk is full")]
        } else {
            &[(Some(2), "failed", "the disk is full")]
        };
        let found = analysed(&Synthetic { events, ..plan.clone() });
        assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Invalid, 3));
        assert_eq!(found.verdict.reasons[0], first);
    }
}

#[test]
fn books_of_the_load_that_do_not_balance_make_the_trial_invalid() {
    let events = &[(Some(1), "balance", "the balance sheet of the load does not balance: 1 too many")];
    let found = analysed(&Synthetic { events, ..Synthetic::default() });
    assert_eq!(exit_code(&found), 3);
    assert_eq!(found.trials[0].invalid, [events[0].2]);
    assert_eq!(found.trials[1].invalid, [""; 0]);
}

#[test]
fn answers_faster_than_their_packets_make_the_trial_invalid() {
    let found = analysed(&Synthetic { broken_in: Some("baseline"), ..Synthetic::default() });
    assert_eq!(exit_code(&found), 3);
    let reason = &found.trials[0].invalid[0];
    assert!(reason.starts_with("n1 answered within 2.00ns in the baseline, which no packet can"), "{reason}");
    assert!(reason.contains("load → n1 takes 57.4us at least, and back 55.5us"), "{reason}");
    assert!(reason.ends_with("(and so in 2 more combinations of coordinator and phase)"), "{reason}");
    assert_eq!(found.trials[0].invalid.len(), 1);
    // All that n2 sends is late by 100 ms, and its answers are not.
    let found = analysed(&Synthetic { slower: 0, ..Synthetic::default() });
    let [reason] = &found.trials[0].invalid[..] else { panic!("{:?}", found.trials[0].invalid) };
    assert!(reason.starts_with("n2 answered within") && reason.contains("in the fault"), "{reason}");
}

#[test]
fn trials_that_were_never_begun_are_missed() {
    let found = analysed(&Synthetic { planned_trials: 3, ..Synthetic::default() });
    assert_eq!(exit_code(&found), 130);
    assert!(found.verdict.reasons[0].contains("2 of 3 trials"), "{:?}", found.verdict.reasons);
}

#[test]
fn what_is_not_there_does_not_pass_for_well() {
    for (synthetic, why) in [
        (Synthetic { unrecorded: true, ..Synthetic::default() }, "none of its faults was recorded"),
        (Synthetic { rate: 0, ..Synthetic::default() }, "its baseline has no complete interval with operations"),
        (Synthetic { seconds: [1, 2, 1, 8, 8], ..Synthetic::default() }, "its baseline has no complete interval"),
    ] {
        let found = analysed(&synthetic);
        assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Invalid, 3), "{why}");
        assert!(found.verdict.reasons[0].contains(why), "{:?}", found.verdict.reasons);
    }
}

#[test]
fn a_baseline_without_a_good_operation_is_nothing_to_compare_with() {
    let failing: fn(u32, &str, u64) -> f64 = |_, _, _| 1.0;
    let made =
        Synthetic { without: 1, failing, failing_without: failing, objective_phases: &[], ..Synthetic::default() };
    let found = analysed(&made);
    // Nothing is lost of nothing; that is not to say that the fault makes no difference.
    assert_eq!((effect(&found).outcome, effect(&found).change), (Outcome::NotJudged, None));
    assert!(effect(&found).reason.contains("with operations to compare"), "{}", effect(&found).reason);
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Valid, 3), "{:?}", found.verdict);
}

#[test]
fn an_objective_that_is_nearly_met_does_not_read_as_if_it_were() {
    let miss =
        |share, asked| ObjectiveMiss { trial: "1".to_owned(), phase: "fault".to_owned(), share, asked }.percents();
    let percents = |share: &str, asked: &str| (share.to_owned(), asked.to_owned());
    assert_eq!(miss(0.99896, 0.999), percents("99.896%", "99.900%"));
    assert_eq!(miss(0.6667, 0.99), percents("66.67%", "99.00%"));
}

#[test]
fn what_ended_an_earlier_session_is_no_reason_once_another_has_gone_on() {
    let directory = tempfile::tempdir().unwrap();
    let made = Synthetic { events: &[(None, "failed", "the disk is full")], ..Synthetic::default() };
    let run = made.run(directory.path());
    assert_eq!(findings(&run).unwrap().verdict.validity, Validity::Invalid);
    drop(run);
    let recorder = Recorder::resume(&directory.path().join("run.db"), 0, 1_780_000_900_000).unwrap();
    recorder.finish().unwrap();
    let verdict = findings(&Run::open(directory.path()).unwrap()).unwrap().verdict;
    assert_eq!(verdict.validity, Validity::Valid, "{:?}", verdict.reasons);
}
