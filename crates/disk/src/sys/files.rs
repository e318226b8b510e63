//! What is done to an open file.

use std::{
    ffi::CStr,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use super::{Errno, check, check_len};

/// `openat`, with `O_CLOEXEC`.
pub(crate) fn open_at(directory: BorrowedFd<'_>, name: &CStr, flags: i32, mode: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: `name` ends with a zero byte; a descriptor that comes back is new and ours.
    unsafe {
        let fd = check(libc::openat(directory.as_raw_fd(), name.as_ptr(), flags | libc::O_CLOEXEC, mode))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// `open`, with `O_CLOEXEC`, relative to the working directory of the thread.
pub(crate) fn open(path: &CStr, flags: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: as above.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::open(path.as_ptr(), flags | libc::O_CLOEXEC))?)) }
}

/// `fstat`; works for `O_PATH` descriptors too.
pub(crate) fn stat(fd: BorrowedFd<'_>) -> Result<libc::stat64, Errno> {
    let mut stat = MaybeUninit::uninit();
    // SAFETY: `stat` has room for one; it is filled when the call succeeds.
    unsafe {
        check(libc::fstat64(fd.as_raw_fd(), stat.as_mut_ptr()))?;
        Ok(stat.assume_init())
    }
}

/// `fstatvfs`; works for `O_PATH` descriptors too.
pub(crate) fn stat_filesystem(fd: BorrowedFd<'_>) -> Result<libc::statvfs64, Errno> {
    let mut stat = MaybeUninit::uninit();
    // SAFETY: as above.
    unsafe {
        check(libc::fstatvfs64(fd.as_raw_fd(), stat.as_mut_ptr()))?;
        Ok(stat.assume_init())
    }
}

/// `read`.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: `buffer` may be written to for its whole length.
    check_len(unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) })
}

/// `write`.
pub(crate) fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: `bytes` may be read for its whole length.
    check_len(unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
}

/// Reads from `offset` until `buffer` is full or the file ends, and says how much.
pub(crate) fn read_at(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: i64) -> Result<usize, Errno> {
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        // SAFETY: `rest` may be written to for its whole length.
        let got = unsafe {
            libc::pread64(fd.as_raw_fd(), rest.as_mut_ptr().cast(), rest.len(), offset.saturating_add(done as i64))
        };
        match check_len(got) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(libc::EINTR) => {}
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Writes all of `bytes` at `offset`; says how much was written, which is less only when the directory's disk failed midway.
pub(crate) fn write_at(fd: BorrowedFd<'_>, bytes: &[u8], offset: i64) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        // SAFETY: `rest` may be read for its whole length.
        let put = unsafe {
            libc::pwrite64(fd.as_raw_fd(), rest.as_ptr().cast(), rest.len(), offset.saturating_add(done as i64))
        };
        match check_len(put) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(libc::EINTR) => {}
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// `fsync`, or `fdatasync` if only the data matter.
pub(crate) fn sync(fd: BorrowedFd<'_>, only_data: bool) -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    check(unsafe { if only_data { libc::fdatasync(fd.as_raw_fd()) } else { libc::fsync(fd.as_raw_fd()) } }).map(drop)
}

/// `ftruncate`.
pub(crate) fn truncate(fd: BorrowedFd<'_>, length: i64) -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::ftruncate64(fd.as_raw_fd(), length) }).map(drop)
}

/// `fallocate`.
pub(crate) fn allocate(fd: BorrowedFd<'_>, mode: i32, offset: i64, length: i64) -> Result<(), Errno> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::fallocate64(fd.as_raw_fd(), mode, offset, length) }).map(drop)
}

/// `lseek`.
pub(crate) fn seek(fd: BorrowedFd<'_>, offset: i64, whence: i32) -> Result<i64, Errno> {
    // SAFETY: no memory is involved.
    let at = unsafe { libc::lseek64(fd.as_raw_fd(), offset, whence) };
    if at < 0 { Err(super::last()) } else { Ok(at) }
}

/// `copy_file_range`, once.
pub(crate) fn copy_range(
    (from, from_offset): (BorrowedFd<'_>, i64),
    (to, to_offset): (BorrowedFd<'_>, i64),
    length: usize,
) -> Result<usize, Errno> {
    let (mut from_offset, mut to_offset) = (from_offset, to_offset);
    // SAFETY: both offsets are valid to read and write.
    check_len(unsafe {
        libc::copy_file_range(from.as_raw_fd(), &mut from_offset, to.as_raw_fd(), &mut to_offset, length, 0)
    })
}

/// `fchown`, also of an `O_PATH` descriptor and of a symbolic link; `None` leaves one as it is.
pub(crate) fn change_owner(fd: BorrowedFd<'_>, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
    let (uid, gid) = (uid.unwrap_or(u32::MAX), gid.unwrap_or(u32::MAX));
    // SAFETY: the empty name is a constant that ends with a zero byte.
    check(unsafe {
        libc::fchownat(fd.as_raw_fd(), c"".as_ptr(), uid, gid, libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW)
    })
    .map(drop)
}

/// `utimensat` on the file itself, also of an `O_PATH` descriptor.
pub(crate) fn change_times(fd: BorrowedFd<'_>, times: [libc::timespec; 2]) -> Result<(), Errno> {
    // SAFETY: the empty name is a constant, and `times` are two timespecs.
    check(unsafe { libc::utimensat(fd.as_raw_fd(), c"".as_ptr(), times.as_ptr(), libc::AT_EMPTY_PATH) }).map(drop)
}

/// `posix_fadvise(DONTNEED)` for the whole file: its clean pages leave the page cache.
pub(crate) fn forget_pages(fd: BorrowedFd<'_>) {
    // SAFETY: no memory is involved.
    unsafe { libc::posix_fadvise64(fd.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// `getdents64`: entries from where the descriptor stands.
pub(crate) fn read_entries(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: `buffer` may be written to for its whole length.
    let got = unsafe { libc::syscall(libc::SYS_getdents64, fd.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) };
    usize::try_from(got).map_err(|_| super::last())
}
