//! Trying whether a disk could be mounted, where nothing can come of it.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::{
    fs::{self, FileType, Mode, OFlags},
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::{Pid, WaitOptions, getegid, geteuid, waitpid},
    thread::{UnshareFlags, unshare_unsafe},
};

use super::mount::{KIND, SOURCE, options};

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
    let (uid, gid) = (geteuid(), getegid());
    let maps = Maps { uid: format!("0 {uid} 1"), gid: format!("0 {gid} 1") };
    // Descriptors are small numbers: a place for each of them, so that the child need not format any.
    let options: Vec<CString> = (0..1024).map(|fd| options(fd, FileType::Directory.as_raw_mode(), 0, 0)).collect();
    let failed = |step, errno: Errno| Err((step, errno.into()));
    // SAFETY: between fork and _exit the child makes system calls only, allocates nothing and takes no lock. (rustix has
    // no safe way to fork.)
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            let (step, errno) = match attempt(directory, &maps, &options, uid.is_root()) {
                Ok(_device) => (0, 0),
                Err((step, errno)) => (step as i32, errno.raw_os_error()),
            };
            // Two bits tell the step; the errnos of these calls are below 64.
            libc::_exit(if errno == 0 { 0 } else { step << 6 | errno.clamp(1, 63) });
        }
        child
    };
    let Some(child) = Pid::from_raw(child).filter(|_| child > 0) else {
        return Err((Step::Fork, io::Error::last_os_error()));
    };
    let status = loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            Err(errno) => return failed(Step::Fork, errno),
            Ok(ended) => break ended.and_then(|(_, status)| status.exit_status()),
        }
    };
    match status {
        None => failed(Step::Fork, Errno::CHILD),
        Some(0) => Ok(()),
        Some(code) => failed(STEPS[(code >> 6 & 3) as usize], Errno::from_raw_os_error(code & 63)),
    }
}

struct Maps {
    uid: String,
    gid: String,
}

/// What the child does; it is mounted as long as the device is open. Only system calls.
fn attempt(directory: &CStr, maps: &Maps, options: &[CString], root: bool) -> Result<OwnedFd, (Step, Errno)> {
    let at = |step| move |errno| (step, errno);
    let device = fs::open(c"/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(at(Step::Open))?;
    let user = if root { UnshareFlags::empty() } else { UnshareFlags::NEWUSER };
    // SAFETY: the table of open files stays shared, so that no descriptor changes its meaning.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | user) }.map_err(at(Step::Namespace))?;
    if !root {
        for (path, line) in [
            (c"/proc/self/setgroups", "deny"),
            (c"/proc/self/uid_map", &*maps.uid),
            (c"/proc/self/gid_map", &*maps.gid),
        ] {
            put(path, line).map_err(at(Step::Namespace))?;
        }
    }
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change(c"/", private).map_err(at(Step::Namespace))?;
    let options = options.get(device.as_raw_fd() as usize).ok_or((Step::Open, Errno::MFILE))?;
    mount(SOURCE, directory, KIND, MountFlags::empty(), &**options).map_err(at(Step::Mount))?;
    Ok(device)
}

/// Writes a line to a file of `/proc`.
fn put(path: &CStr, line: &str) -> Result<(), Errno> {
    let file = fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, line.as_bytes()).map(drop)
}
