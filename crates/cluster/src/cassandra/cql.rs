//! Just enough of the CQL binary protocol, version 4, to ask a node what it knows.
//!
//! A driver would discover the cluster, keep pools and retry: on a cluster that is still starting that is
//! slow, and hides which node answered. Here one blocking connection asks one node one question.
//! Format: `native_protocol_v4.spec` of Apache Cassandra (section numbers below).

use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    time::Duration,
};

use brownout_load::{Credentials, Tls};
use thiserror::Error;

use crate::stream::Stream;

/// Operations (section 2.4).
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const AUTHENTICATE: u8 = 0x03;
const OPTIONS: u8 = 0x05;
const QUERY: u8 = 0x07;
const RESULT: u8 = 0x08;
const AUTH_RESPONSE: u8 = 0x0f;
const AUTH_SUCCESS: u8 = 0x10;

/// Kind of a result that carries rows (section 4.2.5).
const ROWS: u32 = 2;
/// Consistency ONE (section 3).
const ONE: u16 = 1;
/// Query flag: leave the column descriptions out of the answer (section 4.1.4).
const SKIP_METADATA: u8 = 0x02;
/// Result flag: more pages follow, and a paging state (section 4.2.5.2).
const HAS_MORE_PAGES: u32 = 0x02;
/// Result flag: there are no column descriptions.
const NO_METADATA: u32 = 0x04;
/// Error code: the coordinator takes too few replicas for alive (section 9).
pub(super) const UNAVAILABLE: u32 = 0x1000;

/// A longer answer than this is none of ours.
const MAX_BODY: usize = 16 << 20;

#[derive(Debug, Error)]
pub(super) enum CqlError {
    #[error("{}", words(.0))]
    Io(#[from] io::Error),
    #[error("it answers '{message}' (code {code:#06x})")]
    Server { code: u32, message: String },
    #[error("it requires credentials")]
    WantsCredentials,
    #[error("its answer is not CQL version 4: {0}")]
    Protocol(&'static str),
}

/// A read that ran out of time says "would block", which tells nobody anything.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        // What is wrong with a certificate is told inside.
        _ if error.get_ref().is_some() => error.to_string(),
        kind => kind.to_string(),
    }
}

/// One value of a row: its bytes, or null.
pub(super) type Value = Option<Vec<u8>>;

pub(super) struct Connection(Stream);

impl Connection {
    /// Connects and starts a session; `patience` bounds each wait for the node.
    pub(super) fn open(address: SocketAddr, patience: Duration, tls: Option<&Tls>) -> Result<Connection, CqlError> {
        Connection::open_as(address, patience, tls, None)
    }

    /// The same, with a login for servers that ask for one (section 4.1.2).
    pub(super) fn open_as(
        address: SocketAddr,
        patience: Duration,
        tls: Option<&Tls>,
        login: Option<&Credentials>,
    ) -> Result<Connection, CqlError> {
        let mut connection = Connection(Stream::connect(address, patience, tls)?);
        match (connection.ask(STARTUP, &startup())?.0, login) {
            (READY, _) => Ok(connection),
            (AUTHENTICATE, None) => Err(CqlError::WantsCredentials),
            (AUTHENTICATE, Some(login)) => match connection.ask(AUTH_RESPONSE, &login_body(login))?.0 {
                AUTH_SUCCESS => Ok(connection),
                _ => Err(CqlError::Protocol("no AUTH_SUCCESS after AUTH_RESPONSE")),
            },
            _ => Err(CqlError::Protocol("neither READY nor AUTHENTICATE after STARTUP")),
        }
    }

    /// What it speaks through, once its session has begun.
    pub(super) fn into_stream(self) -> Stream {
        self.0
    }

    /// The rows that answer `query`, at consistency ONE; one page.
    pub(super) fn query(&mut self, query: &str) -> Result<Vec<Vec<Value>>, CqlError> {
        match self.ask(QUERY, &query_body(query))? {
            (RESULT, body) => rows(&body).ok_or(CqlError::Protocol("a result without rows")),
            _ => Err(CqlError::Protocol("no RESULT after QUERY")),
        }
    }

    /// Has a statement done that gives no rows.
    pub(super) fn execute(&mut self, statement: &str) -> Result<(), CqlError> {
        match self.ask(QUERY, &query_body(statement))?.0 {
            RESULT => Ok(()),
            _ => Err(CqlError::Protocol("no RESULT after QUERY")),
        }
    }

    fn ask(&mut self, opcode: u8, body: &[u8]) -> Result<(u8, Vec<u8>), CqlError> {
        self.0.write_all(&frame(opcode, body))?;
        // Header: version, flags, stream (2), opcode, length (4) (section 2).
        let mut header = [0; 9];
        self.0.read_exact(&mut header)?;
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
        if header[0] != 0x84 || length > MAX_BODY {
            return Err(CqlError::Protocol("not a version 4 response header"));
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        match header[4] {
            ERROR => Err(error(&body).ok_or(CqlError::Protocol("an error without a code"))?),
            opcode => Ok((opcode, body)),
        }
    }
}

/// The first words of a session.
pub(super) fn hello() -> Vec<u8> {
    frame(STARTUP, &startup())
}

/// A question whose answer will bear this stream's number; rows are at consistency ONE, one page.
pub(super) fn query(stream: i16, query: &str) -> Vec<u8> {
    on_stream(stream, frame(QUERY, &query_body(query)))
}

/// The cheapest question that there is (section 4.1.3): drivers ask it to see whether a node lives.
pub(super) fn options(stream: i16) -> Vec<u8> {
    on_stream(stream, frame(OPTIONS, &[]))
}

fn on_stream(stream: i16, mut frame: Vec<u8>) -> Vec<u8> {
    frame[2..4].copy_from_slice(&stream.to_be_bytes());
    frame
}

/// The stream of a question that was answered, and the body if the answer is a result.
pub(super) type Answered = (i16, Option<Vec<u8>>);

/// Takes the first answer that is whole from what has come.
pub(super) fn take_answer(input: &mut Vec<u8>) -> Result<Option<Answered>, CqlError> {
    let Some(header) = input.first_chunk::<9>() else { return Ok(None) };
    let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
    if header[0] != 0x84 || length > MAX_BODY {
        return Err(CqlError::Protocol("not a version 4 response header"));
    }
    let (stream, opcode) = (i16::from_be_bytes([header[2], header[3]]), header[4]);
    if input.len() < 9 + length {
        return Ok(None);
    }
    let body = input.drain(..9 + length).skip(9).collect();
    match opcode {
        RESULT => Ok(Some((stream, Some(body)))),
        AUTHENTICATE => Err(CqlError::WantsCredentials),
        _ => Ok(Some((stream, None))),
    }
}

fn frame(opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x04, 0, 0, 0, opcode];
    frame.extend((body.len() as u32).to_be_bytes());
    frame.extend(body);
    frame
}

/// A string map with the one option that is required (section 4.1.1).
fn startup() -> Vec<u8> {
    let mut body = vec![0, 1];
    for text in ["CQL_VERSION", "3.0.0"] {
        body.extend((text.len() as u16).to_be_bytes());
        body.extend(text.as_bytes());
    }
    body
}

/// What `PasswordAuthenticator` takes: SASL PLAIN (RFC 4616).
fn login_body(login: &Credentials) -> Vec<u8> {
    let token = format!("\0{}\0{}", login.user, login.password);
    let mut body = (token.len() as u32).to_be_bytes().to_vec();
    body.extend(token.as_bytes());
    body
}

fn query_body(query: &str) -> Vec<u8> {
    let mut body = (query.len() as u32).to_be_bytes().to_vec();
    body.extend(query.as_bytes());
    body.extend(ONE.to_be_bytes());
    body.push(SKIP_METADATA);
    body
}

fn error(body: &[u8]) -> Option<CqlError> {
    let mut input = Input(body);
    let code = input.int()?;
    let length = input.short()?;
    let message = String::from_utf8_lossy(input.take(length.into())?).into_owned();
    Some(CqlError::Server { code, message })
}

pub(super) fn rows(body: &[u8]) -> Option<Vec<Vec<Value>>> {
    let mut input = Input(body);
    if input.int()? != ROWS {
        return None;
    }
    let flags = input.int()?;
    let columns = input.int()?;
    if flags & HAS_MORE_PAGES != 0 {
        input.bytes()?;
    }
    if flags & NO_METADATA == 0 {
        return None;
    }
    let count = input.int()?;
    (0..count).map(|_| (0..columns).map(|_| input.bytes()).collect()).collect()
}

/// The texts in a `set<text>` or `list<text>` (section 6).
pub(super) fn texts(value: &[u8]) -> Option<Vec<String>> {
    let mut input = Input(value);
    let count = input.int()?;
    (0..count).map(|_| String::from_utf8(input.bytes()??).ok()).collect()
}

/// What is left of a body; every read that would pass its end is `None`.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn int(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// `[bytes]`: a negative length is null.
    fn bytes(&mut self) -> Option<Value> {
        match usize::try_from(self.int()? as i32) {
            Ok(length) => Some(Some(self.take(length)?.to_vec())),
            Err(_) => Some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_bytes_of_the_specification() {
        assert_eq!(frame(STARTUP, &startup()), b"\x04\0\0\0\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0");
        assert_eq!(frame(QUERY, &query_body("abc")), b"\x04\0\0\0\x07\0\0\0\x0a\0\0\0\x03abc\0\x01\x02");
    }

    #[test]
    fn a_login_is_the_user_and_the_password_each_after_a_nought() {
        let login = Credentials { user: "app".to_owned(), password: "secret".to_owned() };
        assert_eq!(login_body(&login), b"\0\0\0\x0b\0app\0secret");
    }

    #[test]
    fn rows_are_read_with_nulls_and_empty_values() {
        // Two columns, two rows: ("ab", null), ("", "c").
        let body = b"\0\0\0\x02\0\0\0\x04\0\0\0\x02\0\0\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0\0\0\0\x01c";
        let expected = vec![vec![Some(b"ab".to_vec()), None], vec![Some(vec![]), Some(b"c".to_vec())]];
        assert_eq!(rows(body), Some(expected));
        for cut in 0..body.len() {
            assert_eq!(rows(&body[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn an_unavailable_answer_keeps_its_code_and_words() {
        // As a 5.0.9 node sent it: code, message, consistency ONE, one required, none alive.
        let body = b"\0\0\x10\0\0\x24Cannot achieve consistency level ONE\0\x01\0\0\0\x01\0\0\0\0";
        match error(body).unwrap() {
            CqlError::Server { code, message } => {
                assert_eq!((code, message.as_str()), (UNAVAILABLE, "Cannot achieve consistency level ONE"));
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_set_of_texts_is_read() {
        assert_eq!(texts(b"\0\0\0\x01\0\0\0\x02-9").unwrap(), ["-9"]);
        assert_eq!(texts(b"\0\0\0\x01\0\0\0\x02-"), None);
    }
}
