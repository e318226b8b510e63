//! Answering for many hosts what time it is there.

use std::{
    fmt,
    fs::File,
    io::{self, Write},
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use super::{Mode, NtpError, Packet, Short, Timestamp, datagram};
use crate::HostClock;

/// Far from a reference clock, as befits one that is wrong on purpose; near enough to be believed (below 16).
const STRATUM: u8 = 10;
/// "The local clock", of old.
const REFERENCE: [u8; 4] = *b"LOCL";
/// 2⁻²⁰ s, about 1 µs: above what reading the clock takes.
const PRECISION: i8 = -20;
/// Claimed against the (absent) reference. Clients refuse servers that claim more than a second or so.
const DISPERSION_NS: u64 = 1_000_000;
/// When the clock claims to have been set last, before now. Clients doubt a server whose clock was never set, or long ago.
const LAST_SET_NS: u64 = 1_000_000_000;

/// How many requests one host is answered before the next host's turn.
const TURN: usize = 64;
/// After how many errors in a row nothing more is expected of a socket; else it might be asked for ever at full speed.
const HOPELESS: u32 = 1000;

/// A thread that answers NTP requests (mode 3) on many sockets, each by the clock of its host. Ends when dropped.
///
/// The thread keeps no state for anybody, and what is not a client's request of NTP versions 1 to 4 is ignored.
pub struct Responder {
    answered: Arc<[AtomicU64]>,
    /// Written to, it ends the thread.
    stop: File,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Answers on each of these bound sockets (in whichever network namespace each was made; IPv4 or IPv6) by the clock
    /// beside it. Bind a socket to the address of its host: if it is bound to all addresses, the answers come from the one
    /// that routing chooses, and a client that asked another one will not accept them.
    ///
    /// # Errors
    /// [`NtpError::Start`] if the thread cannot be started.
    pub fn start(hosts: Vec<(UdpSocket, HostClock)>) -> Result<Self, NtpError> {
        let failed = |action| move |source| NtpError::Start { action, source };
        let event = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| failed("make an event")(errno.into()))?;
        let stop = File::from(event);
        let stopped = stop.try_clone().map_err(failed("share an event"))?;
        for (socket, _) in &hosts {
            datagram::stamp(socket);
        }
        let answered: Arc<[AtomicU64]> = hosts.iter().map(|_| AtomicU64::new(0)).collect();
        let counts = Arc::clone(&answered);
        let thread = thread::Builder::new()
            .name("ntp".to_owned())
            .spawn(move || serve(&hosts, &stopped, &counts))
            .map_err(failed("start a thread"))?;
        Ok(Responder { answered, stop, thread: Some(thread) })
    }

    /// How many requests were answered on the socket of this number, in the order given; zero if there is none.
    pub fn answered(&self, socket: usize) -> u64 {
        self.answered.get(socket).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("answered", &self.answered).finish_non_exhaustive()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        // Cannot fail: a counter has room for this.
        let _ = (&self.stop).write_all(&1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // Its panic, if any, has been printed; there is nobody left to answer.
            let _ = thread.join();
        }
    }
}

fn serve(hosts: &[(UdpSocket, HostClock)], stopped: &File, answered: &[AtomicU64]) {
    let mut descriptors: Vec<_> = hosts.iter().map(|(socket, _)| PollFd::new(socket, PollFlags::IN)).collect();
    descriptors.push(PollFd::new(stopped, PollFlags::IN));
    let mut errors = vec![0_u32; hosts.len()];
    loop {
        // Fails only for want of memory in the kernel: then a moment later.
        if datagram::wait(&mut descriptors, None).is_err() {
            thread::sleep(std::time::Duration::from_millis(10));
            continue;
        }
        if !descriptors[hosts.len()].revents().is_empty() {
            return;
        }
        for (number, (socket, clock)) in hosts.iter().enumerate() {
            if descriptors[number].revents().is_empty() {
                continue;
            }
            match answer_all(socket, clock, &answered[number]) {
                Ok(()) => errors[number] = 0,
                Err(_) => errors[number] += 1,
            }
            if errors[number] >= HOPELESS {
                // The end is watched for in its place.
                descriptors[number].set_fd(stopped);
            }
        }
    }
}

/// Answers what has come on one socket, up to a turn's worth.
fn answer_all(socket: &UdpSocket, clock: &HostClock, answered: &AtomicU64) -> io::Result<()> {
    let mut buffer = [0; 512];
    for _ in 0..TURN {
        let received = match datagram::receive(socket, &mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        };
        let arrived_ns = clock.realtime_ns().saturating_sub(received.age_ns);
        let Some(answer) = buffer.get(..received.length).and_then(|request| answer_to(request, arrived_ns)) else {
            continue;
        };
        // Counted first: whoever has the answer finds it counted.
        answered.fetch_add(1, Ordering::Relaxed);
        let answer = Packet { transmit: Timestamp::from_unix_ns(clock.realtime_ns()), ..answer };
        // A full queue would block this thread, and with it all hosts, if the caller's socket blocks: hence no
        // `send_to`. Who cannot be reached now asks again.
        if datagram::send(socket, &answer.encode(), received.from).is_err() {
            answered.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// The answer to a request, but for the time of sending. `None` if it is no client's request.
fn answer_to(request: &[u8], arrived_ns: u64) -> Option<Packet> {
    let request = Packet::decode(request)?;
    if request.mode != Mode::Client || !(1..=4).contains(&request.version) {
        return None;
    }
    Some(Packet {
        leap: 0,
        version: request.version,
        mode: Mode::Server,
        stratum: STRATUM,
        poll: request.poll,
        precision: PRECISION,
        root_delay: Short(0),
        root_dispersion: Short::from_ns(DISPERSION_NS),
        reference_id: REFERENCE,
        reference: Timestamp::from_unix_ns(arrived_ns.saturating_sub(LAST_SET_NS)),
        origin: request.transmit,
        receive: Timestamp::from_unix_ns(arrived_ns),
        transmit: Timestamp::default(),
    })
}
