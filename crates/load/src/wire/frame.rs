//! The header of a frame (section 2); version 5 calls what it begins an envelope.

use super::{HEADER, Version};

/// Why bytes are not an answer. Short, because it goes into an event of the run.
pub(crate) type Garbage = &'static str;

/// The fixed part of an answer's frame.
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
    /// The header at the beginning of `bytes`, or `None` while there are too few of them.
    /// A body beyond `limit` bytes is refused: no answer to this workload is that long.
    pub(crate) fn read(bytes: &[u8], limit: usize) -> Result<Option<Header>, Garbage> {
        // The first byte alone tells a stranger, who may never send a whole header.
        let version = match bytes.first() {
            None => return Ok(None),
            Some(0x84) => Version::V4,
            Some(0x85) => Version::V5,
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
