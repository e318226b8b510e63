//! The clocks, in nanoseconds; the first two are read from the kernel's page (vDSO) without a system call.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The monotonic clock, since an arbitrary point of this boot: the one time axis of a lab.
///
/// All hosts of a lab share it, because they share a kernel: one-way delays are plain differences.
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// The machine's wall clock, since 1970: what the kernel stamps received packets with.
#[inline]
pub fn realtime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// CPU time that the calling thread has used.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// No clock of a machine that runs this is before its zero.
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::{
        thread,
        time::{Duration, Instant, SystemTime, UNIX_EPOCH},
    };

    use super::*;

    #[test]
    fn the_monotonic_clock_never_runs_backwards_on_any_thread() {
        let readers = (0..2).map(|_| {
            thread::spawn(|| {
                let read: Vec<u64> = (0..100_000).map(|_| monotonic_ns()).collect();
                assert!(read.is_sorted());
                assert!(read.first() < read.last());
            })
        });
        readers.collect::<Vec<_>>().into_iter().for_each(|reader| reader.join().unwrap());
    }

    #[test]
    fn the_monotonic_clock_passes_at_least_what_was_slept() {
        let before = monotonic_ns();
        thread::sleep(Duration::from_millis(20));
        assert!(monotonic_ns() - before >= 20_000_000);
    }

    #[test]
    fn the_wall_clock_is_the_standard_librarys() {
        let library = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let (before, here, after) = (library(), realtime_ns(), library());
        assert!((before..=after).contains(&here), "{before} {here} {after}");
    }

    #[test]
    fn a_thread_that_sleeps_uses_no_cpu_time_and_one_that_works_does() {
        let before = thread_cpu_ns();
        thread::sleep(Duration::from_millis(200));
        let slept = thread_cpu_ns() - before;
        assert!(slept < 100_000_000, "{slept}");
        let begun = Instant::now();
        while thread_cpu_ns() - before < slept + 1_000_000 {
            assert!(begun.elapsed() < Duration::from_secs(60), "a minute of work uses no CPU time");
        }
    }
}
