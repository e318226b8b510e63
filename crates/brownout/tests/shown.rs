//! A run can be shown from wherever its file lies, and what could not be told is not passed over.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{fs::OpenOptions, path::Path, process::Command};

use brownout_lab::{Plan, experiment::Source};
use brownout_record::Recorder;
use common::{both, brownout, experiment, in_private_mounts, text};

/// A run that was planned and ended before its first trial.
fn write_run(directory: &Path) {
    let recorder = Recorder::create(&directory.join("run.db"), 0, 0).unwrap();
    let plan = Plan::new(&Source::read(&experiment("slow-replica.yaml")).unwrap()).unwrap();
    recorder.single_cell(&plan.description("Cassandra 5.0.9")).unwrap();
    recorder.finish().unwrap();
}

#[test]
fn a_run_is_shown_from_where_nothing_may_be_written() {
    let directory = tempfile::tempdir().unwrap();
    write_run(directory.path());
    let here = brownout(&["show", directory.path().to_str().unwrap()]);
    assert!(text(&here.stdout).contains("slow-replica"), "{}", both(&here));
    let script = format!(
        "mount --bind {0} {0}; mount -o remount,bind,ro {0}; code=0; \"$BROWNOUT\" show {0} || code=$?; exit $code",
        directory.path().display()
    );
    let there = in_private_mounts(&script);
    assert_eq!(text(&there.stdout), text(&here.stdout), "{}", both(&there));
    assert_eq!(there.status.code(), here.status.code());
}

#[test]
fn output_that_is_lost_is_an_error() {
    let file = experiment("slow-replica.yaml");
    for arguments in [&["check", file.to_str().unwrap()][..], &["check", file.to_str().unwrap(), "--json"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(common::BROWNOUT).args(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", both(&output));
        assert!(text(&output.stderr).contains("cannot write to stdout"), "{}", both(&output));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let script = "\"$0\" check \"$1\" | true";
    let file = experiment("slow-replica.yaml");
    let output = Command::new("sh").args(["-c", script, common::BROWNOUT]).arg(file).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", both(&output));
}
