//! One connection: its socket, its buffers, and the slab of requests in flight.

mod etcd;

use std::{io, sync::Arc, time::Duration};

use brownout_base::clock::{monotonic_ns, realtime_ns};

use self::etcd::Etcd;
use super::{
    ledger::Ledger,
    operations::{Handle, Operations},
};
use crate::{
    Call, Coordinator, Request, RequestError, WireOptions,
    sys::{self, Epoll},
    transport::{LEAST_ROOM, Transport},
    wire::{
        self, Body, Garbage, Handshake, HandshakeError, Header, Inbox, Outbox, Progress, Sender, Statements, Version,
        answer::answer,
    },
};

/// Limit of bytes that are encoded but not sent. Beyond it an operation waits in its coordinator's queue, where it can
/// still be given up as never sent.
const MOST_UNSENT: usize = 256 * 1024;
/// Delay before the first attempt to reconnect, doubled after each failure.
const FIRST_BACKOFF_NS: u64 = 50_000_000;
const LONGEST_BACKOFF_NS: u64 = 1_000_000_000;

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not connected; the next attempt is at this time.
    Down { retry_ns: u64 },
    /// Becoming ready, or becoming ready again after the server has forgotten a statement; given up at this time.
    Opening { step: Step, deadline_ns: u64 },
    /// Accepts operations.
    Ready,
}

/// What an opening connection is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Connect,
    Startup,
    /// Of the statement with this number.
    Prepare(usize),
    /// HTTP/2's settings.
    Http,
    /// A token for the credentials.
    Token,
    /// Who answers, and who leads.
    Status,
    /// That its watches exist.
    Watches,
}

impl Step {
    /// Its name in error messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Step::Connect => "connecting",
            Step::Startup => "the CQL handshake",
            Step::Prepare(_) => "preparing a statement",
            Step::Http => "the HTTP/2 handshake",
            Step::Token => "logging in",
            Step::Status => "asking for etcd's status",
            Step::Watches => "beginning to watch",
        }
    }
}

/// Why a connection was lost.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) reason: String,
    /// The client closed it because the server's bytes made no sense.
    pub(super) garbage: bool,
    /// The server could not do it, but may be able to a moment later.
    pub(super) passing: bool,
}

impl From<io::Error> for Loss {
    fn from(error: io::Error) -> Self {
        Loss::because(error.to_string())
    }
}

impl From<Garbage> for Loss {
    fn from(garbage: Garbage) -> Self {
        Loss { garbage: true, ..Loss::because(format!("the server sent {garbage}")) }
    }
}

impl From<HandshakeError> for Loss {
    fn from(error: HandshakeError) -> Self {
        Loss { garbage: error == HandshakeError::Unexpected, ..Loss::because(error.to_string()) }
    }
}

impl Loss {
    pub(super) fn because(reason: impl Into<String>) -> Self {
        Loss { reason: reason.into(), garbage: false, passing: false }
    }
}

/// What a read yields besides the bytes.
pub(super) struct Filled {
    /// When the last of them arrived, on CLOCK_MONOTONIC.
    pub(super) at: u64,
    /// There may be more.
    pub(super) more: bool,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) handle: Handle,
    /// When the kernel took its last byte; 0 while it has not.
    pub(super) sent_ns: u64,
    /// The operation no longer waits for it; a late answer is still measured.
    pub(super) late: bool,
}

impl Open {
    /// How long the server has had all of it at `at`, ns.
    pub(super) fn service_ns(&self, at: u64) -> u64 {
        if self.sent_ns == 0 { 0 } else { at.saturating_sub(self.sent_ns) }
    }
}

pub(super) struct Connection {
    /// Index of its coordinator.
    pub(super) coordinator: usize,
    pub(super) state: State,
    statements: Statements,
    /// It has been ready since it was opened: its end is a lost connection, not a failed attempt to connect. If it is
    /// not ready now, it will be within a round trip, and operations wait for that.
    pub(super) established: bool,
    /// It is in the list of connections with something to write.
    pub(super) touched: bool,
    /// Time limit for a step of the handshake.
    pub(super) patience_ns: u64,
    dead_peer: Option<Duration>,
    target: Coordinator,
    options: Arc<WireOptions>,
    token: u64,
    transport: Option<Transport>,
    handshake: Option<Handshake>,
    /// What is spoken on it in place of CQL.
    etcd: Option<Box<Etcd>>,
    /// The epoll watches for writability: the kernel has not taken all output.
    watching: bool,
    backoff_ns: u64,
    inbox: Inbox,
    outbox: Outbox,
    /// By stream id.
    slots: Vec<Option<Open>>,
    free: Vec<u16>,
    /// Limit of requests in flight.
    most_open: usize,
}

impl Connection {
    pub(super) fn new(
        coordinator: usize,
        target: Coordinator,
        options: Arc<WireOptions>,
        token: u64,
        largest_answer: usize,
        patience_ns: u64,
        dead_peer: Option<Duration>,
    ) -> Self {
        Connection {
            coordinator,
            state: State::Down { retry_ns: 0 },
            statements: Statements::new(Version::V4),
            established: false,
            touched: false,
            patience_ns,
            dead_peer,
            target,
            options,
            token,
            transport: None,
            handshake: None,
            etcd: None,
            watching: false,
            backoff_ns: FIRST_BACKOFF_NS,
            inbox: Inbox::new(Sender::Server, largest_answer),
            outbox: Outbox::new(),
            slots: vec![None],
            free: Vec::new(),
            most_open: usize::from(wire::LAST_STREAM),
        }
    }

    /// Sets the limit of requests in flight; `None`: as many as there are streams.
    pub(super) fn allow(&mut self, most: Option<u32>) {
        let streams = usize::from(wire::LAST_STREAM);
        self.most_open = most.map_or(streams, |most| streams.min(most as usize));
    }

    pub(super) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Whether it is ready, and the kernel has taken all output.
    pub(super) fn is_idle(&self) -> bool {
        self.is_ready() && !self.watching && self.etcd.as_ref().is_none_or(|etcd| etcd.unsent() == 0)
    }

    /// Whether an operation can be put on it now.
    pub(super) fn has_room(&self) -> bool {
        self.is_ready()
            // If the kernel takes no more, operations wait where they can still be given up.
            && !self.watching
            && self.in_flight() < self.most_open
            && self.outbox.waiting() < MOST_UNSENT
            && self.etcd.as_ref().is_none_or(|etcd| etcd.has_room(self.in_flight(), MOST_UNSENT))
    }

    /// Requests in flight, those that nobody waits for any more included.
    fn in_flight(&self) -> usize {
        // Slot 0 belongs to no operation.
        self.slots.len() - 1 - self.free.len()
    }

    /// How many requests the kernel has not completely taken.
    pub(super) fn unsent(&self) -> usize {
        self.outbox.unsent() + self.etcd.as_ref().map_or(0, |etcd| etcd.unsent())
    }

    /// When its state needs attention; `u64::MAX` for never.
    pub(super) fn attention_ns(&self) -> u64 {
        match self.state {
            State::Down { retry_ns } => retry_ns,
            State::Opening { deadline_ns, .. } => deadline_ns,
            State::Ready => self.etcd.as_ref().map_or(u64::MAX, |etcd| etcd.asks_ns()),
        }
    }

    /// Starts connecting; the epoll reports when the attempt has ended.
    pub(super) fn open_socket(&mut self, epoll: &Epoll, now: u64) -> Result<(), Loss> {
        self.state = State::Opening { step: Step::Connect, deadline_ns: now + self.patience_ns };
        let tls = self.options.tls.as_ref();
        let transport = Transport::connect(self.target.address, tls, &self.target.name)?;
        if let Some(after) = self.dead_peer {
            sys::bury_after(&transport, after)?;
        }
        epoll.add(&transport, self.token, true)?;
        self.watching = true;
        self.transport = Some(transport);
        Ok(())
    }

    /// The attempt to connect has ended: starts the handshake, or returns why the attempt failed.
    pub(super) fn connected(&mut self) -> Result<(), Loss> {
        self.transport.as_ref().map(Transport::connected).transpose()?;
        if self.etcd.is_some() {
            return self.begin_http();
        }
        self.advance(Step::Startup);
        self.handshake = Some(Handshake::begin(Arc::clone(&self.options), &mut self.outbox));
        Ok(())
    }

    /// Handles an answer of the handshake and sends the next request. `true` if that was the last answer.
    pub(super) fn shake_hands(&mut self, header: Header, body: &Body) -> Result<bool, Loss> {
        let answer = answer(header, self.inbox.body(body))?;
        let handshake = self.handshake.as_mut().ok_or("an answer to a question that was not asked")?;
        let Progress { framing, done } = handshake.answered(&answer, &mut self.outbox)?;
        if let Some(framing) = framing {
            self.inbox.frame_as(framing);
        }
        match done {
            None => self.advance(Step::Startup),
            Some(version) => self.statements = Statements::new(version),
        }
        Ok(done.is_some())
    }

    /// Requests preparation of the statement with this number.
    pub(super) fn prepare(&mut self, number: usize, text: &str) {
        self.advance(Step::Prepare(number));
        let version = self.statements.version();
        self.outbox.control(|out| wire::prepare(out, version, text));
    }

    fn advance(&mut self, next: Step) {
        self.state = State::Opening { step: next, deadline_ns: monotonic_ns() + self.patience_ns };
    }

    /// Stores the id of the prepared statement with this number.
    pub(super) fn keep_prepared(&mut self, number: usize, id: &[u8], result_metadata_id: &[u8]) {
        self.statements.keep(number, id, result_metadata_id);
    }

    /// The handshake is done.
    pub(super) fn make_ready(&mut self) {
        self.state = State::Ready;
        self.handshake = None;
        self.established = true;
        self.backoff_ns = FIRST_BACKOFF_NS;
    }

    /// Puts a request on a free stream ([`Connection::has_room`] must hold) and returns the stream.
    ///
    /// # Errors
    /// The request cannot be written; then nothing has changed.
    pub(super) fn send(&mut self, open: Open, write: impl FnOnce(Request<'_>)) -> Result<u16, RequestError> {
        let stream = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u16
        });
        if let Err(error) = self.outbox.request(stream, &self.statements, write) {
            self.free.push(stream);
            return Err(error);
        }
        self.slots[usize::from(stream)] = Some(open);
        Ok(stream)
    }

    /// The same on a connection to etcd.
    ///
    /// # Errors
    /// Nothing was written, or the server takes no more requests; then nothing has changed.
    pub(super) fn call(&mut self, open: Open, write: impl FnOnce(Call<'_>)) -> Result<u16, RequestError> {
        let Some(etcd) = &mut self.etcd else { return Err(RequestError::Nothing) };
        let stream = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u16
        });
        if let Err(error) = etcd.operation(stream, write) {
            self.free.push(stream);
            return Err(error);
        }
        self.slots[usize::from(stream)] = Some(open);
        Ok(stream)
    }

    /// Writes what the kernel takes, and stamps the requests that it has completely taken.
    pub(super) fn flush(
        &mut self,
        epoll: &Epoll,
        operations: &mut Operations,
        ledger: &mut Ledger,
    ) -> Result<(), Loss> {
        let Some(transport) = &mut self.transport else { return Ok(()) };
        let slots = &mut self.slots;
        match &mut self.etcd {
            None => self.outbox.seal(),
            Some(etcd) => {
                etcd.send(&mut self.outbox)?;
                // From here on it is the server that keeps them waiting: it has no window for them.
                for stream in etcd.unsent_streams() {
                    if let Some(open) = slots[usize::from(stream)]
                        && let Some(operation) = operations.get_mut(open.handle)
                        && let Some(owed) = operation.owed_until(monotonic_ns())
                    {
                        ledger.lateness(operation.intended, owed);
                    }
                }
            }
        }
        while !self.outbox.is_empty() || transport.wants_write() {
            let sent_ns = monotonic_ns();
            let count = match transport.write(self.outbox.unwritten()) {
                Ok(0) if !self.outbox.is_empty() => return Err(Loss::because("the socket takes no more bytes")),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // From here on it is the server, or the network, that keeps them waiting.
                    for stream in self.outbox.unsent_streams() {
                        if let Some(open) = slots[usize::from(stream)]
                            && let Some(operation) = operations.get_mut(open.handle)
                            && let Some(owed) = operation.owed_until(sent_ns)
                        {
                            ledger.lateness(operation.intended, owed);
                        }
                    }
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            // Between the two nothing but this program can have kept it from writing.
            ledger.idled(sent_ns..monotonic_ns());
            self.outbox.wrote(count, |stream| {
                let Some(open) = &mut slots[usize::from(stream)] else { return };
                open.sent_ns = sent_ns;
                // An operation's later requests do not change when it was first sent.
                if let Some(operation) = operations.get_mut(open.handle)
                    && operation.first_sent == 0
                {
                    operation.first_sent = sent_ns.max(operation.intended);
                    if let Some(owed) = operation.owed_until(operation.first_sent) {
                        ledger.lateness(operation.intended, owed);
                    }
                }
            });
        }
        // During the TLS handshake, requests wait for the server's bytes and not for writability.
        let blocked = (transport.is_open() && !self.outbox.is_empty()) || transport.wants_write();
        if self.watching != blocked {
            self.watching = blocked;
            epoll.watch_writable(&*transport, self.token, blocked)?;
        }
        self.is_done().map_or(Ok(()), Err)
    }

    /// Whether what was read allows something to be written that had to wait for it.
    pub(super) fn owes(&self) -> bool {
        (self.options.tls.is_some() || self.etcd.is_some())
            && self
                .transport
                .as_ref()
                .is_some_and(|transport| transport.wants_write() || (transport.is_open() && !self.outbox.is_empty()))
    }

    /// Whether a segment has ever arrived before another that was to come first.
    pub(super) fn has_been_out_of_order(&mut self) -> bool {
        self.transport.as_mut().is_some_and(Transport::has_been_out_of_order)
    }

    /// Reads once; what is read did not arrive before `earliest_ns`.
    pub(super) fn fill(&mut self, earliest_ns: u64) -> Result<Filled, Loss> {
        let nothing = Filled { at: earliest_ns, more: false };
        let Some(transport) = &mut self.transport else { return Ok(nothing) };
        let room = self.inbox.room();
        debug_assert!(room.len() >= LEAST_ROOM);
        match transport.receive(room) {
            Ok((0, _)) => Err(Loss::because("the server closed the connection")),
            Ok((count, stamp)) => {
                let more = count == room.len();
                self.inbox.filled(count);
                let now = monotonic_ns();
                // The kernel's stamp is of CLOCK_REALTIME. Even if that clock has just been set, the bounds still hold.
                let age = stamp.map_or(0, |stamp| realtime_ns().saturating_sub(stamp));
                Ok(Filled { at: now.saturating_sub(age).max(earliest_ns).min(now), more })
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// The next whole frame of the input: its header, and where its body lies.
    pub(super) fn next_frame(&mut self) -> Result<Option<(Header, Body)>, Garbage> {
        self.inbox.next()
    }

    /// The body that [`Connection::next_frame`] found last.
    pub(super) fn body(&self, place: &Body) -> &[u8] {
        self.inbox.body(place)
    }

    /// The request on a stream.
    pub(super) fn on(&self, stream: u16) -> Result<Open, Garbage> {
        let slot = self.slots.get(usize::from(stream)).copied().flatten();
        slot.ok_or("an answer to a question that was not asked")
    }

    /// Removes the answered request from its stream, which is then free.
    pub(super) fn release(&mut self, stream: u16) {
        if let Some(open) = self.slots[usize::from(stream)].take() {
            if open.sent_ns == 0 {
                self.outbox.forget(stream);
                if let Some(etcd) = &mut self.etcd {
                    etcd.forget(stream);
                }
            }
            self.free.push(stream);
        }
    }

    /// The operation no longer waits for this request; its stream stays reserved for the late answer. Returns
    /// it as it was.
    pub(super) fn give_up(&mut self, stream: u16) -> Option<Open> {
        let open = self.slots.get_mut(usize::from(stream))?.as_mut()?;
        open.late = true;
        Some(*open)
    }

    /// Closes it, and returns the requests that were in flight, including late ones.
    pub(super) fn close(&mut self, now: u64) -> Vec<Open> {
        // Dropping the socket closes it, and the epoll forgets it.
        self.transport = None;
        self.handshake = None;
        if let Some(etcd) = &mut self.etcd {
            etcd.close();
        }
        self.watching = false;
        self.state = State::Down { retry_ns: now + self.backoff_ns };
        self.backoff_ns = (self.backoff_ns * 2).min(LONGEST_BACKOFF_NS);
        self.inbox.clear();
        self.outbox.clear();
        self.established = false;
        self.free.clear();
        let lost = self.slots.drain(..).flatten().collect();
        self.slots.push(None);
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, net::TcpListener};

    use super::{super::page::Shape, *};
    use crate::{Consistency, Parameters};

    #[test]
    fn an_answer_to_what_is_not_wholly_sent_leaves_nothing_to_the_next_user_of_its_stream() {
        // More than the kernel has room for on both sides.
        const LENGTH: usize = 12 << 20;
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        socket2::SockRef::from(&listener).set_recv_buffer_size(1 << 16).unwrap();
        let target = Coordinator { name: "n1".into(), address: listener.local_addr().unwrap() };
        let epoll = Epoll::new().unwrap();
        let mut connection = Connection::new(0, target, Arc::default(), 0, 16, 1_000_000_000, None);
        connection.open_socket(&epoll, monotonic_ns()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        connection.state = State::Ready;

        let (mut operations, shape) = (Operations::default(), Shape { coordinators: 1, names: 1, late_ns: 1 });
        let mut ledger = Ledger::new(0, 1_000_000_000, shape);
        let mut flush = |connection: &mut Connection| connection.flush(&epoll, &mut operations, &mut ledger).unwrap();
        let text = "x".repeat(LENGTH);
        let send = |connection: &mut Connection| {
            let open = Open { handle: Handle::of(0), sent_ns: 0, late: false };
            let parameters = Parameters::new(Consistency::One);
            assert_eq!(connection.send(open, |request| drop(request.query(&text, &parameters))).unwrap(), 1);
        };
        send(&mut connection);
        flush(&mut connection);
        assert_eq!((connection.on(1).unwrap().sent_ns, connection.unsent()), (0, 1));
        connection.release(1);
        send(&mut connection);

        let mut buffer = vec![0; 1 << 20];
        let mut read = 0;
        while read <= LENGTH + 1_000 {
            read += peer.read(&mut buffer).unwrap();
            flush(&mut connection);
        }
        assert_eq!(connection.on(1).unwrap().sent_ns, 0, "the end of the first request is not that of the second");
        while read < 2 * LENGTH {
            read += peer.read(&mut buffer).unwrap();
            flush(&mut connection);
        }
        assert!(connection.on(1).unwrap().sent_ns > 0 && connection.unsent() == 0);
    }

    #[test]
    fn every_step_of_a_handshake_has_the_whole_patience() {
        let target = Coordinator { name: "n1".into(), address: ([127, 0, 0, 1], 9).into() };
        let mut connection = Connection::new(0, target, Arc::default(), 0, 16, 1_000_000_000, None);
        for statement in 0..2 {
            // The step before took all its time but 1 ns.
            let deadline_ns = monotonic_ns() + 1;
            connection.state = State::Opening { step: Step::Startup, deadline_ns };
            connection.prepare(statement, "SELECT");
            assert!(connection.attention_ns() >= deadline_ns - 1 + connection.patience_ns);
        }
    }
}
