//! Every format that ever was can be read, and its file stays as it is.
//!
//! `formats/N.db` was written by the recorder of format N: a made-up run of two nodes, of which n2 answers 100 ms late for
//! 8 seconds. Each has what its format was the first to have room for (9 for nothing: its two hold what 8's do).
//! `formats/N-design.db`, likewise, is a run of a design: a search with two cells, with parts of its load and a placement.
//!
//! Those of today's format are made here: the recorder writes what those of the format before hold, into a directory of its
//! own, and says where, unless what is kept is just that.
//!
//! ```sh
//! cargo test -p brownout-record --test formats fixtures_of -- --ignored
//! ```
//!
//! Of a new format: add its number to [`FORMATS`], have [`copy`] make up what there was no room for before, and copy the files
//! that this writes to `tests/formats`. As soon as there is a later format, they are as they are for ever.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs,
    path::{Path, PathBuf},
};

use brownout_record::{Arm, Quantity, RecordError, Recorder, Run, SearchDescription, Subject, TrialState};

const SECOND: u64 = 1_000_000_000;
/// Those of earlier formats, and the one of today's: whoever changes it without a number of its own breaks what was written until now.
const FORMATS: [i32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/formats");

fn fixture(name: impl Display) -> PathBuf {
    Path::new(KEPT).join(format!("{name}.db"))
}

#[test]
#[ignore = "makes the fixtures of a new format; that those of today's are as it writes them: make test-long"]
fn fixtures_of_todays_format_are_as_its_recorder_writes_them() {
    let directory = tempfile::tempdir().unwrap();
    let [.., before, today] = FORMATS;
    let mut different = Vec::new();
    for kind in ["", "-design"] {
        let (kept, written) = (fixture(format!("{today}{kind}")), directory.path().join(format!("{today}{kind}.db")));
        record(&Run::open(&fixture(format!("{before}{kind}"))).unwrap(), &written);
        let tables = if kept.exists() { differing(&kept, &written) } else { vec!["all".to_owned()] };
        if !tables.is_empty() {
            different.push(format!("{today}{kind}.db: {}", tables.join(", ")));
        }
    }
    if !different.is_empty() {
        let (tables, written) = (different.join("; "), directory.keep().display().to_string());
        panic!("tables not as today's recorder writes them: {tables}\nto keep these: cp {written}/*.db {KEPT}");
    }
}

/// Writes what a run holds.
fn record(run: &Run, path: &Path) {
    let session = run.sessions().unwrap().remove(0);
    let mut recorder = Recorder::create(path, session.zero_monotonic_ns, session.started_unix_ms).unwrap();
    recorder.batch(|recorder| copy(run, recorder)).unwrap();
    recorder.finish().unwrap();
    // A fixture says nothing of the machine that has written it.
    let written = rusqlite::Connection::open(path).unwrap();
    written.execute("UPDATE session SET boot_id = ?", [&session.boot_id]).unwrap();
}

fn copy(run: &Run, recorder: &Recorder) -> Result<(), RecordError> {
    for (name, text) in run.documents()? {
        match name.as_str() {
            "set" => recorder.set(&run.set()?)?,
            "environment" => run.environment()?.iter().try_for_each(|known| recorder.json(&name, known))?,
            "design" => run.design()?.iter().try_for_each(|known| recorder.json(&name, known))?,
            _ => recorder.document(&name, &text)?,
        }
    }
    run.cells()?.iter().try_for_each(|row| recorder.cell(row))?;
    run.events()?.iter().try_for_each(|row| recorder.event(row))?;
    for row in run.trials()? {
        recorder.trial(&row)?;
        let trial = row.trial;
        run.phases(trial)?.iter().try_for_each(|row| recorder.phase(row))?;
        run.faults(trial)?.iter().try_for_each(|row| recorder.fault(trial, row))?;
        run.load(trial)?.iter().try_for_each(|row| recorder.load(trial, row))?;
        run.latencies(trial, 0..u64::MAX)?.iter().try_for_each(|row| recorder.latency(trial, row))?;
        run.watches(trial, 0..u64::MAX)?.iter().try_for_each(|row| recorder.watch(trial, row))?;
        run.links(trial, 0..u64::MAX)?.iter().try_for_each(|row| recorder.link(trial, row))?;
        run.probes(trial)?.iter().try_for_each(|row| recorder.probe(trial, row))?;
        run.overlay_probes(trial)?.iter().try_for_each(|row| recorder.overlay_probe(trial, row))?;
        run.cpu(trial)?.iter().try_for_each(|row| recorder.cpu(trial, row))?;
        run.witnesses(trial)?.iter().try_for_each(|row| recorder.witness(trial, row))?;
        run.host_counters(trial)?.iter().try_for_each(|row| recorder.host_counters(trial, row))?;
        run.evidence(trial)?.iter().try_for_each(|row| recorder.evidence(trial, row))?;
        run.clocks(trial)?.iter().try_for_each(|row| recorder.clock(trial, row))?;
        run.machines(trial)?.iter().try_for_each(|row| recorder.machine(trial, row))?;
        run.machine_clocks(trial)?.iter().try_for_each(|row| recorder.machine_clock(trial, row))?;
    }
    Ok(())
}

/// The tables that are not the same in two files.
fn differing(one: &Path, other: &Path) -> Vec<String> {
    let (one, other) = (contents(one), contents(other));
    let tables: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    tables.into_iter().filter(|table| one.get(*table) != other.get(*table)).cloned().collect()
}

/// What each table of a file holds, as it lies there, but for the numbers that only say in which order rows were written.
fn contents(path: &Path) -> BTreeMap<String, Vec<Vec<String>>> {
    let db = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut named = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let tables: Vec<String> = named.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let held = |table: &String| {
        let mut all = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns: Vec<String> = all.column_names().map(str::to_owned).collect();
        let told = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Vec<String>> {
            let mut values = Vec::new();
            for (at, column) in columns.iter().enumerate().filter(|(_, column)| *column != "id") {
                values.push(format!("{column}: {:?}", row.get::<_, rusqlite::types::Value>(at)?));
            }
            Ok(values)
        };
        let mut rows: Vec<Vec<String>> = all.query_map([], told).unwrap().map(Result::unwrap).collect();
        rows.sort();
        rows
    };
    tables.iter().map(|table| (table.clone(), held(table))).collect()
}

#[test]
fn what_a_run_of_an_earlier_format_holds_is_read_and_the_file_stays_as_it_is() {
    for format in FORMATS {
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
        let through =
            |node: &str| slow.iter().find(|row| row.coordinator == node).unwrap().response.iter().next().unwrap().0;
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
        // One line for each, or a list.
        let set = run.set().unwrap();
        assert_eq!(set, if format >= 4 { vec!["load.rate=8/s", "seed=42"] } else { Vec::new() }, "format {format}");

        drop(run);
        assert_eq!(fs::read(&path).unwrap(), before, "format {format}");
    }
}

#[test]
fn a_design_of_an_earlier_format_is_read_with_its_cells_and_what_it_searches() {
    for format in 6..=9 {
        let path = fixture(format!("{format}-design"));
        let run = Run::open(&path).unwrap();
        let design = run.design().unwrap().unwrap();
        let [delay] = design.factors.as_slice() else { panic!("{design:?}") };
        assert_eq!(
            (delay.name.as_str(), delay.levels.as_slice()),
            ("delay", ["50ms", "100ms"].map(str::to_owned).as_slice())
        );
        assert_eq!((design.blocks, design.without_fault, design.attempts, design.trials), (1, 1, 3, 21));
        // Before format 7 there was one lab, and no file could say what is too small to matter.
        let (labs, margin) = if format >= 7 { (2, Some(0.025)) } else { (1, None) };
        assert_eq!((design.only, design.labs, design.margin), (None, labs, margin));
        let Some(SearchDescription::DangerZone { thresholds, from, to }) = &design.search else { panic!("{design:?}") };
        assert_eq!((thresholds.as_slice(), from.as_str(), to.as_str()), ([0.1, 0.5].as_slice(), "10ms", "1s"));

        let cells = run.cells().unwrap();
        let levels: Vec<_> = cells.iter().map(|cell| (cell.cell, cell.compared_with, cell.levels.clone())).collect();
        assert_eq!(levels, [(1, 1, vec!["50ms".to_owned()]), (2, 1, vec!["100ms".to_owned()])]);
        for (cell, level) in cells.iter().zip(["50ms", "100ms"]) {
            let of = &cell.description;
            assert!(of.database.starts_with("Cassandra") && of.faults[0].contains(&format!("{level} late")), "{of:?}");
            assert_eq!((of.overlay.as_str(), of.encryption.len()), if format >= 8 { ("vxlan", 1) } else { ("", 0) });
            let parts: Vec<_> =
                of.load.parts.iter().map(|part| (part.operation.as_str(), part.rate, part.threads)).collect();
            assert_eq!(parts, [("read", Some(8.0), None), ("write", None, Some(4))]);
            assert!(of.may_queue(&Subject::pair("n1", "n2")) && !of.may_queue(&Subject::pair("n2", "n1")));
            let placement = of.placement.as_ref().unwrap();
            let ring: Vec<_> = placement.ring.iter().map(|node| (node.node.as_str(), node.token)).collect();
            assert_eq!(ring, [("n1", i64::MIN / 2), ("n2", -(i64::MIN / 2))]);
            assert_eq!((placement.coordinators.as_str(), placement.asked.len()), ("token-aware", 2));
            let [read, write] = placement.operations.as_slice() else { panic!("{placement:?}") };
            assert!(read.reads && !write.reads && read.share.is_none() && read.copies["dc1"] == 3);
            let [distance] = placement.distances.as_slice() else { panic!("{placement:?}") };
            assert_eq!((distance.delay_ns, distance.least_ns), (1_000_000, 900_000));
        }

        let trials = run.trials().unwrap();
        let asked: Vec<_> =
            trials.iter().map(|one| (one.planned, one.cell, one.arm, one.attempt, one.stand, one.state)).collect();
        let done = TrialState::Done;
        let expected = [
            (1, 1, Arm::None, 1, 1, done),
            (2, 2, Arm::Fault, 1, 1, TrialState::Failed),
            (2, 2, Arm::Fault, 2, 2, done),
        ];
        assert_eq!(asked, expected);
        let labs: Vec<u32> = trials.iter().map(|one| one.lab).collect();
        assert_eq!(labs, if format >= 7 { [2, 1, 2] } else { [1, 1, 1] });
        assert_eq!(trials[2].seed, u64::MAX - 3);
        // Lines could not hold a line break; lists can.
        let set =
            if format >= 7 { ["load.ops.read=8/s", "question=one\ntwo"] } else { ["load.ops.read=8/s", "seed=42"] };
        assert_eq!(run.set().unwrap(), set);

        let load = run.load(3).unwrap();
        let [load] = load.as_slice() else { panic!("{load:?}") };
        assert_eq!((load.stood_still_ns, load.withheld, load.never_sent_by_operation["read"]), (5, 2, 1));
        let more = |new: u64| if format >= 8 { new } else { 0 };
        assert_eq!((load.looked_for, load.lost), (more(4), more(1)));
        assert_eq!(run.watches(3, 0..u64::MAX).unwrap().len() as u64, more(1));
        assert_eq!(run.overlay_probes(3).unwrap().len() as u64, more(1));
        assert_eq!(run.clocks(3).unwrap().first().map_or(0, |clock| clock.offset_ns), if format >= 8 { -7 } else { 0 });
        let above = run.witnesses(3).unwrap().into_iter().filter(|row| row.subject == Subject::overlay("n1", "n2"));
        assert_eq!(above.count() as u64, more(1));
        assert_eq!(run.evidence(3).unwrap().len(), 1);
        assert_ne!(run.sessions().unwrap()[0].boot_id, "");
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
