//! Waiting for descriptors, to the nanosecond, and waking a waiter.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    buffer::spare_capacity,
    event::{
        EventfdFlags, Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
        eventfd,
    },
    io::Errno,
};

/// What [`Epoll::wait`] filled in.
pub(crate) type Event = epoll::Event;

/// A set of descriptors to wait for, each with a number of the caller's choice.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Epoll(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Waits from now on for `fd` to become readable (level-triggered).
    pub(crate) fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.0, fd, EventData::new_u64(token), EventFlags::IN)?)
    }

    /// Waits for `fd` no longer. It was added, so this cannot fail.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.0, fd);
    }

    /// Waits until a descriptor is readable or `timeout_ns` have passed (`None`: for ever), and fills in as many events
    /// as `events` has room for. A signal counts as time passed.
    ///
    /// Needs Linux 5.11, whose `epoll_pwait2` takes nanoseconds and so saves a timer descriptor.
    pub(crate) fn wait(&self, events: &mut Vec<Event>, timeout_ns: Option<u64>) -> io::Result<()> {
        let timeout =
            timeout_ns.map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
        events.clear();
        match epoll::wait(&self.0, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Wakes a thread that waits on an [`Epoll`].
pub(crate) struct Wakeup(OwnedFd);

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Wakeup(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes the waiter's descriptor readable.
    pub(crate) fn notify(&self) {
        // A full counter (EAGAIN) means that the waiter is awake already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it unreadable again.
    pub(crate) fn clear(&self) {
        // EAGAIN means that nobody had notified.
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
