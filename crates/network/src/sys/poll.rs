//! Waiting for descriptors, to the nanosecond, and waking a waiter.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

use super::{check, check_len};

/// What [`Epoll::wait`] filled in.
pub(crate) type Event = libc::epoll_event;

/// A set of descriptors to wait for, each with a number of the caller's choice.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the descriptor is new and owned by nobody else.
        unsafe { Ok(Epoll(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?))) }
    }

    /// Waits from now on for `fd` to become readable (level-triggered).
    pub(crate) fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: `event` is valid for the call; both descriptors are open.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
        Ok(())
    }

    /// Waits for `fd` no longer. It was added, so this cannot fail.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        // SAFETY: no event is read when a descriptor is removed; both descriptors are open.
        unsafe {
            let fd = fd.as_fd().as_raw_fd();
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut());
        }
    }

    /// Waits until a descriptor is readable or `timeout_ns` have passed (`None`: for ever), and says
    /// how many events were filled in. A signal counts as time passed.
    ///
    /// Needs Linux 5.11, whose `epoll_pwait2` takes nanoseconds and so saves a timer descriptor.
    pub(crate) fn wait(&self, events: &mut [Event], timeout_ns: Option<u64>) -> io::Result<usize> {
        let timeout = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `events` is writable for its whole length, `timeout` is null or a valid timespec
        // that outlives the call, and a null signal mask is allowed.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        match check_len(ready as libc::ssize_t) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            result => result,
        }
    }
}

/// Wakes a thread that waits on an [`Epoll`].
pub(crate) struct Wakeup(OwnedFd);

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the descriptor is new and owned by nobody else.
        unsafe { Ok(Wakeup(OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?))) }
    }

    /// Makes the waiter's descriptor readable.
    pub(crate) fn notify(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight readable bytes. A full counter (EAGAIN) means that the waiter is awake already.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Makes it unreadable again.
    pub(crate) fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight writable bytes. EAGAIN means that nobody had notified.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}
