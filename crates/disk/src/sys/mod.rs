//! Thin, safe faces of the system calls that the standard library has no word for.
//!
//! All `unsafe` of this crate is here, a line or two at a time. What fails answers with the bare `errno`, because that is
//! what the kernel is told in turn.

mod files;
mod mount;
mod names;
mod threads;
mod trial;

use std::io;

pub(crate) use files::*;
pub(crate) use mount::{mount_fuse, unmount};
pub(crate) use names::*;
pub(crate) use threads::{block_signals, own_file_table, own_umask, precise_sleep, raise_file_limit};
pub(crate) use trial::{Step, try_mount};

/// The number of an error of the system.
pub(crate) type Errno = libc::c_int;

/// The `errno` that the last call left behind.
fn last() -> Errno {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Turns the `-1` of the C library into the error it left behind.
fn check(result: libc::c_int) -> Result<libc::c_int, Errno> {
    if result < 0 { Err(last()) } else { Ok(result) }
}

/// The same for calls that answer with a length.
fn check_len(result: libc::ssize_t) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| last())
}
