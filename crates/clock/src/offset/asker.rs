//! Asking another machine what its monotonic clock shows, all the time.

use std::{
    collections::VecDeque,
    fmt, io,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_machine::run_urgently;
use rustix::event::{PollFd, PollFlags};

use super::{
    Exchange, Offsets,
    exchange::{Datagram, LENGTH},
};
use crate::ntp::{NtpError, datagram};

/// Between two questions. Most of them queue somewhere; of so many, one in a second or two does not.
const EVERY_NS: u64 = 250_000_000;
/// Nothing is asked more closely than this at the beginning, when nothing is known.
const FIRST_EVERY_NS: u64 = 20_000_000;
/// So many are asked closely.
const FIRST: u64 = 16;
/// Exchanges that are kept: an hour and more.
const KEPT: usize = 20_000;
/// As probers': below an emulator that carries packets.
const FIFO_PRIORITY: u8 = 19;

/// A thread that asks one server. Ends when dropped.
pub struct Asker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    exchanges: Mutex<VecDeque<Exchange>>,
}

impl Shared {
    /// Exchanges are put there whole, so a panic of another thread has broken nothing.
    fn exchanges(&self) -> MutexGuard<'_, VecDeque<Exchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asker {
    /// Asks `server` over a bound socket of its family, with `SCHED_FIFO` if that is asked for and to be had.
    ///
    /// # Errors
    /// [`NtpError::Start`] if the thread cannot be started.
    pub fn start(socket: UdpSocket, server: SocketAddr, realtime: bool) -> Result<Asker, NtpError> {
        datagram::stamp(&socket);
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("clock-asker".to_owned())
            .spawn(move || {
                run_urgently(realtime.then_some(FIFO_PRIORITY));
                ask_all(&socket, server, &own);
            })
            .map_err(|source| NtpError::Start { action: "start a thread that asks for a clock", source })?;
        Ok(Asker { shared, thread: Some(thread) })
    }

    /// All exchanges since it was started, the oldest first; of more than some hours the newest.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.exchanges().iter().copied().collect()
    }

    /// What they say by now.
    pub fn offsets(&self) -> Offsets {
        Offsets::of(self.exchanges())
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("exchanges", &self.shared.exchanges().len()).finish_non_exhaustive()
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic, if any, has been printed.
            let _ = thread.join();
        }
    }
}

fn ask_all(socket: &UdpSocket, server: SocketAddr, shared: &Shared) {
    let (mut number, mut due_ns) = (0_u64, monotonic_ns());
    // Questions without an answer: number and T1.
    let mut open: VecDeque<(u64, u64)> = VecDeque::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let now_ns = monotonic_ns();
        if now_ns >= due_ns {
            let asked_ns = monotonic_ns();
            let question = Datagram { number, asked_ns, came_ns: 0, answered_ns: 0 };
            // A cut link may heal, a full queue empty.
            if datagram::send(socket, &question.encode(), server).is_ok() {
                open.push_back((number, asked_ns));
            }
            number += 1;
            due_ns = now_ns + if number < FIRST { FIRST_EVERY_NS } else { EVERY_NS };
            // An answer that comes so late is of no use.
            while open.len() as u64 > FIRST {
                open.pop_front();
            }
        }
        let left = Duration::from_nanos(due_ns.saturating_sub(monotonic_ns()));
        if datagram::wait(&mut [PollFd::new(socket, PollFlags::IN)], Some(left)).is_err() {
            thread::sleep(left);
        }
        hear_all(socket, server, &mut open, shared);
    }
}

fn hear_all(socket: &UdpSocket, server: SocketAddr, open: &mut VecDeque<(u64, u64)>, shared: &Shared) {
    let mut buffer = [0; LENGTH + 1];
    loop {
        let received = match datagram::receive(socket, &mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // What the network says of an earlier question.
            Err(_) => continue,
        };
        let heard_ns = monotonic_ns().saturating_sub(received.age_ns);
        let answer = Datagram::decode(&buffer[..received.length]).filter(|_| received.from == server);
        let Some(Datagram { number, asked_ns, came_ns, answered_ns }) = answer else { continue };
        // Each is taken once, and with the T1 that was really sent.
        let Some(at) = open.iter().position(|asked| *asked == (number, asked_ns)) else { continue };
        open.remove(at);
        let exchange = Exchange { asked_ns, came_ns, answered_ns, heard_ns };
        if heard_ns >= asked_ns {
            let mut exchanges = shared.exchanges();
            if exchanges.len() >= KEPT {
                exchanges.pop_front();
            }
            exchanges.push_back(exchange);
        }
    }
}
