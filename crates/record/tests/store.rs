//! What is written can be read, by whom and whenever.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::collections::BTreeMap;

use brownout_record::{
    Arm, ClockRow, Event, EvidenceRow, Histogram, HostCounterRow, LatencyRow, LinkRow, LoadRow, ProbeRow, ProbeSample,
    Quantity, Recorder, Run, Subject, TrialRow, WitnessRow,
};

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new(3).unwrap();
    for value in values {
        histogram.record(*value).unwrap();
    }
    histogram
}

fn load_row(starts_ns: u64, settled: bool) -> LoadRow {
    LoadRow {
        starts_ns,
        length_ns: 1_000_000_000,
        settled,
        scheduled: 400,
        sent: 399,
        never_sent: 1,
        never_sent_by_operation: BTreeMap::from([("read".to_owned(), 1)]),
        stale: 0,
        lateness: (&histogram(&[20_000])).into(),
        stood_still_ns: 250_000_000,
        withheld: 9,
        looked_for: 70,
        lost: 3,
    }
}

#[test]
fn an_interval_written_twice_is_updated() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
    recorder.batch(|recorder| recorder.load(1, &load_row(0, false))).unwrap();
    recorder.batch(|recorder| recorder.load(1, &load_row(0, true))).unwrap();
    let rows = Run::open(directory.path()).unwrap().load(1).unwrap();
    assert_eq!(rows, [load_row(0, true)]);
}

#[test]
fn what_was_set_comes_back_whatever_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
    let set = || Run::open(directory.path()).unwrap().set().unwrap();
    assert_eq!(set(), [""; 0]);
    let assignments = ["trials=3", "question=two\nlines", "load.mix={ \"read\": 1 }"].map(str::to_owned);
    recorder.batch(|recorder| recorder.set(&assignments)).unwrap();
    assert_eq!(set(), assignments);
}

#[test]
fn late_probes_are_appended_to_their_interval() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
    let sample = |seq| ProbeSample { seq, sent_ns: seq * 20, delay_ns: Some(5), copies: 1, reordered: false };
    let row = |seqs: &[u64]| ProbeRow {
        starts_ns: 0,
        from: "n1".to_owned(),
        to: "n2".to_owned(),
        samples: seqs.iter().map(|seq| sample(*seq)).collect(),
    };
    recorder.batch(|recorder| recorder.probe(1, &row(&[0, 1]))).unwrap();
    recorder.batch(|recorder| recorder.probe(1, &row(&[2]))).unwrap();
    // Those through an overlay are others.
    recorder.batch(|recorder| recorder.overlay_probe(1, &row(&[3]))).unwrap();
    recorder.batch(|recorder| recorder.overlay_probe(1, &row(&[4]))).unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.probes(1).unwrap(), [row(&[0, 1, 2])]);
    assert_eq!(run.overlay_probes(1).unwrap(), [row(&[3, 4])]);
}

#[test]
fn a_failed_batch_leaves_nothing_of_itself() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
    let failed: Result<(), _> = recorder.batch(|recorder| {
        recorder.load(1, &load_row(0, true))?;
        Err(brownout_record::RecordError::Damaged { what: "test", why: "on purpose".to_owned() })
    });
    assert!(failed.is_err());
    assert_eq!(Run::open(directory.path()).unwrap().load(1).unwrap(), []);
}

#[test]
fn a_run_is_readable_while_it_is_written_and_after_its_writer_vanished() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 1_000, 7).unwrap();
    let trial = TrialRow::single(u64::MAX, 5, Arm::Fault);
    let event = Event {
        trial: Some(1),
        at_ns: recorder.at(3_000),
        error_ns: 10,
        kind: "inject".to_owned(),
        subject: "n2".to_owned(),
        text: "slow".to_owned(),
    };
    let latency = LatencyRow {
        starts_ns: 0,
        statement: "read".to_owned(),
        coordinator: "n2".to_owned(),
        outcome: "ok".to_owned(),
        count: 2,
        wait: (&histogram(&[1, 2])).into(),
        service: (&histogram(&[200_000_000, 200_100_000])).into(),
        response: (&histogram(&[200_000_001, 200_100_002])).into(),
    };
    let watch = LatencyRow { statement: "watch".to_owned(), ..latency.clone() };
    recorder
        .batch(|recorder| {
            recorder.trial(&trial)?;
            recorder.event(&event)?;
            recorder.watch(1, &watch)?;
            recorder.latency(1, &latency)
        })
        .unwrap();
    // A writer killed by SIGKILL runs no destructor: its log stays beside the file.
    std::mem::forget(recorder);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.trials().unwrap(), [trial]);
    assert_eq!(run.events().unwrap(), [event]);
    assert_eq!(run.latencies(1, 0..u64::MAX).unwrap(), [latency]);
    assert_eq!(run.watches(1, 0..u64::MAX).unwrap(), [watch]);
    assert_eq!(run.started_unix_ms().unwrap(), 7);
    assert!(run.description().unwrap_err().to_string().contains("killed before its plan"));
}

#[test]
fn several_writers_of_one_session_lose_nothing_and_the_file_is_whole_when_they_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    let recorder = Recorder::create(&path, 1_000, 7).unwrap();
    let writers: Vec<Recorder> = (0..3).map(|_| recorder.beside().unwrap()).collect();
    std::thread::scope(|scope| {
        for (lab, mut writer) in (1..).zip(writers) {
            scope.spawn(move || {
                assert_eq!((writer.session(), writer.at(1_500)), (1, 500));
                for second in 0..50 {
                    let row = TrialRow {
                        trial: lab,
                        lab,
                        processors: "0-1,4".to_owned(),
                        ..TrialRow::single(7, 5, Arm::None)
                    };
                    writer
                        .batch(|writer| {
                            writer.trial(&row)?;
                            writer.load(lab, &load_row(second * 1_000_000_000, true))
                        })
                        .unwrap();
                }
            });
        }
    });
    recorder.finish().unwrap();
    assert!(!directory.path().join("run.db-wal").exists(), "all is in the file itself");
    let run = Run::open(&path).unwrap();
    let rows = run.trials().unwrap();
    assert_eq!(rows.iter().map(|row| row.lab).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(rows.iter().all(|row| row.processors == "0-1,4"), "{rows:?}");
    for lab in 1..=3 {
        assert_eq!(run.load(lab).unwrap().len(), 50);
    }
}

#[test]
fn what_is_no_run_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = |name: &str| Run::open(&directory.path().join(name)).err().unwrap().to_string();
    assert!(refusal("missing").contains("no run at"));
    std::fs::write(directory.path().join("text"), "this is not a database, it is a text of some length").unwrap();
    assert!(refusal("text").contains("not a run"));
}

#[test]
fn counters_and_what_witnesses_saw_come_back_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
    let link = LinkRow {
        starts_ns: 1,
        length_ns: 2,
        from: "n1".to_owned(),
        to: "n2".to_owned(),
        offered: 3,
        offered_bytes: 4,
        delivered: 5,
        delivered_bytes: 6,
        lost: 7,
        dropped_queue: 8,
        dropped_emulator: 17,
        duplicated: 9,
        corrupted: 10,
        reordered: 11,
        cut: 12,
        too_big: 13,
        release_error: histogram(&[14]),
        held: histogram(&[15, 16]),
    };
    let counted =
        HostCounterRow { starts_ns: 1, length_ns: 2, host: "n2".to_owned(), checksum_errors: 3, interface_dropped: 4 };
    let subjects = [
        Subject::pair("n1", "n2"),
        Subject::overlay("n1", "n2"),
        Subject::host("n2"),
        Subject::directory("n2", "data"),
    ];
    let seen: Vec<WitnessRow> = (0..)
        .zip(Quantity::ALL)
        .map(|(at_ns, quantity)| WitnessRow {
            at_ns,
            subject: subjects[at_ns as usize % 4].clone(),
            quantity,
            source: "heartbeat".to_owned(),
            value: -1.5e18,
            error: 0.25,
        })
        .collect();
    recorder
        .batch(|recorder| {
            recorder.link(1, &link)?;
            recorder.host_counters(1, &counted)?;
            seen.iter().rev().try_for_each(|row| recorder.witness(1, row))
        })
        .unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.links(1, 0..u64::MAX).unwrap(), [link]);
    assert_eq!(run.host_counters(1).unwrap(), [counted]);
    assert_eq!(run.witnesses(1).unwrap(), seen, "in order of time");
    assert_eq!(run.witnesses(2).unwrap(), []);
}

#[test]
fn what_the_database_tells_is_read_in_order_of_time_for_each_trial() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
    let row = |at_ns, name: &str, subject: &str, value| EvidenceRow {
        at_ns,
        error_ns: 500_000,
        node: "n1".to_owned(),
        source: "jmx".to_owned(),
        subject: subject.to_owned(),
        name: name.to_owned(),
        value,
    };
    let late = row(3_000_000_000, "snitch-score", "n2", 0.25);
    let early = row(1_500_000_000, "speculative-retries", "", 17.0);
    recorder
        .batch(|recorder| {
            recorder.evidence(1, &late)?;
            recorder.evidence(1, &early)?;
            recorder.evidence(2, &row(0, "pause", "G1CollectForAllocation", 2e6))
        })
        .unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.evidence(1).unwrap(), [early, late]);
    assert_eq!(run.evidence(2).unwrap().len(), 1);
}

#[test]
fn what_clocks_say_of_each_other_is_read_in_order_of_time_whichever_of_them_is_behind() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&directory.path().join("run.db"), 0, 0).unwrap();
    let row = |at_ns, host: &str, server: &str, offset_ns| ClockRow {
        at_ns,
        host: host.to_owned(),
        server: server.to_owned(),
        round_trip_ns: 200_000,
        offset_ns,
        bound_ns: 101_000,
    };
    let behind = row(2_000_000_000, "n2", "n1", -5_000_000_000);
    let ahead = row(1_000_000_000, "n1", "n2", 5_000_000_000);
    recorder
        .batch(|recorder| {
            recorder.clock(1, &behind)?;
            recorder.clock(1, &ahead)
        })
        .unwrap();
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.clocks(1).unwrap(), [ahead, behind]);
    assert_eq!(run.clocks(2).unwrap(), []);
}
