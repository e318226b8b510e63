//! What takes several system calls, or one that rustix has no safe word for. All `unsafe` of this crate is here, a line
//! or two at a time.

mod mount;
mod threads;
mod trial;

pub(crate) use mount::{mount_fuse, unmount};
pub(crate) use threads::{block_signals, killed, own_file_table, own_umask, precise_sleep};
pub(crate) use trial::{Step, try_mount};

use rustix::io::Errno;

/// The number of an error of the standard library.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
