//! Compression of frames' bodies in version 4 (section 5), and of blocks in version 5.

use std::{fmt, str::FromStr};

use super::Garbage;

/// How frames are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// LZ4, in both versions of the protocol.
    Lz4,
    /// Snappy, in version 4 only.
    Snappy,
}

impl Compression {
    /// As STARTUP and SUPPORTED name it.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Lz4 => "lz4",
            Compression::Snappy => "snappy",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no compression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a compression of CQL; write lz4, snappy, or none at all")]
pub struct UnknownCompression(pub String);

impl FromStr for Compression {
    type Err = UnknownCompression;

    fn from_str(text: &str) -> Result<Self, UnknownCompression> {
        let known = [Compression::Lz4, Compression::Snappy];
        let found = known.into_iter().find(|known| text.trim().eq_ignore_ascii_case(known.name()));
        found.ok_or_else(|| UnknownCompression(text.to_owned()))
    }
}

/// Appends `body` compressed, unless that is no shorter: then appends nothing and returns `false`.
pub(super) fn compress_body(compression: Compression, body: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let length = match compression {
        Compression::Lz4 => {
            // Cassandra puts the length before the block.
            out.extend_from_slice(&(body.len() as u32).to_be_bytes());
            compress_block(body, out)
        }
        Compression::Snappy => {
            out.resize(start + snap::raw::max_compress_len(body.len()), 0);
            snap::raw::Encoder::new().compress(body, &mut out[start..]).ok()
        }
    };
    let whole = length.map(|length| length + if compression == Compression::Lz4 { 4 } else { 0 });
    let kept = whole.filter(|whole| *whole < body.len());
    out.truncate(start + kept.unwrap_or(0));
    kept.is_some()
}

/// Appends `body` decompressed, if that is at most `limit` bytes long.
pub(super) fn decompress_body(
    compression: Compression,
    body: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Garbage> {
    match compression {
        Compression::Lz4 => {
            let (length, block) = body.split_first_chunk().ok_or("a compressed body without its length")?;
            let length = u32::from_be_bytes(*length) as usize;
            if length > limit {
                return Err(TOO_LONG);
            }
            decompress_block(block, length, out)
        }
        Compression::Snappy => {
            let length = snap::raw::decompress_len(body).map_err(|_| "a body that is not Snappy")?;
            if length > limit {
                return Err(TOO_LONG);
            }
            let start = out.len();
            out.resize(start + length, 0);
            let written = snap::raw::Decoder::new().decompress(body, &mut out[start..]);
            if written.ok() == Some(length) { Ok(()) } else { Err("a body that is not Snappy") }
        }
    }
}

const TOO_LONG: Garbage = "a compressed body longer than any answer can be";

/// Appends an LZ4 block and returns its length.
pub(super) fn compress_block(bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
    let length = lz4_flex::block::compress_into(bytes, &mut out[start..]).ok()?;
    out.truncate(start + length);
    Some(length)
}

/// Appends what an LZ4 block holds, if it is `length` bytes.
pub(super) fn decompress_block(block: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), Garbage> {
    let start = out.len();
    out.resize(start + length, 0);
    let written = lz4_flex::block::decompress_into(block, &mut out[start..]);
    if written.ok() == Some(length) { Ok(()) } else { Err("a block that is not LZ4") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 bytes of 7, assembled by hand from the descriptions of the formats.
    const LZ4: [u8; 15] = [
        0, 0, 0, 32, // length
        0x1F, 7, 1, 0, 7, // one literal; 4 + 15 + 7 bytes from one byte before
        0x50, 7, 7, 7, 7, 7, // five literals at the end
    ];
    const SNAPPY: [u8; 6] = [
        32, // length
        0, 7, // one literal
        0x7A, 1, 0, // 31 bytes from one byte before
    ];

    #[test]
    fn bodies_of_other_programs_are_read() {
        for (compression, body) in [(Compression::Lz4, &LZ4[..]), (Compression::Snappy, &SNAPPY)] {
            let mut out = vec![1];
            decompress_body(compression, body, 32, &mut out).unwrap();
            assert_eq!(out, [&[1][..], &[7; 32]].concat());
            assert_eq!(decompress_body(compression, body, 31, &mut Vec::new()), Err(TOO_LONG));
            assert!(decompress_body(compression, &body[..body.len() - 1], 32, &mut Vec::new()).is_err());
            assert!(decompress_body(compression, &[], 32, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn what_is_compressed_is_read_back_and_what_does_not_shrink_is_left_alone() {
        for compression in [Compression::Lz4, Compression::Snappy] {
            let body: Vec<u8> = b"a row of words, ".repeat(100);
            let mut out = vec![1, 2];
            assert!(compress_body(compression, &body, &mut out));
            assert!(out.len() < body.len() / 4);
            let mut again = Vec::new();
            decompress_body(compression, &out[2..], body.len(), &mut again).unwrap();
            assert_eq!(again, body);
            for short in [&b""[..], b"x", b"abcdefgh"] {
                assert!(!compress_body(compression, short, &mut out), "{compression} {short:?}");
            }
            assert_eq!(out[..2], [1, 2]);
        }
    }

    #[test]
    fn compressions_are_known_by_name() {
        assert_eq!("LZ4".parse(), Ok(Compression::Lz4));
        assert_eq!("snappy".parse(), Ok(Compression::Snappy));
        assert!("zstd".parse::<Compression>().is_err());
    }
}
