//! The few kernel objects that the event loops are built on.

use std::{
    io,
    mem::MaybeUninit,
    num::NonZeroU64,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    ptr,
    time::Duration,
};

use rustix::{
    event::{
        EventfdFlags,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
        eventfd,
    },
    io::Errno,
    net::sockopt,
    thread::{clock_nanosleep_absolute, set_current_timer_slack},
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

/// What a descriptor is ready for, and the token it was registered with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    /// Something to read, or the end of the stream, or an error: reading tells which.
    pub(crate) readable: bool,
    /// Room to write, or a connection attempt has ended.
    pub(crate) writable: bool,
}

impl Ready {
    fn of(event: &Event) -> Self {
        let Event { flags, data, .. } = *event;
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        Ready {
            token: data.u64(),
            readable: broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
            writable: broken || flags.contains(EventFlags::OUT),
        }
    }
}

/// How many descriptors one wait can report as ready; the others follow in the next.
const MOST_READY: usize = 256;

/// A level-triggered epoll instance.
pub(crate) struct Epoll {
    fd: OwnedFd,
    ready: Vec<Ready>,
    interrupted: bool,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Epoll {
            fd: epoll::create(CreateFlags::CLOEXEC)?,
            ready: Vec::with_capacity(MOST_READY),
            interrupted: false,
        })
    }

    /// For the tokio runtime that this thread has entered: readable as long as something is ready.
    pub(crate) fn on_tokio(&self) -> io::Result<AsyncFd<OwnedFd>> {
        let fd = self.fd.try_clone()?;
        // SAFETY: `fd` is this epoll for as long as the runtime's object owns it, and nobody else can close it.
        unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
    }

    /// Watches `fd`; it is forgotten when it is closed.
    pub(crate) fn add(&self, fd: impl AsFd, token: u64, writable: bool) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, EventData::new_u64(token), interest(writable))?)
    }

    /// Starts or stops watching for writability.
    pub(crate) fn watch_writable(&self, fd: impl AsFd, token: u64, writable: bool) -> io::Result<()> {
        Ok(epoll::modify(&self.fd, fd, EventData::new_u64(token), interest(writable))?)
    }

    /// From now on tells of errors, and of room to write, but of nothing to read.
    pub(crate) fn ignore_readable(&self, fd: impl AsFd, token: u64, writable: bool) -> io::Result<()> {
        let flags = if writable { EventFlags::OUT } else { EventFlags::empty() };
        Ok(epoll::modify(&self.fd, fd, EventData::new_u64(token), flags)?)
    }

    /// Waits until something is ready or the time has passed (without one: for ever). A signal ends the wait early, and
    /// what has become ready while it stopped the process is reported all the same: a wait without a time is not
    /// interrupted.
    pub(crate) fn wait(&mut self, limit_ns: Option<u64>) -> io::Result<()> {
        self.ready.clear();
        // To the nanosecond: epoll_pwait2, which rustix takes for granted with its feature `linux_5_11`.
        let mut events = [const { MaybeUninit::<Event>::uninit() }; MOST_READY];
        let waited = epoll::wait(&self.fd, &mut events[..], limit_ns.map(timespec).as_ref());
        self.interrupted = matches!(waited, Err(Errno::INTR));
        let found = if self.interrupted { epoll::wait(&self.fd, &mut events[..], Some(&timespec(0))) } else { waited };
        let (found, _) = found?;
        self.ready.extend(found.iter().map(Ready::of));
        Ok(())
    }

    /// Whether a signal has ended the last wait: the process may have stood still in it.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// How many descriptors the last wait found ready.
    pub(crate) fn count(&self) -> usize {
        self.ready.len()
    }

    /// The `index`-th of them.
    pub(crate) fn ready(&self, index: usize) -> Ready {
        self.ready[index]
    }
}

fn interest(writable: bool) -> EventFlags {
    let reading = EventFlags::IN | EventFlags::RDHUP;
    if writable { reading | EventFlags::OUT } else { reading }
}

/// A timer on CLOCK_MONOTONIC with nanosecond deadlines (timerfd), readable in an [`Epoll`] once it is due.
pub(crate) struct Timer {
    fd: OwnedFd,
    armed: u64,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Timer { fd, armed: 0 })
    }

    /// Sets the deadline (`u64::MAX` for none); a deadline in the past is due at once. Setting a deadline also
    /// clears the readiness of the previous one, so the timer need never be read.
    pub(crate) fn arm(&mut self, deadline_ns: u64) -> io::Result<()> {
        if deadline_ns == self.armed {
            return Ok(());
        }
        let at = if deadline_ns == u64::MAX { 0 } else { deadline_ns.max(1) };
        let once = Itimerspec { it_interval: timespec(0), it_value: timespec(at) };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)?;
        self.armed = deadline_ns;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Wakes an [`Epoll`] from another thread (eventfd).
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Waker(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes the epoll return. A full counter means that a wake-up is already due.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Consumes all wake-ups so far.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sleeps until a time on CLOCK_MONOTONIC, or until a signal comes.
pub(crate) fn sleep_until(at_ns: u64) {
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(at_ns));
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Asks the kernel for the arrival times that [`receive`] returns.
pub(crate) fn stamp_arrivals(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // rustix has no name for this option.
    // SAFETY: the option's value is an int that lives across the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel end a connection when sent data has not been acknowledged for this long, and probe with keep-alives
/// while nothing is sent.
pub(crate) fn bury_after(socket: impl AsFd, after: Duration) -> io::Result<()> {
    sockopt::set_tcp_user_timeout(&socket, after.as_millis().clamp(1, 1 << 30) as u32)?;
    // The kernel only takes whole seconds, at most 32,767.
    let third = Duration::from_secs((after.as_secs() / 3).clamp(1, 32_767));
    sockopt::set_tcp_keepidle(&socket, third)?;
    sockopt::set_tcp_keepintvl(&socket, third)?;
    Ok(sockopt::set_socket_keepalive(&socket, true)?)
}

/// Room for the one control message asked for, aligned as its header must be.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Reads from a stream socket. Besides the count, returns when the last segment read arrived, in ns of CLOCK_REALTIME,
/// if the kernel reports it.
///
/// rustix only reads other kinds of control messages.
pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
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
        let count = libc::recvmsg(socket.as_fd().as_raw_fd(), &mut message, libc::MSG_DONTWAIT);
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

/// How many segments have arrived at a TCP socket while one before them was missing; `None` where the kernel does not count them (before
/// Linux 5.4).
///
/// rustix does not read this.
pub(crate) fn out_of_order(socket: impl AsFd) -> Option<u32> {
    const WITHIN: usize = std::mem::offset_of!(libc::tcp_info, tcpi_rcv_ooopack);
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes up to `length` bytes of plain numbers, for which zeros are valid, and says how many.
    let (result, info) = unsafe {
        let result = libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut length,
        );
        (result, info.assume_init())
    };
    (result == 0 && length as usize >= WITHIN + size_of::<u32>()).then_some(info.tcpi_rcv_ooopack)
}

/// Lets timers of the calling thread fire when they are due, not up to 50 µs later (the default slack).
pub(crate) fn precise_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
        thread::sleep,
        time::{Duration, Instant},
    };

    use super::*;
    use brownout_base::clock::realtime_ns;

    #[test]
    fn bytes_carry_the_time_at_which_they_came_however_late_they_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // Else the second part waits for the first to be acknowledged, which takes 40 ms.
        sender.set_nodelay(true).unwrap();
        let (socket, _) = listener.accept().unwrap();
        stamp_arrivals(&socket).unwrap();
        let mut buffer = [0; 16];
        // How long after the sending began they came, if that is stamped, and were read, in ns.
        let mut round = || {
            let before = realtime_ns();
            sender.write_all(b"first").unwrap();
            sender.write_all(b"last").unwrap();
            sleep(Duration::from_millis(50));
            let read = realtime_ns();
            let (count, stamp) = receive(&socket, &mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"firstlast");
            assert!(stamp.is_none_or(|at| at >= before), "{stamp:?} is before {before}");
            (stamp.map(|at| at - before), read - before)
        };
        // The kernel starts stamping a moment after it was asked to, and then goes on.
        let begun = Instant::now();
        while round().0.is_none() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the kernel stamps nothing");
        }
        let rounds: Vec<(Option<u64>, u64)> = (0..20).map(|_| round()).collect();
        // On a machine that stands still some may come late; with the time of reading as their stamp all would.
        let soon = rounds.iter().filter(|(came, read)| came.is_some_and(|came| came < read / 2)).count();
        assert!(soon > rounds.len() / 2, "only {soon} came long before they were read: {rounds:?}");
        let nothing = receive(&socket, &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        drop(sender);
        assert_eq!(receive(&socket, &mut buffer).unwrap(), (0, None));
    }
}
