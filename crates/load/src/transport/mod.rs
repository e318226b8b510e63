//! The byte stream of a connection: a TCP socket, with or without TLS. Nothing here blocks.

mod error;
mod keystore;
mod reason;
mod tls;
mod verifier;

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

use rustix::io::Errno;
use rustls::{Connection, ServerConnection};
use socket2::{Domain, Protocol, Socket, Type};

use crate::sys;
pub use error::TlsError;
pub use reason::tls_reason;
pub use tls::{Identity, ServerTls, Tls, TlsOptions, TrustStore};

/// How much is encrypted at a time: four records, so that one write to the kernel carries many requests.
const CHUNK: usize = 4 * RECORD;
/// The most that one record of TLS carries (RFC 8446, section 5.1).
const RECORD: usize = 16 * 1024;
/// How much is read at a time to be decrypted. The result, together with the rest of a record begun before, fits into
/// the room given to [`Transport::receive`].
const SEALED: usize = 32 * 1024;
/// The room that [`Transport::receive`] needs so that it leaves nothing behind that the epoll would not report.
pub(crate) const LEAST_ROOM: usize = 64 * 1024;

/// A socket that is connecting, connected or no longer connected.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: TcpStream,
    sealed: Option<Box<Sealed>>,
    /// Whether segments are known to have come out of order.
    out_of_order: bool,
}

/// The state of TLS.
#[derive(Debug)]
struct Sealed {
    session: Connection,
    input: Vec<u8>,
    /// Encrypted bytes; the kernel has taken the first `written` of them.
    output: Vec<u8>,
    written: usize,
    /// The records that the kernel has not completely taken: where each ends in `output`, and how many bytes of payload
    /// it carries.
    records: VecDeque<(usize, usize)>,
    /// When the bytes decrypted last arrived.
    stamp: Option<u64>,
}

impl Transport {
    /// Starts connecting; the socket becomes writable when the attempt ends. `name` is the host as the user wrote it:
    /// its certificate may be for that name or for its address.
    pub(crate) fn connect(address: SocketAddr, tls: Option<&Tls>, name: &str) -> io::Result<Transport> {
        let sealed = tls.map(|tls| tls.session(address.ip(), name)).transpose().map_err(io::Error::other)?;
        let sealed = sealed.map(|session| Sealed::new(session.into()));
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        sys::stamp_arrivals(&socket)?;
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        Ok(Transport { socket: socket.into(), sealed, out_of_order: false })
    }

    /// The server's end of a connection.
    pub(crate) fn accepted(socket: TcpStream, tls: Option<&ServerTls>) -> io::Result<Transport> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let session = tls.map(|tls| ServerConnection::new(Arc::clone(&tls.0))).transpose().map_err(io::Error::other)?;
        Ok(Transport { socket, sealed: session.map(|session| Sealed::new(session.into())), out_of_order: false })
    }

    /// The attempt to connect has ended: returns why it failed, if it did. With TLS, the start of the handshake then
    /// waits to be written.
    pub(crate) fn connected(&self) -> io::Result<()> {
        self.socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Whether bytes for the server can be written; otherwise the TLS handshake is still in progress, and continues in
    /// [`Transport::write`] and [`Transport::receive`].
    pub(crate) fn is_open(&self) -> bool {
        self.sealed.as_ref().is_none_or(|sealed| !sealed.session.is_handshaking())
    }

    /// There is more for the kernel than [`Transport::write`] has been given.
    pub(crate) fn wants_write(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.session.wants_write() || sealed.written < sealed.output.len())
    }

    /// Gives the kernel what it takes, and returns how many of these bytes are completely sent. With TLS, those are the
    /// bytes in records that the kernel has taken to the last byte, because the server can read and answer them while
    /// others wait. The next call must begin with the rest of the same bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sealed {
            None => self.socket.write(bytes),
            Some(sealed) => sealed.write(&mut self.socket, bytes),
        }
    }

    /// Whether a segment has ever arrived before another that was to come first. Where the kernel does not tell, none has.
    pub(crate) fn has_been_out_of_order(&mut self) -> bool {
        self.out_of_order = self.out_of_order || sys::out_of_order(&self.socket).is_some_and(|segments| segments > 0);
        self.out_of_order
    }

    /// Reads once into `room`, which is at least [`LEAST_ROOM`] long. Besides the count, which is 0 at the end of the
    /// stream, returns when the last segment read arrived, in ns of CLOCK_REALTIME, if the kernel reports it.
    pub(crate) fn receive(&mut self, room: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        match &mut self.sealed {
            None => sys::receive(&self.socket, room),
            Some(sealed) => sealed.receive(&mut self.socket, room),
        }
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Sealed {
    fn new(session: Connection) -> Box<Self> {
        Box::new(Sealed {
            session,
            input: vec![0; SEALED],
            output: Vec::new(),
            written: 0,
            records: VecDeque::new(),
            stamp: None,
        })
    }

    /// Collects what the session has encrypted.
    fn collect(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.output)?;
        }
        Ok(())
    }

    /// Writes what the kernel takes.
    fn flush(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        self.collect()?;
        while self.written < self.output.len() {
            match socket.write(&self.output[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.records.is_empty() {
            self.output.clear();
            self.written = 0;
        }
        Ok(())
    }

    fn write(&mut self, socket: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        if self.records.is_empty() {
            self.flush(socket)?;
            if self.session.is_handshaking() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.encrypt(bytes)?;
        }
        let flushed = self.flush(socket);
        let mut sent = 0;
        while let Some((_, count)) = self.records.front().copied().filter(|(end, _)| *end <= self.written) {
            self.records.pop_front();
            sent += count;
        }
        if self.records.is_empty() && self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
        match flushed {
            Err(error) if sent == 0 => Err(error),
            // Whatever stopped the write will do so again next time.
            _ => Ok(sent),
        }
    }

    /// Encrypts the first of these bytes into records.
    fn encrypt(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes[..bytes.len().min(CHUNK)].chunks(RECORD) {
            let count = self.session.writer().write(part)?;
            self.collect()?;
            self.records.push_back((self.output.len(), count));
            if count < part.len() {
                break;
            }
        }
        Ok(())
    }

    fn receive(&mut self, socket: &mut TcpStream, room: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        let count = self.decrypted(room)?;
        if count > 0 {
            return Ok((count, self.stamp));
        }
        let (count, stamp) = sys::receive(&*socket, &mut self.input)?;
        if count == 0 {
            return Ok((0, None));
        }
        self.stamp = stamp;
        let input = std::mem::take(&mut self.input);
        let result = self.decrypt(socket, &input[..count], room);
        self.input = input;
        match result? {
            // Bytes have arrived, but they only concerned TLS itself.
            (0, false) => Err(io::ErrorKind::WouldBlock.into()),
            (count, _) => Ok((count, stamp)),
        }
    }

    /// Decrypts all of `input` into `room`. Besides the count, returns whether the server has closed its side.
    fn decrypt(&mut self, socket: &mut TcpStream, mut input: &[u8], room: &mut [u8]) -> io::Result<(usize, bool)> {
        let mut filled = 0;
        let mut ended = false;
        while !input.is_empty() {
            self.session.read_tls(&mut input)?;
            match self.session.process_new_packets() {
                Ok(state) => ended |= state.peer_has_closed(),
                Err(error) => {
                    // Try to tell the server what it did wrong; whether that succeeds does not matter.
                    let _ = self.flush(socket);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, tls::explain(&error)));
                }
            }
            filled += self.decrypted(&mut room[filled..])?;
            if ended {
                break;
            }
        }
        // Records leave only in `write`, which reports them as sent: otherwise an answer could come to a request that
        // was never stamped as sent.
        let flushed = if self.records.is_empty() { self.flush(socket) } else { self.collect() };
        match flushed {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok((filled, ended)),
        }
    }

    /// Takes the decrypted bytes.
    fn decrypted(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < room.len() {
            match self.session.reader().read(&mut room[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests;
