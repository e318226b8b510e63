//! What is done to a name in an open directory.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsRawFd, BorrowedFd},
};

use super::{Errno, check, check_len};

/// `mkdirat`.
pub(crate) fn make_directory(directory: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<(), Errno> {
    // SAFETY: `name` ends with a zero byte.
    check(unsafe { libc::mkdirat(directory.as_raw_fd(), name.as_ptr(), mode) }).map(drop)
}

/// `mknodat`.
pub(crate) fn make_node(directory: BorrowedFd<'_>, name: &CStr, mode: u32, device: u32) -> Result<(), Errno> {
    // SAFETY: `name` ends with a zero byte.
    check(unsafe { libc::mknodat(directory.as_raw_fd(), name.as_ptr(), mode, device.into()) }).map(drop)
}

/// `symlinkat`.
pub(crate) fn make_symlink(content: &CStr, directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    // SAFETY: both strings end with a zero byte.
    check(unsafe { libc::symlinkat(content.as_ptr(), directory.as_raw_fd(), name.as_ptr()) }).map(drop)
}

/// `linkat`, through a magic link of `/proc` (which is followed to the file it stands for).
pub(crate) fn link(from: (BorrowedFd<'_>, &CStr), to: (BorrowedFd<'_>, &CStr)) -> Result<(), Errno> {
    let ((from, from_name), (to, to_name)) = (from, to);
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    // SAFETY: both names end with a zero byte.
    check(unsafe { libc::linkat(from, from_name.as_ptr(), to, to_name.as_ptr(), libc::AT_SYMLINK_FOLLOW) }).map(drop)
}

/// `unlinkat`; of a directory, if `directories`.
pub(crate) fn remove(directory: BorrowedFd<'_>, name: &CStr, directories: bool) -> Result<(), Errno> {
    let flags = if directories { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: `name` ends with a zero byte.
    check(unsafe { libc::unlinkat(directory.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

/// `renameat2`.
pub(crate) fn rename(from: (BorrowedFd<'_>, &CStr), to: (BorrowedFd<'_>, &CStr), flags: u32) -> Result<(), Errno> {
    let ((from, from_name), (to, to_name)) = (from, to);
    // Called by its number, because not every C library knows it.
    // SAFETY: both names end with a zero byte.
    let result = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            from.as_raw_fd(),
            from_name.as_ptr(),
            to.as_raw_fd(),
            to_name.as_ptr(),
            flags as libc::c_ulong,
        )
    };
    if result < 0 { Err(super::last()) } else { Ok(()) }
}

/// `readlinkat` on the link itself.
pub(crate) fn read_link(link: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; libc::PATH_MAX as usize];
    // SAFETY: the empty name is a constant, and `buffer` may be written to for its whole length.
    let length = check_len(unsafe {
        libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
    })?;
    buffer.truncate(length);
    Ok(buffer)
}

/// `fchmodat`, through a magic link of `/proc`.
pub(crate) fn change_mode(directory: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<(), Errno> {
    // SAFETY: `name` ends with a zero byte.
    check(unsafe { libc::fchmodat(directory.as_raw_fd(), name.as_ptr(), mode, 0) }).map(drop)
}

/// The name of a descriptor in `/proc/…/fd`.
pub(crate) fn fd_name(fd: BorrowedFd<'_>) -> CString {
    // A number holds no zero byte.
    CString::new(fd.as_raw_fd().to_string()).unwrap_or_default()
}
