//! What a thread has of its own.

use super::{Errno, check};

/// Gives the calling thread, and those that it will start, a table of open files of their own, with nothing in it but
/// the three standard streams.
///
/// Every descriptor that the process has elsewhere is out of reach here, and the other way round.
pub(crate) fn own_file_table() -> Result<(), Errno> {
    // By its number: older C libraries have no word for it. Linux 5.9.
    // SAFETY: no memory is involved; the descriptors that are closed are those of a table that nobody else sees, and the
    // calling thread holds none of them.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
    if result < 0 { Err(super::last()) } else { Ok(()) }
}

/// Gives the calling thread, and only it, a file mode mask of its own, and sets it to nothing: the kernel has applied
/// the caller's already.
pub(crate) fn own_umask() -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    unsafe {
        check(libc::unshare(libc::CLONE_FS))?;
        libc::umask(0);
    }
    Ok(())
}

/// No signal of the process is delivered to the calling thread.
pub(crate) fn block_signals() {
    // SAFETY: `all` is filled before it is read; the old mask is not asked for.
    unsafe {
        let mut all = std::mem::MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Waits of the calling thread end on time, not up to 50 µs later, which is the default.
pub(crate) fn precise_sleep() {
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong, 0, 0, 0) };
}

/// Lets this process have as many files open as it may allow itself.
pub(crate) fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid to write and to read. It is only ever raised, and failing leaves all as it was.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
