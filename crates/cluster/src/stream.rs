//! A connection to a node on which one waits, with TLS or without.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use brownout_load::Tls;
use rustls::{ClientConnection, StreamOwned, pki_types::ServerName};

use crate::database::Connection;

/// A connection. With TLS its handshake is done, and the certificate was the right one.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Sealed(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects; `patience` bounds each wait for the node, from now on too.
    pub(crate) fn connect(address: SocketAddr, patience: Duration, tls: Option<&Tls>) -> io::Result<Stream> {
        let socket = TcpStream::connect_timeout(&address, patience)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        let Some(tls) = tls else { return Ok(Stream::Plain(socket)) };
        let session = ClientConnection::new(tls.client_config(), ServerName::from(address.ip()));
        let session = session.map_err(io::Error::other)?;
        let mut sealed = StreamOwned::new(session, socket);
        while sealed.conn.is_handshaking() {
            sealed.conn.complete_io(&mut sealed.sock)?;
        }
        Ok(Stream::Sealed(Box::new(sealed)))
    }

    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Sealed(sealed) => &sealed.sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(bytes),
            Stream::Sealed(sealed) => sealed.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Sealed(sealed) => sealed.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Sealed(sealed) => sealed.flush(),
        }
    }
}

impl Connection for Stream {
    fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        self.socket().set_read_timeout(Some(time))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_plain_connection_gives_up_after_its_patience_and_carries_both_ways() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut stream = Stream::connect(listener.local_addr().unwrap(), Duration::from_millis(50), None).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let mut bytes = [0; 4];
        let error = stream.read(&mut bytes).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
        stream.write_all(b"ping").unwrap();
        other.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"ping");
        Connection::set_read_timeout(&stream, Duration::from_secs(10)).unwrap();
        other.write_all(b"pong").unwrap();
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"pong");
    }
}
