//! How urgently the kernel runs a thread.

use std::io;

use super::check;

/// What a thread really got from the kernel's scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_FIFO` with this priority: it runs at once, whatever the databases do.
    Fifo(u8),
    /// It competes with everything else; expect release errors of milliseconds on a busy machine.
    Default,
}

/// Asks for `SCHED_FIFO` for the calling thread. Needs `CAP_SYS_NICE` outside of any user namespace.
fn request_fifo(priority: u8) -> io::Result<Scheduling> {
    let parameters = libc::sched_param { sched_priority: libc::c_int::from(priority) };
    // SAFETY: `parameters` is valid for the call; 0 names the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) })?;
    Ok(Scheduling::Fifo(priority))
}

/// The best that an unprivileged thread can get: timers without slack, and (from Linux 6.12) short
/// time slices, with which the scheduler runs it sooner after it wakes. Older kernels ignore it.
fn prefer_short_slices() {
    const SLICE_NS: u64 = 100_000;
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: SLICE_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: `attributes` is valid for the call and states its own size; the rest is by value.
    unsafe {
        libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(&attributes), 0);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
    }
}

/// Makes the calling thread run as soon as it wakes, and says what it got: `SCHED_FIFO` with this
/// priority where that is allowed, else short time slices and timers without slack.
///
/// For threads that measure. The emulator has 20, the probes 19 and trains 18; stay below.
pub fn run_urgently(priority: u8) -> Scheduling {
    schedule(Some(priority))
}

/// The same; `None` does not even ask for `SCHED_FIFO`.
pub(crate) fn schedule(priority: Option<u8>) -> Scheduling {
    priority.and_then(|priority| request_fifo(priority).ok()).unwrap_or_else(|| {
        prefer_short_slices();
        Scheduling::Default
    })
}
