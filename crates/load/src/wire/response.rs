//! Decoding of responses, without allocation except for the words of an error. No bytes make it panic.

use super::{Version, flag, kind, metadata, opcode};

pub(crate) use super::{Garbage, Header, classify};

/// The header at the beginning of `bytes`, or `None` while there are too few of them.
/// A body beyond `limit` bytes is refused: no answer to this workload is that long.
pub(crate) fn header(bytes: &[u8], limit: usize) -> Result<Option<Header>, Garbage> {
    match Header::read(bytes, limit)? {
        Some(header) if header.version != Version::V4 => Err("a CQL response of another version"),
        Some(header) if header.flags & flag::COMPRESSION != 0 => {
            Err("a compressed frame, though no compression was agreed")
        }
        header => Ok(header),
    }
}

const SHORT: Garbage = "a body that ends too early";

/// A response, borrowing from the frame's body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Response<'a> {
    Ready,
    /// The server wants credentials; the name of its authenticator.
    Authenticate(&'a str),
    /// A write was acknowledged.
    Void,
    /// The first column of the first row: `None` without a row, `Some(None)` for a null.
    Value(Option<Option<&'a [u8]>>),
    /// The id of a prepared statement.
    Prepared(&'a [u8]),
    Error {
        code: u32,
        message: &'a str,
    },
    /// Well-formed, but nothing that this client asks for.
    Other,
}

/// Reads from the front of a body.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Garbage> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<u16, Garbage> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*bytes))
    }

    fn int(&mut self) -> Result<u32, Garbage> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    fn string(&mut self) -> Result<&'a str, Garbage> {
        let length = self.short()?;
        std::str::from_utf8(self.take(usize::from(length))?).map_err(|_| "a text that is not UTF-8")
    }

    /// `[bytes]`: a negative length is a null.
    fn bytes(&mut self) -> Result<Option<&'a [u8]>, Garbage> {
        let length = self.int()? as i32;
        if length < 0 { Ok(None) } else { self.take(length as usize).map(Some) }
    }

    /// An `[option]`: the type of a column, nested for collections (4.2.5.2).
    fn skip_type(&mut self, depth: u8) -> Result<(), Garbage> {
        if depth == 0 {
            return Err("a column type nested too deeply");
        }
        match self.short()? {
            0x0000 => self.string().map(drop),
            0x0020 | 0x0022 => self.skip_type(depth - 1),
            0x0021 => self.skip_type(depth - 1).and_then(|()| self.skip_type(depth - 1)),
            0x0030 => {
                self.string()?;
                self.string()?;
                for _ in 0..self.short()? {
                    self.string()?;
                    self.skip_type(depth - 1)?;
                }
                Ok(())
            }
            0x0031 => (0..self.short()?).try_for_each(|_| self.skip_type(depth - 1)),
            _ => Ok(()),
        }
    }

    /// The metadata before rows; returns the number of columns.
    fn skip_metadata(&mut self) -> Result<u32, Garbage> {
        let flags = self.int()?;
        let columns = self.int()?;
        if flags & metadata::MORE_PAGES != 0 {
            self.bytes()?;
        }
        if flags & metadata::NO_METADATA != 0 {
            return Ok(columns);
        }
        let global = flags & metadata::GLOBAL_TABLE != 0;
        if global {
            self.string()?;
            self.string()?;
        }
        for _ in 0..columns {
            if !global {
                self.string()?;
                self.string()?;
            }
            self.string()?;
            self.skip_type(16)?;
        }
        Ok(columns)
    }

    fn rows(&mut self) -> Result<Response<'a>, Garbage> {
        let columns = self.skip_metadata()?;
        let rows = self.int()?;
        if rows == 0 {
            return Ok(Response::Value(None));
        }
        if columns == 0 {
            return Err("a row without columns");
        }
        Ok(Response::Value(Some(self.bytes()?)))
    }
}

/// Decodes the body that belongs to `header`.
pub(crate) fn decode(header: Header, body: &[u8]) -> Result<Response<'_>, Garbage> {
    let mut reader = Reader(body);
    if header.flags & flag::TRACING != 0 {
        reader.take(16)?;
    }
    if header.flags & flag::WARNING != 0 {
        for _ in 0..reader.short()? {
            reader.string()?;
        }
    }
    if header.flags & flag::CUSTOM_PAYLOAD != 0 {
        for _ in 0..reader.short()? {
            reader.string()?;
            reader.bytes()?;
        }
    }
    match header.opcode {
        opcode::READY => Ok(Response::Ready),
        opcode::AUTHENTICATE => reader.string().map(Response::Authenticate),
        opcode::ERROR => Ok(Response::Error { code: reader.int()?, message: reader.string()? }),
        opcode::RESULT => match reader.int()? {
            kind::VOID => Ok(Response::Void),
            kind::ROWS => reader.rows(),
            kind::PREPARED => {
                let length = reader.short()?;
                reader.take(usize::from(length)).map(Response::Prepared)
            }
            kind::SET_KEYSPACE | kind::SCHEMA_CHANGE => Ok(Response::Other),
            _ => Err("a result of unknown kind"),
        },
        opcode::SUPPORTED | opcode::EVENT => Ok(Response::Other),
        _ => Err("an opcode that no server sends"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;
    use crate::random::Random;
    use crate::wire::HEADER;

    fn whole(frame: &[u8]) -> Result<Response<'_>, Garbage> {
        let header = header(frame, 1 << 20)?.expect("a whole header");
        assert_eq!(header.length, frame.len() - HEADER, "the frame's length");
        decode(header, &frame[HEADER..])
    }

    #[test]
    fn ready_and_authenticate_decode() {
        assert_eq!(whole(&[0x84, 0, 0, 0, 0x02, 0, 0, 0, 0]), Ok(Response::Ready));
        let frame = [0x84, 0, 0, 0, 0x03, 0, 0, 0, 4, 0, 2, b'P', b'A'];
        assert_eq!(whole(&frame), Ok(Response::Authenticate("PA")));
    }

    #[test]
    fn an_acknowledged_write_decodes() {
        #[rustfmt::skip]
        let frame = [
            0x84, 0x00, 0x00, 0x09, 0x08,         // response v4, no flags, stream 9, RESULT
            0x00, 0x00, 0x00, 0x04,               // body of 4 bytes
            0x00, 0x00, 0x00, 0x01,               // Void
        ];
        assert_eq!(header(&frame, 100).unwrap().unwrap().stream, 9);
        assert_eq!(whole(&frame), Ok(Response::Void));
    }

    #[test]
    fn rows_without_metadata_decode() {
        #[rustfmt::skip]
        let frame = [
            0x84, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x17,
            0x00, 0x00, 0x00, 0x02,               // Rows
            0x00, 0x00, 0x00, 0x04,               // flags: no metadata
            0x00, 0x00, 0x00, 0x01,               // one column
            0x00, 0x00, 0x00, 0x01,               // one row
            0x00, 0x00, 0x00, 0x03, 1, 2, 3,      // [bytes]
        ];
        assert_eq!(whole(&frame), Ok(Response::Value(Some(Some(&[1, 2, 3])))));
        let mut empty = frame[..25].to_vec();
        (empty[8], empty[24]) = (0x10, 0);
        assert_eq!(whole(&empty), Ok(Response::Value(None)));
    }

    #[test]
    fn rows_with_metadata_tracing_warnings_and_payload_decode() {
        let mut body = Vec::new();
        body.extend_from_slice(&[7; 16]); // tracing id
        body.extend_from_slice(&[0, 1, 0, 2, b'h', b'i']); // one warning
        body.extend_from_slice(&[0, 1, 0, 1, b'k', 0, 0, 0, 1, 9]); // a payload of one pair
        body.extend_from_slice(&[0, 0, 0, 2, 0, 0, 0, 3]); // Rows; global table, more pages
        body.extend_from_slice(&[0, 0, 0, 2, 0, 0, 0, 1, 0xFF]); // two columns, paging state
        body.extend_from_slice(&[0, 1, b'k', 0, 1, b't']); // keyspace, table
        body.extend_from_slice(&[0, 1, b'v', 0, 3]); // v blob
        body.extend_from_slice(&[0, 1, b'm', 0, 0x21, 0, 0x0D, 0, 0x22, 0, 2]); // m map<varchar, set<bigint>>
        body.extend_from_slice(&[0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]); // one row; null
        let header = Header { version: Version::V4, flags: 0x0E, stream: 0, opcode: 0x08, length: body.len() };
        assert_eq!(decode(header, &body), Ok(Response::Value(Some(None))));
    }

    #[test]
    fn errors_and_prepared_ids_decode() {
        let frame = [0x84, 0, 0, 1, 0, 0, 0, 0, 10, 0, 0, 0x10, 0x01, 0, 4, b'b', b'u', b's', b'y'];
        assert_eq!(whole(&frame), Ok(Response::Error { code: 0x1001, message: "busy" }));
        assert_eq!(classify(0x1001), ErrorClass::Overloaded);
        let frame = [0x84, 0, 0, 1, 8, 0, 0, 0, 8, 0, 0, 0, 4, 0, 2, 0xAB, 0xCD];
        assert_eq!(whole(&frame), Ok(Response::Prepared(&[0xAB, 0xCD])));
    }

    #[test]
    fn strangers_are_recognised_by_their_first_byte() {
        assert_eq!(header(b"H", 100), Err("bytes that do not begin a CQL response"));
        assert_eq!(header(b"HTTP/1.1 400", 100), Err("bytes that do not begin a CQL response"));
        assert_eq!(header(&[0x84, 0, 0], 100), Ok(None));
        assert!(header(&[0x84, 0, 0, 0, 8, 0x7F, 0, 0, 0], 100).is_err(), "an absurd length");
        assert!(header(&[0x84, 1, 0, 0, 8, 0, 0, 0, 0], 100).is_err(), "compression");
    }

    #[test]
    fn no_bytes_make_the_decoder_panic() {
        let mut random = Random::new(1, 0);
        for _ in 0..300_000 {
            let body: Vec<u8> = (0..random.below(64))
                // Small numbers reach deeper into the decoder than uniform bytes do.
                .map(|_| if random.below(3) > 0 { random.below(6) as u8 } else { random.next() as u8 })
                .collect();
            let header = Header {
                version: Version::V4,
                flags: if random.below(2) == 0 { 0 } else { random.next() as u8 },
                stream: 0,
                opcode: if random.below(4) == 0 { random.next() as u8 } else { 0x08 },
                length: body.len(),
            };
            let _ = decode(header, &body);
            let _ = super::header(&body, 1 << 20);
        }
    }
}
