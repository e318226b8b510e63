//! Stalls of a fraction of a second: proven by the process and by heartbeats, and what arithmetic says about them.

use crate::scenario::{Does, Made, Scenario};
use brownout_analysis::{Findings, Proof, Standstill, findings};
use brownout_record::{LoadPart, Quantity, Subject};

fn analysed(scenario: &Scenario) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    findings(&scenario.run(directory.path())).unwrap()
}

/// n2 stands still ten times, each time for so many seconds, every 3.2 s: that its process does not run is one fault here, that it does
/// not answer another.
fn stalls(seconds: f64, running: Does, answers: Does) -> Scenario {
    let periods: Vec<(u32, f64, f64)> =
        (0..10).map(|at| 3.2 * f64::from(at)).map(|from| (0, from, from + seconds)).collect();
    let made = |quantity, tolerance, does| {
        Made::new(quantity, vec![Subject::host("n2")], -1.0, tolerance).during(&periods).does(does)
    };
    let faults = vec![made(Quantity::Running, 0.05, running), made(Quantity::Answers, 0.2, answers)];
    // Looked at every 10 ms.
    Scenario { seconds: [20, 33, 20], looks: 1_000, answer_times: true, ..Scenario::of(faults) }
}

fn verdicts(scenario: &Scenario) -> (Vec<Proof>, String) {
    let found = analysed(scenario);
    let faults = &found.trials[0].faults;
    (
        faults.iter().map(|fault| fault.verdict).collect(),
        format!("{:?}", faults.iter().map(|f| &f.reasons).collect::<Vec<_>>()),
    )
}

#[test]
fn short_stalls_are_proven_though_every_question_is_answered_in_the_end() {
    for seconds in [0.05, 0.2, 0.5, 1.0] {
        let (verdicts, why) = verdicts(&stalls(seconds, Does::AsSaid, Does::AsSaid));
        assert_eq!(verdicts, [Proof::Proven, Proof::Proven], "{seconds}: {why}");
    }
}

#[test]
fn stalls_that_were_accepted_and_not_applied_are_refuted_by_each_witness() {
    for seconds in [0.05, 0.2, 0.5] {
        let (verdicts, why) = verdicts(&stalls(seconds, Does::Nothing, Does::Nothing));
        assert_eq!(verdicts, [Proof::Refuted, Proof::Refuted], "{seconds}: {why}");
        let (verdicts, why) = self::verdicts(&stalls(seconds, Does::AsSaid, Does::Nothing));
        assert_eq!(verdicts[1], Proof::Refuted, "{seconds}: {why}");
    }
}

#[test]
fn one_stall_of_ten_that_did_not_come_is_refuted_and_named() {
    for seconds in [0.05, 0.2] {
        let fourth = || Does::Gone(vec![(9.6, 9.6 + seconds)]);
        let (verdicts, why) = verdicts(&stalls(seconds, fourth(), fourth()));
        assert_eq!(verdicts[0], Proof::Refuted, "{seconds}: {why}");
        assert!(why.contains("period 4 of 10"), "{seconds}: {why}");
    }
}

#[test]
fn a_stall_that_another_node_shares_or_that_does_not_end_is_refuted() {
    let n1 = || Subject::host("n1");
    for (running, answers) in [
        (Does::Spills(n1()), Does::AsSaid),
        (Does::AsSaid, Does::Spills(n1())),
        (Does::Stays, Does::AsSaid),
        (Does::AsSaid, Does::Stays),
        (Does::NoPauses, Does::AsSaid),
    ] {
        let (verdicts, why) = verdicts(&stalls(0.2, running, answers));
        assert!(verdicts.contains(&Proof::Refuted), "{why}");
    }
}

#[test]
fn what_an_open_loop_must_see_of_stalls_follows_from_arithmetic() {
    let found = analysed(&stalls(0.2, Does::AsSaid, Does::AsSaid));
    let own: &Standstill = found.trials[0].standstill.as_ref().unwrap();
    assert_eq!((own.stalls, own.length_ns), (10, 200_000_000));
    // Each of three nodes coordinates a third; half of the others' reads at QUORUM ask n2.
    assert!((own.coordinated - 1.0 / 3.0).abs() < 1e-6, "{own:?}");
    assert!((own.needed.unwrap() - 2.0 / 3.0).abs() < 1e-6, "{own:?}");
    // From the first injection to the last healing, ns.
    let length = 9.0 * 3.2e9 + 0.2e9;
    let share = |k: f64, x: f64| k * 10.0 * (0.2e9 - x) / length;
    assert!((own.least_share - share(1.0 / 3.0, 0.05e9)).abs() < 1e-4, "{own:?}");
    assert!((own.most_share.unwrap() - share(2.0 / 3.0, 0.05e9)).abs() < 2e-4, "{own:?}");
    // k · Σ (s − x) ÷ T = 1 %
    let p99 = |k: f64| 0.2e9 - 0.01 * length / (10.0 * k);
    let found = own.quantiles.iter().find(|one| one.quantile == 0.99).unwrap();
    assert!((found.least_ns as f64 - p99(1.0 / 3.0)).abs() < 1e6, "{own:?}");
    assert!((found.most_ns.unwrap() as f64 - p99(2.0 / 3.0)).abs() < 1e6, "{own:?}");
    // Every percentile is one of the baseline where fewer operations wait.
    let seldom = Scenario { seconds: [20, 90, 20], ..stalls(0.05, Does::AsSaid, Does::AsSaid) };
    let found = analysed(&seldom);
    let p95 = &found.trials[0].standstill.as_ref().unwrap().quantiles[0];
    assert!(p95.quantile == 0.95 && p95.most_ns.unwrap() < 5_000_000, "{p95:?}");
}

#[test]
fn there_is_no_arithmetic_for_closed_loops_and_where_other_faults_are_in_force() {
    let closed = Scenario { threads: Some(8), ..stalls(0.2, Does::AsSaid, Does::AsSaid) };
    assert_eq!(analysed(&closed).trials[0].standstill, None);
    let part = |operation: &str, rate, threads| LoadPart { operation: operation.to_owned(), rate, threads };
    let beside = vec![part("read", Some(90.0), None), part("write", None, Some(2))];
    let partly = Scenario { parts: beside, ..stalls(0.2, Does::AsSaid, Does::AsSaid) };
    assert_eq!(analysed(&partly).trials[0].standstill, None);
    let mut both = stalls(0.2, Does::AsSaid, Does::AsSaid);
    both.faults.push(Made::new(Quantity::OneWayDelay, vec![Subject::pair("n1", "n3")], 20e6, 2e6));
    assert_eq!(analysed(&both).trials[0].standstill, None);
}
