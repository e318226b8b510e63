//! What the load met, and what the fault took: one definition, one test.

use crate::common::{MS, SECOND, Synthetic};
use brownout_analysis::{Findings, PhaseFindings, Validity, exit_code, findings};

fn analysed(synthetic: &Synthetic) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&synthetic.run(directory.path())).unwrap()
}

fn phase<'a>(phases: &'a [PhaseFindings], name: &str) -> &'a PhaseFindings {
    phases.iter().find(|phase| phase.name == name).unwrap()
}

#[test]
fn counts_and_rates_are_those_of_the_phase() {
    let found = analysed(&Synthetic::default());
    let baseline = phase(&found.trials[0].phases, "baseline");
    // The stamps of injection and healing are known to within 40 µs, so the last second of the baseline may hold
    // some of the fault, and the last one of the fault phase some of the healing: neither counts.
    assert_eq!((baseline.intervals, baseline.counts.scheduled, baseline.counts.ok), (9, 2700, 2700));
    assert_eq!(baseline.rates.unwrap().offered, 300.0);
    assert_eq!(baseline.duration_ns, 10 * SECOND);
    let set_up = phase(&found.trials[0].phases, "set-up");
    assert_eq!((set_up.counts.scheduled, set_up.response), (0, None));
    let warm_up = phase(&found.trials[0].phases, "warm-up");
    assert_eq!(warm_up.ended_by.as_deref(), Some("stationary"));
}

#[test]
fn percentiles_over_trials_are_those_of_the_union_not_means() {
    // In one of two trials the operations through n2 (a third) are slow: the union's p90 is slow, its p75 is not.
    let found = analysed(&Synthetic::default());
    let fault = phase(&found.cells[0].phases, "fault");
    let per_trial: Vec<u64> =
        found.trials.iter().map(|trial| phase(&trial.phases, "fault").response.unwrap().count).collect();
    assert_eq!(fault.response.unwrap().count, per_trial.iter().sum::<u64>());
    assert!(fault.response.unwrap().p50.value_ns < 3 * MS);
    assert!(fault.response.unwrap().p95.value_ns > 100 * MS);
    let spread = fault.spread.as_ref().unwrap();
    assert_eq!(spread.trials, 2);
    let (low, high) = (spread.p99_ns.unwrap().min, spread.p99_ns.unwrap().max);
    assert!(low <= fault.response.unwrap().p99.value_ns as f64 && fault.response.unwrap().p99.value_ns as f64 <= high);
}

#[test]
fn latency_is_told_by_coordinator_and_statement() {
    let found = analysed(&Synthetic::default());
    let fault = phase(&found.cells[0].phases, "fault");
    let p50 =
        |name: &str| fault.coordinators.iter().find(|part| part.name == name).unwrap().response.unwrap().p50.value_ns;
    assert!(p50("n2") > 100 * MS && p50("n1") < 3 * MS && p50("n3") < 3 * MS);
    assert_eq!(fault.statements.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["read", "write"]);
    let service = fault.coordinators[1].service.unwrap().p50.value_ns;
    let wait = fault.coordinators[1].wait.unwrap().p50.value_ns;
    assert!((19_000..21_000).contains(&wait) && service + wait <= p50("n2") + MS, "{wait} {service}");
}

#[test]
fn timed_out_operations_count_at_the_time_out_as_a_lower_bound() {
    // 5 of 50 operations of each of two statements through n2: 10 of 300 a second, 3.3 %.
    let found = analysed(&Synthetic { time_outs: 5, ..Synthetic::default() });
    let response = phase(&found.cells[0].phases, "fault").response.unwrap();
    assert_eq!((response.p99.at_least, response.max.at_least), (true, true));
    assert!((1_990 * MS..2_010 * MS).contains(&response.p99.value_ns), "{}", response.p99.value_ns);
    assert!(!response.p95.at_least && !response.p50.at_least);
    let counts = &phase(&found.trials[0].phases, "fault").counts;
    assert_eq!((counts.timed_out, counts.late), (90, 36));
    assert!(phase(&found.cells[0].phases, "baseline").response.unwrap().max.value_ns < SECOND);
}

#[test]
fn failed_operations_are_counted_apart_and_by_class() {
    let failing = |_, name: &str, _| if name == "fault" { 0.1 } else { 0.0 };
    let found = analysed(&Synthetic { failing, ..Synthetic::default() });
    let fault = phase(&found.trials[0].phases, "fault");
    assert_eq!(fault.counts.failed, 270);
    assert_eq!(fault.counts.failed_by_class.get("Unavailable"), Some(&270));
    assert_eq!(fault.response.unwrap().count, fault.counts.ok);
}

#[test]
fn an_interval_across_a_border_counts_to_no_phase() {
    // Phases begin in the middle of an interval: the first second of the fault has both kinds of operations.
    let found = analysed(&Synthetic { offset: SECOND / 2, trials: 1, planned_trials: 1, ..Synthetic::default() });
    let trial = &found.trials[0];
    assert_eq!(phase(&trial.phases, "baseline").intervals, 9);
    assert!(phase(&trial.phases, "baseline").response.unwrap().max.value_ns < 50 * MS, "no slow one in the baseline");
    assert_eq!(phase(&trial.phases, "fault").intervals, 9);
    assert!(trial.balance.between_phases >= 3 * 300);
    assert!(trial.balance.balances);
}

#[test]
fn degradation_is_the_share_of_goodput_that_the_fault_took() {
    // A third of the operations goes through n2 and misses 50 ms.
    let found = analysed(&Synthetic::default());
    for trial in &found.trials {
        assert_eq!((trial.effect.baseline, trial.effect.fault), (Some(300.0), Some(200.0)));
        assert!((trial.effect.degradation.unwrap() - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(trial.effect.delivered_degradation, Some(0.0), "all of them are answered");
    }
    let share = phase(&found.cells[0].phases, "fault").objective_share.unwrap();
    assert!((share - 2.0 / 3.0).abs() < 1e-9);
}

#[test]
fn recovery_ends_with_the_last_three_intervals_that_are_not_back() {
    for (lag, at) in [(0, 0), (4, 4 * SECOND)] {
        let effect = analysed(&Synthetic { lag, ..Synthetic::default() }).trials[0].effect;
        assert_eq!((effect.recovered, effect.recovery_ns), (Some(true), Some(at)), "{lag}");
        assert_eq!((effect.recovery_resolution_ns, effect.relapsed), (Some(SECOND), Some(false)));
        assert_eq!(effect.residual, Some(1.0));
        // A third of the operations is too slow as long as it lasts.
        assert_eq!(effect.lost_ns, Some((lag as f64 / 3.0 * 1e9) as i64));
    }
}

#[test]
fn a_relapse_counts_and_a_stalled_second_does_not() {
    let relapse = |_, name: &str, second| if name == "recovery" && (4..7).contains(&second) { 0.5 } else { 0.0 };
    let effect = analysed(&Synthetic { failing: relapse, ..Synthetic::default() }).trials[0].effect;
    assert_eq!((effect.recovered, effect.recovery_ns, effect.relapsed), (Some(true), Some(7 * SECOND), Some(true)));
    assert_eq!(effect.lost_ns, Some(1_500_000_000));
    let stalled = |_, name: &str, second| if name == "recovery" && second == 5 { 0.5 } else { 0.0 };
    let effect = analysed(&Synthetic { failing: stalled, ..Synthetic::default() }).trials[0].effect;
    assert_eq!((effect.recovered, effect.recovery_ns, effect.relapsed), (Some(true), Some(0), Some(false)));
}

#[test]
fn a_permanent_loss_is_no_recovery_although_the_baseline_has_a_stalled_second() {
    // The stalled second widens two standard deviations to 20 % of the mean; by the median absolute deviation it is one of nine.
    let failing = |_, name: &str, second| match name {
        "baseline" if second == 3 => 0.3,
        "recovery" => 0.12,
        _ => 0.0,
    };
    let effect = analysed(&Synthetic { failing, ..Synthetic::default() }).trials[0].effect;
    assert!(2.0 * effect.baseline_deviation.unwrap() > 0.12 * effect.baseline.unwrap());
    assert_eq!((effect.recovered, effect.recovery_floor), (Some(false), Some(0.95 * 300.0)));
}

#[test]
fn over_trials_recovery_is_the_middle_one_and_one_that_never_came_is_the_longest() {
    let failing = |trial, name: &str, second| match (trial, name) {
        (1..4, "recovery") if second < 2 + u64::from(trial) => 0.5,
        (4.., "recovery") => 0.5,
        _ => 0.0,
    };
    let found = analysed(&Synthetic { trials: 4, planned_trials: 4, failing, ..Synthetic::default() });
    let over = found.cells[0].recovery.unwrap();
    assert_eq!((over.trials, over.recovered), (4, 3));
    assert_eq!((over.low_ns, over.median_ns, over.high_ns), (Some(3 * SECOND), Some(9 * SECOND / 2), None));
    assert_eq!(over.confidence, 0.875);
    let one = Synthetic { trials: 1, planned_trials: 1, ..Synthetic::default() };
    assert_eq!(analysed(&one).cells[0].recovery, None);
}

#[test]
fn recovery_is_counted_from_a_healing_before_the_end_of_the_fault_phase() {
    let early = Synthetic { length: Some(4), lag: 3, ..Synthetic::default() };
    let found = analysed(&early);
    let effect = found.trials[0].effect;
    assert_eq!((effect.recovered, effect.recovery_ns), (Some(true), Some(3 * SECOND)));
    assert_eq!(effect.residual, Some(1.0));
    assert_eq!(phase(&found.trials[0].phases, "fault").intervals, 3, "up to the healing");
}

#[test]
fn an_outage_is_no_recovery_however_noisy_the_baseline() {
    // Seconds of 300, 162 and 30: three deviations reach below nothing.
    let failing = |_, name: &str, second| match name {
        "baseline" => [0.0, 0.46, 0.9][second as usize % 3],
        "recovery" => 1.0,
        _ => 0.0,
    };
    let effect = analysed(&Synthetic { failing, ..Synthetic::default() }).trials[0].effect;
    assert_eq!(effect.recovery_floor, Some(162.0 / 2.0));
    assert_eq!((effect.recovered, effect.residual), (Some(false), Some(0.0)));
}

#[test]
fn an_interval_without_a_row_is_one_without_operations() {
    let found = analysed(&Synthetic { silent: 4, ..Synthetic::default() });
    let recovery = phase(&found.trials[0].phases, "recovery");
    assert_eq!((recovery.intervals, recovery.counts.scheduled), (10, 1800));
    assert_eq!(recovery.rates.unwrap().delivered, 180.0);
    assert_eq!(found.trials[0].effect.recovery_ns, Some(4 * SECOND));
    // Of a killed trial the last interval may only not have been written yet.
    let plan = Synthetic::default();
    let cut_at = Some(plan.starts("recovery") + 3 * SECOND);
    let killed = analysed(&Synthetic { silent: 3, trials: 1, cut_at, ..plan });
    assert_eq!(phase(&killed.trials[0].phases, "recovery").intervals, 2);
}

#[test]
fn two_good_intervals_in_a_row_are_no_recovery() {
    // Seconds 0, 1 good, 2 bad, 3 and 4 good, 5 bad, … and the last one good.
    let failing = |_, name: &str, second| if name == "recovery" && second % 3 == 2 { 0.3 } else { 0.0 };
    let effect = analysed(&Synthetic { failing, ..Synthetic::default() }).trials[0].effect;
    assert_eq!((effect.recovered, effect.recovery_ns), (Some(false), None));
    assert!((0.8..0.95).contains(&effect.residual.unwrap()), "{:?}", effect.residual);
}

#[test]
fn a_closed_loop_is_explained_by_arithmetic() {
    let found = analysed(&Synthetic { threads: Some(8), ..Synthetic::default() });
    let own = found.trials[0].closed_loop.as_ref().unwrap();
    // A third of the operations asks n2, whose answers are 100 ms late.
    assert!((own.extra_delay_ns.unwrap() - 100e6 / 3.0).abs() < 1e3);
    let before = phase(&found.trials[0].phases, "baseline").response.unwrap().mean_ns;
    assert!((own.predicted_loss.unwrap() - 33.333e6 / (before + 33.333e6)).abs() < 1e-3);
    let little = own.phases.iter().find(|little| little.phase == "baseline").unwrap();
    assert!((little.predicted - 8.0 / (before / 1e9)).abs() < 1.0);
    assert_eq!(analysed(&Synthetic::default()).trials[0].closed_loop, None);
}

#[test]
fn a_closed_loops_throughput_is_of_the_operations_that_its_mean_is_of() {
    let found = analysed(&Synthetic { threads: Some(8), time_outs: 20, ..Synthetic::default() });
    let own = found.trials[0].closed_loop.as_ref().unwrap();
    let little = own.phases.iter().find(|little| little.phase == "fault").unwrap();
    let fault = phase(&found.trials[0].phases, "fault");
    // A thread that waited for its time-out is free again, as the mean has it.
    assert_eq!((fault.rates.unwrap().delivered, little.measured), (260.0, 300.0));
    let mean = fault.response.unwrap().mean_ns;
    assert!((little.predicted - 8.0 / (mean / 1e9)).abs() < 1e-6);
    assert_eq!(own.measured_loss, Some(0.0));
}

#[test]
fn a_killed_run_tells_all_up_to_its_last_second() {
    let plan = Synthetic::default();
    let cut_at = plan.starts("fault") + 6 * SECOND;
    let found = analysed(&Synthetic { cut_at: Some(cut_at), ..plan });
    let last = found.trials.last().unwrap();
    assert_eq!((last.state.as_str(), last.cut), ("running", true));
    let fault = phase(&last.phases, "fault");
    assert_eq!((fault.finished, fault.ended_by.as_deref(), fault.duration_ns), (false, None, 6 * SECOND));
    assert_eq!(fault.counts.open, 12, "two of each statement and coordinator");
    assert!(last.balance.balances && last.balance.open_sent == 12);
    assert!(last.effect.degradation.unwrap() > 0.3, "the open interval is left out");
    assert_eq!((found.verdict.validity, exit_code(&found)), (Validity::Interrupted, 130));
    assert!(found.verdict.sentence.contains("trial 2 has no end"), "{}", found.verdict.sentence);
}
