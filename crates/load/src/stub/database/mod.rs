//! From a request to its answer.

mod handshake;
mod known;
mod other;
mod reads;
mod writes;

use std::{collections::HashMap, io, net::SocketAddr};

use super::{
    Answer, Behaviour, StubOptions,
    asked::Asked,
    reply,
    schema::{self, UserTypes},
    statement::Verb,
    store::Rows,
    tables::Cluster,
};
use crate::wire::{
    Compression, Framing, Garbage, HEADER, Header, Sender, Version, opcode, reader::Reader, write::frame,
};

use known::Known;
pub(super) use known::is_system;

const PROTOCOL_ERROR: u32 = 0x000A;
const BAD_CREDENTIALS: u32 = 0x0100;
const SYNTAX: u32 = 0x2000;
const INVALID: u32 = 0x2200;
const UNPREPARED: u32 = 0x2500;

/// State of a connection.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// As requested in STARTUP.
    compression: Option<Compression>,
    /// STARTUP has been answered, and credentials were given if they are required.
    open: bool,
    /// Set by USE.
    keyspace: String,
    /// How many prepared statements and batches were executed.
    pub(super) executed: u64,
}

/// What to do besides sending the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing.
    Now,
    /// Nothing; and it is not sent.
    Silent,
    /// Use this framing for everything that follows, in both directions.
    Frame(Framing),
    /// Close the connection at once.
    Close,
    /// Close it when the answer is sent.
    CloseAfter,
}

/// State shared by all nodes.
pub(super) struct Database {
    options: StubOptions,
    cluster: Cluster,
    types: UserTypes,
    /// By table.
    rows: Vec<Rows>,
    known: Vec<Known>,
    /// By keyspace in use and text.
    by_text: HashMap<(String, String), usize>,
}

/// Answers a client that speaks another protocol or version.
pub(super) fn refuse_stranger(out: &mut Vec<u8>, newest: Version, first: Option<u8>) {
    let asked = first.unwrap_or_default() & 0x7F;
    let message = format!(
        "Invalid or unsupported protocol version ({asked}); the lowest supported version is 4 and the greatest is {}",
        newest as u8
    );
    frame(out, Sender::Server as u8 | newest as u8, 0, opcode::ERROR, |out| {
        reply::error(out, newest, PROTOCOL_ERROR, &message);
    });
}

impl Database {
    pub(super) fn new(addresses: Vec<SocketAddr>, options: StubOptions) -> io::Result<Self> {
        let mut tables = Vec::new();
        for text in &options.tables {
            let unreadable = || io::Error::other(format!("the stub cannot read the table: {text}"));
            tables.push(schema::parse_table(text).ok_or_else(unreadable)?);
        }
        let rows = tables.iter().map(|_| Rows::default()).collect();
        let cluster = Cluster::new(addresses, options.places.clone(), tables);
        Ok(Database { options, cluster, types: UserTypes::new(), rows, known: Vec::new(), by_text: HashMap::new() })
    }

    pub(super) fn newest(&self) -> Version {
        self.options.newest
    }

    /// Appends the answer to one whole frame, as node `node` with this behaviour.
    pub(super) fn reply(
        &mut self,
        session: &mut Session,
        node: usize,
        header: Header,
        body: &[u8],
        behaviour: Behaviour,
        out: &mut Vec<u8>,
    ) -> Act {
        let Behaviour { answer, silent_schema, .. } = behaviour;
        let Header { version, stream, opcode, .. } = header;
        if version > self.options.newest {
            refuse_stranger(out, self.options.newest, Some(version as u8));
            return Act::CloseAfter;
        }
        let executes =
            matches!(opcode, opcode::EXECUTE | opcode::BATCH) && !(opcode == opcode::EXECUTE && is_system(body));
        if executes {
            match answer {
                Answer::Silence => return Act::Now,
                Answer::Close => return Act::Close,
                Answer::Garbage => {
                    out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n\r\n");
                    return Act::Now;
                }
                _ => {}
            }
        }
        let first = Sender::Server as u8 | version as u8;
        let start = out.len();
        let mut act = Act::Now;
        let mut answers = opcode::RESULT;
        frame(out, first, stream, opcode::RESULT, |out| {
            let begin = out.len();
            let mut question =
                Question { session, node, version, answer, silent_schema, act: Act::Now, opcode: opcode::RESULT, out };
            let done = self.message(&mut question, opcode, body);
            (act, answers) = (question.act, question.opcode);
            if let Err(refusal) = done {
                out.truncate(begin);
                answers = opcode::ERROR;
                reply::error(out, version, refusal.code, &refusal.message);
            }
        });
        out[start + 4] = answers;
        if answer == Answer::Mangled && executes {
            out[start + HEADER..].fill(0xA5);
        }
        if act == Act::Silent {
            out.truncate(start);
        }
        act
    }

    fn message(&mut self, question: &mut Question<'_>, opcode: u8, body: &[u8]) -> Result<(), Refusal> {
        let mut reader = Reader(body);
        let version = question.version;
        match opcode {
            opcode::OPTIONS => {
                question.opcode = opcode::SUPPORTED;
                self.supported(question.out);
            }
            opcode::STARTUP => self.startup(question, &mut reader)?,
            opcode::AUTH_RESPONSE => self.check_password(question, reader.bytes()?.unwrap_or_default())?,
            _ if !question.session.open => return Err(refusal(PROTOCOL_ERROR, "STARTUP comes first")),
            opcode::REGISTER => question.opcode = opcode::READY,
            opcode::PREPARE => {
                let text = reader.long_string()?;
                let number = self.prepare(&question.session.keyspace, text)?;
                let known = &self.known[number];
                let table = known.on.as_ref().map(|(table, ..)| &self.cluster.tables[*table]);
                let key = match (&known.on, table) {
                    (Some((_, statement, _)), Some(table)) => statement.key_markers(table),
                    _ => Vec::new(),
                };
                let (bound, result) = (&known.bound, &known.result);
                reply::Prepared { id: &known.id, table, bound, key: &key, result }.append(question.out, version);
            }
            opcode::QUERY => {
                let text = reader.long_string()?;
                let asked = Asked::read(&mut reader, version)?;
                let known = self.read_statement(&question.session.keyspace, text)?;
                self.execute(question, &known, &asked)?;
            }
            opcode::EXECUTE => {
                let number = self.find(reader.short_bytes()?)?;
                if version == Version::V5 {
                    reader.short_bytes()?;
                }
                let asked = Asked::read(&mut reader, version)?;
                // Taken out for a moment, so that the rest can be changed.
                let known = std::mem::replace(&mut self.known[number], Known::nothing());
                let done = self.execute(question, &known, &asked);
                self.known[number] = known;
                done?;
            }
            opcode::BATCH => self.batch(question, &mut reader)?,
            _ => return Err(refusal(PROTOCOL_ERROR, "the stub does not know this opcode")),
        }
        Ok(())
    }

    fn execute(&mut self, question: &mut Question<'_>, known: &Known, asked: &Asked<'_>) -> Result<(), Refusal> {
        let Some((number, statement, _)) = &known.on else { return self.run(question, known, asked) };
        let answer = question.answer;
        if let Answer::Error(code) = answer {
            return Err(refusal(code, "as the stub was told"));
        }
        let selects = matches!(statement.verb, Verb::Select(_));
        if answer == Answer::WrongKind {
            if selects {
                reply::void(question.out);
            } else {
                self.head(*number, &known.result, asked, None).append(question.out, 0);
            }
            return Ok(());
        }
        if selects {
            self.select(known, asked, answer, question.out);
        } else {
            let applied = self.write(*number, statement, &asked.values, asked.timestamp, answer);
            if statement.conditional {
                self.tell_applied(*number, applied, question.out);
            } else {
                reply::void(question.out);
            }
        }
        Ok(())
    }
}

/// A request being answered: its context, and the answer so far.
struct Question<'a> {
    session: &'a mut Session,
    node: usize,
    version: Version,
    answer: Answer,
    silent_schema: bool,
    act: Act,
    /// Opcode of the answer.
    opcode: u8,
    /// The answer's body.
    out: &'a mut Vec<u8>,
}

/// An error to answer with.
struct Refusal {
    code: u32,
    message: String,
}

fn refusal(code: u32, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into() }
}

impl From<Garbage> for Refusal {
    fn from(garbage: Garbage) -> Self {
        refusal(PROTOCOL_ERROR, format!("the stub does not understand this request: {garbage}"))
    }
}
