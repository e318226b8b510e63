//! How urgently the kernel runs a thread.

use std::io;

/// What a thread really got from the kernel's scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_FIFO` with this priority: it runs at once, whatever the databases do.
    Fifo(u8),
    /// It competes with everything else; expect it to wake milliseconds late on a busy machine.
    Default,
}

/// Makes the calling thread run as soon as it wakes, and says what it got: `SCHED_FIFO` with this
/// priority where that is asked for and allowed, else short time slices and timers without slack.
///
/// For threads that measure. The emulator has 20, the probes 19 and trains 18; stay below.
pub fn run_urgently(priority: impl Into<Option<u8>>) -> Scheduling {
    match priority.into() {
        Some(priority) if request_fifo(priority).is_ok() => Scheduling::Fifo(priority),
        _ => {
            prefer_short_slices();
            Scheduling::Default
        }
    }
}

/// Asks for `SCHED_FIFO` for the calling thread. Needs `CAP_SYS_NICE` outside of any user namespace.
fn request_fifo(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: libc::c_int::from(priority) };
    // SAFETY: `parameters` is valid for the call; 0 names the calling thread. (rustix sets no scheduling policies.)
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(&attributes), 0) };
    // A kernel that refuses leaves the timers as they were.
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
}
