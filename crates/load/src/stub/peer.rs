//! A connection of the stub: buffers around a socket.

use std::{
    io,
    net::TcpStream,
    os::fd::{AsFd, BorrowedFd},
};

use super::database::Session;
use crate::{
    ServerTls,
    transport::Transport,
    wire::{Inbox, LONGEST_BODY, Outbox, Sender},
};

pub(super) struct Peer {
    pub(super) node: usize,
    /// Distinguishes it from later connections with the same token.
    pub(super) serial: u64,
    transport: Transport,
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    pub(super) session: Session,
    /// The epoll watches for writability.
    pub(super) watching: bool,
    /// To be closed once the output is written.
    pub(super) closing: bool,
}

impl Peer {
    pub(super) fn new(node: usize, serial: u64, socket: TcpStream, tls: Option<&ServerTls>) -> io::Result<Self> {
        Ok(Peer {
            node,
            serial,
            transport: Transport::accepted(socket, tls)?,
            inbox: Inbox::new(Sender::Client, LONGEST_BODY),
            outbox: Outbox::new(),
            session: Session::default(),
            watching: false,
            closing: false,
        })
    }

    /// Reads once. `false` at the end of the stream.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        match self.transport.receive(self.inbox.room()) {
            Ok((count, _)) => {
                self.inbox.filled(count);
                Ok(count > 0)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Writes what the kernel takes. `true` when nothing is left for it.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        self.outbox.seal();
        while !self.outbox.is_empty() || self.transport.wants_write() {
            match self.transport.write(self.outbox.unwritten()) {
                Ok(0) if !self.outbox.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.outbox.wrote(count, |_| ()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((self.outbox.is_empty() || !self.transport.is_open()) && !self.transport.wants_write())
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}
