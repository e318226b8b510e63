//! The kernel's FUSE protocol, as far as a disk needs it.
//!
//! The layouts are those of `linux/fuse.h` (protocol 7.31; newer kernels speak it too). All numbers are in the
//! machine's own byte order.
//!
//! This is spoken here, and not by a library, for the sake of one message, `FUSE_INTERRUPT`. The kernel sends it when a
//! process that waits for an answer gets a signal, and lets even a killed process go only when it is answered: whoever
//! does not listen makes a killed database hang for as long as the disk is slow.

mod opcode;
mod reply;
mod request;

pub(crate) use opcode::Opcode;
pub(crate) use reply::Reply;
pub(crate) use request::{Arguments, Header};

/// The version we speak.
pub(crate) const MAJOR: u32 = 7;
/// See [`MAJOR`].
pub(crate) const MINOR: u32 = 31;
/// The oldest minor version whose messages have the sizes used here (7.23, Linux 3.15).
pub(crate) const OLDEST_MINOR: u32 = 23;

/// The number of the directory that is mounted.
pub(crate) const ROOT: u64 = 1;

/// The largest write in one request. Reads are as large at most.
pub(crate) const MAX_WRITE: u32 = 1 << 20;
/// The same in pages of 4 KiB, as `FUSE_MAX_PAGES` wants it.
pub(crate) const MAX_PAGES: u16 = 256;
/// What a request can be long: the largest write, and what goes before it.
pub(crate) const REQUEST_SIZE: usize = MAX_WRITE as usize + 4096;

/// Flags of `FUSE_INIT`.
pub(crate) mod init {
    /// Several reads of one file may be under way.
    pub(crate) const ASYNC_READ: u32 = 1 << 0;
    /// Writes may be larger than a page.
    pub(crate) const BIG_WRITES: u32 = 1 << 5;
    /// Lookups in one directory may be under way together.
    pub(crate) const PARALLEL_DIROPS: u32 = 1 << 18;
    /// `max_pages` is given.
    pub(crate) const MAX_PAGES: u32 = 1 << 22;
}

/// Flags of the answer to an open.
pub(crate) mod opened {
    /// What is in the page cache stays there.
    pub(crate) const KEEP_CACHE: u32 = 1 << 1;
    /// Closing need not be told, and writes nothing back.
    pub(crate) const NO_FLUSH: u32 = 1 << 5;
}

/// Which fields of `FUSE_SETATTR` are set.
pub(crate) mod attribute {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const HANDLE: u32 = 1 << 6;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
}
