//! Encoding of requests, straight into a connection's output buffer.

use super::{opcode, query};
use crate::Consistency;

const VERSION: u8 = 0x04;

/// Appends a frame whose body `body` writes; the length is filled in afterwards.
fn frame(out: &mut Vec<u8>, stream: u16, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let [high, low] = stream.to_be_bytes();
    out.extend_from_slice(&[VERSION, 0, high, low, opcode, 0, 0, 0, 0]);
    body(out);
    let length = (out.len() - start - super::HEADER) as u32;
    out[start + 5..start + super::HEADER].copy_from_slice(&length.to_be_bytes());
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// STARTUP (4.1.1), without compression.
pub(crate) fn startup(out: &mut Vec<u8>, stream: u16) {
    frame(out, stream, opcode::STARTUP, |out| {
        out.extend_from_slice(&1u16.to_be_bytes());
        string(out, "CQL_VERSION");
        string(out, "3.0.0");
    });
}

/// PREPARE (4.1.5).
pub(crate) fn prepare(out: &mut Vec<u8>, stream: u16, statement: &str) {
    frame(out, stream, opcode::PREPARE, |out| {
        out.extend_from_slice(&(statement.len() as u32).to_be_bytes());
        out.extend_from_slice(statement.as_bytes());
    });
}

/// What EXECUTE begins with: the statement's id (`[short bytes]`), consistency, flags, number of values (4.1.6).
fn execute_head(out: &mut Vec<u8>, id: &[u8], consistency: Consistency, flags: u8, values: u16) {
    out.extend_from_slice(&(id.len() as u16).to_be_bytes());
    out.extend_from_slice(id);
    out.extend_from_slice(&consistency.code().to_be_bytes());
    out.push(flags);
    out.extend_from_slice(&values.to_be_bytes());
}

fn bigint(out: &mut Vec<u8>, key: u64) {
    out.extend_from_slice(&8u32.to_be_bytes());
    out.extend_from_slice(&key.to_be_bytes());
}

/// EXECUTE of the read: one value, the key; the rows' metadata is known and need not be sent.
pub(crate) fn read(out: &mut Vec<u8>, stream: u16, id: &[u8], consistency: Consistency, key: u64) {
    frame(out, stream, opcode::EXECUTE, |out| {
        execute_head(out, id, consistency, query::VALUES | query::SKIP_METADATA, 1);
        bigint(out, key);
    });
}

/// One row to write.
pub(crate) struct Row {
    pub(crate) key: u64,
    /// Client timestamp in microseconds, which is also the version in the value.
    pub(crate) version: u64,
    pub(crate) size: usize,
}

/// EXECUTE of the write: key, value, and the client's timestamp.
pub(crate) fn write(out: &mut Vec<u8>, stream: u16, id: &[u8], consistency: Consistency, row: &Row) {
    frame(out, stream, opcode::EXECUTE, |out| {
        execute_head(out, id, consistency, query::VALUES | query::DEFAULT_TIMESTAMP, 2);
        bigint(out, row.key);
        out.extend_from_slice(&(row.size as u32).to_be_bytes());
        crate::value::append(out, row.key, row.version, row.size);
        out.extend_from_slice(&row.version.to_be_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = vec![0xEE; 3];
        encode(&mut out);
        assert_eq!(out[..3], [0xEE; 3], "what stood in the buffer before is left alone");
        out.split_off(3)
    }

    #[test]
    fn startup_is_as_the_specification_says() {
        #[rustfmt::skip]
        let expected = [
            0x04, 0x00, 0x00, 0x07, 0x01,         // request v4, no flags, stream 7, STARTUP
            0x00, 0x00, 0x00, 0x16,               // body of 22 bytes
            0x00, 0x01,                           // [string map] of one pair
            0x00, 0x0B, b'C', b'Q', b'L', b'_', b'V', b'E', b'R', b'S', b'I', b'O', b'N',
            0x00, 0x05, b'3', b'.', b'0', b'.', b'0',
        ];
        assert_eq!(encoded(|out| startup(out, 7)), expected);
    }

    #[test]
    fn prepare_is_as_the_specification_says() {
        #[rustfmt::skip]
        let expected = [
            0x04, 0x00, 0x01, 0x02, 0x09,         // request v4, no flags, stream 258, PREPARE
            0x00, 0x00, 0x00, 0x0C,               // body of 12 bytes
            0x00, 0x00, 0x00, 0x08,               // [long string] of 8 bytes
            b'S', b'E', b'L', b'E', b'C', b'T', b' ', b'1',
        ];
        assert_eq!(encoded(|out| prepare(out, 258, "SELECT 1")), expected);
    }

    #[test]
    fn a_read_is_as_the_specification_says() {
        #[rustfmt::skip]
        let expected = [
            0x04, 0x00, 0x7F, 0xFF, 0x0A,         // request v4, no flags, stream 32767, EXECUTE
            0x00, 0x00, 0x00, 0x15,               // body of 21 bytes
            0x00, 0x02, 0xAA, 0xBB,               // id, [short bytes]
            0x00, 0x04,                           // QUORUM
            0x03,                                 // values | skip metadata
            0x00, 0x01,                           // one value
            0x00, 0x00, 0x00, 0x08,               // of 8 bytes: a bigint
            0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
        ];
        let key = 0x0102_0304_0506_0708;
        assert_eq!(encoded(|out| read(out, 32767, &[0xAA, 0xBB], Consistency::Quorum, key)), expected);
    }

    #[test]
    fn a_write_is_as_the_specification_says() {
        #[rustfmt::skip]
        let expected = [
            0x04, 0x00, 0x00, 0x01, 0x0A,         // request v4, no flags, stream 1, EXECUTE
            0x00, 0x00, 0x00, 0x30,               // body of 48 bytes
            0x00, 0x01, 0xAA,                     // id, [short bytes]
            0x00, 0x0A,                           // LOCAL_ONE
            0x21,                                 // values | default timestamp
            0x00, 0x02,                           // two values
            0x00, 0x00, 0x00, 0x08,               // key: a bigint
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05,
            0x00, 0x00, 0x00, 0x10,               // value: a blob of 16 bytes
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, // it begins with its key
            0x00, 0x00, 0x00, 0x00, 0x00, 0x0F, 0x42, 0x40, // and its version
            0x00, 0x00, 0x00, 0x00, 0x00, 0x0F, 0x42, 0x40, // timestamp: 1,000,000 µs
        ];
        let row = Row { key: 5, version: 1_000_000, size: 16 };
        assert_eq!(encoded(|out| write(out, 1, &[0xAA], Consistency::LocalOne, &row)), expected);
    }
}
