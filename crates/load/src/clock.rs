//! The two clocks of the engine, read through the C library (vDSO: no system call for the first).

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec; both clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC in nanoseconds: the one time axis of the whole lab.
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds since 1970: what the kernel stamps received packets with.
pub(crate) fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CLOCK_REALTIME in microseconds since 1970: the unit of CQL write timestamps.
pub(crate) fn unix_us() -> u64 {
    unix_ns() / 1_000
}

/// CPU time used by the calling thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}
