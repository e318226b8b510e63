//! From requests to the bytes that a connection sends.

use std::collections::VecDeque;

use super::{
    Framing, HEADER, Request, RequestError, Statements,
    compose::compose,
    compression::{Compression, compress_body},
    flag,
    segment::frame_length,
};

/// Sent bytes are discarded at the latest when there are this many.
const MOST_SENT: usize = 256 * 1024;

/// Bytes to be sent. Without segments and compression, requests are written directly to where they are sent from.
#[derive(Debug)]
pub(crate) struct Outbox {
    framing: Framing,
    /// Ready to be sent.
    output: Vec<u8>,
    /// How much of it the kernel has taken.
    written: usize,
    /// Bytes sent before `output[0]`, so that positions stay valid when the output is cleared.
    cleared: u64,
    /// The requests that the kernel has not completely taken: where each ends in the byte stream, and its stream.
    unsent: VecDeque<(u64, u16)>,
    /// Frames waiting to be packed.
    staging: Vec<u8>,
    /// Where requests end in `staging`.
    staged: Vec<(usize, u16)>,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Outbox {
            framing: Framing::Handshake,
            output: Vec::new(),
            written: 0,
            cleared: 0,
            unsent: VecDeque::new(),
            staging: Vec::new(),
            staged: Vec::new(),
        }
    }

    /// What follows uses this framing.
    pub(crate) fn frame_as(&mut self, framing: Framing) {
        self.seal();
        self.framing = framing;
    }

    /// Resets it for a new connection.
    pub(crate) fn clear(&mut self) {
        self.framing = Framing::Handshake;
        self.output.clear();
        (self.written, self.cleared) = (0, 0);
        self.unsent.clear();
        self.staging.clear();
        self.staged.clear();
    }

    /// Adds the request that `write` writes. [`Outbox::wrote`] reports when it is sent.
    pub(crate) fn request(
        &mut self,
        stream: u16,
        statements: &Statements,
        write: impl FnOnce(Request<'_>),
    ) -> Result<(), RequestError> {
        if self.framing.is_plain() {
            compose(&mut self.output, stream, statements, write)?;
            self.unsent.push_back((self.cleared + self.output.len() as u64, stream));
        } else {
            compose(&mut self.staging, stream, statements, write)?;
            self.staged.push((self.staging.len(), stream));
        }
        Ok(())
    }

    /// What was added with [`Outbox::control`] so far ends the request on this stream: [`Outbox::wrote`] reports when it
    /// is sent. Only of bytes that need no packing.
    pub(crate) fn ends(&mut self, stream: u16) {
        self.unsent.push_back((self.cleared + self.output.len() as u64, stream));
    }

    /// Adds a frame whose sending is not reported.
    pub(crate) fn control(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(if self.framing.is_plain() { &mut self.output } else { &mut self.staging });
    }

    /// How many bytes the kernel has not taken, before packing.
    pub(crate) fn waiting(&self) -> usize {
        self.output.len() - self.written + self.staging.len()
    }

    /// How many requests the kernel has not completely taken.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len() + self.staged.len()
    }

    /// The streams of those that are packed, in the order in which they go out.
    pub(crate) fn unsent_streams(&self) -> impl Iterator<Item = u16> {
        self.unsent.iter().map(|(_, stream)| *stream)
    }

    /// The request on this stream was answered before it was wholly taken: its end is not told any more, for the
    /// stream may have another by then.
    pub(crate) fn forget(&mut self, stream: u16) {
        self.unsent.retain(|(_, other)| *other != stream);
        self.staged.retain(|(_, other)| *other != stream);
    }

    /// Everything has been taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Packs what was added. To be called before [`Outbox::unwritten`].
    pub(crate) fn seal(&mut self) {
        if self.staging.is_empty() {
            return;
        }
        let Outbox { output, unsent, cleared, .. } = self;
        let mut staged = self.staged.drain(..).peekable();
        let mut ended = |frames: usize, out: usize| {
            while let Some((_, stream)) = staged.next_if(|(end, _)| *end <= frames) {
                unsent.push_back((*cleared + out as u64, stream));
            }
        };
        match self.framing {
            Framing::V5(segments) => segments.wrap(&self.staging, output, ended),
            Framing::V4(Some(compression)) => {
                let mut start = 0;
                while start < self.staging.len() {
                    let end = start + frame_length(&self.staging[start..]);
                    pack(compression, &self.staging[start..end], output);
                    ended(end, output.len());
                    start = end;
                }
            }
            Framing::V4(None) | Framing::Handshake => {
                output.extend_from_slice(&self.staging);
                ended(self.staging.len(), output.len());
            }
        }
        drop(staged);
        self.staging.clear();
    }

    /// What the kernel has not taken yet.
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.output[self.written..]
    }

    /// The kernel has taken this many more bytes. Reports the streams of the requests that are now completely sent.
    pub(crate) fn wrote(&mut self, count: usize, mut sent: impl FnMut(u16)) {
        self.written = (self.written + count).min(self.output.len());
        let position = self.cleared + self.written as u64;
        while let Some(&(end, stream)) = self.unsent.front()
            && end <= position
        {
            self.unsent.pop_front();
            sent(stream);
        }
        if self.written == self.output.len() || self.written > MOST_SENT {
            self.output.drain(..self.written);
            self.cleared += self.written as u64;
            self.written = 0;
        }
    }
}

/// Appends a frame of version 4 with its body compressed, if that is shorter.
fn pack(compression: Compression, frame: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let (header, body) = frame.split_at(HEADER.min(frame.len()));
    out.extend_from_slice(header);
    if compress_body(compression, body, out) {
        let length = (out.len() - start - HEADER) as u32;
        out[start + 1] |= flag::COMPRESSION;
        out[start + 5..start + HEADER].copy_from_slice(&length.to_be_bytes());
    } else {
        out.extend_from_slice(body);
    }
}

#[cfg(test)]
mod tests;
