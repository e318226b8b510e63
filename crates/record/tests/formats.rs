//! Every format that ever was can be read, and its file stays as it is.
//!
//! `formats/N.db` was written by the recorder of format N: a made-up run of two nodes, of which n2 answers 100 ms late for
//! 8 seconds. (`4.db` is the run of format 3, brought to format 4, with one read more, which was never sent; `5.db` that run,
//! brought to format 5, with a client that stood still for a quarter of a second and withheld three operations; `6.db`
//! that one, brought to format 6, with a snitch's score; `7.db` that one, brought to format 7, on the first two processors.)

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use brownout_record::{Arm, Quantity, RecordError, Recorder, Run, Subject, TrialState};

const SECOND: u64 = 1_000_000_000;
const EARLIER: [i32; 7] = [1, 2, 3, 4, 5, 6, 7];

fn fixture(format: i32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{format}.db"))
}

#[test]
fn what_a_run_of_an_earlier_format_holds_is_read_and_the_file_stays_as_it_is() {
    for format in EARLIER {
        let path = fixture(format);
        let before = fs::read(&path).unwrap();
        let run = Run::open(&path).unwrap();

        let description = run.description().unwrap();
        assert_eq!((description.name.as_str(), description.hosts.len(), description.trials), ("slow-replica", 2, 1));
        assert!(description.database.starts_with("Cassandra"), "{}", description.database);
        assert_eq!((description.overlay.as_str(), description.encryption.len(), description.external), ("", 0, false));
        assert_eq!((description.objective.share, description.objective.operation), (0.99, None));
        assert_eq!(run.environment().unwrap().unwrap().cores, 2);
        assert_eq!(run.started_unix_ms().unwrap(), 1_780_000_000_000);
        let trial = &run.trials().unwrap()[0];
        assert_eq!((trial.seed, trial.ends_ns, trial.state), (7, Some(24 * SECOND), TrialState::Done));
        let phases = run.phases(1).unwrap();
        let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["set-up", "warm-up", "baseline", "fault", "recovery"]);
        assert_eq!(run.events().unwrap().len(), 7);

        let faults = run.faults(1).unwrap();
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        let (from, to) = (fault.injected().unwrap(), fault.healed().unwrap());
        assert_eq!((from.at_ns, to.at_ns, from.error_ns), (10 * SECOND, 18 * SECOND, 40_000));
        assert_eq!((fault.kind.as_str(), fault.unsettled_ns), ("slow", 600_000_000));
        assert_eq!(fault.severities.len(), 1);
        let asked = |from: &str, to: &str| {
            let subject = Subject::pair(from, to);
            let all = &fault.severities[0].expectations;
            let one = all.iter().find(|one| one.subject == subject && one.quantity == Quantity::OneWayDelay).unwrap();
            (one.hit, one.asked, one.tolerance)
        };
        assert_eq!((asked("n2", "n1"), asked("n1", "n2")), ((true, 100e6, 2e6), (false, 0.0, 2e6)));

        let load = run.load(1).unwrap();
        assert_eq!((load.len(), load.iter().map(|row| row.sent).sum::<u64>()), (23, 184));
        let slow = run.latencies(1, 12 * SECOND..13 * SECOND).unwrap();
        let through = |node: &str| slow.iter().find(|row| row.coordinator == node).unwrap().response.min();
        assert!(through("n2") > 100_000_000 && through("n1") < 10_000_000);
        let links = run.links(1, 12 * SECOND..13 * SECOND).unwrap();
        let back = links.iter().find(|row| row.from == "n2").unwrap();
        assert_eq!((links.len(), back.offered, back.delivered, back.lost), (2, 5, 5, 0));
        assert_eq!((back.duplicated, back.corrupted, back.reordered, back.cut, back.too_big), (0, 0, 0, 0, 0));
        assert!(back.held.min() >= 99_000_000);
        let probes = run.probes(1).unwrap();
        assert_eq!(probes.iter().map(|row| row.samples.len()).sum::<usize>(), 2 * 24 * 10);
        assert_eq!(run.overlay_probes(1).unwrap(), []);
        let cpu = run.cpu(1).unwrap();
        assert_eq!(cpu.iter().filter(|row| row.subject == "cores").count(), 24);
        // What an earlier format had no room for, nobody saw.
        let seen = if format == 1 { 0 } else { 48 };
        let witnesses = run.witnesses(1).unwrap();
        let (directories, others): (Vec<_>, Vec<_>) =
            witnesses.iter().partition(|row| matches!(row.subject, Subject::Directory { .. }));
        assert_eq!((others.len(), run.host_counters(1).unwrap().len()), (seen, seen));
        if format >= 3 {
            let data = Subject::Directory { host: "n2".to_owned(), directory: "data".to_owned() };
            assert_eq!(directories.iter().map(|row| &row.subject).collect::<Vec<_>>(), [&data]);
        }
        let never_sent: Vec<_> = load.iter().flat_map(|row| &row.never_sent_by_operation).collect();
        let read = ("read".to_owned(), 1);
        assert_eq!(never_sent, if format >= 4 { vec![(&read.0, &read.1)] } else { Vec::new() });
        let stood_still = load.iter().map(|row| row.stood_still_ns).sum::<u64>();
        let withheld = load.iter().map(|row| row.withheld).sum::<u64>();
        assert_eq!((stood_still, withheld), if format >= 5 { (SECOND / 4, 3) } else { (0, 0) }, "format {format}");

        let evidence: Vec<_> = run.evidence(1).unwrap().into_iter().map(|row| (row.node, row.value)).collect();
        assert_eq!(evidence, if format >= 6 { vec![("n1".to_owned(), 0.75)] } else { Vec::new() });

        // A run of before there were designs is one of one cell, its trials blocks of their own.
        let cells = run.cells().unwrap();
        assert_eq!((cells.len(), cells[0].cell, cells[0].compared_with, cells[0].levels.len()), (1, 1, 1, 0));
        assert_eq!((trial.planned, trial.cell, trial.block, trial.arm), (1, 1, 1, Arm::Fault));
        assert_eq!((trial.attempt, trial.stand, trial.session), (1, 1, 1));
        let processors = if format >= 7 { "0-1" } else { "" };
        assert_eq!(
            (trial.lab, trial.processors.as_str()),
            (1, processors),
            "one at a time; before, nobody said on what"
        );
        assert_eq!(run.sessions().unwrap()[0].started_unix_ms, 1_780_000_000_000);
        assert_eq!(run.design().unwrap(), None);

        drop(run);
        assert_eq!(fs::read(&path).unwrap(), before, "format {format}");
    }
}

#[test]
fn a_killed_run_of_an_earlier_format_is_read_with_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    fs::copy(fixture(2), &path).unwrap();
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute_batch("PRAGMA journal_mode = wal; UPDATE trial SET state = 'running', ends_ns = NULL").unwrap();
    // One who is killed closes nothing.
    std::mem::forget(writer);
    let run = Run::open(&path).unwrap();
    assert_eq!(run.trials().unwrap()[0].state, TrialState::Running);
    assert_eq!(run.faults(1).unwrap().len(), 1);
}

#[test]
fn a_run_of_a_newer_format_is_refused_with_both_formats() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    Recorder::create(&path, 0, 0).unwrap().finish().unwrap();
    let set = |format: i32| {
        rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", format).unwrap();
    };
    set(99);
    let refused = Run::open(&path).err().unwrap();
    assert!(matches!(refused, RecordError::Newer { .. }));
    let message = refused.to_string();
    assert!(message.contains("newer Brownout") && message.contains("format 99, this version reads up to"), "{message}");
    set(0);
    assert!(Run::open(&path).err().unwrap().to_string().contains("never a format 0"));
}
