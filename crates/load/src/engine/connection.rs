//! One connection: its socket, its buffers, and the slab of operations that are on their way.

use std::{
    collections::VecDeque,
    io::{self, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsRawFd,
};

use socket2::{Domain, Protocol, Socket, Type};

use super::{Operation, Statement, ledger::Ledger};
use crate::{
    clock::{now_ns, unix_ns},
    sys::{self, Epoll},
    wire::{
        self,
        response::{self, Garbage, Header},
    },
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
    Prepare(Statement),
}

impl Step {
    /// In words, for errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Step::Connect => "connecting",
            Step::Startup => "the CQL handshake",
            Step::Prepare(Statement::Read) => "preparing the read",
            Step::Prepare(Statement::Write) => "preparing the write",
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

/// An operation on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) operation: Operation,
    /// Unique in its thread.
    pub(super) id: u64,
    /// When the kernel took its last byte; 0 while it has not.
    pub(super) sent_ns: u64,
    /// Of a write, the version it writes; of a read, the newest version acknowledged before.
    pub(super) version: u64,
    /// Its timeout has passed and is accounted for; a late answer is still measured.
    pub(super) timed_out: bool,
}

pub(super) struct Connection {
    /// Index of its coordinator.
    pub(super) coordinator: usize,
    pub(super) state: State,
    /// Ids of the prepared statements, by [`Statement`].
    pub(super) prepared: [Box<[u8]>; 2],
    /// Operations neither answered nor timed out.
    pub(super) open: u64,
    /// It was ready once since it was opened: its end is a loss and not a failed attempt, and if it is not ready now
    /// it will be in a round trip, for which operations wait.
    pub(super) established: bool,
    /// Something was appended to the output since the last flush.
    pub(super) dirty: bool,
    /// How long a step of the handshake may take.
    pub(super) patience_ns: u64,
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
    largest_body: usize,

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
        value_size: usize,
        patience_ns: u64,
    ) -> Self {
        Connection {
            coordinator,
            state: State::Down { retry_ns: 0 },
            prepared: [Box::default(), Box::default()],
            open: 0,
            established: false,
            dirty: false,
            patience_ns,
            address,
            token,
            socket: None,
            watching: false,
            backoff_ns: FIRST_BACKOFF_NS,
            input: Vec::new(),
            read: 0,
            filled: 0,
            // Error texts and schema metadata are the longest answers besides values.
            largest_body: value_size + (1 << 20),
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

    /// Asks for a statement to be prepared.
    pub(super) fn prepare(&mut self, statement: Statement, text: &str) {
        self.advance(Step::Prepare(statement));
        self.put(|out| wire::request::prepare(out, CONTROL_STREAM, text));
    }

    fn advance(&mut self, next: Step) {
        self.state = State::Opening { step: next, deadline_ns: now_ns() + self.patience_ns };
    }

    /// The handshake is done.
    pub(super) fn make_ready(&mut self) {
        self.state = State::Ready;
        self.established = true;
        self.backoff_ns = FIRST_BACKOFF_NS;
    }

    fn put(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.output);
        self.dirty = true;
    }

    /// Puts an operation on a free stream ([`Connection::has_room`] must hold) and returns the stream.
    pub(super) fn send(&mut self, open: Open, encode: impl FnOnce(&mut Vec<u8>, u16, &[u8])) -> u16 {
        let stream = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u16
        });
        self.slots[usize::from(stream)] = Some(open);
        self.open += 1;
        encode(&mut self.output, stream, &self.prepared[open.operation.statement as usize]);
        self.unsent.push_back((self.cleared + self.output.len() as u64, stream));
        self.dirty = true;
        stream
    }

    /// Gives the kernel what it takes, and stamps the operations that are wholly on their way.
    pub(super) fn flush(&mut self, epoll: &Epoll, ledger: &mut Ledger) -> Result<(), Loss> {
        self.dirty = false;
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
                let Operation { intended, queued, .. } = open.operation;
                open.sent_ns = sent_ns.max(intended);
                if !queued {
                    ledger.lateness(intended, open.sent_ns - intended);
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
        let Some(header) = response::header(unread, self.largest_body)? else { return Ok(None) };
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

    /// The operation on a stream.
    pub(super) fn on(&self, stream: u16) -> Result<Open, Garbage> {
        let slot = self.slots.get(usize::from(stream)).copied().flatten();
        slot.ok_or("an answer to a question that was not asked")
    }

    /// Takes the answered operation off its stream, which is free from now on.
    pub(super) fn release(&mut self, stream: u16) {
        if let Some(open) = self.slots[usize::from(stream)].take() {
            self.free.push(stream);
            self.open -= u64::from(!open.timed_out);
        }
    }

    /// Marks an operation as timed out if it is still open; its stream stays taken for the late answer.
    pub(super) fn time_out(&mut self, stream: u16, id: u64) -> Option<Open> {
        let open = self.slots.get_mut(usize::from(stream))?.as_mut()?;
        if open.id != id || open.timed_out {
            return None;
        }
        open.timed_out = true;
        self.open -= 1;
        Some(*open)
    }

    /// Closes it, and returns the operations that were on their way, timed-out ones too.
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
        self.dirty = false;
        self.established = false;
        self.free.clear();
        self.open = 0;
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
        let mut connection = Connection::new(0, address, 0, 16, 1_000_000_000);
        for statement in [Statement::Read, Statement::Write] {
            // The step before took all its time but 1 ns.
            let deadline_ns = now_ns() + 1;
            connection.state = State::Opening { step: Step::Startup, deadline_ns };
            connection.prepare(statement, "SELECT");
            assert!(connection.attention_ns() >= deadline_ns - 1 + connection.patience_ns);
        }
    }
}
