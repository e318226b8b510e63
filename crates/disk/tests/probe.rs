//! A probe sees what a database on the same disk feels.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{fs, time::Duration};

use brownout_base::{Change, clock::monotonic_ns};
use brownout_disk::{Disk, DiskErrno, DiskSample, Operation, Operations, Probe};
use brownout_units::Delay;

use common::{METADATA, Mounted, SYNC, eventually, failing, slower, timed};

const EVERY: Duration = Duration::from_millis(5);
const DELAY: Delay = Delay::from_ms(100);

/// When a change was surely in force, ns.
fn done(change: Change) -> u64 {
    change.at_ns + change.error_ns
}

/// Samples begun after that time, until there are as many of each operation.
fn samples(probe: &Probe, since_ns: u64, of_each: usize) -> Vec<DiskSample> {
    let mut all = Vec::new();
    eventually("samples", || {
        all.extend(probe.drain().into_iter().filter(|sample| sample.at_ns > since_ns));
        Operation::ALL.iter().all(|operation| of(&all, *operation).len() >= of_each)
    });
    all
}

fn of(samples: &[DiskSample], operation: Operation) -> Vec<Result<u64, i32>> {
    samples.iter().filter(|sample| sample.operation == operation).map(|sample| sample.took_ns).collect()
}

/// How long the operations of a kind took, all of which succeeded: ns, ascending.
fn took(samples: &[DiskSample], operation: Operation) -> Vec<u64> {
    let mut took: Vec<u64> = of(samples, operation).into_iter().map(Result::unwrap).collect();
    took.sort_unstable();
    took
}

#[test]
fn it_sees_the_delay_of_each_kind_and_of_no_other() {
    let mounted = Mounted::new();
    let probe = Probe::start(&mounted.target, EVERY, Operations::ALL).unwrap();
    for hit in Operation::ALL {
        let before = samples(&probe, monotonic_ns(), 10);
        let guard = mounted.control().impair(&slower(hit, DELAY)).unwrap();
        let during = samples(&probe, done(guard.since()), 10);
        drop(guard);
        for operation in Operation::ALL {
            let (before, during) = (took(&before, operation), took(&during, operation));
            if operation == hit {
                assert!(during[0] >= DELAY.ns(), "{operation}: {during:?}");
            } else {
                // However slow the machine's own disk is: it was so before, too.
                let (usual, now) = (before[before.len() / 2], during[during.len() / 2]);
                assert!(now < usual + DELAY.ns(), "{operation} while {hit} is slow: {during:?} after {before:?}");
            }
        }
    }
}

#[test]
fn it_sees_errors() {
    let mounted = Mounted::new();
    let probe = Probe::start(&mounted.target, EVERY, Operations::ALL).unwrap();
    let guard = mounted.control().impair(&failing(Operations::ALL, DiskErrno::Io)).unwrap();
    let samples = samples(&probe, done(guard.since()), 5);
    for operation in Operation::ALL {
        let took = of(&samples, operation);
        assert!(took.iter().all(|took| *took == Err(libc::EIO)), "{operation}: {took:?}");
    }
}

#[test]
fn on_a_disk_that_hangs_it_blocks_nobody_and_says_what_hangs() {
    let mounted = Mounted::new();
    let probe = Probe::start(&mounted.target, EVERY, SYNC.into()).unwrap();
    let _guard = mounted.control().impair(&slower(SYNC, Delay::from_secs(600))).unwrap();
    eventually("a sync to hang", || mounted.control().waiting() == 1);
    probe.drain();
    assert_eq!(probe.under_way().map(|(operation, _)| operation), Some(SYNC));
    assert_eq!(probe.drain(), []);
    // The wait for its end is bounded; ten times the bound, for a machine that stands still.
    assert!(timed(|| drop(probe)).1 < Duration::from_secs(5));
}

#[test]
fn it_leaves_nothing() {
    let mounted = Mounted::new();
    let probe = Probe::start(&mounted.target, EVERY, Operations::ALL).unwrap();
    samples(&probe, 0, 3);
    assert!(mounted.source.join(Probe::DIRECTORY).join(Probe::FILE).exists());
    drop(probe);
    eventually("its files to go", || common::count(&mounted.source) == 0);
}

#[test]
fn a_directory_that_cannot_be_probed_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = Probe::start(&directory.path().join("none"), EVERY, METADATA.into()).unwrap_err();
    assert!(error.to_string().contains("make the directory of its files"), "{error}");
}

#[test]
fn it_works_on_a_plain_directory_too() {
    let directory = tempfile::tempdir().unwrap();
    let probe = Probe::start(directory.path(), EVERY, Operations::ALL).unwrap();
    assert!(samples(&probe, 0, 3).iter().all(|sample| sample.took_ns.is_ok()));
    drop(probe);
    eventually("its files to go", || fs::read_dir(directory.path()).unwrap().count() == 0);
    Disk::available().unwrap();
}
