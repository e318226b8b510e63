//! The machine's wall clock and a shared mapping: all that this crate asks of libc, but for sockets.

use std::{fs::File, io, os::fd::AsRawFd, ptr::NonNull};

use crate::parameters::Parameters;

/// The machine's wall clock, in nanoseconds since 1970.
///
/// By a system call, which no preloaded object stands before: should this very process run with a shifted
/// clock, the machine's is still the one to shift from.
pub(crate) fn realtime_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid to write; the clock exists on every Linux, so that the call cannot fail.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::c_long::from(libc::CLOCK_REALTIME), &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The parameters at the start of a file, shared with all who map it.
pub(crate) struct Mapping(NonNull<Parameters>);

// SAFETY: a `Parameters` is made of atomics, and the mapping belongs to no thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Makes room for the parameters in `file` and maps them.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        let size = size_of::<Parameters>();
        file.set_len(size as u64)?;
        // SAFETY: a new mapping at an address of the kernel's choice; the file is as long as the mapping.
        let at = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(at.cast()).map(Mapping).ok_or_else(|| io::Error::other("mapped at address zero"))
    }
}

impl std::ops::Deref for Mapping {
    type Target = Parameters;

    fn deref(&self) -> &Parameters {
        // SAFETY: mapped, aligned to a page, of this size, and any bytes are valid atomics.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size; nobody borrows from it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Parameters>()) };
    }
}
