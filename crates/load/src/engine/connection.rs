//! One connection: its socket, its buffers, and the slab of requests that are on their way.

use std::{
    collections::VecDeque,
    io::{self, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsRawFd,
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};

use super::{
    ledger::Ledger,
    operations::{Handle, Operations, Stage},
};
use crate::{
    Request, RequestError,
    clock::{now_ns, unix_ns},
    sys::{self, Epoll},
    wire::{self, Garbage, Header, Statements, Version},
};

/// Bytes that are encoded for one write. Beyond them an operation waits in its coordinator's queue, from where it
/// can still be given up as never sent.
const MOST_UNSENT: usize = 256 * 1024;
/// Room for one read.
const READ_SIZE: usize = 64 * 1024;
/// Stream 0 is for the handshake and for preparing; operations use the others.
const CONTROL_STREAM: u16 = 0;
/// Until the first attempt to connect again, doubled after each that fails.
const FIRST_BACKOFF_NS: u64 = 50_000_000;
const LONGEST_BACKOFF_NS: u64 = 1_000_000_000;

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not connected; tried again at this time.
    Down { retry_ns: u64 },
    /// On its way to being ready, or to being ready again after the server has forgotten a statement; given up at
    /// this time.
    Opening { step: Step, deadline_ns: u64 },
    /// Takes operations.
    Ready,
}

/// What an opening connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Connect,
    Startup,
    /// Of the statement with this number.
    Prepare(usize),
}

impl Step {
    /// In words, for errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Step::Connect => "connecting",
            Step::Startup => "the CQL handshake",
            Step::Prepare(_) => "preparing a statement",
        }
    }
}

/// Why a connection was lost.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) reason: String,
    /// The client closed it because the server's bytes made no sense.
    pub(super) garbage: bool,
}

impl From<io::Error> for Loss {
    fn from(error: io::Error) -> Self {
        Loss { reason: error.to_string(), garbage: false }
    }
}

impl From<Garbage> for Loss {
    fn from(garbage: Garbage) -> Self {
        Loss { reason: format!("the server sent {garbage}"), garbage: true }
    }
}

impl Loss {
    pub(super) fn because(reason: impl Into<String>) -> Self {
        Loss { reason: reason.into(), garbage: false }
    }
}

/// What a read tells besides the bytes.
pub(super) struct Filled {
    /// When the last of them came, on CLOCK_MONOTONIC.
    pub(super) at: u64,
    /// There may be more.
    pub(super) more: bool,
}

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) handle: Handle,
    /// When the kernel took its last byte; 0 while it has not.
    pub(super) sent_ns: u64,
    /// Nobody waits for it any more; a late answer is still measured.
    pub(super) late: bool,
}

pub(super) struct Connection {
    /// Index of its coordinator.
    pub(super) coordinator: usize,
    pub(super) state: State,
    statements: Statements,
    /// It was ready once since it was opened: its end is a loss and not a failed attempt, and if it is not ready now
    /// it will be in a round trip, for which operations wait.
    pub(super) established: bool,
    /// It stands in the list of connections with something to write.
    pub(super) touched: bool,
    /// How long a step of the handshake may take.
    pub(super) patience_ns: u64,
    dead_peer: Option<Duration>,
    address: SocketAddr,
    token: u64,
    socket: Option<TcpStream>,
    /// The epoll watches for room to write: the kernel has not taken all output.
    watching: bool,
    backoff_ns: u64,

    input: Vec<u8>,
    /// Where the unread part of the input begins and ends.
    read: usize,
    filled: usize,
    largest_answer: usize,

    output: Vec<u8>,
    /// How much of the output the kernel has taken.
    written: usize,
    /// Bytes put out before `output[0]`, so that positions stay valid when the output is cleared.
    cleared: u64,
    /// Where in the byte stream the frames of operations end that the kernel has not wholly taken.
    unsent: VecDeque<(u64, u16)>,

    /// By stream id.
    slots: Vec<Option<Open>>,
    free: Vec<u16>,
}

impl Connection {
    pub(super) fn new(
        coordinator: usize,
        address: SocketAddr,
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
            address,
            token,
            socket: None,
            watching: false,
            backoff_ns: FIRST_BACKOFF_NS,
            input: Vec::new(),
            read: 0,
            filled: 0,
            largest_answer,
            output: Vec::new(),
            written: 0,
            cleared: 0,
            unsent: VecDeque::new(),
            slots: vec![None],
            free: Vec::new(),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Whether it is ready, and the kernel has taken all output.
    pub(super) fn is_idle(&self) -> bool {
        self.is_ready() && !self.watching
    }

    /// Whether an operation can be put on it now.
    pub(super) fn has_room(&self) -> bool {
        self.is_ready()
            // What the kernel does not take now waits where it can still be given up.
            && !self.watching
            && (!self.free.is_empty() || self.slots.len() <= usize::from(wire::LAST_STREAM))
            && self.output.len() - self.written < MOST_UNSENT
    }

    /// When its state needs a look; `u64::MAX` for never.
    pub(super) fn attention_ns(&self) -> u64 {
        match self.state {
            State::Down { retry_ns } => retry_ns,
            State::Opening { deadline_ns, .. } => deadline_ns,
            State::Ready => u64::MAX,
        }
    }

    /// Begins to connect; the epoll tells when the attempt has ended.
    pub(super) fn open_socket(&mut self, epoll: &Epoll, now: u64) -> Result<(), Loss> {
        self.state = State::Opening { step: Step::Connect, deadline_ns: now + self.patience_ns };
        let socket = Socket::new(Domain::for_address(self.address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        sys::stamp_arrivals(socket.as_raw_fd())?;
        if let Some(after) = self.dead_peer {
            sys::bury_after(socket.as_raw_fd(), after)?;
        }
        match socket.connect(&self.address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        epoll.add(socket.as_raw_fd(), self.token, true)?;
        self.watching = true;
        self.socket = Some(socket.into());
        Ok(())
    }

    /// The attempt to connect has ended: sends the first message, or tells why it failed.
    pub(super) fn connected(&mut self) -> Result<(), Loss> {
        if let Some(error) = self.socket.as_ref().map(TcpStream::take_error).transpose()?.flatten() {
            return Err(error.into());
        }
        self.advance(Step::Startup);
        self.put(|out| wire::request::startup(out, CONTROL_STREAM));
        Ok(())
    }

    /// Asks for the statement with this number to be prepared.
    pub(super) fn prepare(&mut self, number: usize, text: &str) {
        self.advance(Step::Prepare(number));
        self.put(|out| wire::request::prepare(out, CONTROL_STREAM, text));
    }

    fn advance(&mut self, next: Step) {
        self.state = State::Opening { step: next, deadline_ns: now_ns() + self.patience_ns };
    }

    /// Keeps the id of the prepared statement with this number.
    pub(super) fn keep_prepared(&mut self, number: usize, id: &[u8], result_metadata_id: &[u8]) {
        self.statements.keep(number, id, result_metadata_id);
    }

    /// The handshake is done.
    pub(super) fn make_ready(&mut self) {
        self.state = State::Ready;
        self.established = true;
        self.backoff_ns = FIRST_BACKOFF_NS;
    }

    fn put(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.output);
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
        if let Err(error) = wire::compose(&mut self.output, stream, &self.statements, write) {
            self.free.push(stream);
            return Err(error);
        }
        self.slots[usize::from(stream)] = Some(open);
        self.unsent.push_back((self.cleared + self.output.len() as u64, stream));
        Ok(stream)
    }

    /// Gives the kernel what it takes, and stamps the requests that are wholly on their way.
    pub(super) fn flush(
        &mut self,
        epoll: &Epoll,
        operations: &mut Operations,
        ledger: &mut Ledger,
    ) -> Result<(), Loss> {
        let Some(socket) = &mut self.socket else { return Ok(()) };
        while self.written < self.output.len() {
            let sent_ns = now_ns();
            match socket.write(&self.output[self.written..]) {
                Ok(0) => return Err(Loss::because("the socket takes no more bytes")),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            let position = self.cleared + self.written as u64;
            while let Some(&(end, stream)) = self.unsent.front()
                && end <= position
            {
                self.unsent.pop_front();
                let Some(open) = &mut self.slots[usize::from(stream)] else { continue };
                open.sent_ns = sent_ns;
                // Of the others the first request is under way already.
                if let Some(operation) = operations.get_mut(open.handle)
                    && operation.first_sent == 0
                {
                    operation.first_sent = sent_ns.max(operation.intended);
                    if !operation.queued && operation.stage != Stage::Ended {
                        ledger.lateness(operation.intended, operation.first_sent - operation.intended);
                    }
                }
            }
        }
        let done = self.written == self.output.len();
        if done || self.written > MOST_UNSENT {
            self.output.drain(..self.written);
            self.cleared += self.written as u64;
            self.written = 0;
        }
        if self.watching == done {
            self.watching = !done;
            epoll.watch_writable(socket.as_raw_fd(), self.token, self.watching)?;
        }
        Ok(())
    }

    /// Reads once; what is read has not come before `earliest_ns`.
    pub(super) fn fill(&mut self, earliest_ns: u64) -> Result<Filled, Loss> {
        let nothing = Filled { at: earliest_ns, more: false };
        let Some(socket) = &self.socket else { return Ok(nothing) };
        if self.read == self.filled {
            (self.read, self.filled) = (0, 0);
        }
        if self.input.len() - self.filled < READ_SIZE {
            // Room is made by moving what is unread to the front; a long frame makes the buffer grow.
            self.input.copy_within(self.read..self.filled, 0);
            (self.read, self.filled) = (0, self.filled - self.read);
            if self.input.len() - self.filled < READ_SIZE {
                self.input.resize((self.filled + READ_SIZE).next_power_of_two(), 0);
            }
        }
        let room = &mut self.input[self.filled..];
        match sys::receive(socket.as_raw_fd(), room) {
            Ok((0, _)) => Err(Loss::because("the server closed the connection")),
            Ok((count, stamp)) => {
                let more = count == room.len();
                self.filled += count;
                let now = now_ns();
                // The kernel stamps with the other clock. Should that have been set just now, the bounds still hold.
                let age = stamp.map_or(0, |stamp| unix_ns().saturating_sub(stamp));
                Ok(Filled { at: now.saturating_sub(age).max(earliest_ns).min(now), more })
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// The next whole frame of the input: its header, and where its body lies.
    pub(super) fn next_frame(&mut self) -> Result<Option<(Header, std::ops::Range<usize>)>, Garbage> {
        let unread = &self.input[self.read..self.filled];
        let Some(header) = Header::read(unread, self.largest_answer)? else { return Ok(None) };
        let whole = wire::HEADER + header.length;
        if unread.len() < whole {
            return Ok(None);
        }
        let body = self.read + wire::HEADER..self.read + whole;
        self.read += whole;
        Ok(Some((header, body)))
    }

    /// A body that [`Connection::next_frame`] found.
    pub(super) fn body(&self, place: std::ops::Range<usize>) -> &[u8] {
        &self.input[place]
    }

    /// The request on a stream.
    pub(super) fn on(&self, stream: u16) -> Result<Open, Garbage> {
        let slot = self.slots.get(usize::from(stream)).copied().flatten();
        slot.ok_or("an answer to a question that was not asked")
    }

    /// Takes the answered request off its stream, which is free from now on.
    pub(super) fn release(&mut self, stream: u16) {
        if self.slots[usize::from(stream)].take().is_some() {
            self.free.push(stream);
        }
    }

    /// Nobody waits for this request any more; its stream stays taken for the late answer.
    pub(super) fn give_up(&mut self, stream: u16) {
        if let Some(Some(open)) = self.slots.get_mut(usize::from(stream)) {
            open.late = true;
        }
    }

    /// Closes it, and returns the requests that were on their way, late ones too.
    pub(super) fn close(&mut self, now: u64) -> Vec<Open> {
        // Dropping the socket closes it, and the epoll forgets it.
        self.socket = None;
        self.watching = false;
        self.state = State::Down { retry_ns: now + self.backoff_ns };
        self.backoff_ns = (self.backoff_ns * 2).min(LONGEST_BACKOFF_NS);
        (self.read, self.filled) = (0, 0);
        self.output.clear();
        (self.written, self.cleared) = (0, 0);
        self.unsent.clear();
        self.established = false;
        self.free.clear();
        let lost = self.slots.drain(..).flatten().collect();
        self.slots.push(None);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_a_handshake_has_the_whole_patience() {
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let mut connection = Connection::new(0, address, 0, 16, 1_000_000_000, None);
        for statement in 0..2 {
            // The step before took all its time but 1 ns.
            let deadline_ns = now_ns() + 1;
            connection.state = State::Opening { step: Step::Startup, deadline_ns };
            connection.prepare(statement, "SELECT");
            assert!(connection.attention_ns() >= deadline_ns - 1 + connection.patience_ns);
        }
    }
}
