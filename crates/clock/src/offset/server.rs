//! Answering what the monotonic clock shows here.

use std::{
    fmt, io,
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_machine::run_urgently;
use rustix::event::{PollFd, PollFlags};

use super::exchange::{Datagram, LENGTH};
use crate::ntp::{NtpError, datagram};

/// How soon it notices that it is to end.
const END_WITHIN: Duration = Duration::from_millis(100);
/// As probers': below an emulator that carries packets.
const FIFO_PRIORITY: u8 = 19;

/// A thread that answers questions for this machine's monotonic clock on a socket. Ends when dropped.
///
/// It keeps no state for anybody, and what is not such a question is ignored. Answers are as long as questions.
pub struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers on a bound socket, with `SCHED_FIFO` if that is asked for and to be had.
    ///
    /// # Errors
    /// [`NtpError::Start`] if the thread cannot be started.
    pub fn start(socket: UdpSocket, realtime: bool) -> Result<Server, NtpError> {
        datagram::stamp(&socket);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("clock-server".to_owned())
            .spawn(move || {
                run_urgently(realtime.then_some(FIFO_PRIORITY));
                while !stopped.load(Ordering::Relaxed) {
                    // Fails only for want of memory in the kernel: then a moment later.
                    if datagram::wait(&mut [PollFd::new(&socket, PollFlags::IN)], Some(END_WITHIN)).is_err() {
                        thread::sleep(END_WITHIN);
                    }
                    answer_all(&socket);
                }
            })
            .map_err(|source| NtpError::Start { action: "start a thread that answers for the clock", source })?;
        Ok(Server { stop, thread: Some(thread) })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic, if any, has been printed; there is nobody left to answer.
            let _ = thread.join();
        }
    }
}

fn answer_all(socket: &UdpSocket) {
    let mut buffer = [0; LENGTH + 1];
    loop {
        let received = match datagram::receive(socket, &mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // What the network says of an earlier answer.
            Err(_) => continue,
        };
        let came_ns = monotonic_ns().saturating_sub(received.age_ns);
        if let Some(asked) = Datagram::decode(&buffer[..received.length]) {
            let answer = Datagram { came_ns, answered_ns: monotonic_ns(), ..asked };
            // Who cannot be reached now asks again.
            let _ = datagram::send(socket, &answer.encode(), received.from);
        }
    }
}
