//! Whether each node answers, and the time it reports: asked many times a second, on the node itself.
//!
//! Each node is asked from within its own network, so no fault of the network can pass for one of the node; and each
//! question is sent in its time, whether those before it were answered or not.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::clock::{monotonic_ns, realtime_ns};

use super::{
    cql::{self, Input},
    view::CQL_PORT,
};
use crate::{ClusterControl, ClusterError};

/// What nodes are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Only whether they answer: next to nothing to do for them.
    Alive,
    /// What time it is.
    Clock,
}

/// The coordinator's wall clock, in milliseconds since 1970, read while it answers.
const CLOCK: &str = "SELECT toUnixTimestamp(currentTimestamp()) FROM system.local";
/// What the clock is rounded down to.
const RESOLUTION_NS: i64 = 1_000_000;

/// One question to one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The node.
    pub node: String,
    /// When it was asked, `CLOCK_MONOTONIC`.
    pub asked_ns: u64,
    /// When it answered; none if not within the patience.
    pub answered_ns: Option<u64>,
    /// What its clock showed − what this machine's clock showed, ns; none without an answer, or if it was not asked.
    pub offset_ns: Option<i64>,
    /// The true offset lies within `offset_ns` ± this.
    pub error_ns: u64,
}

/// Questions to every node, until this is dropped.
#[derive(Debug)]
pub struct Heartbeats {
    beats: Receiver<Beat>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Heartbeats {
    /// Asks each node once in every `every`; what is not answered within `patience` is not answered.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        control: &ClusterControl,
        question: Question,
        every: Duration,
        patience: Duration,
    ) -> Result<Heartbeats, ClusterError> {
        let (sender, beats) = mpsc::channel();
        let mut started = Heartbeats { beats, stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        for (member, network) in control.members() {
            let node = member.name.clone();
            let mut asker = Asker {
                node: node.clone(),
                address: SocketAddr::new(member.address.into(), CQL_PORT),
                question,
                patience,
                session: None,
                open: VecDeque::new(),
                told: sender.clone(),
                next_stream: 0,
            };
            let (network, stop) = (network.clone(), Arc::clone(&started.stop));
            let run = move || {
                if network.enter().is_ok() {
                    asker.run(every, &stop);
                }
            };
            let thread = thread::Builder::new().name(format!("beat-{node}")).spawn(run);
            started.threads.push(thread.map_err(|source| ClusterError::Network { node, source })?);
        }
        Ok(started)
    }

    /// What was answered, or given up, since this was last called.
    pub fn drain(&self) -> Vec<Beat> {
        self.beats.try_iter().collect()
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

/// A question that is open.
struct Open {
    stream: i16,
    asked_ns: u64,
    asked_real_ns: i64,
}

/// A connection, and what has come over it so far.
struct Session {
    stream: TcpStream,
    ready: bool,
    input: Vec<u8>,
}

struct Asker {
    node: String,
    address: SocketAddr,
    question: Question,
    patience: Duration,
    session: Option<Session>,
    open: VecDeque<Open>,
    told: Sender<Beat>,
    next_stream: i16,
}

impl Asker {
    fn run(&mut self, every: Duration, stop: &AtomicBool) {
        let every_ns = every.as_nanos() as u64;
        let mut next_ns = monotonic_ns();
        while !stop.load(Ordering::Relaxed) {
            self.ask();
            next_ns += every_ns;
            loop {
                self.give_up();
                let left = next_ns.saturating_sub(monotonic_ns());
                if left == 0 || stop.load(Ordering::Relaxed) {
                    break;
                }
                self.listen(Duration::from_nanos(left));
            }
            // After a stall the missed questions are left out: asked all at once, they would say the same.
            next_ns = next_ns.max(monotonic_ns().saturating_sub(every_ns));
        }
    }

    fn ask(&mut self) {
        if self.session.is_none() {
            self.session = self.connect().ok();
        }
        let (asked_ns, asked_real_ns, stream) = (monotonic_ns(), realtime_ns() as i64, self.next_stream);
        self.next_stream = self.next_stream.checked_add(1).unwrap_or(0);
        self.open.push_back(Open { stream, asked_ns, asked_real_ns });
        let question = match self.question {
            Question::Alive => cql::options(stream),
            Question::Clock => cql::query(stream, CLOCK),
        };
        let sent = match &mut self.session {
            // Before the node has agreed to talk, there is no point in asking more.
            Some(session) if session.ready => session.stream.write_all(&question),
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        if sent.is_err() {
            self.lost();
        }
    }

    fn connect(&self) -> io::Result<Session> {
        let mut stream = TcpStream::connect_timeout(&self.address, self.patience)?;
        stream.set_nodelay(true)?;
        // A node that stands still takes nothing: a full buffer must not hold us up.
        stream.set_write_timeout(Some(Duration::from_millis(50)))?;
        stream.write_all(&cql::hello())?;
        Ok(Session { stream, ready: false, input: Vec::new() })
    }

    /// Takes what comes within `time`.
    fn listen(&mut self, time: Duration) {
        let Some(session) = &mut self.session else {
            thread::sleep(time);
            return;
        };
        let mut bytes = [0; 4096];
        let read = session
            .stream
            .set_read_timeout(Some(time.max(Duration::from_micros(100))))
            .and_then(|()| session.stream.read(&mut bytes));
        match read {
            Ok(1..) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return,
            Ok(0) | Err(_) => return self.lost(),
        }
        let (now_ns, real_ns) = (monotonic_ns(), realtime_ns() as i64);
        session.input.extend_from_slice(&bytes[..read.unwrap_or(0)]);
        loop {
            let Some(session) = &mut self.session else { return };
            match cql::take_answer(&mut session.input) {
                Ok(Some((stream, answer))) => {
                    if session.ready {
                        self.answered(stream, answer, now_ns, real_ns);
                    } else {
                        session.ready = true;
                    }
                }
                Ok(None) => return,
                Err(_) => return self.lost(),
            }
        }
    }

    fn answered(&mut self, stream: i16, answer: Option<Vec<u8>>, now_ns: u64, real_ns: i64) {
        let Some(place) = self.open.iter().position(|open| open.stream == stream) else { return };
        let Some(open) = self.open.remove(place) else { return };
        let shown = answer.as_deref().and_then(clock_of);
        // The clock was read at some moment between asking and answering, and rounded down.
        let middle = open.asked_real_ns + (real_ns - open.asked_real_ns) / 2;
        let offset = shown.map(|shown| shown + RESOLUTION_NS / 2 - middle);
        let error = (real_ns - open.asked_real_ns).unsigned_abs() / 2 + RESOLUTION_NS.unsigned_abs() / 2;
        self.tell(open.asked_ns, Some(now_ns), offset, error);
    }

    fn give_up(&mut self) {
        let patience = self.patience.as_nanos() as u64;
        while let Some(open) = self.open.front()
            && monotonic_ns().saturating_sub(open.asked_ns) > patience
        {
            let asked_ns = open.asked_ns;
            self.open.pop_front();
            self.tell(asked_ns, None, None, 0);
        }
    }

    /// The connection is gone, and every answer that was to come over it.
    fn lost(&mut self) {
        self.session = None;
        for open in std::mem::take(&mut self.open) {
            self.tell(open.asked_ns, None, None, 0);
        }
    }

    fn tell(&self, asked_ns: u64, answered_ns: Option<u64>, offset_ns: Option<i64>, error_ns: u64) {
        // Nobody listens any more when all is about to end.
        let _ = self.told.send(Beat { node: self.node.clone(), asked_ns, answered_ns, offset_ns, error_ns });
    }
}

/// The `bigint` of the only row, in ns.
fn clock_of(body: &[u8]) -> Option<i64> {
    let rows = cql::rows(body)?;
    let value = rows.first()?.first()?.as_ref()?;
    let ms = Input(value).long()?;
    ms.checked_mul(RESOLUTION_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_only_value_of_the_only_row() {
        let body = b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x05";
        assert_eq!(clock_of(body), Some(5_000_000));
        assert_eq!(clock_of(b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\0"), None);
    }
}
