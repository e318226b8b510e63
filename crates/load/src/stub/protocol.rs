//! From a request frame to the frame that answers it.

use std::collections::HashMap;

use super::{Answer, tables::Cluster};
use crate::wire::{HEADER, kind, metadata, opcode, query};

/// Ids of the two statements on the table: 16 bytes, as long as Cassandra's.
const READ_ID: [u8; 16] = *b"read read read r";
const WRITE_ID: [u8; 16] = *b"write write writ";
/// An id that begins so is followed by the statement itself.
const TEXT_ID: u8 = b't';

const BLOB: u16 = 0x0003;
const BIGINT: u16 = 0x0002;
const INVALID: u32 = 0x2200;
const PROTOCOL_ERROR: u32 = 0x000A;

/// A row: its newest value and the one before.
#[derive(Default)]
struct Row {
    timestamp: i64,
    value: Vec<u8>,
    before: Option<Vec<u8>>,
}

/// What all nodes share.
pub(super) struct Database {
    pub(super) cluster: Cluster,
    rows: HashMap<Vec<u8>, Row>,
}

/// What to do with a request.
pub(super) enum Reply {
    /// Answer at once: this frame.
    Now(Vec<u8>),
    /// The same for a prepared read or write, after the node's delay.
    Executed(Vec<u8>),
    /// Received, but never to be answered.
    Never,
    /// Close the connection.
    Close,
}

/// The length of the first frame in `bytes`, once all of it is there.
///
/// # Errors
/// The bytes do not begin a request of version 4; the answer to send before closing.
pub(super) fn frame_length(bytes: &[u8]) -> Result<Option<usize>, Vec<u8>> {
    match bytes {
        [0x04, _, _, _, _, l0, l1, l2, l3, ..] => {
            let length = HEADER + u32::from_be_bytes([*l0, *l1, *l2, *l3]) as usize;
            Ok((bytes.len() >= length).then_some(length))
        }
        [0x04, ..] | [] => Ok(None),
        _ => Err(error([0, 0], PROTOCOL_ERROR, "Invalid or unsupported protocol version; supported: 4/v4")),
    }
}

fn frame(stream: [u8; 2], opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.extend_from_slice(&[0x84, 0, stream[0], stream[1], opcode]);
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn error(stream: [u8; 2], code: u32, message: &str) -> Vec<u8> {
    let mut body = code.to_be_bytes().to_vec();
    body.extend_from_slice(&(message.len() as u16).to_be_bytes());
    body.extend_from_slice(message.as_bytes());
    // The shortest forms of what some codes carry besides: consistency, counts, kind of write, id.
    body.extend_from_slice(match code {
        0x1000 => &[0, 4, 0, 0, 0, 2, 0, 0, 0, 1],
        0x1100 => &[0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 6, b'S', b'I', b'M', b'P', b'L', b'E'],
        0x1200 => &[0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0],
        0x2500 => &[0, 1, b'?'],
        _ => &[],
    });
    frame(stream, opcode::ERROR, &body)
}

fn void(stream: [u8; 2]) -> Vec<u8> {
    frame(stream, opcode::RESULT, &kind::VOID.to_be_bytes())
}

impl Database {
    pub(super) fn new(cluster: Cluster) -> Self {
        Database { cluster, rows: HashMap::new() }
    }

    /// Answers one whole frame, as node `node` that answers prepared statements in the way of `answer`.
    pub(super) fn reply(&mut self, node: usize, request: &[u8], answer: Answer) -> Reply {
        let stream = [request[2], request[3]];
        let body = &request[HEADER..];
        let reply = match request[4] {
            opcode::STARTUP | opcode::REGISTER => Some(frame(stream, opcode::READY, &[])),
            opcode::OPTIONS => Some(frame(stream, opcode::SUPPORTED, SUPPORTED)),
            opcode::QUERY => long_string(body).map(|text| self.run(node, stream, text)),
            opcode::PREPARE => long_string(body).map(|text| prepared(stream, text)),
            opcode::EXECUTE => return self.execute(node, stream, body, answer).unwrap_or_else(|| malformed(stream)),
            _ => None,
        };
        reply.map_or_else(|| malformed(stream), Reply::Now)
    }

    fn run(&mut self, node: usize, stream: [u8; 2], text: &str) -> Vec<u8> {
        let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || "{}':,=\"".contains(c)).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let is = |place: usize, word: &str| words.get(place).is_some_and(|found| found.eq_ignore_ascii_case(word));
        if is(0, "select") {
            return match self.cluster.select(node, text) {
                Ok(body) => frame(stream, opcode::RESULT, &body),
                Err(message) => error(stream, INVALID, &message),
            };
        }
        if is(0, "create") && is(1, "keyspace") {
            let name = words.iter().skip(2).find(|word| !["IF", "NOT", "EXISTS"].contains(word));
            let factor = words.iter().skip_while(|word| **word != "replication_factor").nth(1);
            if let (Some(name), Some(Ok(factor))) = (name, factor.map(|factor| factor.parse())) {
                self.cluster.keyspaces.entry((*name).to_owned()).or_insert(factor);
            }
        }
        void(stream)
    }

    fn execute(&mut self, node: usize, stream: [u8; 2], body: &[u8], answer: Answer) -> Option<Reply> {
        let mut rest = body;
        let id = short(&mut rest).and_then(|length| take(&mut rest, usize::from(length)))?;
        if id.first() == Some(&TEXT_ID) {
            let text = std::str::from_utf8(&id[1..]).ok()?;
            return Some(Reply::Now(self.run(node, stream, text)));
        }
        let write = id == WRITE_ID;
        if !write && id != READ_ID {
            return Some(Reply::Now(error(stream, 0x2500, "the stub does not know this statement")));
        }
        let _consistency = short(&mut rest)?;
        let flags = take(&mut rest, 1)?[0];
        let count = if flags & query::VALUES != 0 { short(&mut rest)? } else { 0 };
        let mut values: [&[u8]; 2] = [&[]; 2];
        for place in 0..usize::from(count) {
            let length = int(&mut rest)?;
            *values.get_mut(place)? = take(&mut rest, length as usize)?;
        }
        let [key, value] = values;
        let full_metadata = flags & query::SKIP_METADATA == 0;
        let executed = match answer {
            Answer::Silence => return Some(Reply::Never),
            Answer::Close => return Some(Reply::Close),
            Answer::Garbage => b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            Answer::Error(code) => error(stream, code, "as the stub was told"),
            Answer::WrongKind if write => rows(stream, None, false),
            Answer::WrongKind => void(stream),
            _ if write => {
                self.write(key, value, timestamp(flags, rest)?);
                void(stream)
            }
            _ => self.read(stream, key, full_metadata, answer),
        };
        Some(Reply::Executed(executed))
    }

    fn write(&mut self, key: &[u8], value: &[u8], timestamp: Option<i64>) {
        if !self.rows.contains_key(key) {
            self.rows.insert(key.to_vec(), Row::default());
        }
        let Some(row) = self.rows.get_mut(key) else { return };
        // Without a client's timestamp the last to come is the newest.
        let timestamp = timestamp.unwrap_or(row.timestamp + 1);
        if timestamp >= row.timestamp {
            let old = std::mem::replace(&mut row.value, value.to_vec());
            // The first write has nothing before it.
            row.before = (row.timestamp > 0).then_some(old);
            row.timestamp = timestamp;
        }
    }

    fn read(&self, stream: [u8; 2], key: &[u8], full_metadata: bool, answer: Answer) -> Vec<u8> {
        let row = self.rows.get(key).filter(|_| answer != Answer::NoRow);
        let value = row.map(|row| match (answer, &row.before) {
            (Answer::Stale, Some(before)) => before,
            _ => &row.value,
        });
        let mut frame = rows(stream, value.map(Vec::as_slice), full_metadata);
        if answer == Answer::Flipped
            && value.is_some()
            && let Some(last) = frame.last_mut()
        {
            *last ^= 1;
        }
        frame
    }
}

/// Rows of one column, `value blob`.
fn rows(stream: [u8; 2], value: Option<&[u8]>, full_metadata: bool) -> Vec<u8> {
    let mut body = kind::ROWS.to_be_bytes().to_vec();
    if full_metadata {
        table_metadata(&mut body, &[("value", BLOB)], None);
    } else {
        body.extend_from_slice(&metadata::NO_METADATA.to_be_bytes());
        body.extend_from_slice(&1u32.to_be_bytes());
    }
    body.extend_from_slice(&u32::from(value.is_some()).to_be_bytes());
    if let Some(value) = value {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
    frame(stream, opcode::RESULT, &body)
}

/// Metadata of rows, or with the place of the partition key that of bound values (4.2.5.4).
fn table_metadata(out: &mut Vec<u8>, columns: &[(&str, u16)], partition_key: Option<u16>) {
    let string = |out: &mut Vec<u8>, text: &str| {
        out.extend_from_slice(&(text.len() as u16).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    };
    out.extend_from_slice(&metadata::GLOBAL_TABLE.to_be_bytes());
    out.extend_from_slice(&(columns.len() as u32).to_be_bytes());
    if let Some(place) = partition_key {
        out.extend_from_slice(&1u32.to_be_bytes());
        out.extend_from_slice(&place.to_be_bytes());
    }
    string(out, "stub");
    string(out, "kv");
    for (name, code) in columns {
        string(out, name);
        out.extend_from_slice(&code.to_be_bytes());
    }
}

fn prepared(stream: [u8; 2], text: &str) -> Vec<u8> {
    let lower = text.trim_start().to_ascii_lowercase();
    let write = lower.starts_with("insert");
    let read = lower.starts_with("select") && !lower.contains(" from system");
    let id = match (read, write) {
        (true, _) => READ_ID.to_vec(),
        (_, true) => WRITE_ID.to_vec(),
        _ => [&[TEXT_ID], text.as_bytes()].concat(),
    };
    let mut body = kind::PREPARED.to_be_bytes().to_vec();
    body.extend_from_slice(&(id.len() as u16).to_be_bytes());
    body.extend_from_slice(&id);
    let columns: &[(&str, u16)] = match (read, write) {
        (true, _) => &[("key", BIGINT)],
        (_, true) => &[("key", BIGINT), ("value", BLOB)],
        _ => &[],
    };
    if columns.is_empty() {
        // No bound values: no flags, no columns, no partition key.
        body.extend_from_slice(&[0; 12]);
    } else {
        table_metadata(&mut body, columns, Some(0));
    }
    if read {
        table_metadata(&mut body, &[("value", BLOB)], None);
    } else {
        body.extend_from_slice(&metadata::NO_METADATA.to_be_bytes());
        body.extend_from_slice(&0u32.to_be_bytes());
    }
    frame(stream, opcode::RESULT, &body)
}

/// `[string multimap]`: one version of CQL, no compression.
const SUPPORTED: &[u8] = b"\x00\x02\x00\x0bCQL_VERSION\x00\x01\x00\x053.4.7\x00\x0bCOMPRESSION\x00\x00";

fn malformed(stream: [u8; 2]) -> Reply {
    Reply::Now(error(stream, PROTOCOL_ERROR, "the stub does not understand this request"))
}

/// The client's timestamp behind the values, if the flags announce one; `None` if the body is too short.
fn timestamp(flags: u8, mut rest: &[u8]) -> Option<Option<i64>> {
    if flags & query::DEFAULT_TIMESTAMP == 0 {
        return Some(None);
    }
    // Page size, paging state and serial consistency come first (4.1.4).
    if flags & 0x04 != 0 {
        int(&mut rest)?;
    }
    if flags & 0x08 != 0 {
        let length = int(&mut rest)?;
        take(&mut rest, length as usize)?;
    }
    if flags & 0x10 != 0 {
        short(&mut rest)?;
    }
    let bytes = take(&mut rest, 8)?;
    Some(Some(i64::from_be_bytes(bytes.try_into().ok()?)))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn short(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(rest, 2)?.try_into().ok()?))
}

fn int(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}

fn long_string(mut body: &[u8]) -> Option<&str> {
    let length = int(&mut body)?;
    std::str::from_utf8(take(&mut body, length as usize)?).ok()
}
