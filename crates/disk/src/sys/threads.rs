//! What a thread has of its own, and whether it lives.

use std::{fs, num::NonZeroU64};

use rustix::{
    fs::Mode,
    io::Errno,
    process::{Signal, umask},
    thread::{UnshareFlags, set_current_timer_slack, unshare_unsafe},
};

/// Gives the calling thread, and those that it will start, a table of open files of their own, with nothing in it but
/// the three standard streams.
///
/// Every descriptor that the process has elsewhere is out of reach here, and the other way round.
pub(crate) fn own_file_table() -> Result<(), Errno> {
    // By its number: neither rustix nor older C libraries have a word for it. Linux 5.9.
    // SAFETY: no memory is involved; the descriptors that are closed are those of a table that nobody else sees, and the
    // calling thread holds none of them.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_UNSHARE) } {
        0 => Ok(()),
        _ => Err(super::errno_of(&std::io::Error::last_os_error())),
    }
}

/// Gives the calling thread, and only it, a file mode mask of its own, and sets it to nothing: the kernel has applied
/// the caller's already.
pub(crate) fn own_umask() -> Result<(), Errno> {
    // SAFETY: the table of open files stays shared, so that no descriptor changes its meaning.
    unsafe { unshare_unsafe(UnshareFlags::FS)? };
    umask(Mode::empty());
    Ok(())
}

/// No signal of the process is delivered to the calling thread.
pub(crate) fn block_signals() {
    // SAFETY: `all` is filled before it is read; the old mask is not asked for. (rustix leaves signals to the C library.)
    unsafe {
        let mut all = std::mem::MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Waits of the calling thread end on time, not up to 50 µs later, which is the default.
pub(crate) fn precise_sleep() {
    // Refused, they end later.
    let _ = set_current_timer_slack(NonZeroU64::new(1_000));
}

/// Whether the thread of that number has been killed, or is gone.
///
/// One that cannot be looked at (it has no number in our PID namespace, or ours is not the one of `/proc`) counts as killed:
/// then a signal cuts a wait short, which weakens the fault, where otherwise a dead process could hang.
///
/// A signal that kills is turned by the kernel into a `SIGKILL` pending for every thread of the process.
pub(crate) fn killed(thread: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{thread}/status")) else { return true };
    let pending = |name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    };
    (pending("SigPnd:") | pending("ShdPnd:")) & 1 << (Signal::KILL.as_raw() - 1) != 0
}
