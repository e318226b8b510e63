//! The few kernel objects the event loops stand on. All `unsafe` of the event loops is in this file.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    time::Duration,
};

use tokio::io::{Interest, unix::AsyncFd};

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

    /// For the tokio runtime that this thread has entered: readable as long as something is ready.
    pub(crate) fn on_tokio(&self) -> io::Result<AsyncFd<OwnedFd>> {
        let fd = self.fd.try_clone()?;
        // SAFETY: `fd` is this epoll for as long as the runtime's object owns it, and nobody else can close it.
        unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
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

    /// Waits until something is ready or the time has passed (without one: for ever). A signal ends the wait early.
    pub(crate) fn wait(&mut self, limit_ns: Option<u64>) -> io::Result<()> {
        let limit = limit_ns.map(timespec);
        // The C libraries' wrapper is younger than the system call (Linux 5.11); epoll_wait knows milliseconds only.
        // SAFETY: `events` has room for the count given, `limit` is a timespec or null, and both outlive the call; no
        // signal mask is passed.
        let filled = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                limit.as_ref().map_or(ptr::null(), ptr::from_ref),
                ptr::null::<libc::sigset_t>(),
                0usize,
            ) as libc::c_int
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
        let spec = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: timespec(at) };
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

/// Sleeps until a time on CLOCK_MONOTONIC, or until a signal comes.
pub(crate) fn sleep_until(at_ns: u64) {
    let at = timespec(at_ns);
    // SAFETY: `at` lives across the call; the time left is not asked for (there is none to tell for absolute times).
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, ptr::null_mut()) };
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

fn set_option(socket: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the option's value is an int that lives across the call.
    let result = unsafe {
        libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of::<libc::c_int>() as libc::socklen_t)
    };
    check(result).map(drop)
}

/// Has the kernel tell with [`receive`] when bytes came.
pub(crate) fn stamp_arrivals(socket: RawFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Has the kernel end a connection when nothing that was sent has been acknowledged for so long, and ask by
/// keep-alives while nothing is sent.
pub(crate) fn bury_after(socket: RawFd, after: Duration) -> io::Result<()> {
    let limit = |value: u128, most: u128| value.clamp(1, most) as libc::c_int;
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, limit(after.as_millis(), 1 << 30))?;
    // Whole seconds is all the kernel offers, and 32,767 of them at most.
    let third = limit(u128::from(after.as_secs()) / 3, 32_767);
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, third)?;
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, third)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)
}

/// Room for the one control message asked for, aligned as its header must be.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Reads from a stream socket. Besides the count: when the last segment that was read came, in ns of CLOCK_REALTIME,
/// if the kernel tells.
pub(crate) fn receive(socket: RawFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a zeroed msghdr is valid; it is then given pointers to memory that outlives the call, with its lengths.
    // The kernel fills in whole control messages, which the macros walk within the length it has set.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let count = libc::recvmsg(socket, &mut message, libc::MSG_DONTWAIT);
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut stamp = None;
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_TIMESTAMPNS {
                let at: libc::timespec = ptr::read_unaligned(libc::CMSG_DATA(header).cast());
                stamp = Some(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64);
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
        Ok((count as usize, stamp))
    }
}

/// Lets timers of the calling thread fire when they are due, not up to 50 µs later (the default slack).
pub(crate) fn precise_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
        thread::sleep,
        time::Duration,
    };

    use super::*;
    use brownout_base::clock::realtime_ns;

    #[test]
    fn bytes_carry_the_time_at_which_they_came_however_late_they_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        stamp_arrivals(socket.as_raw_fd()).unwrap();
        let mut buffer = [0; 16];
        // The kernel begins to stamp a moment after it was asked to.
        for attempt in 0.. {
            let before = realtime_ns();
            sender.write_all(b"first").unwrap();
            sender.write_all(b"last").unwrap();
            let after = realtime_ns();
            // This machine may stand still, but not for so long in every attempt.
            sleep(Duration::from_millis(50));
            let (count, stamp) = receive(socket.as_raw_fd(), &mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"firstlast");
            assert!(stamp.is_none_or(|at| at >= before), "{stamp:?} is before {before}");
            if stamp.is_some_and(|at| at <= after + 10_000_000) {
                break;
            }
            assert!(attempt < 100, "stamped {stamp:?}, sent between {before} and {after}");
        }
        let nothing = receive(socket.as_raw_fd(), &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        drop(sender);
        assert_eq!(receive(socket.as_raw_fd(), &mut buffer).unwrap(), (0, None));
    }
}
