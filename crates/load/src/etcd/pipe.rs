//! The byte streams between HTTP/2 and a socket: in memory, so that the engine reads and writes the socket itself.
//!
//! So arrivals have the kernel's timestamps, TLS is that of all connections, and a request is sent when the kernel has
//! taken its last byte, which [`Frames`] finds in the output.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Debug, Default)]
struct Bytes {
    input: Vec<u8>,
    /// How much of it has been read.
    read: usize,
    output: Vec<u8>,
}

/// One end is HTTP/2's, which never waits for room; the other is the connection's.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipe(Rc<RefCell<Bytes>>);

impl Pipe {
    /// These bytes have been received.
    pub(super) fn feed(&self, bytes: &[u8]) {
        let mut pipe = self.0.borrow_mut();
        if pipe.read == pipe.input.len() {
            pipe.input.clear();
            pipe.read = 0;
        }
        pipe.input.extend_from_slice(bytes);
    }

    /// Swaps what is to be sent for an empty buffer.
    pub(super) fn take_output(&self, buffer: &mut Vec<u8>) {
        std::mem::swap(&mut self.0.borrow_mut().output, buffer);
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.0.borrow_mut();
        let unread = &pipe.input[pipe.read..];
        if unread.is_empty() {
            // More may come, and then the connection is polled again.
            return Poll::Pending;
        }
        let count = unread.len().min(room.remaining());
        room.put_slice(&unread[..count]);
        pipe.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Length of what a client sends first (RFC 9113, section 3.4).
const PREFACE: usize = 24;
/// Length of a frame's header: length (3), type, flags, stream (4). Section 4.1.
const HEAD: usize = 9;
/// Type of frames that carry a message. Section 6.1.
const DATA: u8 = 0;
/// Flag of the last frame of a request. Section 6.1.
const END_STREAM: u8 = 1;

/// Follows the frames of a client's output, to find where its requests end.
#[derive(Debug)]
pub(super) struct Frames {
    /// How much of the preface or of a payload is still to come.
    left: usize,
    head: [u8; HEAD],
    /// How much of the next header has come.
    have: usize,
    /// The stream whose request ends with this payload.
    ending: Option<u32>,
}

impl Frames {
    pub(super) fn new() -> Self {
        Frames { left: PREFACE, head: [0; HEAD], have: 0, ending: None }
    }

    /// Follows these bytes up to the next end of a request: returns how many that are, and the stream that has ended.
    /// Without one, those are all bytes.
    pub(super) fn next_end(&mut self, bytes: &[u8]) -> (usize, Option<u32>) {
        let mut at = 0;
        loop {
            let step = self.left.min(bytes.len() - at);
            self.left -= step;
            at += step;
            if self.left > 0 {
                return (at, None);
            }
            if let Some(stream) = self.ending.take() {
                return (at, Some(stream));
            }
            let step = (HEAD - self.have).min(bytes.len() - at);
            self.head[self.have..self.have + step].copy_from_slice(&bytes[at..at + step]);
            self.have += step;
            at += step;
            if self.have < HEAD {
                return (at, None);
            }
            self.have = 0;
            let [high, middle, low, kind, flags, stream @ ..] = self.head;
            self.left = u32::from_be_bytes([0, high, middle, low]) as usize;
            // The first bit of a stream's number is reserved.
            let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
            self.ending = (kind == DATA && flags & END_STREAM != 0).then_some(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, length: usize) -> Vec<u8> {
        let mut bytes = (length as u32).to_be_bytes()[1..].to_vec();
        bytes.extend_from_slice(&[kind, flags]);
        bytes.extend_from_slice(&stream.to_be_bytes());
        bytes.resize(HEAD + length, 7);
        bytes
    }

    #[test]
    fn requests_end_where_their_last_frame_does_however_the_output_is_cut() {
        let parts = [
            (vec![1; PREFACE], None),
            (frame(4, 0, 0, 18), None),
            (frame(1, 4, 1, 60), None),
            (frame(DATA, END_STREAM, 1, 100), Some(1)),
            (frame(DATA, 0, 3, 16_384), None),
            (frame(DATA, END_STREAM, 3, 5), Some(3)),
            // A watch's request does not end, and an empty one ends at once.
            (frame(DATA, 0, 5, 12), None),
            (frame(DATA, END_STREAM, 7, 0), Some(7)),
            (frame(8, 0, 0, 4), None),
        ];
        let bytes: Vec<u8> = parts.iter().flat_map(|(part, _)| part.clone()).collect();
        let mut expected = Vec::new();
        let mut end = 0;
        for (part, stream) in &parts {
            end += part.len();
            expected.extend(stream.map(|stream| (end, stream)));
        }
        for cut in [1, 2, 7, 1_000, bytes.len()] {
            let (mut frames, mut found, mut position) = (Frames::new(), Vec::new(), 0);
            for chunk in bytes.chunks(cut) {
                let mut rest = chunk;
                loop {
                    let (length, ended) = frames.next_end(rest);
                    position += length;
                    rest = &rest[length..];
                    found.extend(ended.map(|stream| (position, stream)));
                    if ended.is_none() {
                        break;
                    }
                }
                assert!(rest.is_empty());
            }
            assert_eq!(found, expected, "cut into pieces of {cut}");
        }
    }

    #[test]
    fn what_is_fed_is_read_once_and_in_order() {
        let pipe = Pipe::default();
        let mut end = pipe.clone();
        let mut context = Context::from_waker(std::task::Waker::noop());
        pipe.feed(b"abc");
        pipe.feed(b"de");
        let mut room = [0; 4];
        let mut read = |expected: &[u8]| {
            let mut buffer = ReadBuf::new(&mut room);
            assert!(Pin::new(&mut end).poll_read(&mut context, &mut buffer).is_ready());
            assert_eq!(buffer.filled(), expected);
        };
        read(b"abcd");
        read(b"e");
        pipe.feed(b"f");
        read(b"f");
        let mut buffer = ReadBuf::new(&mut room);
        assert!(Pin::new(&mut end).poll_read(&mut context, &mut buffer).is_pending(), "nothing is no end");
    }
}
