//! The few kernel objects the event loops stand on. All `unsafe` of the event loops is in this file.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn own(result: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: on success the kernel has just made this descriptor for us; nobody else owns it.
    check(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What a descriptor is ready for, and the token it was registered with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    /// Something to read, or the end of the stream, or an error: reading tells which.
    pub(crate) readable: bool,
    /// Room to write, or a connection attempt has ended.
    pub(crate) writable: bool,
}

/// A level-triggered epoll instance.
pub(crate) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    filled: usize,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Epoll { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 256], filled: 0 })
    }

    fn control(&self, operation: libc::c_int, fd: RawFd, token: u64, events: libc::c_int) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: `event` lives across the call; the kernel copies it.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &mut event) }).map(|_| ())
    }

    /// Watches `fd`; it is forgotten when it is closed.
    pub(crate) fn add(&self, fd: RawFd, token: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest(writable))
    }

    /// Begins or ends watching for room to write.
    pub(crate) fn watch_writable(&self, fd: RawFd, token: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest(writable))
    }

    /// Waits until something is ready, or only looks. A signal ends the wait early.
    pub(crate) fn wait(&mut self, only_look: bool) -> io::Result<()> {
        let millis = if only_look { 0 } else { -1 };
        // SAFETY: `events` has room for the count given and outlives the call.
        let filled = unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), self.events.len() as libc::c_int, millis)
        };
        self.filled = match check(filled) {
            Ok(filled) => filled as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// How many descriptors the last wait found ready.
    pub(crate) fn count(&self) -> usize {
        self.filled
    }

    /// The `index`-th of them.
    pub(crate) fn ready(&self, index: usize) -> Ready {
        let event = self.events[index];
        let bits = event.events as libc::c_int;
        let broken = bits & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
        Ready {
            token: event.u64,
            readable: broken || bits & (libc::EPOLLIN | libc::EPOLLRDHUP) != 0,
            writable: broken || bits & libc::EPOLLOUT != 0,
        }
    }
}

fn interest(writable: bool) -> libc::c_int {
    if writable { libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLOUT } else { libc::EPOLLIN | libc::EPOLLRDHUP }
}

/// A timer on CLOCK_MONOTONIC with nanosecond deadlines (timerfd), readable in an [`Epoll`] once it is due.
pub(crate) struct Timer {
    fd: OwnedFd,
    armed: u64,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = own(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })?;
        Ok(Timer { fd, armed: 0 })
    }

    /// Sets the deadline (`u64::MAX` for none); a deadline in the past is due at once. Setting a deadline also
    /// clears the readiness of the previous one, so the timer need never be read.
    pub(crate) fn arm(&mut self, deadline_ns: u64) -> io::Result<()> {
        if deadline_ns == self.armed {
            return Ok(());
        }
        let at = if deadline_ns == u64::MAX { 0 } else { deadline_ns.max(1) };
        let spec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: (at / 1_000_000_000) as libc::time_t,
                tv_nsec: (at % 1_000_000_000) as libc::c_long,
            },
        };
        // SAFETY: `spec` lives across the call; no old value is asked for.
        let result =
            unsafe { libc::timerfd_settime(self.fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &spec, std::ptr::null_mut()) };
        check(result)?;
        self.armed = deadline_ns;
        Ok(())
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Wakes an [`Epoll`] from another thread (eventfd).
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        own(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(Waker)
    }

    /// Makes the epoll return. A full counter means that a wake-up is already due.
    pub(crate) fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight readable bytes are passed, as eventfd(2) asks.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes note of all wake-ups so far.
    pub(crate) fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight writable bytes are passed, as eventfd(2) asks.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Lets timers of the calling thread fire when they are due, not up to 50 µs later (the default slack).
pub(crate) fn precise_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}
