//! The files that the kernel has open.

use std::{
    collections::HashMap,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::io::Errno;

/// An open file or directory.
#[derive(Debug)]
pub(crate) struct Handle(OwnedFd);

impl Handle {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Handles {
    open: RwLock<HashMap<u64, Arc<Handle>>>,
    next: AtomicU64,
}

impl Handles {
    /// Keeps an open file; returns the number by which the kernel will name it.
    pub(crate) fn add(&self, file: OwnedFd) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let handle = Arc::new(Handle(file));
        self.open.write().unwrap_or_else(PoisonError::into_inner).insert(number, handle);
        number
    }

    pub(crate) fn get(&self, number: u64) -> Result<Arc<Handle>, Errno> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&number).map(Arc::clone).ok_or(Errno::BADF)
    }

    pub(crate) fn close(&self, number: u64) {
        let closed = self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
        // Closing can take a while: not under the lock.
        drop(closed);
    }
}
