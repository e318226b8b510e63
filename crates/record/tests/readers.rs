//! Whoever reads a run harms nothing: not the run while it is made, not its end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use brownout_record::{Event, Recorder, Run, wait_for_readers};
use rusqlite::Connection;

fn event(at_ns: u64) -> Event {
    let (kind, subject, text) = ("ready".to_owned(), "n1".to_owned(), "x".repeat(1_000));
    Event { trial: Some(1), at_ns, error_ns: 0, kind, subject, text }
}

fn write(recorder: &mut Recorder, events: std::ops::Range<u64>) {
    for at in events {
        recorder.batch(|recorder| recorder.event(&event(at))).unwrap();
    }
}

fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

/// A program of others that reads, as `sqlite3` does, and stays in its transaction until it is killed.
struct Reader(Child);

impl Reader {
    const FILE: &'static str = "BROWNOUT_TEST_READS";

    fn of(path: &Path) -> Reader {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "reads_until_it_is_killed", "--ignored", "--nocapture"]);
        let mut child = command.env(Self::FILE, path).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("reading")), "the reader does not read");
        Reader(child)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Not a test: what [`Reader`] runs.
#[test]
#[ignore = "run by the others, in a process of its own"]
fn reads_until_it_is_killed() {
    let Some(path) = std::env::var_os(Reader::FILE) else { return };
    let db = Connection::open(path).unwrap();
    db.execute_batch("BEGIN; SELECT count(*) FROM event").unwrap();
    println!("\nreading");
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_reader_that_stays_from_the_beginning_to_after_the_end_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    let mut recorder = Recorder::create(&path, 0, 0).unwrap();
    write(&mut recorder, 0..10);
    let shell = Connection::open(&path).unwrap();
    shell.execute_batch("BEGIN; SELECT count(*) FROM event").unwrap();
    let reader = Reader::of(&path);
    // More than the log takes before SQLite tries to fold it in.
    write(&mut recorder, 10..5_000);
    recorder.finish().unwrap();
    let count = |db: &Connection| db.query_row("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count(&shell), 10, "a transaction sees one moment");
    // The log belongs to the file, and the next reader sees all.
    assert!(log_of(&path).exists());
    assert_eq!(Run::open(&path).unwrap().events().unwrap().len(), 5_000);
    shell.execute_batch("COMMIT").unwrap();
    assert_eq!(count(&shell), 5_000);
    drop(shell);
    assert_eq!(Run::open(&path).unwrap().events().unwrap().len(), 5_000);
    drop(reader);
    assert_eq!(Run::open(&path).unwrap().events().unwrap().len(), 5_000);
    // Whoever may write folds it in when the last one leaves.
    assert_eq!(count(&Connection::open(&path).unwrap()), 5_000);
    assert!(!log_of(&path).exists());
    assert_eq!(Run::open(&path).unwrap().events().unwrap().len(), 5_000);
}

#[test]
fn a_reader_that_was_killed_in_its_transaction_leaves_nothing_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    let mut recorder = Recorder::create(&path, 0, 0).unwrap();
    write(&mut recorder, 0..10);
    drop(Reader::of(&path));
    write(&mut recorder, 10..20);
    recorder.finish().unwrap();
    assert!(!log_of(&path).exists(), "one file holds all");
    assert_eq!(Run::open(&path).unwrap().events().unwrap().len(), 20);
}

/// A run that has ended: one file.
fn ended(path: &Path) {
    let mut recorder = Recorder::create(path, 0, 0).unwrap();
    write(&mut recorder, 0..10);
    recorder.finish().unwrap();
    assert!(!log_of(path).exists());
}

#[test]
fn a_run_that_is_read_goes_on_when_its_reader_has_let_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    ended(&path);
    let reader = Reader::of(&path);
    let (begins, began) = std::sync::mpsc::channel();
    let resumed = std::thread::spawn({
        let path = path.clone();
        move || {
            begins.send(()).unwrap();
            wait_for_readers(&path).and_then(|()| Recorder::resume(&path, 0, 0))
        }
    });
    began.recv().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(reader);
    let mut recorder = resumed.join().unwrap().unwrap();
    write(&mut recorder, 10..20);
    recorder.finish().unwrap();
    assert_eq!(Run::open(&path).unwrap().events().unwrap().len(), 20);
}

#[test]
fn a_run_that_somebody_goes_on_reading_is_refused_with_who_that_is_and_stays_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    ended(&path);
    let before = std::fs::read(&path).unwrap();
    let reader = Reader::of(&path);
    let refusals = [wait_for_readers(&path).err(), Recorder::resume(&path, 0, 0).err()];
    for refused in refusals.map(|refused| refused.unwrap().to_string()) {
        let who = format!("(process {})", reader.0.id());
        assert!(refused.contains(&who) && refused.contains("end that, and try again"), "{refused}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    drop(reader);
    Recorder::resume(&path, 0, 0).unwrap().finish().unwrap();
}

#[test]
fn a_view_of_a_run_being_made_is_of_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.db");
    let mut recorder = Recorder::create(&path, 0, 0).unwrap();
    write(&mut recorder, 0..10);
    let view = Run::open(&path).unwrap();
    write(&mut recorder, 10..3_000);
    assert_eq!(view.events().unwrap().len(), 10);
    assert_eq!(Run::open(&path).unwrap().events().unwrap().len(), 3_000);
    assert_eq!(view.events().unwrap().len(), 10);
    recorder.finish().unwrap();
    assert_eq!(view.events().unwrap().len(), 10);
    drop(view);
    assert_eq!(Run::open(&path).unwrap().events().unwrap().len(), 3_000);
}
