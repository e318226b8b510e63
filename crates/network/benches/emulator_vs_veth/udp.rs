//! A paced stream of small datagrams between two hosts, and how long each took.

use std::{
    io,
    mem::zeroed,
    net::UdpSocket,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use brownout_base::clock::realtime_ns;
use hdrhistogram::Histogram;

use super::Hosts;

/// Bytes of a datagram: 60 as an IP packet.
const SIZE: usize = 32;
/// Datagrams of one system call, at most.
const BATCH: usize = 64;
/// What the receiving socket may hold: half a million datagrams.
const RECEIVE_BUFFER: libc::c_int = 256 << 20;
/// Datagrams that are due within this go together.
const SLOT: Duration = Duration::from_micros(100);
/// Generator and sink are urgent, below all of the emulator; else this would measure them.
const FIFO_PRIORITY: u8 = 10;

/// What became of a stream.
pub struct Stream {
    pub sent: u64,
    pub received: u64,
    /// Time that sending took.
    pub took: Duration,
    /// From just before the sending system call to the receiving kernel's stamp, ns, without the delay asked for.
    pub beyond: Histogram<u64>,
}

impl Stream {
    pub fn sent_per_s(&self) -> f64 {
        self.sent as f64 / self.took.as_secs_f64()
    }

    pub fn received_per_s(&self) -> f64 {
        self.received as f64 / self.took.as_secs_f64()
    }

    pub fn lost_share(&self) -> f64 {
        1.0 - self.received as f64 / self.sent.max(1) as f64
    }
}

/// The time between the departures of a stream of this rate.
pub fn apart(rate: u32) -> Duration {
    (Duration::from_secs(1) / rate).max(SLOT)
}

/// Sends `rate` datagrams a second from host 0 to host 1, in time slots of 100 µs, and waits until all must have arrived,
/// with `delay` on their way.
pub fn stream(hosts: &impl Hosts, rate: u32, lasts: Duration, delay: Duration) -> Stream {
    let bind = |host: usize| hosts.run(host, || UdpSocket::bind((hosts.address(host), 0)).unwrap());
    let (source, sink) = (bind(0), bind(1));
    source.connect(sink.local_addr().unwrap()).unwrap();
    set_option(&sink, libc::SO_TIMESTAMPNS, 1);
    set_option(&sink, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER);
    set_option(&source, libc::SO_SNDBUFFORCE, 8 << 20);
    sink.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let collector = thread::spawn({
        let stop = Arc::clone(&stop);
        move || collect(&sink, delay, &stop)
    });
    let generator = thread::spawn(move || generate(&source, rate, lasts));
    let (sent, took) = generator.join().expect("the generator");
    thread::sleep(delay + Duration::from_millis(200));
    stop.store(true, Ordering::Relaxed);
    let beyond = collector.join().expect("the sink");
    Stream { sent, received: beyond.len(), took, beyond }
}

fn generate(socket: &UdpSocket, rate: u32, lasts: Duration) -> (u64, Duration) {
    brownout_machine::run_urgently(FIFO_PRIORITY);
    let mut datagrams = [[0u8; SIZE]; BATCH];
    let mut parts = datagrams.each_mut().map(|one| libc::iovec { iov_base: one.as_mut_ptr().cast(), iov_len: SIZE });
    let mut messages: Vec<libc::mmsghdr> = parts.iter_mut().map(message).collect();
    let (begin, mut sent) = (Instant::now(), 0u64);
    loop {
        let since = begin.elapsed();
        if since >= lasts {
            return (sent, since);
        }
        let due = (since.as_secs_f64() * f64::from(rate)) as u64;
        let batch = due.saturating_sub(sent).min(BATCH as u64) as usize;
        if batch == 0 {
            // The next is due then; several of the next slot go together.
            let next = Duration::from_secs_f64((sent + 1) as f64 / f64::from(rate));
            thread::sleep((next.saturating_sub(since)).max(SLOT));
            continue;
        }
        let now = realtime_ns().to_ne_bytes();
        // SAFETY: the parts point to `datagrams`, each of `SIZE` bytes, which nobody else uses meanwhile.
        parts[..batch].iter().for_each(|part| unsafe {
            part.iov_base.cast::<u8>().copy_from_nonoverlapping(now.as_ptr(), now.len());
        });
        // SAFETY: the messages point to `parts`, which point to `datagrams`; both outlive the call.
        let taken = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), batch as libc::c_uint, 0) };
        assert!(taken > 0, "cannot send: {}", io::Error::last_os_error());
        sent += taken as u64;
    }
}

fn collect(socket: &UdpSocket, delay: Duration, stop: &AtomicBool) -> Histogram<u64> {
    brownout_machine::run_urgently(FIFO_PRIORITY);
    let delay_ns = delay.as_nanos() as u64;
    let mut beyond = Histogram::new(3).expect("3 is within the 0 to 5 digits of a histogram");
    let mut datagrams = [[0u8; SIZE]; BATCH];
    // Room for one timestamp each; u64 for the alignment that control messages need.
    let mut control = [[0u64; 4]; BATCH];
    let mut parts = datagrams.each_mut().map(|one| libc::iovec { iov_base: one.as_mut_ptr().cast(), iov_len: SIZE });
    let mut messages: Vec<libc::mmsghdr> = parts.iter_mut().map(message).collect();
    loop {
        for (message, room) in messages.iter_mut().zip(&mut control) {
            message.msg_hdr.msg_control = room.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of_val(room) as _;
        }
        // SAFETY: the messages point to buffers that are writable for the lengths stated and outlive the call.
        let count = unsafe {
            let messages = messages.as_mut_ptr();
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages,
                BATCH as libc::c_uint,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        if count <= 0 {
            if stop.load(Ordering::Relaxed) {
                return beyond;
            }
            continue;
        }
        for (message, part) in messages[..count as usize].iter().zip(&parts) {
            // SAFETY: the kernel wrote the datagram, whose first eight bytes are the sender's clock.
            let sent_ns = unsafe { part.iov_base.cast::<u64>().read_unaligned() };
            let stamp = stamp_ns(&message.msg_hdr).expect("a receive time from the kernel");
            // It grows as needed.
            let _ = beyond.record(stamp.saturating_sub(sent_ns).saturating_sub(delay_ns));
        }
    }
}

fn message(part: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: all bytes zero is a valid `mmsghdr`.
    let mut message: libc::mmsghdr = unsafe { zeroed() };
    message.msg_hdr.msg_iov = part;
    message.msg_hdr.msg_iovlen = 1;
    message
}

/// `SCM_TIMESTAMPNS` (socket(7)) of a received message.
fn stamp_ns(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel filled the control buffer in; the only option set on the socket is this one.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message).as_ref()?;
        if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            return None;
        }
        let time = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
        Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

fn set_option(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) {
    let (fd, length) = (socket.as_raw_fd(), size_of_val(&value) as libc::socklen_t);
    // SAFETY: `value` is readable for the length stated.
    let set = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, std::ptr::from_ref(&value).cast(), length) };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());
}
