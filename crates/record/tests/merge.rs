//! A trial that several machines have made a part of each becomes one record, on one time line.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{collections::BTreeMap, path::Path};

use brownout_record::{
    CpuRow, Event, Expectation, FaultRecord, Histogram, Intervals, LatencyRow, LoadRow, LostLoad, MachineClockRow,
    MachineRole, MachineRow, Period, ProbeRow, ProbeSample, Quantity, RecordError, Recorder, Run, Severity, Stamp,
    Subject, TrialPart, merge,
};
use tempfile::TempDir;

const S: u64 = 1_000_000_000;
const INTERVALS: Intervals = Intervals { epoch_ns: 10 * S, length_ns: S };

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new(3).unwrap();
    values.iter().for_each(|value| histogram.record(*value).unwrap());
    histogram
}

fn load_row(starts_ns: u64, scheduled: u64, never_sent: u64) -> LoadRow {
    LoadRow {
        starts_ns,
        length_ns: S,
        settled: never_sent == 0,
        scheduled,
        sent: scheduled - never_sent,
        never_sent,
        never_sent_by_operation: BTreeMap::from([("read".to_owned(), never_sent)]),
        stale: 1,
        lateness: (&histogram(&[scheduled])).into(),
        stood_still_ns: never_sent,
        withheld: 2,
        looked_for: 3,
        lost: 4,
    }
}

fn latency_row(starts_ns: u64, count: u64, response: &[u64]) -> LatencyRow {
    let times = (&histogram(response)).into();
    LatencyRow {
        starts_ns,
        statement: "read".to_owned(),
        coordinator: "n1".to_owned(),
        outcome: "ok".to_owned(),
        count,
        wait: (&histogram(&[])).into(),
        service: (&histogram(&[])).into(),
        response: times,
    }
}

/// n1 and n2 are slow, then n2 alone is paused.
fn faults(slow: [Option<u64>; 2], pause: [Option<u64>; 2]) -> Vec<FaultRecord> {
    let hit = |subject, hit| Expectation {
        subject,
        quantity: Quantity::OneWayDelay,
        hit,
        asked: 1.0,
        tolerance: 1.0,
        burst: None,
    };
    let fault = |index, hits: &[Subject], spared: &[Subject], [injected, healed]: [Option<u64>; 2]| {
        let stamp = |at: Option<u64>| at.map(|at_ns| Stamp { at_ns, error_ns: 10 });
        let all = hits.iter().map(|subject| hit(subject.clone(), true));
        let expectations = all.chain(spared.iter().map(|subject| hit(subject.clone(), false))).collect();
        FaultRecord {
            index,
            kind: "slow".to_owned(),
            text: String::new(),
            effect: String::new(),
            unsettled_ns: 0,
            severities: vec![Severity { text: String::new(), expectations }],
            periods: vec![Period { severity: 0, injected: stamp(injected), healed: stamp(healed) }],
        }
    };
    let both = [Subject::pair("n1", "n2"), Subject::pair("load", "n2")];
    vec![
        fault(0, &both, &[Subject::pair("n1", "load")], slow),
        fault(1, &[Subject::host("n2")], &[Subject::host("n1")], pause),
    ]
}

struct Written {
    _directory: TempDir,
    run: Run,
}

fn written(write: impl FnOnce(&Recorder) -> Result<(), RecordError>) -> Written {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
    recorder.batch(write).unwrap();
    let run = Run::open(directory.path()).unwrap();
    Written { _directory: directory, run }
}

fn machine(machine: &str, role: MachineRole, hosts: &[&str]) -> MachineRow {
    MachineRow { machine: machine.to_owned(), role, hosts: hosts.iter().map(|&host| host.to_owned()).collect() }
}

fn merged(parts: &[TrialPart<'_>]) -> Result<(TempDir, Run), RecordError> {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(Path::new(&directory.path().join("run.db")), 0, 0).unwrap();
    merge(&mut recorder, 7, INTERVALS, parts)?;
    let run = Run::open(directory.path()).unwrap();
    Ok((directory, run))
}

#[test]
fn operations_of_several_machines_are_added_up_and_the_sheet_still_balances() {
    let one = written(|recorder| {
        recorder.load(1, &load_row(0, 200, 0))?;
        recorder.load(1, &load_row(S, 200, 3))?;
        recorder.latency(1, &latency_row(0, 2, &[1_000, 2_000]))
    });
    // Its clock is a bit off, and its intervals begin a bit later.
    let other = written(|recorder| {
        recorder.load(1, &load_row(0, 199, 5))?;
        recorder.latency(1, &latency_row(0, 1, &[3_000]))
    });
    let by = |ns: u64| move |at: u64| Some((at + ns, 50));
    let (exactly, later) = (by(10 * S), by(10 * S + 40_000_000));
    let (directory, run) = merged(&[
        TrialPart {
            machine: machine("l0", MachineRole::Load, &[]),
            run: &one.run,
            trial: 1,
            on_run: &exactly,
            lost: None,
        },
        TrialPart {
            machine: machine("l1", MachineRole::Load, &[]),
            run: &other.run,
            trial: 1,
            on_run: &later,
            lost: None,
        },
    ])
    .unwrap();
    let rows = run.load(7).unwrap();
    let sheet =
        |row: &LoadRow| (row.starts_ns, row.scheduled, row.sent, row.never_sent, row.settled, row.stood_still_ns);
    assert_eq!(
        rows.iter().map(sheet).collect::<Vec<_>>(),
        [(10 * S, 399, 394, 5, false, 5), (11 * S, 200, 197, 3, false, 3)]
    );
    assert_eq!(rows[0].never_sent_by_operation, BTreeMap::from([("read".to_owned(), 5)]));
    assert_eq!((rows[0].stale, rows[0].withheld, rows[0].looked_for, rows[0].lost), (2, 4, 6, 8));
    assert_eq!(rows[0].lateness, (&histogram(&[200, 199])).into());
    assert_eq!(run.latencies(7, 0..u64::MAX).unwrap(), [latency_row(10 * S, 3, &[1_000, 2_000, 3_000])]);
    drop(directory);
}

#[test]
fn of_a_long_trial_each_interval_is_merged_whole() {
    let written = |scheduled: u64| {
        written(|recorder| {
            (0..100).try_for_each(|second| {
                recorder.load(1, &load_row(second * S, scheduled, 0))?;
                recorder.latency(1, &latency_row(second * S, 1, &[second * 1_000 + scheduled]))
            })
        })
    };
    let (one, other) = (written(10), written(20));
    let by = |ns: u64| move |at: u64| Some((at + ns, 50));
    // The clock of one is a bit behind, of the other a bit ahead: at each border one is read before the other.
    let (behind, ahead) = (by(10 * S - 30_000_000), by(10 * S + 30_000_000));
    let (directory, run) = merged(&[
        TrialPart {
            machine: machine("l0", MachineRole::Load, &[]),
            run: &one.run,
            trial: 1,
            on_run: &behind,
            lost: None,
        },
        TrialPart {
            machine: machine("l1", MachineRole::Load, &[]),
            run: &other.run,
            trial: 1,
            on_run: &ahead,
            lost: None,
        },
    ])
    .unwrap();
    let expected: Vec<LatencyRow> =
        (0..100).map(|second| latency_row((10 + second) * S, 2, &[second * 1_000 + 10, second * 1_000 + 20])).collect();
    assert_eq!(run.latencies(7, 0..u64::MAX).unwrap(), expected);
    drop(directory);
}

#[test]
fn the_share_of_a_load_that_was_lost_is_never_sent() {
    let (one, lost) = (
        written(|recorder| (0..4).try_for_each(|second| recorder.load(1, &load_row(second * S, 100, 0)))),
        written(|recorder| {
            recorder.load(1, &load_row(0, 100, 0))?;
            recorder.latency(1, &latency_row(0, 99, &[1_000]))
        }),
    );
    let on_run = |at: u64| Some((at + 10 * S, 50));
    let due = |from_ns: u64, to_ns: u64| (to_ns - from_ns) / (S / 100);
    let share = LostLoad { due: &due, from_ns: 0, until_ns: 4 * S, length_ns: S };
    let (directory, run) = merged(&[
        TrialPart {
            machine: machine("l0", MachineRole::Load, &[]),
            run: &one.run,
            trial: 1,
            on_run: &on_run,
            lost: None,
        },
        TrialPart {
            machine: machine("l1", MachineRole::Load, &[]),
            run: &lost.run,
            trial: 1,
            on_run: &on_run,
            lost: Some(share),
        },
    ])
    .unwrap();
    let rows = run.load(7).unwrap();
    let sheet: Vec<_> = rows.iter().map(|row| (row.scheduled, row.sent, row.never_sent)).collect();
    assert_eq!(sheet, [(200, 199, 1), (200, 100, 100), (200, 100, 100), (200, 100, 100)]);
    drop(directory);
}

#[test]
fn each_machine_says_what_it_did_and_saw_by_its_own_clock_and_its_doubt_is_added() {
    let probe = |from: &str, to: &str, sent_ns| ProbeRow {
        starts_ns: sent_ns / S * S,
        from: from.to_owned(),
        to: to.to_owned(),
        samples: vec![ProbeSample { seq: 1, sent_ns, delay_ns: Some(300), copies: 1, reordered: false }],
    };
    let event = |at_ns| Event {
        trial: Some(1),
        at_ns,
        error_ns: 5,
        kind: "inject".to_owned(),
        subject: "n1".to_owned(),
        text: String::new(),
    };
    let cpu = |subject: &str, busy_ns| CpuRow { starts_ns: 0, length_ns: S, subject: subject.to_owned(), busy_ns };
    let knows = MachineClockRow { machine: "a".to_owned(), other: "b".to_owned(), at_ns: 5, ahead_ns: -9, error_ns: 8 };
    let a = written(|recorder| {
        recorder.probe(1, &probe("n1", "n2", S + 300))?;
        recorder.event(&event(2_000))?;
        recorder.machine_clock(1, &knows)?;
        [cpu("machine", 100), cpu("pressure", 7), cpu("load", 900), cpu("instrument", 6)]
            .iter()
            .try_for_each(|row| recorder.cpu(1, row))?;
        faults([Some(1_000), Some(5_000)], [Some(2_000), Some(3_000)]).iter().try_for_each(|one| recorder.fault(1, one))
    });
    let b = written(|recorder| {
        recorder.probe(1, &probe("n2", "n1", 100 * S + 7))?;
        [cpu("machine", 50), cpu("pressure", 9)].iter().try_for_each(|row| recorder.cpu(1, row))?;
        let (slow, pause) = ([Some(100 * S + 1_100), None], [Some(100 * S + 2_400), Some(100 * S + 3_300)]);
        faults(slow, pause).iter().try_for_each(|one| recorder.fault(1, one))
    });
    let l = written(|recorder| {
        [cpu("machine", 5), cpu("load", 60), cpu("instrument", 7)].iter().try_for_each(|row| recorder.cpu(1, row))
    });
    let on_a = |at: u64| Some((at + 10 * S, 0));
    let on_b = |at: u64| Some((at.checked_sub(90 * S).unwrap_or(10 * S), 40));
    let parts = [
        TrialPart {
            machine: machine("a", MachineRole::Agent, &["n1"]),
            run: &a.run,
            trial: 1,
            on_run: &on_a,
            lost: None,
        },
        TrialPart {
            machine: machine("b", MachineRole::Agent, &["n2"]),
            run: &b.run,
            trial: 1,
            on_run: &on_b,
            lost: None,
        },
        TrialPart { machine: machine("l", MachineRole::Load, &[]), run: &l.run, trial: 1, on_run: &on_a, lost: None },
    ];
    let (_directory, run) = merged(&parts).unwrap();
    let machines = run.machines(7).unwrap();
    assert_eq!(machines.iter().map(|row| row.machine.as_str()).collect::<Vec<_>>(), ["a", "b", "l"]);
    assert_eq!((machines[1].hosts.as_slice(), machines[2].role), (["n2".to_owned()].as_slice(), MachineRole::Load));
    assert_eq!(run.machine_clocks(7).unwrap(), [MachineClockRow { at_ns: 10 * S + 5, ..knows }]);
    let probes = run.probes(7).unwrap();
    let sent = |row: &ProbeRow| (row.from.clone(), row.starts_ns, row.samples[0].sent_ns);
    assert_eq!(
        probes.iter().map(sent).collect::<Vec<_>>(),
        [("n2".to_owned(), 10 * S, 10 * S + 7), ("n1".to_owned(), 11 * S, 11 * S + 300)]
    );
    let events = run.events_of(7).unwrap();
    assert_eq!((events[0].at_ns, events[0].error_ns), (10 * S + 2_000, 5));
    let mut cpu: Vec<(String, u64)> = run.cpu(7).unwrap().into_iter().map(|row| (row.subject, row.busy_ns)).collect();
    cpu.sort();
    // All of these parts are on one machine, which is counted once.
    let expected = [("instrument", 13), ("load", 960), ("machine", 100), ("pressure", 7)];
    assert_eq!(cpu, expected.map(|(subject, busy)| (subject.to_owned(), busy)));

    let faults = run.faults(7).unwrap();
    // n1 → n2 is a's, load → n2 is b's, which had not healed it yet.
    let slow = faults[0].periods[0];
    assert_eq!(slow.injected, Some(Stamp { at_ns: 10 * S + 1_070, error_ns: 80 }));
    assert_eq!(slow.healed, None, "it is in force there");
    // The pause of n2 is b's alone.
    let pause = faults[1].periods[0];
    assert_eq!(pause.injected, Some(Stamp { at_ns: 10 * S + 2_400, error_ns: 50 }));
    assert_eq!(pause.healed, Some(Stamp { at_ns: 10 * S + 3_300, error_ns: 50 }));
}

#[test]
fn what_cannot_be_put_on_the_time_line_is_refused_and_names_the_machine() {
    let one = written(|recorder| recorder.load(1, &load_row(0, 1, 0)));
    let nowhere = |_: u64| None;
    let part = TrialPart {
        machine: machine("l0", MachineRole::Load, &[]),
        run: &one.run,
        trial: 1,
        on_run: &nowhere,
        lost: None,
    };
    let error = merged(&[part]).err().unwrap().to_string();
    assert!(error.contains("how far the clock of l0 is from the others'"), "{error}");
}
