//! Requests, written straight into a connection's output.
//!
//! Counts and lengths known only at the end are filled in afterwards, so nothing is written twice.

use thiserror::Error;

use super::{
    HEADER, LONGEST_BODY, Statements, Version, opcode, query,
    write::{bytes, long_string},
};
use crate::{Consistency, SerialConsistency};

/// Why a request could not be written. Nothing of it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The workload has written no request.
    #[error("the workload wrote no request for an operation that it had drawn; this is a defect of the workload")]
    Nothing,
    /// It names a statement that [`crate::Workload::statements`] does not have.
    #[error("statement {0} of the workload is not prepared; this is a defect of the workload")]
    UnknownStatement(usize),
    /// `[short]` counts them (section 4.1.4).
    #[error("a statement has more than 65,535 values; bind fewer")]
    TooManyValues,
    /// `[short]` counts them (section 4.1.7).
    #[error("a batch has more than 65,535 statements; make batches smaller")]
    TooManyStatements,
    /// A frame is limited (section 2.5).
    #[error("a request is longer than 256 MiB; write smaller values or batches")]
    TooLong,
    /// The server has said that it closes the connection.
    #[error("the server takes no more requests on this connection")]
    Leaving,
    /// The driver cannot carry it.
    #[error("{0}")]
    Driver(&'static str),
}

/// How a request is to be executed: the query parameters of section 4.1.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters<'a> {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// The same for the serial phase of a conditional write; `None`: SERIAL.
    pub serial_consistency: Option<SerialConsistency>,
    /// How many rows the answer may have at most; `None`: all. A batch has no pages.
    pub page_size: Option<i32>,
    /// Where the page begins, as returned with the previous page. A batch has no pages.
    pub paging_state: Option<&'a [u8]>,
    /// Timestamp of the write in µs since 1970; `None`: the time at which the coordinator receives it.
    pub timestamp_us: Option<i64>,
    /// The names and types of an answer's columns are known and need not be sent.
    pub skip_metadata: bool,
}

impl Parameters<'_> {
    /// One answer with all rows and their metadata; the coordinator sets timestamps.
    pub const fn new(consistency: Consistency) -> Self {
        Parameters {
            consistency,
            serial_consistency: None,
            page_size: None,
            paging_state: None,
            timestamp_us: None,
            skip_metadata: false,
        }
    }
}

/// The kind of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    /// Atomic: in the end all of it is applied, or nothing.
    Logged = 0,
    /// Not atomic.
    Unlogged = 1,
    /// Updates of counters.
    Counter = 2,
}

/// One request to be written: call one of its methods, once. The request is complete when the returned value is
/// dropped.
#[derive(Debug)]
pub struct Request<'a> {
    out: &'a mut Vec<u8>,
    statements: &'a Statements,
    stream: u16,
    result: &'a mut Result<(), RequestError>,
}

/// Appends the frame that `write` writes; nothing after an error.
pub(crate) fn compose(
    out: &mut Vec<u8>,
    stream: u16,
    statements: &Statements,
    write: impl FnOnce(Request<'_>),
) -> Result<(), RequestError> {
    let start = out.len();
    let mut result = Err(RequestError::Nothing);
    write(Request { out, statements, stream, result: &mut result });
    if result.is_ok() && out.len() - start - HEADER > LONGEST_BODY {
        result = Err(RequestError::TooLong);
    }
    match result {
        Ok(()) => {
            let length = (out.len() - start - HEADER) as u32;
            out[start + 5..start + HEADER].copy_from_slice(&length.to_be_bytes());
        }
        Err(_) => out.truncate(start),
    }
    result
}

impl<'a> Request<'a> {
    fn header(&mut self, opcode: u8) {
        *self.result = Ok(());
        let [high, low] = self.stream.to_be_bytes();
        self.out.extend_from_slice(&[self.statements.version() as u8, 0, high, low, opcode, 0, 0, 0, 0]);
    }

    /// EXECUTE (4.1.6) of the statement with this index in [`crate::Workload::statements`]. Its values follow, in the
    /// order of the statement's markers.
    pub fn execute<'v>(mut self, statement: usize, parameters: &Parameters<'v>) -> Values<'v>
    where
        'a: 'v,
    {
        self.header(opcode::EXECUTE);
        match self.statements.execute_head(statement) {
            Some(head) => self.out.extend_from_slice(head),
            None => *self.result = Err(RequestError::UnknownStatement(statement)),
        }
        self.parameters(parameters)
    }

    /// QUERY (4.1.4) of a text. Values for its markers may follow.
    pub fn query<'v>(mut self, cql: &str, parameters: &Parameters<'v>) -> Values<'v>
    where
        'a: 'v,
    {
        self.header(opcode::QUERY);
        long_string(self.out, cql);
        self.parameters(parameters)
    }

    fn parameters<'v>(self, parameters: &Parameters<'v>) -> Values<'v>
    where
        'a: 'v,
    {
        let Request { out, statements, result, .. } = self;
        out.extend_from_slice(&parameters.consistency.code().to_be_bytes());
        let tail = Tail { parameters: *parameters, pages: true };
        let mut flags = tail.flags() | query::VALUES;
        if parameters.skip_metadata {
            flags |= query::SKIP_METADATA;
        }
        put_flags(out, statements.version(), flags);
        Values::begin(out, result, Some(tail))
    }

    /// BATCH (4.1.7). Its statements follow.
    pub fn batch<'v>(mut self, kind: BatchKind, parameters: &Parameters<'v>) -> Batch<'v>
    where
        'a: 'v,
    {
        self.header(opcode::BATCH);
        let Request { out, statements, result, .. } = self;
        out.extend_from_slice(&[kind as u8, 0, 0]);
        let count_at = out.len() - 2;
        Batch { out, statements, result, count_at, count: 0, parameters: *parameters }
    }
}

/// What follows the values.
#[derive(Debug, Clone, Copy)]
struct Tail<'a> {
    parameters: Parameters<'a>,
    /// Paging is possible.
    pages: bool,
}

impl Tail<'_> {
    fn flags(&self) -> u8 {
        let Parameters { serial_consistency, page_size, paging_state, timestamp_us, .. } = self.parameters;
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        flag(self.pages && page_size.is_some(), query::PAGE_SIZE)
            | flag(self.pages && paging_state.is_some(), query::PAGING_STATE)
            | flag(serial_consistency.is_some(), query::SERIAL_CONSISTENCY)
            | flag(timestamp_us.is_some(), query::DEFAULT_TIMESTAMP)
    }

    fn append(&self, out: &mut Vec<u8>) {
        let Parameters { serial_consistency, page_size, paging_state, timestamp_us, .. } = self.parameters;
        if let Some(size) = page_size.filter(|_| self.pages) {
            out.extend_from_slice(&size.to_be_bytes());
        }
        if let Some(state) = paging_state.filter(|_| self.pages) {
            bytes(out, state);
        }
        if let Some(level) = serial_consistency {
            out.extend_from_slice(&level.code().to_be_bytes());
        }
        if let Some(time) = timestamp_us {
            out.extend_from_slice(&time.to_be_bytes());
        }
    }
}

/// The values of a statement, in the order of its markers.
#[derive(Debug)]
pub struct Values<'a> {
    out: &'a mut Vec<u8>,
    result: &'a mut Result<(), RequestError>,
    /// Where their number is filled in.
    count_at: usize,
    count: u32,
    /// What follows, unless these are the values of a statement in a batch.
    tail: Option<Tail<'a>>,
}

impl<'a> Values<'a> {
    fn begin(out: &'a mut Vec<u8>, result: &'a mut Result<(), RequestError>, tail: Option<Tail<'a>>) -> Self {
        let count_at = out.len();
        out.extend_from_slice(&[0, 0]);
        Values { out, result, count_at, count: 0, tail }
    }

    /// A value, as the protocol serializes its type (section 6).
    pub fn value(&mut self, value: &[u8]) -> &mut Self {
        self.count += 1;
        bytes(self.out, value);
        self
    }

    /// A value that `write` appends to the given buffer, whose existing content it must not change.
    pub fn value_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.count += 1;
        self.out.extend_from_slice(&[0; 4]);
        let start = self.out.len();
        write(self.out);
        let length = (self.out.len() - start) as u32;
        self.out[start - 4..start].copy_from_slice(&length.to_be_bytes());
        self
    }

    /// A null.
    pub fn null(&mut self) -> &mut Self {
        self.count += 1;
        self.out.extend_from_slice(&(-1i32).to_be_bytes());
        self
    }

    /// No value: what is stored in the column stays as it is.
    pub fn unset(&mut self) -> &mut Self {
        self.count += 1;
        self.out.extend_from_slice(&(-2i32).to_be_bytes());
        self
    }
}

impl Drop for Values<'_> {
    fn drop(&mut self) {
        match u16::try_from(self.count) {
            Ok(count) => self.out[self.count_at..self.count_at + 2].copy_from_slice(&count.to_be_bytes()),
            Err(_) => *self.result = Err(RequestError::TooManyValues),
        }
        if let Some(tail) = &self.tail {
            if self.count == 0 {
                // The flags end where the count begins, in both versions.
                self.out[self.count_at - 1] &= !query::VALUES;
                self.out.truncate(self.count_at);
            }
            tail.append(self.out);
        }
    }
}

/// The statements of a batch.
#[derive(Debug)]
pub struct Batch<'a> {
    out: &'a mut Vec<u8>,
    statements: &'a Statements,
    result: &'a mut Result<(), RequestError>,
    /// Where their number is filled in.
    count_at: usize,
    count: u32,
    parameters: Parameters<'a>,
}

impl Batch<'_> {
    /// One more statement, by its index in [`crate::Workload::statements`]. Its values follow.
    pub fn add(&mut self, statement: usize) -> Values<'_> {
        self.count += 1;
        self.out.push(1);
        match self.statements.id(statement) {
            Some(id) => self.out.extend_from_slice(id),
            None => *self.result = Err(RequestError::UnknownStatement(statement)),
        }
        Values::begin(self.out, self.result, None)
    }

    /// One more statement, as a text. Values for its markers may follow.
    pub fn add_query(&mut self, cql: &str) -> Values<'_> {
        self.count += 1;
        self.out.push(0);
        long_string(self.out, cql);
        Values::begin(self.out, self.result, None)
    }

    /// How many statements it has so far.
    pub fn statements(&self) -> usize {
        self.count as usize
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        match u16::try_from(self.count) {
            Ok(count) => self.out[self.count_at..self.count_at + 2].copy_from_slice(&count.to_be_bytes()),
            Err(_) => *self.result = Err(RequestError::TooManyStatements),
        }
        let tail = Tail { parameters: self.parameters, pages: false };
        self.out.extend_from_slice(&self.parameters.consistency.code().to_be_bytes());
        put_flags(self.out, self.statements.version(), tail.flags());
        tail.append(self.out);
    }
}

/// Flags are a `[byte]` in version 4 and an `[int]` in version 5.
fn put_flags(out: &mut Vec<u8>, version: Version, flags: u8) {
    match version {
        Version::V4 => out.push(flags),
        Version::V5 => out.extend_from_slice(&[0, 0, 0, flags]),
    }
}

#[cfg(test)]
mod tests;
