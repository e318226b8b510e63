//! Mounting and unmounting.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsRawFd, BorrowedFd},
};

use super::{Errno, check};

/// The options for `mount(2)` of a filesystem that the holder of `device` serves.
///
/// `default_permissions`: the kernel itself checks modes and owners; `allow_other`: everyone may come, not only the uid
/// that mounted it, because databases run as another.
pub(crate) fn options(device: i32, mode: u32, uid: u32, gid: u32) -> CString {
    let text = format!("fd={device},rootmode={mode:o},user_id={uid},group_id={gid},default_permissions,allow_other");
    // None of these holds a zero byte.
    CString::new(text).unwrap_or_default()
}

/// Mounts the filesystem that the holder of `device` (an open `/dev/fuse`) serves, whose root has this mode.
pub(crate) fn mount_fuse(device: BorrowedFd<'_>, target: &CStr, mode: u32) -> Result<(), Errno> {
    // SAFETY: these two only answer.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let options = options(device.as_raw_fd(), mode, uid, gid);
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    let (source, kind) = (c"brownout", c"fuse.brownout");
    // SAFETY: all strings end with a zero byte.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) })
        .map(drop)
}

/// Unmounts what is at `target`, at once, even in use; with `force`, what waits for an answer from it fails first.
pub(crate) fn unmount(target: &CStr, force: bool) -> Result<(), Errno> {
    let flags = libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW | if force { libc::MNT_FORCE } else { 0 };
    // SAFETY: `target` ends with a zero byte.
    check(unsafe { libc::umount2(target.as_ptr(), flags) }).map(drop)
}
