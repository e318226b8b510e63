//! A run file of a load without a lab is read by the analysis of experiments, and is valid.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::path::Path;

use brownout_analysis::{Validity, exit_code, findings};
use brownout_load::{Balance, Bucket, ErrorClass, Outcome, Series, histogram};
use brownout_record::Run;
use brownout_stress::output::{Ended, OutputError, RunFile, RunPlan};

const SECOND: u64 = 1_000_000_000;
const ZERO: u64 = 100 * SECOND;

fn plan() -> RunPlan {
    RunPlan {
        name: "mixed".to_owned(),
        command: "mixed duration=5s -rate open=100/s -mode password=secret".to_owned(),
        nodes: vec![("n1".to_owned(), "127.0.0.1:9042".to_owned()), ("n2".to_owned(), "127.0.0.2:9042".to_owned())],
        system: "Cassandra 5.0.4".to_owned(),
        load: "open, 100/s, constant arrivals".to_owned(),
        rate: Some(100.0),
        consistency: "quorum".to_owned(),
        replication: 2,
        timeout_ns: 12 * SECOND,
        length_ns: 5 * SECOND,
        interval_ns: SECOND,
        seed: 7,
        ..RunPlan::default()
    }
}

fn series(operation: &str, coordinator: &str, outcome: Outcome, count: u64, ms: u64) -> Series {
    let (mut wait, mut service, mut response) = (histogram(), histogram(), histogram());
    wait.record_n(0, count).unwrap();
    service.record_n(ms * 1_000_000, count).unwrap();
    response.record_n(ms * 1_000_000, count).unwrap();
    let (statement, coordinator) = (operation.to_owned(), coordinator.to_owned());
    Series { statement, coordinator, outcome, count, wait, service, response }
}

fn bucket(number: u64) -> Bucket {
    let mut lateness = histogram();
    lateness.record_n(20_000, 100).unwrap();
    Bucket {
        start_ns: ZERO + number * SECOND,
        length_ns: SECOND,
        settled: true,
        over: true,
        scheduled: 100,
        sent: 100,
        never_sent: 0,
        withheld: 0,
        series: vec![
            series("READ", "n1", Outcome::Ok, 60, 4),
            series("WRITE", "n2", Outcome::Ok, 39, 9),
            series("WRITE", "n2", Outcome::Failed(ErrorClass::Overloaded), 1, 1),
        ],
        watches: Vec::new(),
        operations: Vec::new(),
        lateness,
        late_starts: 0,
        stood_still_ns: 0,
        stale: 0,
        empty: 0,
        missing: 0,
        mismatched: 0,
        looked_for: 0,
        lost: 0,
        rerouted: 0,
    }
}

fn write(path: &Path, plan: &RunPlan, ended: Ended<'_>) {
    let mut file = RunFile::begin(path, plan, ZERO, 1_700_000_000_000).unwrap();
    for number in 0..5 {
        file.buckets(ZERO + (number + 1) * SECOND, &[bucket(number)], number * 1_000_000).unwrap();
        if number == 0 {
            let warm_up = if plan.warm_up_ns.is_some() { SECOND } else { 0 };
            file.measure(ZERO + warm_up, ZERO, "").unwrap();
        }
    }
    file.end(ZERO + 5 * SECOND, ZERO + 5 * SECOND, ended, &Balance::default(), None).unwrap();
}

#[test]
fn of_several_steps_one_is_the_baseline_and_the_others_are_phases_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    // Steps of a second and a half, the last half of which counts.
    for (shown, names) in [
        (None, ["step 1, 20/s", "step 2, 40/s", "baseline"]),
        (Some(0), ["baseline", "step 2, 40/s", "step 3, 80/s"]),
        (Some(1), ["step 1, 20/s", "baseline", "step 3, 80/s"]),
        (Some(2), ["step 1, 20/s", "step 2, 40/s", "baseline"]),
    ] {
        let path = directory.path().join(format!("{shown:?}.db"));
        let mut file = RunFile::begin(&path, &plan(), ZERO, 1_700_000_000_000).unwrap();
        let at = |halves: u64| ZERO + halves * SECOND / 2;
        let mut before = ZERO;
        for (step, label) in ["20/s", "40/s", "80/s"].into_iter().enumerate() {
            let begin = 3 * step as u64;
            file.measure(at(begin), before, label).unwrap();
            file.narrow(at(begin + 1));
            before = at(begin + 2);
        }
        file.end(before, at(9), Ended::Done, &Balance::default(), shown).unwrap();
        let phases = Run::open(&path).unwrap().phases(1).unwrap();
        let found: Vec<(&str, u64, u64)> =
            phases.iter().map(|phase| (phase.name.as_str(), phase.starts_ns, phase.ends_ns.unwrap())).collect();
        let halves = [(1, 2), (4, 5), (7, 8)].map(|(from, to)| (at(from) - ZERO, at(to) - ZERO));
        let mut expected: Vec<(&str, u64, u64)> =
            names.into_iter().zip(halves).map(|(name, (from, to))| (name, from, to)).collect();
        expected.sort_by_key(|(_, from, _)| *from);
        assert_eq!(found, expected);
    }
}

#[test]
fn a_load_that_did_what_it_was_told_is_a_valid_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    write(&path, &plan(), Ended::Done);
    let findings = findings(&Run::open(&path).unwrap()).unwrap();
    assert_eq!(findings.verdict.validity, Validity::Valid, "{:?}", findings.verdict.reasons);
    assert_eq!(exit_code(&findings), 0);
    assert_eq!(findings.verdict.sentence, "Valid: the load ran as planned, and without a fault.");
    let phase = &findings.cells[0].phases[0];
    assert_eq!(
        (phase.name.as_str(), phase.counts.scheduled, phase.counts.ok, phase.counts.failed),
        ("baseline", 500, 495, 5)
    );
    assert_eq!(phase.statements.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["READ", "WRITE"]);
    assert!(findings.warnings.is_empty(), "{:?}", findings.warnings);
}

#[test]
fn a_client_that_stood_still_is_no_evidence_in_the_record_either() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    let mut file = RunFile::begin(&path, &plan(), ZERO, 1_700_000_000_000).unwrap();
    file.measure(ZERO, ZERO, "").unwrap();
    // For two of five seconds; what was sent was sent in time, as a loop of users shows it.
    let buckets: Vec<Bucket> =
        (0..5).map(|number| Bucket { stood_still_ns: if number < 2 { SECOND } else { 0 }, ..bucket(number) }).collect();
    file.buckets(ZERO + 5 * SECOND, &buckets, 0).unwrap();
    file.end(ZERO + 5 * SECOND, ZERO + 5 * SECOND, Ended::Done, &Balance::default(), None).unwrap();
    let findings = findings(&Run::open(&path).unwrap()).unwrap();
    assert_eq!(findings.trials[0].instrument.late_intervals, [0, SECOND]);
    assert_eq!((findings.verdict.validity, exit_code(&findings)), (Validity::Invalid, 3));
}

#[test]
fn a_warm_up_is_a_phase_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    write(&path, &RunPlan { warm_up_ns: Some(SECOND), ..plan() }, Ended::Done);
    let findings = findings(&Run::open(&path).unwrap()).unwrap();
    let phases: Vec<(&str, u64)> =
        findings.cells[0].phases.iter().map(|phase| (phase.name.as_str(), phase.counts.scheduled)).collect();
    assert_eq!(phases, [("warm-up", 100), ("baseline", 400)]);
}

#[test]
fn an_objective_that_is_missed_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    write(&path, &RunPlan { objective: Some((5_000_000, 0.99)), ..plan() }, Ended::Done);
    let findings = findings(&Run::open(&path).unwrap()).unwrap();
    assert_eq!(exit_code(&findings), 1, "{}", findings.verdict.sentence);
}

#[test]
fn what_was_cut_short_or_failed_is_no_valid_run() {
    let directory = tempfile::tempdir().unwrap();
    for (name, ended, code) in [("a.db", Ended::Interrupted, 130), ("b.db", Ended::Failed("no host answers"), 3)] {
        let path = directory.path().join(name);
        write(&path, &plan(), ended);
        let findings = findings(&Run::open(&path).unwrap()).unwrap();
        assert_eq!(exit_code(&findings), code, "{}", findings.verdict.sentence);
    }
}

#[test]
fn no_run_is_written_over_another_and_no_password_into_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    write(&path, &plan(), Ended::Done);
    let again = RunFile::begin(&path, &plan(), ZERO, 0).map(|_| ());
    assert!(matches!(again, Err(OutputError::Exists { .. })), "{again:?}");
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"secret"));
}
