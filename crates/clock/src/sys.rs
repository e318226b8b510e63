//! The machine's wall clock, and a shared mapping.

use std::{fs::File, io, os::fd::AsRawFd, ptr::NonNull};

use crate::parameters::Parameters;

/// The machine's wall clock, in nanoseconds since 1970.
///
/// rustix reads it from the kernel, past the C library, which a preloaded object may stand before: should this very
/// process run with a shifted clock, the machine's is still the one to shift from.
pub(crate) fn realtime_ns() -> i64 {
    brownout_base::clock::realtime_ns().cast_signed()
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
        file.set_len(size_of::<Parameters>() as u64)?;
        Mapping::of(file)
    }

    /// Maps the parameters that are in `file`. Fails with `InvalidData` if it is too short for any.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let size = size_of::<Parameters>();
        // To read behind a file's end is fatal.
        if file.metadata()?.len() < size as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: a new mapping at an address of the kernel's choice; the file is as long as the mapping. (To rustix, too,
        // mapping is unsafe.)
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
        // SAFETY: mapped by `of` with this size; nobody borrows from it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Parameters>()) };
    }
}
