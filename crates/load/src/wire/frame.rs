//! The header of a frame (section 2); version 5 calls a frame an envelope.

use super::{Compression, Garbage, HEADER, Version, segment::Segments};

/// How frames are packed on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Not at all, in either version: before STARTUP is answered.
    Handshake,
    /// Version 4, with bodies optionally compressed.
    V4(Option<Compression>),
    /// Version 5.
    V5(Segments),
}

impl Framing {
    /// The negotiated framing. Version 5 supports LZ4 only.
    pub(crate) fn of(version: Version, compression: Option<Compression>) -> Self {
        match version {
            Version::V4 => Framing::V4(compression),
            Version::V5 => Framing::V5(Segments { lz4: compression == Some(Compression::Lz4) }),
        }
    }

    /// Frames are sent as they are written.
    pub(super) fn is_plain(self) -> bool {
        matches!(self, Framing::Handshake | Framing::V4(None))
    }
}

/// Who sends a frame: the highest bit of its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    Client = 0x00,
    Server = 0x80,
}

/// The fixed part of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: Version,
    pub(crate) flags: u8,
    pub(crate) stream: i16,
    pub(crate) opcode: u8,
    /// Of the body, in bytes.
    pub(crate) length: usize,
}

impl Header {
    /// The header at the beginning of `bytes`, or `None` while there are too few of them. A body beyond `limit` bytes
    /// is refused: nothing expected is that long.
    pub(crate) fn read(bytes: &[u8], sender: Sender, limit: usize) -> Result<Option<Header>, Garbage> {
        // The first byte alone identifies a peer of another protocol, which may never send a whole header.
        let version = match bytes.first() {
            None => return Ok(None),
            Some(first) if *first == sender as u8 | 4 => Version::V4,
            Some(first) if *first == sender as u8 | 5 => Version::V5,
            Some(_) => return Err("bytes that do not begin a CQL response"),
        };
        let Some(&[_, flags, stream_high, stream_low, opcode, l0, l1, l2, l3]) = bytes.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        if length > limit {
            return Err("a frame longer than any answer can be");
        }
        Ok(Some(Header { version, flags, stream: i16::from_be_bytes([stream_high, stream_low]), opcode, length }))
    }
}
