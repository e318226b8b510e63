//! A fault does what it says, to the operations it names, for as long as its guard lives.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    fs,
    os::unix::fs::FileExt,
    thread,
    time::{Duration, Instant},
};

use brownout_disk::{DiskErrno, DiskFault, Operation, Operations};
use brownout_units::{Delay, Share};

use common::{
    METADATA, Machine, Mounted, READ, SYNC, Sleeper, WRITE, delayed, errno, eventually, failing, median, put, settled,
    slower, timed, uncached, unless_disturbed,
};

const MS: Duration = Duration::from_millis(1);

/// Does one operation of that kind, and says how long it took.
fn operate(mounted: &Mounted, file: &mut fs::File, operation: Operation) -> Duration {
    let name = mounted.target.join("directory");
    match operation {
        Operation::Read => {
            uncached(file);
            timed(|| file.read_exact_at(&mut [0; 100], 0).unwrap()).1
        }
        Operation::Write => timed(|| file.write_all_at(&[7; 512], 0).unwrap()).1,
        Operation::Sync => timed(|| file.sync_data().unwrap()).1,
        Operation::Metadata => {
            let (made, time) = timed(|| fs::create_dir(&name));
            made.unwrap();
            fs::remove_dir(&name).unwrap();
            time
        }
    }
}

#[test]
fn each_kind_of_operation_takes_the_delay_longer_and_no_other() {
    let mounted = Mounted::new();
    let mut file = mounted.create("file");
    put(&mut file, &[7; 4096]).unwrap();
    for hit in Operation::ALL {
        let guard = mounted.control().impair(&slower(hit, Delay::from_ms(20))).unwrap();
        settled(&mounted.control());
        for operation in Operation::ALL {
            let time = operate(&mounted, &mut file, operation);
            assert!(operation != hit || time >= 20 * MS, "{operation}: {time:?}");
        }
        let counters = settled(&mounted.control());
        for (operation, counters) in counters.iter() {
            let delayed = if operation == hit { counters.received } else { 0 };
            assert!(
                counters.delayed == delayed && counters.received > 0,
                "{operation} while {hit} is slow: {counters:?}"
            );
        }
        drop(guard);
        operate(&mounted, &mut file, hit);
        assert_eq!(settled(&mounted.control()).of(hit).delayed, 0);
    }
}

#[test]
fn a_slow_fsync_takes_20_ms_to_within_1_ms() {
    let mounted = Mounted::in_memory();
    let control = mounted.control();
    let mut file = mounted.create("log");
    let mut sync = || {
        put(&mut file, b"entry").unwrap();
        timed(|| file.sync_data().unwrap()).1
    };
    // A machine that others use can be late as a whole: by what a thread that only sleeps is late meanwhile, the two
    // threads may be late that a fault wakes, and who waits for them.
    unless_disturbed("a slow fsync", || {
        let sleeper = Sleeper::start();
        let (mut bare, mut slow, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..21 {
            bare.push(sync());
            settled(&control);
            let guard = control.impair(&slower(SYNC, Delay::from_ms(20))).unwrap();
            slow.push(sync());
            drop(guard);
            added.push(Duration::from_nanos(settled(&control).of(SYNC).added_ns.max()));
        }
        assert!(slow.iter().all(|time| *time >= 20 * MS), "{slow:?}");
        let (bare, slow, added, machine) = (median(bare), median(slow), median(added), sleeper.end());
        let within = added < 21 * MS + 2 * machine.usual && slow.saturating_sub(bare) < 22 * MS + 4 * machine.usual;
        let told = format!("{bare:?} bare, {slow:?} with 20 ms, of that {added:?} the disk's");
        (if within { Ok(()) } else { Err(told) }, machine)
    });
}

#[test]
fn errors_are_answered_by_the_operations_they_can_come_from() {
    let mounted = Mounted::new();
    let mut file = mounted.create("file");
    put(&mut file, &[1; 4096]).unwrap();
    let at = |name: &str| mounted.target.join(name);
    fs::write(at("victim"), "").unwrap();
    let attempt = |file: &mut std::fs::File, error| {
        let _guard = mounted.control().impair(&failing(Operations::ALL, error)).unwrap();
        uncached(file);
        [
            errno(file.read_exact_at(&mut [0; 10], 0)),
            put(file, b"more"),
            errno(file.sync_all()),
            errno(fs::create_dir(at("new"))),
            errno(fs::rename(at("victim"), at("victim"))),
            errno(fs::metadata(at("victim")).map(drop)),
        ]
    };
    let io = Err(libc::EIO);
    assert_eq!(attempt(&mut file, DiskErrno::Io), [io, io, io, io, Ok(()), Ok(())]);
    let full = Err(libc::ENOSPC);
    assert_eq!(attempt(&mut file, DiskErrno::NoSpace), [Ok(()), full, full, full, Ok(()), Ok(())]);
    let read_only = Err(libc::EROFS);
    assert_eq!(attempt(&mut file, DiskErrno::ReadOnly), [Ok(()), read_only, read_only, read_only, Ok(()), Ok(())]);
    // A full disk can be tidied up.
    let _guard = mounted.control().impair(&failing(METADATA, DiskErrno::NoSpace)).unwrap();
    fs::remove_file(at("victim")).unwrap();
    assert_eq!(errno(fs::write(at("victim"), "")), full);
}

#[test]
fn a_share_of_the_operations_is_hit() {
    let mounted = Mounted::seeded(7);
    let mut file = mounted.create("log");
    let fault = DiskFault { share: "20%".parse::<Share>().unwrap(), ..failing(WRITE, DiskErrno::Io) };
    let _guard = mounted.control().impair(&fault).unwrap();
    let attempts = 10_000;
    let failed = (0..attempts).filter(|_| put(&mut file, b"x").is_err()).count();
    // 99.9 % of a binomial with n = 10,000 and p = 0.2: 2,000 ± 3.29 × 40. The seed fixes the draw.
    assert!((1868..=2132).contains(&failed), "{failed}");
    assert_eq!(settled(&mounted.control()).of(WRITE).failed, failed as u64);
}

#[test]
fn the_same_seed_hits_the_same_operations() {
    let pattern = |seed| {
        thread::spawn(move || {
            let mounted = Mounted::seeded(seed);
            let mut file = mounted.create("log");
            let share = "50%".parse().unwrap();
            let fault = DiskFault { share, ..failing(WRITE, DiskErrno::Io) };
            let _guard = mounted.control().impair(&fault).unwrap();
            (0..64).map(|_| put(&mut file, b"x").is_err()).collect::<Vec<_>>()
        })
        .join()
        .unwrap()
    };
    assert_eq!(pattern(5), pattern(5));
    assert_ne!(pattern(5), pattern(6));
}

#[test]
fn jitter_spreads_the_delay_evenly_around_its_middle() {
    let mounted = Mounted::new();
    let file = mounted.create("log");
    let fault = DiskFault { jitter: Delay::from_ms(4), ..slower(SYNC, Delay::from_ms(5)) };
    let _guard = mounted.control().impair(&fault).unwrap();
    // A machine that others use can be late as a whole, as a thread that only sleeps tells, twice for the two threads that
    // a wait wakes.
    unless_disturbed("a spread delay", || {
        settled(&mounted.control());
        let sleeper = Sleeper::start();
        for _ in 0..300 {
            file.sync_data().unwrap();
        }
        let machine = sleeper.end();
        let late = 2.0 * machine.usual.as_secs_f64() * 1e3;
        let counters = settled(&mounted.control());
        let added = &counters.of(SYNC).added_ns;
        let quantile_ms = |q| added.value_at_quantile(q) as f64 / 1e6;
        assert!(quantile_ms(0.0) >= 0.999, "{counters:?}");
        // From 1 to 9 ms: the middle of 300 draws is within 1 ms of 5 (4.3 standard errors); lateness only adds.
        let [low, middle, high] = [0.1, 0.5, 0.9].map(quantile_ms);
        let evenly = low < 2.8 + late && high > 7.2 && (4.0..6.5 + late).contains(&middle);
        (if evenly { Ok(()) } else { Err(format!("{low} ms, {middle} ms, {high} ms")) }, machine)
    });
}

#[test]
fn what_is_wrong_on_a_quiet_machine_is_not_measured_again_until_it_is_right() {
    let machine = |worst| Machine { usual: Duration::ZERO, worst, waited: 0.0 };
    let measured = |worst| {
        let mut results = [Err("wrong".to_owned()), Ok(())].into_iter();
        let measure = || (results.next().unwrap(), machine(worst));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| unless_disturbed("it", measure))).is_ok()
    };
    assert_eq!([Duration::ZERO, Duration::from_secs(1)].map(measured), [false, true]);
}

#[test]
fn faults_add_up_and_heal_one_by_one() {
    let mounted = Mounted::new();
    let (control, file) = (mounted.control(), mounted.create("log"));
    let slow = |ms| slower(SYNC, Delay::from_ms(ms));
    let sync = || timed(|| file.sync_data()).1;
    let first = control.impair(&slow(30)).unwrap();
    let second = control.impair(&slow(50)).unwrap();
    assert!(first.since().at_ns <= second.since().at_ns);
    assert_eq!(control.effective().unwrap(), [slow(30), slow(50)]);
    assert!(sync() >= 80 * MS);
    let healed = first.heal().unwrap();
    assert!(second.since().at_ns <= healed.at_ns);
    assert_eq!(control.effective().unwrap(), [slow(50)]);
    assert!(sync() >= 50 * MS);
    let broken = control.impair(&failing(SYNC, DiskErrno::Io)).unwrap();
    let (result, time) = timed(|| errno(file.sync_data()));
    assert!(result == Err(libc::EIO) && time >= 50 * MS);
    drop((second, broken));
    assert_eq!(control.effective().unwrap(), []);
    settled(&control);
    sync();
    let counters = settled(&control);
    assert_eq!((counters.of(SYNC).received, counters.of(SYNC).delayed), (1, 0));
}

#[test]
fn what_waits_when_it_is_healed_waits_no_longer_than_a_second_more() {
    let mounted = Mounted::new();
    let control = mounted.control();
    let file = mounted.create("log");
    let guard = control.impair(&slower(SYNC, Delay::from_secs(600))).unwrap();
    let waiting = thread::spawn(move || file.sync_all());
    common::eventually("the fsync to wait", || control.waiting() == 1);
    let healed = Instant::now();
    guard.heal().unwrap();
    waiting.join().unwrap().unwrap();
    // Not at once either: that would be a kind of fault of its own.
    assert!(healed.elapsed() >= Duration::from_millis(900));
    assert_eq!(control.waiting(), 0);
}

#[test]
fn a_slow_operation_holds_up_no_other() {
    let mounted = Mounted::new();
    let control = mounted.control();
    let slow = mounted.create("slow");
    let fault = slower(SYNC, Delay::from_secs(600));
    let guard = control.impair(&fault).unwrap();
    let waiting: Vec<_> = (0..100)
        .map(|n| {
            let file = if n == 0 { slow.try_clone().unwrap() } else { mounted.create(&format!("slow-{n}")) };
            thread::spawn(move || file.sync_all())
        })
        .collect();
    common::eventually("all to wait", || control.waiting() == 100);
    // Everything else goes on, on other files and on the same.
    thread::scope(|scope| {
        for n in 0..4 {
            let mounted = &mounted;
            scope.spawn(move || {
                let mut file = mounted.create(&format!("other-{n}"));
                for _ in 0..100 {
                    put(&mut file, &[1; 4096]).unwrap();
                    uncached(&file);
                    file.read_exact_at(&mut [0; 4096], 0).unwrap();
                }
            });
        }
        slow.metadata().unwrap();
    });
    assert_eq!(control.waiting(), 100);
    guard.heal().unwrap();
    waiting.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
}

#[test]
fn the_counters_balance_and_tell_what_the_disk_added() {
    let mounted = Mounted::new();
    let control = mounted.control();
    let mut file = mounted.create("log");
    settled(&control);
    let guard = control.impair(&slower(WRITE, Delay::from_ms(5))).unwrap();
    for _ in 0..10 {
        put(&mut file, &[1; 512]).unwrap();
    }
    drop(guard);
    // One of several is on time, on a machine that is late at times.
    for _ in 0..5 {
        put(&mut file, &[1; 512]).unwrap();
    }
    file.sync_all().unwrap();
    assert!(fs::create_dir(mounted.target.join("log")).is_err());
    uncached(&file);
    file.read_exact_at(&mut [0; 4096], 0).unwrap();
    let counters = settled(&control);
    let write = counters.of(WRITE);
    assert_eq!((write.received, write.answered, write.delayed, write.failed), (15, 15, 10, 0));
    assert_eq!((write.bytes, write.refused, write.added_ns.len()), (15 * 512, 0, 15));
    assert!(write.added_ns.value_at_quantile(0.5) >= 4_999_000 && write.added_ns.min() < 4_000_000);
    assert_eq!(counters.of(SYNC).received, 1);
    assert!(counters.of(READ).bytes >= 4096);
    // The kernel itself knew that the name was there.
    assert_eq!(counters.of(METADATA).refused, 0);
}

#[test]
fn an_o_dsync_write_is_a_write_and_a_sync() {
    use std::os::unix::fs::OpenOptionsExt;
    let mounted = Mounted::new();
    for flags in [libc::O_DSYNC, libc::O_SYNC, libc::O_DIRECT | libc::O_DSYNC] {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).custom_flags(flags).open(mounted.target.join("log")).unwrap();
        settled(&mounted.control());
        // Aligned as direct access wants it.
        #[repr(align(4096))]
        struct Page([u8; 4096]);
        file.write_all_at(&Page([1; 4096]).0, 0).unwrap();
        let counters = settled(&mounted.control());
        assert_eq!((counters.of(WRITE).received, counters.of(SYNC).received), (1, 1), "{flags:o}");
    }
}

#[test]
fn what_is_written_to_a_mapping_is_slow_and_fails_when_it_is_synced() {
    use std::os::fd::AsRawFd;
    let mounted = Mounted::new();
    let file = mounted.create("mapped");
    file.set_len(1 << 20).unwrap();
    // SAFETY: the mapping is as long as the file, and stays until the end of the test.
    let map = unsafe {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let map = libc::mmap(std::ptr::null_mut(), 1 << 20, both, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        std::slice::from_raw_parts_mut(map.cast::<u8>(), 1 << 20)
    };
    let mut sync = |byte| {
        map.fill(byte);
        // SAFETY: the whole mapping.
        let (result, time) = timed(|| unsafe { libc::msync(map.as_mut_ptr().cast(), map.len(), libc::MS_SYNC) });
        (if result == 0 { Ok(()) } else { errno(Err(std::io::Error::last_os_error())) }, time)
    };
    for (slow, least) in [(vec![WRITE], 100), (vec![SYNC], 100), (vec![WRITE, SYNC], 200)] {
        let guards: Vec<_> = slow
            .iter()
            .map(|operation| mounted.control().impair(&slower(*operation, Delay::from_ms(100))).unwrap())
            .collect();
        settled(&mounted.control());
        let (result, time) = sync(least as u8);
        assert!(result == Ok(()) && time >= least * MS, "{slow:?}: {result:?} {time:?}");
        // Pages are written side by side, each hit by the fault, and waited for once.
        let counters = settled(&mounted.control());
        assert_eq!(counters.of(WRITE).delayed > 0, slow.contains(&WRITE));
        // Who waits for another's fault was not hit itself: else a share of syncs could not be told.
        assert_eq!((counters.of(SYNC).received, counters.of(SYNC).delayed), (1, u64::from(slow.contains(&SYNC))));
        drop(guards);
        assert_eq!(sync(0).0, Ok(()));
        assert_eq!(settled(&mounted.control()).of(SYNC).delayed, 0);
    }
    let _guard = mounted.control().impair(&failing(WRITE, DiskErrno::NoSpace)).unwrap();
    assert_eq!(sync(9).0, Err(libc::ENOSPC));
}

#[test]
fn a_fault_that_is_amended_hits_what_comes_and_leaves_what_waits() {
    let mounted = Mounted::new();
    let (control, hour) = (mounted.control(), Delay::from_secs(3_600));
    let mut file = mounted.create("file");
    let mut guard = control.impair(&slower(SYNC, Delay::from_ms(300))).unwrap();
    let other = control.impair(&slower(METADATA, Delay::from_ms(1))).unwrap();
    let syncs = file.try_clone().unwrap();
    let waits = thread::spawn(move || timed(|| syncs.sync_all()));
    delayed(&control, SYNC);
    let amended = slower(WRITE, Delay::from_ms(50));
    let since = guard.amend(&amended).unwrap();
    assert!(guard.since().at_ns <= since.at_ns);
    // In the place where it was: of several errors the oldest fault's is answered.
    assert_eq!(control.effective().unwrap()[0], amended);
    assert!(operate(&mounted, &mut file, WRITE) >= 50 * MS);
    let (result, time) = waits.join().unwrap();
    assert!(result.is_ok() && time >= 300 * MS, "{result:?} after {time:?}");
    assert!(guard.amend(&slower(WRITE, Delay::ZERO)).is_err(), "as when it was new");
    assert_eq!(control.effective().unwrap()[0], amended);
    drop(other);
    // What waits by what it became heals with it.
    guard.amend(&slower(SYNC, hour)).unwrap();
    let waits = thread::spawn(move || file.sync_all());
    eventually("the sync to wait", || control.waiting() == 1);
    guard.heal().unwrap();
    assert!(waits.join().unwrap().is_ok());
    assert!(control.effective().unwrap().is_empty());
}
