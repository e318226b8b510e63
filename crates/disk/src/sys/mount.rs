//! Mounting and unmounting.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsRawFd, BorrowedFd},
    path::Path,
};

use rustix::{
    io::Errno,
    mount::{MountFlags, UnmountFlags},
    process::{getegid, geteuid},
};

/// What a mount is listed as, in `/proc/mounts`.
pub(super) const SOURCE: &CStr = c"brownout";
/// The kind of filesystem.
pub(super) const KIND: &CStr = c"fuse.brownout";

/// The options for `mount(2)` of a filesystem that the holder of `device` serves.
///
/// `default_permissions`: the kernel itself checks modes and owners; `allow_other`: everyone may come, not only the uid
/// that mounted it, because databases run as another.
pub(super) fn options(device: i32, mode: u32, uid: u32, gid: u32) -> CString {
    let text = format!("fd={device},rootmode={mode:o},user_id={uid},group_id={gid},default_permissions,allow_other");
    // None of these holds a zero byte.
    CString::new(text).unwrap_or_default()
}

/// Mounts the filesystem that the holder of `device` (an open `/dev/fuse`) serves, whose root has this mode.
pub(crate) fn mount_fuse(device: BorrowedFd<'_>, target: &Path, mode: u32) -> Result<(), Errno> {
    let options = options(device.as_raw_fd(), mode, geteuid().as_raw(), getegid().as_raw());
    rustix::mount::mount(SOURCE, target, KIND, MountFlags::NOSUID | MountFlags::NODEV, &*options)
}

/// Unmounts what is at `target`, at once, even in use; with `force`, what waits for an answer from it fails first.
pub(crate) fn unmount(target: &Path, force: bool) -> Result<(), Errno> {
    let force = if force { UnmountFlags::FORCE } else { UnmountFlags::empty() };
    rustix::mount::unmount(target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW | force)
}
