//! The preloaded object in real programs. Takes root (for another user's rights) and bash.
//!
//! A wall clock read between two readings of the machine's has its skew between two bounds, so that
//! these tests need no tolerances, however busy the machine is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fixture;
mod handler;
mod witness;

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    process::{Command, Stdio},
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_clock::{ClockError, HostClock, MAX_DRIFT_PPB, MAX_OFFSET_NS, Skew, write_object};

use fixture::{Fixture, Witness, machine_ns, seen_by};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;
/// "nobody"
const OTHER: u32 = 65_534;

fn offset(offset_ns: i64) -> Skew {
    Skew { offset_ns, drift_ppb: 0 }
}

/// Not a test: what [`Witness`] runs, in this same program, with a shifted clock. Does nothing otherwise.
#[test]
fn witness_program() {
    witness::main();
}

#[test]
fn programs_see_the_clock_shifted_either_way_and_so_do_their_children() {
    let fixture = Fixture::new();
    for skew in [HOUR, -HOUR, 1, -1, 15 * 365 * 24 * HOUR] {
        fixture.set(offset(skew));
        let programs: [&[&str]; 4] = [
            &["date", "+%s%N"],
            &["bash", "-c", "date +%s%N"],
            &["bash", "-c", "(exec bash -c 'date +%s%N; true'); true"],
            // A child that was forked and runs no other program.
            &["bash", "-c", "echo $(e=$EPOCHREALTIME; echo ${e/[.,]/}000)"],
        ];
        for program in programs {
            let (low, high) = fixture.skew_of(program);
            // bash cuts to microseconds.
            assert!(low - 1_000 < skew && skew <= high + 1_000, "{program:?}: {skew} not in {low}..={high}");
        }
    }
}

#[test]
fn every_reading_of_the_wall_clock_is_shifted_and_no_other() {
    let fixture = Fixture::new();
    let mut witness = Witness::start(&fixture);
    for skew in [0, HOUR, -HOUR, 1_234_567_891, -(40 * 365 * 24 * HOUR) / 2] {
        fixture.set(offset(skew));
        let readings = witness.readings();
        assert_eq!(readings.len(), 10, "{readings:?}");
        for reading in readings {
            let expected = if reading.is_wall { skew } else { 0 };
            assert!(reading.low <= expected && expected <= reading.high, "{expected} expected of {reading:?}");
        }
    }
}

#[test]
fn a_change_is_seen_by_the_next_call_of_a_running_program() {
    let fixture = Fixture::new();
    let mut witness = Witness::start(&fixture);
    for number in 0..1_000 {
        let skew = (number - 500) * 987_654_321;
        fixture.set(offset(skew));
        let (low, high) = witness.skew();
        assert!((low..=high).contains(&skew), "change {number}: {skew} not in {low}..={high}");
    }
    fixture.clock.reset().unwrap();
    let (low, high) = witness.skew();
    assert!((low..=high).contains(&0));
}

#[test]
fn a_drift_is_as_fast_as_asked_and_starts_without_a_step() {
    let fixture = Fixture::new();
    let mut witness = Witness::start(&fixture);
    for drift_ppb in [50_000, -50_000, 400_000_000, -400_000_000] {
        fixture.set(offset(HOUR));
        let before = machine_ns();
        fixture.clock.shift(0, drift_ppb).unwrap();
        let after = machine_ns();
        assert_eq!(fixture.clock.skew().drift_ppb, drift_ppb);
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(20));
            let asked = machine_ns();
            let (low, high) = witness.skew();
            let answered = machine_ns();
            // It has drifted at least from the end of the change to the question, and at most the other way.
            let gained = |real: i64| (i128::from(real) * i128::from(drift_ppb) / i128::from(SECOND)) as i64;
            let (least, most) = (HOUR + gained(asked - after), HOUR + gained(answered - before));
            let (least, most) = (least.min(most) - 1, least.max(most) + 1);
            assert!(low <= most && least <= high, "{drift_ppb} ppb: {low}..={high} misses {least}..={most}");
            assert!((fixture.clock.skew().offset_ns - HOUR).signum() == drift_ppb.signum());
        }
    }
}

#[test]
fn shifts_add_up_and_can_be_taken_back_one_by_one() {
    let fixture = Fixture::new();
    let clock = &fixture.clock;
    clock.shift(HOUR, 0).unwrap();
    clock.shift(-2 * SECOND, 0).unwrap();
    clock.shift(5, 0).unwrap();
    assert_eq!(clock.skew(), offset(HOUR - 2 * SECOND + 5));
    clock.shift(-HOUR, 0).unwrap();
    assert_eq!(clock.skew(), offset(-2 * SECOND + 5));
    clock.shift(0, 100_000).unwrap();
    clock.shift(0, -30_000).unwrap();
    assert_eq!(clock.skew().drift_ppb, 70_000);
    clock.shift(0, -70_000).unwrap();
    assert_eq!(clock.skew().drift_ppb, 0);
    // A step leaves a drift alone.
    clock.shift(0, 1_000).unwrap();
    clock.shift(SECOND, 0).unwrap();
    assert_eq!(clock.skew().drift_ppb, 1_000);
}

#[test]
fn a_change_says_when_it_came_into_force() {
    let fixture = Fixture::new();
    let before = monotonic_ns();
    let first = fixture.clock.shift(HOUR, 0).unwrap();
    let second = fixture.clock.reset().unwrap();
    let after = monotonic_ns();
    assert!(before <= first.at_ns && first.at_ns <= second.at_ns && second.at_ns <= after);
    // Each lies within the time that the calls took.
    assert!(first.error_ns + second.error_ns <= (after - before).div_ceil(2) + 1, "{first:?} {second:?}");
}

#[test]
fn what_no_clock_can_show_is_refused_and_changes_nothing() {
    let fixture = Fixture::new();
    let clock = &fixture.clock;
    fixture.set(offset(5));
    assert!(matches!(clock.shift(i64::MIN, 0), Err(ClockError::Offset { .. })));
    assert!(matches!(clock.shift(i64::MAX, 0), Err(ClockError::Offset { .. })));
    assert!(matches!(clock.shift(MAX_OFFSET_NS - 4, 0), Err(ClockError::Offset { .. })));
    assert!(matches!(clock.shift(-MAX_OFFSET_NS - 6, 0), Err(ClockError::Offset { .. })));
    assert!(matches!(clock.shift(0, MAX_DRIFT_PPB + 1), Err(ClockError::Drift { .. })));
    assert!(matches!(clock.shift(0, i64::MIN), Err(ClockError::Drift { .. })));
    assert_eq!(clock.skew(), offset(5));
}

#[test]
fn waits_until_a_wall_time_end_when_the_shown_clock_says_so() {
    let fixture = Fixture::new();
    let mut witness = Witness::start(&fixture);
    // Untranslated, a wait would end at once behind, and an hour too late ahead.
    for skew in [0, -HOUR, HOUR] {
        fixture.set(offset(skew));
        let waits = witness.waits();
        assert_eq!(waits.len(), 25, "{waits:?}");
        for (name, early_ns) in waits {
            assert!(early_ns <= 0, "{name} ended {early_ns} ns early with the clock {skew} ns off");
        }
    }
    fixture.set(Skew { offset_ns: HOUR, drift_ppb: 100_000_000 });
    for (name, early_ns) in witness.waits() {
        assert!(early_ns <= 0, "{name} ended {early_ns} ns early with a clock that is a tenth too fast");
    }
}

#[test]
fn datagrams_come_at_times_of_the_shown_clock() {
    let fixture = Fixture::new();
    let mut witness = Witness::start(&fixture);
    for skew in [0, HOUR, -HOUR, 100_000_000, -1_234_567] {
        fixture.set(offset(skew));
        let bounds: Vec<i64> = witness.ask("stamps").iter().map(|word| word.parse().unwrap()).collect();
        assert_eq!(bounds.len(), 12);
        for (number, bounds) in bounds.chunks(2).enumerate() {
            // What is stamped in whole microseconds is cut twice.
            let expected = bounds[0] - 1_000 <= skew && skew <= bounds[1] + 1_000;
            assert!(expected, "stamp {number}: {skew} not in {bounds:?}");
        }
    }
}

#[test]
fn a_shifted_process_cannot_set_the_clock_of_the_machine() {
    let fixture = Fixture::new();
    fixture.set(offset(HOUR));
    let mut witness = Witness::start(&fixture);
    assert_eq!(witness.ask("set"), ["EPERM"; 5]);
    assert!(machine_ns() - fixture.began_ns < HOUR / 2, "the machine's clock was set");
}

#[test]
fn other_users_read_the_clock_and_cannot_change_it() {
    assert_eq!(unsafe { libc::geteuid() }, 0, "this test takes root, to become another user");
    let fixture = Fixture::new();
    fixture.set(offset(HOUR));
    let as_other = |command: &mut Command| seen_by(command.uid(OTHER).gid(OTHER));
    let (low, high) = as_other(&mut fixture.command(&["date", "+%s%N"]));
    assert!((low..=high).contains(&HOUR), "{HOUR} not in {low}..={high}");

    let script = "echo x 2>/dev/null >>\"$1\" || : >\"$1\" || rm -f \"$1\" || mv \"$1\" \"$1\".x";
    let mut writing = Command::new("sh");
    writing.args(["-c", script, "sh"]).arg(&fixture.file).uid(OTHER).gid(OTHER).stderr(Stdio::null());
    assert!(!writing.status().unwrap().success());
    assert_eq!(fixture.clock.skew(), offset(HOUR));
    assert_eq!(fs::metadata(&fixture.file).unwrap().permissions().mode() & 0o7777, 0o644);
}

#[test]
fn a_file_that_is_missing_or_no_clock_leaves_the_machines_time_and_the_program_running() {
    let fixture = Fixture::new();
    fixture.set(offset(HOUR));
    let valid = fs::read(&fixture.file).unwrap();
    let in_directory = |name: &str| fixture.directory.path().join(name);
    let write = |name: &str, bytes: &[u8]| {
        fs::write(in_directory(name), bytes).unwrap();
        in_directory(name)
    };
    let mut newer = valid.clone();
    // The magic is a number of this machine, its last byte the version.
    newer[0] += 1;
    let fifo = in_directory("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let circle = in_directory("circle");
    symlink(&circle, &circle).unwrap();
    for (what, path) in [
        ("missing", in_directory("missing")),
        ("empty", write("empty", b"")),
        ("too short", write("short", &valid[..valid.len() - 1])),
        ("text", write("text", &[b'x'; 4096])),
        ("another version", write("newer", &newer)),
        ("a directory", fixture.directory.path().to_owned()),
        ("a FIFO", fifo),
        ("a circle of links", circle),
        ("a device", "/dev/zero".into()),
        ("no name", "".into()),
    ] {
        let (low, high) = seen_by(fixture.command(&["date", "+%s%N"]).env("BROWNOUT_CLOCK_FILE", path));
        assert!((low..=high).contains(&0), "{what}: 0 not in {low}..={high}");
    }
    let (low, high) = seen_by(fixture.command(&["date", "+%s%N"]).env_remove("BROWNOUT_CLOCK_FILE"));
    assert!((low..=high).contains(&0), "no variable: 0 not in {low}..={high}");
    // What is valid is taken, from wherever it is: the cases above fail for the reason given.
    let copy = write("copy", &valid);
    let (low, high) = seen_by(fixture.command(&["date", "+%s%N"]).env("BROWNOUT_CLOCK_FILE", copy));
    assert!((low..=high).contains(&HOUR));
}

#[test]
fn a_running_program_keeps_its_shift_when_the_file_is_removed() {
    let fixture = Fixture::new();
    fixture.set(offset(HOUR));
    let mut witness = Witness::start(&fixture);
    let path = fixture.file.clone();
    let Fixture { directory, clock, .. } = fixture;
    let clone = clock.clone();
    drop(clock);
    assert!(path.exists(), "removed while there is a clone");
    drop(clone);
    assert!(!path.exists());
    let (low, high) = witness.skew();
    assert!((low..=high).contains(&HOUR));
    drop(directory);
}

#[test]
fn the_file_of_another_clock_is_not_taken_over() {
    let fixture = Fixture::new();
    fixture.set(offset(HOUR));
    assert!(matches!(HostClock::create(&fixture.file), Err(ClockError::Exists { .. })));
    assert_eq!(fixture.clock.skew(), offset(HOUR));
    assert!(fixture.file.exists());
    let nowhere = fixture.directory.path().join("no/directory");
    assert!(matches!(HostClock::create(nowhere), Err(ClockError::File { .. })));
}

#[test]
fn the_object_is_written_once_whole_and_for_everybody() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_object(directory.path()).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"\x7fELF"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o755);
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(write_object(directory.path()).unwrap(), path);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written, "written again for nothing");
    // What somebody has spoiled is mended.
    fs::write(&path, b"spoiled").unwrap();
    write_object(directory.path()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "drafts were left");

    for name in ["with space", "with:colon", "$ORIGIN"] {
        let unlistable = directory.path().join(name);
        fs::create_dir(&unlistable).unwrap();
        assert!(matches!(write_object(&unlistable), Err(ClockError::Unlistable { .. })), "{name}");
    }
    assert!(matches!(write_object(&directory.path().join("missing")), Err(ClockError::File { .. })));
}

#[test]
fn a_first_call_in_a_signal_handler_takes_no_lock() {
    let fixture = Fixture::new();
    fixture.set(offset(HOUR));
    let mut witness = Witness::start(&fixture);
    assert_eq!(witness.ask("handler"), ["0"], "calls that answered otherwise than they should");
}
