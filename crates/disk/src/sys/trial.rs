//! Trying whether a disk could be mounted, where nothing can come of it.

use std::{
    ffi::{CStr, CString},
    io,
};

use super::{Errno, last, mount::options};

/// Which step of [`try_mount`] failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The child could not be made.
    Fork,
    /// Opening `/dev/fuse`.
    Open,
    /// Making a mount namespace (as root), or a user namespace with one (otherwise).
    Namespace,
    /// Mounting.
    Mount,
}

const STEPS: [Step; 4] = [Step::Fork, Step::Open, Step::Namespace, Step::Mount];

/// Opens `/dev/fuse` and mounts it on `directory`, in a child process and in a mount namespace that ends with it.
///
/// # Errors
/// The step that failed, and why.
pub(crate) fn try_mount(directory: &CStr) -> Result<(), (Step, io::Error)> {
    // SAFETY: these two only answer.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let maps = Maps {
        uid: CString::new(format!("0 {uid} 1")).unwrap_or_default(),
        gid: CString::new(format!("0 {gid} 1")).unwrap_or_default(),
    };
    // Descriptors are small numbers: a place for each of them, so that the child need not format any.
    let options: Vec<CString> = (0..1024).map(|fd| options(fd, libc::S_IFDIR, 0, 0)).collect();
    let failed = |step, errno| Err((step, io::Error::from_raw_os_error(errno)));
    // SAFETY: between fork and _exit the child makes system calls only, allocates nothing and takes no lock. The status
    // of exactly this child is awaited.
    let status = unsafe {
        let child = libc::fork();
        if child < 0 {
            return failed(Step::Fork, last());
        }
        if child == 0 {
            let (step, errno) = match attempt(directory, &maps, &options, uid == 0) {
                Ok(()) => (0, 0),
                Err((step, errno)) => (step as i32, errno),
            };
            // Two bits tell the step; the errnos of these calls are below 64.
            libc::_exit(if errno == 0 { 0 } else { step << 6 | errno.clamp(1, 63) });
        }
        let mut status = 0;
        while libc::waitpid(child, &mut status, 0) < 0 {
            if last() != libc::EINTR {
                return failed(Step::Fork, last());
            }
        }
        status
    };
    match libc::WEXITSTATUS(status) {
        _ if !libc::WIFEXITED(status) => failed(Step::Fork, libc::ECHILD),
        0 => Ok(()),
        code => failed(STEPS[(code >> 6 & 3) as usize], code & 63),
    }
}

struct Maps {
    uid: CString,
    gid: CString,
}

/// What the child does. Only system calls.
unsafe fn attempt(directory: &CStr, maps: &Maps, options: &[CString], root: bool) -> Result<(), (Step, Errno)> {
    // SAFETY: every string ends with a zero byte; no memory is handed over otherwise.
    unsafe {
        let device = libc::open(c"/dev/fuse".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if device < 0 {
            return Err((Step::Open, last()));
        }
        let spaces = libc::CLONE_NEWNS | if root { 0 } else { libc::CLONE_NEWUSER };
        if libc::unshare(spaces) < 0 {
            return Err((Step::Namespace, last()));
        }
        if !root {
            put(c"/proc/self/setgroups", c"deny")?;
            put(c"/proc/self/uid_map", &maps.uid)?;
            put(c"/proc/self/gid_map", &maps.gid)?;
        }
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let none = std::ptr::null();
        if libc::mount(none, c"/".as_ptr(), none, private, none.cast()) < 0 {
            return Err((Step::Namespace, last()));
        }
        let Some(options) = options.get(device as usize) else {
            return Err((Step::Open, libc::EMFILE));
        };
        let kind = c"fuse.brownout".as_ptr();
        if libc::mount(c"brownout".as_ptr(), directory.as_ptr(), kind, 0, options.as_ptr().cast()) < 0 {
            return Err((Step::Mount, last()));
        }
        Ok(())
    }
}

/// Writes a line to a file of `/proc`.
unsafe fn put(path: &CStr, line: &CStr) -> Result<(), (Step, Errno)> {
    // SAFETY: both end with a zero byte; the length is that of `line`.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        let bytes = line.to_bytes();
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        let errno = last();
        libc::close(fd);
        if written < 0 { Err((Step::Namespace, errno)) } else { Ok(()) }
    }
}
