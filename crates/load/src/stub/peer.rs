//! A connection of the stub: buffers around a socket.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
};

pub(super) struct Peer {
    pub(super) node: usize,
    /// Distinguishes it from later connections in the same place.
    pub(super) serial: u64,
    pub(super) socket: TcpStream,
    pub(super) input: Vec<u8>,
    pub(super) output: Vec<u8>,
    /// The epoll watches for room to write.
    pub(super) watching: bool,
    /// To be closed once the output is written.
    pub(super) closing: bool,
}

impl Peer {
    pub(super) fn new(node: usize, serial: u64, socket: TcpStream) -> Self {
        Peer { node, serial, socket, input: Vec::new(), output: Vec::new(), watching: false, closing: false }
    }

    /// Reads once. `false` at the end of the stream.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        match self.socket.read(buffer) {
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                Ok(count > 0)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Writes what the kernel takes. `true` when nothing is left.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let mut written = 0;
        while written < self.output.len() {
            match self.socket.write(&self.output[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.drain(..written);
        Ok(self.output.is_empty())
    }
}
