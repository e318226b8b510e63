//! A clock whose file others made, and whose processes others started: it is right again whatever becomes of who changed it.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use brownout_clock::{ClockError, HostClock, Skew};

const PATIENCE: Duration = Duration::from_secs(60);
const HOLD: &str = "BROWNOUT_TEST_HOLD_CLOCK";

/// Makes the file of a clock that nobody holds.
fn file(directory: &Path) -> PathBuf {
    let path = directory.join("db-1.clock");
    // Its last owner would remove it.
    std::mem::forget(HostClock::create(&path).unwrap());
    path
}

/// The offset that the file shows to programs, ns: the generation names the slot in force.
fn shown(path: &Path) -> i64 {
    let bytes = fs::read(path).unwrap();
    let number = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    number(if number(8) & 1 == 0 { 16 } else { 40 })
}

#[test]
fn an_adopted_clock_is_one_owners_and_right_when_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path());
    let clock = HostClock::adopt(&path).unwrap();
    clock.shift(5_000_000_000, 0).unwrap();
    assert_eq!(shown(&path), 5_000_000_000);
    let refused = HostClock::adopt(&path).unwrap_err();
    assert!(matches!(refused, ClockError::Held { .. }), "{refused}");
    let other = clock.clone();
    drop(clock);
    assert_eq!(shown(&path), 5_000_000_000, "another clone has it");
    drop(other);
    assert_eq!(shown(&path), 0);
    assert_eq!(HostClock::adopt(&path).unwrap().skew(), Skew::default(), "and it may be had again");
}

#[test]
fn what_is_no_clock_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for text in [String::new(), "x".repeat(200)] {
        fs::write(&path, text).unwrap();
        let refused = HostClock::adopt(&path).unwrap_err();
        assert!(matches!(refused, ClockError::Foreign { .. }), "{refused}");
    }
    let refused = HostClock::adopt(directory.path().join("y")).unwrap_err();
    assert!(matches!(refused, ClockError::File { action: "open", .. }), "{refused}");
}

#[test]
#[ignore = "another test runs it, in a process of its own"]
fn hold_in_a_process_of_its_own() {
    let Ok(path) = env::var(HOLD) else { return };
    let clock = HostClock::adopt(path).unwrap();
    clock.shift(-7_000_000_000, 0).unwrap();
    thread::sleep(10 * PATIENCE);
}

#[test]
fn a_clock_is_right_again_when_the_process_that_changed_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path());
    let until = |what: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < PATIENCE, "it does not come");
            thread::sleep(Duration::from_millis(1));
        }
    };
    let mut holder = Command::new(env::current_exe().unwrap());
    holder.args(["--ignored", "--exact", "hold_in_a_process_of_its_own"]).env(HOLD, &path);
    let mut holder = holder.spawn().unwrap();
    until(&|| shown(&path) == -7_000_000_000);
    holder.kill().unwrap();
    holder.wait().unwrap();
    until(&|| shown(&path) == 0);
    until(&|| HostClock::adopt(&path).is_ok());
}
