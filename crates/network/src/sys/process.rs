//! Child processes that end with their parent, and what they inherit.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Command,
    sync::Arc,
};

use rustix::fs::{MemfdFlags, memfd_create};

/// A file that has no name and is gone with the last process that has it open.
pub(crate) fn nameless_file(label: &str) -> io::Result<File> {
    Ok(memfd_create(label, MemfdFlags::CLOEXEC)?.into())
}

/// Where a process finds a file that it has inherited.
pub(crate) fn inherited_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Lets `command`, and none of the other programs that this process starts, have these files open under the same numbers, and
/// has the kernel kill it when the thread that starts it ends, however that ends.
pub(crate) fn inherit_and_die_together(command: &mut Command, files: Vec<Arc<OwnedFd>>) {
    // SAFETY: takes nothing.
    let parent = unsafe { libc::getpid() };
    let prepare = move || {
        for file in &files {
            // SAFETY: takes numbers alone.
            super::check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) })?;
        }
        // SAFETY: takes numbers alone.
        super::check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) })?;
        // The parent may have died before the line above.
        // SAFETY: takes nothing.
        if unsafe { libc::getppid() } == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: between fork and exec only `fcntl`, `prctl` and `getppid` are called, which are system calls alone: nothing
    // allocates or locks.
    unsafe { command.pre_exec(prepare) };
}

/// Numbers that nobody can guess.
pub(crate) fn secret() -> io::Result<[u8; 32]> {
    let mut bytes = [0u8; 32];
    // SAFETY: `bytes` is writable for the length stated.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    // Fewer than 256 bytes come at once or not at all (getrandom(2)).
    if got == bytes.len() as isize { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}
