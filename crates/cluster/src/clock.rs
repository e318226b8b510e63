//! CPU time of processes.

/// CPU time that process `pid` has used in all its threads, in nanoseconds; `None` when it is gone.
///
/// The kernel's per-process CPU clock (`clock_getcpuclockid(3)`) counts nanoseconds, where the ticks
/// of `/proc/PID/stat` count 10 ms.
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a valid place for the answer.
    match unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) } {
        0 => read(clock),
        _ => None,
    }
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_cpu_time_and_a_process_that_is_not_uses_none() {
        let before = process_cpu_ns(std::process::id()).unwrap();
        let mut x = 0u64;
        while process_cpu_ns(std::process::id()).unwrap() - before < 1_000_000 {
            x = std::hint::black_box(x + 1);
        }
        // Above the largest process id that Linux gives (2²²).
        assert_eq!(process_cpu_ns(1 << 27), None);
    }
}
