//! Whether each node answers, and the time it reports: asked many times a second, on the node itself.
//!
//! Each node is asked from within its own network, so no fault of the network can pass for one of the node; and each
//! question is sent in its time, whether those before it were answered or not. How a question is put into bytes is the
//! database's: see [`Heartbeat`].

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::clock::{monotonic_ns, realtime_ns};

use crate::{
    ClusterControl, ClusterError,
    database::{Answer, Clock, Connection, Heartbeat, Question},
    host::Network,
};

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
        for (index, (member, network)) in control.members().enumerate() {
            let node = member.name.clone();
            let mut asker = Asker {
                node: node.clone(),
                network: network.clone(),
                protocol: control.heartbeat(index, question),
                patience,
                session: None,
                open: VecDeque::new(),
                told: sender.clone(),
                next_number: 0,
            };
            let stop = Arc::clone(&started.stop);
            let thread = thread::Builder::new().name(format!("beat-{node}")).spawn(move || asker.run(every, &stop));
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
    number: i16,
    asked_ns: u64,
    asked_real_ns: i64,
}

/// A connection, and what has come over it so far.
struct Session {
    connection: Box<dyn Connection>,
    ready: bool,
    input: Vec<u8>,
}

struct Asker {
    node: String,
    network: Network,
    protocol: Box<dyn Heartbeat>,
    patience: Duration,
    session: Option<Session>,
    open: VecDeque<Open>,
    told: Sender<Beat>,
    next_number: i16,
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
        // Each connection is made from where the node is by then: it may have been started again in another network.
        if self.session.is_none()
            && self.network.enter().is_ok()
            && let Ok(connection) = self.protocol.connect(self.patience)
        {
            self.session = Some(Session { connection, ready: !self.protocol.greets(), input: Vec::new() });
        }
        let (asked_ns, asked_real_ns, number) = (monotonic_ns(), realtime_ns() as i64, self.next_number);
        self.next_number = self.next_number.checked_add(1).unwrap_or(0);
        self.open.push_back(Open { number, asked_ns, asked_real_ns });
        let sent = match &mut self.session {
            // Before the node has agreed to talk, there is no point in asking more.
            Some(session) if session.ready => session.connection.write_all(&self.protocol.question(number)),
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        if sent.is_err() {
            self.lost();
        }
    }

    /// Takes what comes within `time`.
    fn listen(&mut self, time: Duration) {
        let Some(session) = &mut self.session else {
            thread::sleep(time);
            return;
        };
        let mut bytes = [0; 4096];
        let read = session
            .connection
            .set_read_timeout(time.max(Duration::from_micros(100)))
            .and_then(|()| session.connection.read(&mut bytes));
        match read {
            Ok(1..) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return,
            Ok(0) | Err(_) => return self.lost(),
        }
        let (now_ns, real_ns) = (monotonic_ns(), realtime_ns() as i64);
        session.input.extend_from_slice(&bytes[..read.unwrap_or(0)]);
        loop {
            let Some(session) = &mut self.session else { return };
            match self.protocol.answer(&mut session.input) {
                Ok(Some(answer)) if session.ready => self.answered(answer, now_ns, real_ns),
                Ok(Some(_)) => session.ready = true,
                Ok(None) => return,
                Err(_) => return self.lost(),
            }
        }
    }

    fn answered(&mut self, answer: Answer, now_ns: u64, real_ns: i64) {
        let Some(place) = self.open.iter().position(|open| open.number == answer.number) else { return };
        let Some(open) = self.open.remove(place) else { return };
        let (offset, error) = offset(answer.clock, open.asked_real_ns, real_ns);
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

/// What a clock showed − what this machine's showed, ns, and within which error: it was read at some moment between asking and
/// answering, and rounded down.
fn offset(clock: Option<Clock>, asked_real_ns: i64, real_ns: i64) -> (Option<i64>, u64) {
    let middle = asked_real_ns + (real_ns - asked_real_ns) / 2;
    let rounding = clock.map_or(0, |clock| clock.resolution_ns / 2);
    let offset = clock.map(|clock| clock.shows_ns + rounding - middle);
    (offset, (real_ns - asked_real_ns).unsigned_abs() / 2 + rounding.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_known_within_half_of_its_resolution_and_half_of_the_time_to_answer() {
        let clock = Clock { shows_ns: 5_000_000, resolution_ns: 1_000_000 };
        assert_eq!(offset(Some(clock), 5_000_000, 5_400_000), (Some(300_000), 700_000));
        assert_eq!(offset(None, 0, 400_000), (None, 200_000));
    }
}
