//! From the bytes that a connection receives to frames.

use std::ops::Range;

use super::{Framing, Garbage, HEADER, Header, Sender, Version, compression::decompress_body, flag, segment::Segments};

/// Room for one read.
const READ_SIZE: usize = 64 * 1024;

/// Received bytes that are still unread. Its buffers are reused.
#[derive(Debug)]
pub(crate) struct Inbox {
    framing: Framing,
    sender: Sender,
    /// The longest body that is accepted.
    limit: usize,
    raw: Vec<u8>,
    /// Where the unread part of it begins and ends.
    read: usize,
    filled: usize,
    /// What was unpacked: of version 5, the payload of segments; of version 4, one decompressed body.
    plain: Vec<u8>,
    /// How much of it has been read.
    taken: usize,
}

/// Where a body lies, until the next one is requested.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// In the received bytes.
    Raw(Range<usize>),
    /// In the unpacked bytes.
    Plain(Range<usize>),
}

impl Inbox {
    /// For frames of `sender` whose bodies are at most `limit` bytes long.
    pub(crate) fn new(sender: Sender, limit: usize) -> Self {
        Inbox {
            framing: Framing::Handshake,
            sender,
            limit,
            raw: Vec::new(),
            read: 0,
            filled: 0,
            plain: Vec::new(),
            taken: 0,
        }
    }

    /// What follows uses this framing.
    pub(crate) fn frame_as(&mut self, framing: Framing) {
        self.framing = framing;
    }

    /// Resets it for a new connection.
    pub(crate) fn clear(&mut self) {
        self.framing = Framing::Handshake;
        (self.read, self.filled, self.taken) = (0, 0, 0);
        self.plain.clear();
    }

    /// Where to put the next bytes. Never empty.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.read == self.filled {
            (self.read, self.filled) = (0, 0);
        }
        if self.raw.len() - self.filled < READ_SIZE {
            // Room is made by moving what is unread to the front; a long frame makes the buffer grow.
            self.raw.copy_within(self.read..self.filled, 0);
            (self.read, self.filled) = (0, self.filled - self.read);
            if self.raw.len() - self.filled < READ_SIZE {
                self.raw.resize((self.filled + READ_SIZE).next_power_of_two(), 0);
            }
        }
        &mut self.raw[self.filled..]
    }

    /// This many bytes have been put there.
    pub(crate) fn filled(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.raw.len());
    }

    /// The next whole frame: its header, and where its body lies.
    pub(crate) fn next(&mut self) -> Result<Option<(Header, Body)>, Garbage> {
        if let Framing::V5(segments) = self.framing {
            return self.next_of_segments(segments);
        }
        let unread = &self.raw[self.read..self.filled];
        let Some(mut header) = Header::read(unread, self.sender, self.limit)? else { return Ok(None) };
        let Some(body) = unread.get(HEADER..HEADER + header.length) else { return Ok(None) };
        let place = self.read + HEADER..self.read + HEADER + header.length;
        let compression = match self.framing {
            Framing::V4(compression) if header.version == Version::V4 => compression,
            Framing::V4(_) => return Err(OTHER_VERSION),
            _ => None,
        };
        self.read = place.end;
        if header.flags & flag::COMPRESSION == 0 {
            return Ok(Some((header, Body::Raw(place))));
        }
        let compression = compression.ok_or("a compressed frame, though no compression was agreed")?;
        self.plain.clear();
        decompress_body(compression, body, self.limit, &mut self.plain)?;
        header.length = self.plain.len();
        Ok(Some((header, Body::Plain(0..header.length))))
    }

    fn next_of_segments(&mut self, segments: Segments) -> Result<Option<(Header, Body)>, Garbage> {
        loop {
            let unread = &self.plain[self.taken..];
            if let Some(header) = Header::read(unread, self.sender, self.limit)? {
                if header.version != Version::V5 {
                    return Err(OTHER_VERSION);
                }
                if unread.len() >= HEADER + header.length {
                    let place = self.taken + HEADER..self.taken + HEADER + header.length;
                    self.taken = place.end;
                    return Ok(Some((header, Body::Plain(place))));
                }
            }
            if self.taken > 0 {
                self.plain.drain(..self.taken);
                self.taken = 0;
            }
            match segments.unwrap(&self.raw[self.read..self.filled], &mut self.plain)? {
                Some(length) => self.read += length,
                None => return Ok(None),
            }
        }
    }

    /// All that is unread, which counts as read from now on: of connections that speak something else than CQL.
    pub(crate) fn take(&mut self) -> &[u8] {
        let unread = self.read..self.filled;
        self.read = self.filled;
        &self.raw[unread]
    }

    /// The first unread byte: of a client with another protocol, the version that it speaks.
    pub(crate) fn first(&self) -> Option<u8> {
        self.raw[self.read..self.filled].first().copied()
    }

    /// The body that [`Inbox::next`] found last.
    pub(crate) fn body(&self, place: &Body) -> &[u8] {
        match place {
            Body::Raw(place) => &self.raw[place.clone()],
            Body::Plain(place) => &self.plain[place.clone()],
        }
    }
}

const OTHER_VERSION: Garbage = "a CQL response of another version";

#[cfg(test)]
mod tests;
