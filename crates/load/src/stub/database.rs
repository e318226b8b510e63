//! From a request to what answers it.

use std::{collections::HashMap, io, net::SocketAddr};

use super::{
    Answer, Content, StubOptions,
    asked::{self, Asked, Value},
    reply::{self, Head},
    schema::{self, Table, UserTypes, sample},
    statement::{self, Role, Selected, Statement, Verb},
    store::{Change, Row, Rows},
    tables::Cluster,
    tokens::{Cursor, Token, tokens},
};
use crate::wire::{
    ColumnType, Compression, Framing, Garbage, Header, NativeType, Sender, Version, kind, opcode,
    reader::Reader,
    write::{self, cell, frame, int, short, string},
};

const PROTOCOL_ERROR: u32 = 0x000A;
const BAD_CREDENTIALS: u32 = 0x0100;
const SYNTAX: u32 = 0x2000;
const INVALID: u32 = 0x2200;
const UNPREPARED: u32 = 0x2500;

/// What ids of prepared statements begin with: those on tables, and all others.
const ON_TABLE: u8 = b'T';
const OTHER: u8 = b'S';

/// What a connection has come to.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// As STARTUP has it.
    compression: Option<Compression>,
    /// STARTUP is answered, and credentials are given if they are wanted.
    open: bool,
    /// Of USE.
    keyspace: String,
    /// Prepared statements and batches.
    pub(super) executed: u64,
}

/// What to do besides sending the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing.
    Now,
    /// What follows it is framed so, in both directions.
    Frame(Framing),
    /// Close the connection at once.
    Close,
    /// Close it when the answer is sent.
    CloseAfter,
}

/// A prepared statement.
struct Known {
    id: [u8; 16],
    text: String,
    words: Vec<Token>,
    bound: Vec<(String, ColumnType)>,
    result: Vec<(String, ColumnType)>,
    /// Of statements on tables: the table, the statement, and one row as it is always given.
    on: Option<(usize, Statement, Vec<u8>)>,
}

/// What all nodes share.
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

/// Whether an EXECUTE is of a statement that is not on a table of clients.
pub(super) fn is_system(body: &[u8]) -> bool {
    body.get(2) == Some(&OTHER)
}

/// Answers someone who speaks something else.
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
        let cluster = Cluster::new(addresses, tables);
        Ok(Database { options, cluster, types: UserTypes::new(), rows, known: Vec::new(), by_text: HashMap::new() })
    }

    pub(super) fn newest(&self) -> Version {
        self.options.newest
    }

    /// Appends the answer to one whole frame, as node `node` that answers prepared statements in the way of `answer`.
    pub(super) fn reply(
        &mut self,
        session: &mut Session,
        node: usize,
        header: Header,
        body: &[u8],
        answer: Answer,
        out: &mut Vec<u8>,
    ) -> Act {
        let Header { version, stream, opcode, .. } = header;
        if version > self.options.newest {
            refuse_stranger(out, self.options.newest, Some(version as u8));
            return Act::CloseAfter;
        }
        if matches!(opcode, opcode::EXECUTE | opcode::BATCH) && !(opcode == opcode::EXECUTE && is_system(body)) {
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
            let mut question = Question { session, node, version, answer, act: Act::Now, opcode: opcode::RESULT };
            let done = self.message(&mut question, opcode, body, out);
            (act, answers) = (question.act, question.opcode);
            if let Err(refusal) = done {
                out.truncate(begin);
                answers = opcode::ERROR;
                reply::error(out, version, refusal.code, &refusal.message);
            }
        });
        out[start + 4] = answers;
        act
    }

    fn message(
        &mut self,
        question: &mut Question<'_>,
        opcode: u8,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let mut reader = Reader(body);
        let version = question.version;
        match opcode {
            opcode::OPTIONS => {
                question.opcode = opcode::SUPPORTED;
                self.supported(out);
            }
            opcode::STARTUP => self.startup(question, &mut reader, out)?,
            opcode::AUTH_RESPONSE => self.check_password(question, reader.bytes()?.unwrap_or_default(), out)?,
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
                reply::Prepared { id: &known.id, table, bound, key: &key, result }.append(out, version);
            }
            opcode::QUERY => {
                let text = reader.long_string()?;
                let asked = Asked::read(&mut reader, version)?;
                let known = self.read_statement(&question.session.keyspace, text)?;
                self.execute(question, &known, &asked, out)?;
            }
            opcode::EXECUTE => {
                let number = self.find(reader.short_bytes()?)?;
                if version == Version::V5 {
                    reader.short_bytes()?;
                }
                let asked = Asked::read(&mut reader, version)?;
                // Taken out for a moment, so that the rest can be changed.
                let known = std::mem::replace(&mut self.known[number], Known::nothing());
                let done = self.execute(question, &known, &asked, out);
                self.known[number] = known;
                done?;
            }
            opcode::BATCH => self.batch(question, &mut reader, out)?,
            _ => return Err(refusal(PROTOCOL_ERROR, "the stub does not know this opcode")),
        }
        Ok(())
    }

    fn supported(&self, out: &mut Vec<u8>) {
        let versions: &[&str] = match self.options.newest {
            Version::V4 => &["4/v4"],
            Version::V5 => &["4/v4", "5/v5"],
        };
        let options =
            [("CQL_VERSION", &["3.4.7"][..]), ("COMPRESSION", &["snappy", "lz4"]), ("PROTOCOL_VERSIONS", versions)];
        short(out, options.len() as u16);
        for (name, values) in options {
            string(out, name);
            short(out, values.len() as u16);
            values.iter().for_each(|value| string(out, value));
        }
    }

    fn startup(&self, question: &mut Question<'_>, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let mut compression = None;
        for _ in 0..reader.short()? {
            let (name, value) = (reader.string()?, reader.string()?);
            if name.eq_ignore_ascii_case("COMPRESSION") && !value.is_empty() {
                let known = value.parse().ok();
                let known = known.filter(|known| *known == Compression::Lz4 || question.version == Version::V4);
                let unknown = || refusal(PROTOCOL_ERROR, format!("Unknown compression algorithm: {value}"));
                compression = Some(known.ok_or_else(unknown)?);
            }
        }
        question.session.compression = compression;
        question.act = Act::Frame(Framing::of(question.version, compression));
        if self.options.credentials.is_some() {
            question.opcode = opcode::AUTHENTICATE;
            string(out, "org.apache.cassandra.auth.PasswordAuthenticator");
        } else {
            question.opcode = opcode::READY;
            question.session.open = true;
        }
        Ok(())
    }

    fn check_password(&self, question: &mut Question<'_>, token: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        let mut parts = token.split(|byte| *byte == 0).skip(1);
        let given = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let right = self
            .options
            .credentials
            .as_ref()
            .is_some_and(|credentials| given == (credentials.user.as_bytes(), credentials.password.as_bytes()));
        if !right {
            let user = String::from_utf8_lossy(given.0);
            let message = format!("Provided username {user} and/or password are incorrect");
            return Err(refusal(BAD_CREDENTIALS, message));
        }
        question.session.open = true;
        question.opcode = opcode::AUTH_SUCCESS;
        cell(out, None);
        Ok(())
    }

    fn find(&self, id: &[u8]) -> Result<usize, Refusal> {
        let number = id.last_chunk().map_or(usize::MAX, |number| u64::from_be_bytes(*number) as usize);
        let known = self.known.get(number).is_some_and(|known| known.id == id);
        if known { Ok(number) } else { Err(refusal(UNPREPARED, "the stub does not know this statement")) }
    }

    fn prepare(&mut self, keyspace: &str, text: &str) -> Result<usize, Refusal> {
        let key = (keyspace.to_owned(), text.to_owned());
        if let Some(number) = self.by_text.get(&key) {
            return Ok(*number);
        }
        let mut known = self.read_statement(keyspace, text)?;
        let number = self.known.len();
        known.id[0] = if known.on.is_some() { ON_TABLE } else { OTHER };
        known.id[8..].copy_from_slice(&(number as u64).to_be_bytes());
        self.known.push(known);
        self.by_text.insert(key, number);
        Ok(number)
    }

    fn read_statement(&self, keyspace: &str, text: &str) -> Result<Known, Refusal> {
        let words = tokens(text);
        let mut known = Known { text: text.to_owned(), words, ..Known::nothing() };
        let Some((given, name)) = statement::table_of(&known.words) else { return Ok(known) };
        let keyspace = given.unwrap_or(keyspace);
        if keyspace.starts_with("system") {
            let markers = known.words.iter().filter(|word| **word == Token::Marker).count();
            let kind = ColumnType::Native(NativeType::Text);
            known.bound = (0..markers).map(|place| (format!("value{place}"), kind.clone())).collect();
            if let Some(columns) = self.cluster.columns(&known.words) {
                known.result = columns;
            }
            return Ok(known);
        }
        let number = self.cluster.table(keyspace, name);
        let number = number.ok_or_else(|| refusal(INVALID, format!("table {keyspace}.{name} does not exist")))?;
        let table = &self.cluster.tables[number];
        let statement = statement::parse(&known.words, table);
        let statement = statement.ok_or_else(|| refusal(INVALID, format!("the stub cannot read: {text}")))?;
        known.bound = statement.markers.iter().map(|marker| (marker.name.clone(), marker.kind.clone())).collect();
        known.result = statement.result(table);
        let mut row = Vec::new();
        if let Content::Canned { size, .. } = self.options.content {
            known.result.iter().for_each(|(_, kind)| write::bytes(&mut row, &sample(kind, size as usize)));
        }
        known.on = Some((number, statement, row));
        Ok(known)
    }

    fn execute(
        &mut self,
        question: &mut Question<'_>,
        known: &Known,
        asked: &Asked<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let Some((number, statement, _)) = &known.on else { return self.run(question, known, asked, out) };
        let answer = question.answer;
        if let Answer::Error(code) = answer {
            return Err(refusal(code, "as the stub was told"));
        }
        let selects = matches!(statement.verb, Verb::Select(_));
        if answer == Answer::WrongKind {
            if selects {
                reply::void(out);
            } else {
                self.head(*number, &known.result, asked, None).append(out, 0);
            }
            return Ok(());
        }
        if selects {
            self.select(known, asked, answer, out);
        } else {
            let applied = self.write(*number, statement, &asked.values, asked.timestamp, answer);
            if statement.conditional {
                self.tell_applied(*number, applied, out);
            } else {
                reply::void(out);
            }
        }
        Ok(())
    }

    fn head<'a>(
        &'a self,
        table: usize,
        columns: &'a [(String, ColumnType)],
        asked: &Asked<'_>,
        paging_state: Option<u32>,
    ) -> Head<'a> {
        let Table { keyspace, name, .. } = &self.cluster.tables[table];
        Head { keyspace, table: name, columns, skip_metadata: asked.skip_metadata, paging_state }
    }

    fn tell_applied(&self, table: usize, applied: bool, out: &mut Vec<u8>) {
        let columns = [("[applied]".to_owned(), ColumnType::Native(NativeType::Boolean))];
        self.head(table, &columns, &Asked::default(), None).append(out, 1);
        write::bytes(out, &[u8::from(applied)]);
    }

    fn select(&self, known: &Known, asked: &Asked<'_>, answer: Answer, out: &mut Vec<u8>) {
        let Some((number, statement, canned)) = &known.on else { return };
        let Verb::Select(columns) = &statement.verb else { return };
        let found = match self.options.content {
            Content::Canned { rows, .. } => Found::Canned(if answer == Answer::NoRow { 0 } else { rows }),
            Content::Remembered if answer == Answer::NoRow => Found::Rows(Vec::new()),
            Content::Remembered => Found::Rows(self.rows_of(*number, statement, &asked.values)),
        };
        let counts = columns.contains(&Selected::Count);
        let total = match &found {
            _ if counts => 1,
            Found::Canned(rows) => *rows,
            Found::Rows(rows) => rows.len() as u32,
        };
        let start = asked.paging_state.and_then(|state| state.try_into().ok()).map_or(0, u32::from_be_bytes).min(total);
        let end = asked.page_size.filter(|size| *size > 0).map_or(total, |size| total.min(start.saturating_add(size)));
        let more = (end < total).then_some(end);
        self.head(*number, &known.result, asked, more).append(out, end - start);
        match &found {
            Found::Canned(rows) if counts => write::bytes(out, &u64::from(*rows).to_be_bytes()),
            Found::Rows(rows) if counts => write::bytes(out, &(rows.len() as u64).to_be_bytes()),
            Found::Canned(_) => (start..end).for_each(|_| out.extend_from_slice(canned)),
            Found::Rows(rows) => {
                for row in &rows[start as usize..end as usize] {
                    let cells =
                        if answer == Answer::Stale && !row.before.is_empty() { &row.before } else { &row.cells };
                    for column in columns {
                        match column {
                            Selected::Column(place) => cell(out, cells[*place].as_deref()),
                            Selected::Count | Selected::Function(_) => cell(out, None),
                        }
                    }
                }
            }
        }
        if answer == Answer::Flipped
            && end > start
            && let Some(last) = out.last_mut()
        {
            *last ^= 1;
        }
    }

    /// The rows that are asked for: one, those of a partition, or all.
    fn rows_of(&self, number: usize, statement: &Statement, values: &[Value<'_>]) -> Vec<&Row> {
        let (table, rows) = (&self.cluster.tables[number], &self.rows[number]);
        let Some(key) = key_of(statement, values, 0..table.partition) else {
            let partly = statement.markers.iter().any(|marker| matches!(marker.role, Role::Column(_)));
            return if partly { Vec::new() } else { rows.partitions().flatten().collect() };
        };
        match key_of(statement, values, table.partition..table.key()) {
            Some(clustering) => rows.row(&key, &clustering).into_iter().collect(),
            None => rows.partition(&key).iter().collect(),
        }
    }

    /// Does a write; `false` if it is conditional and not applied.
    fn write(
        &mut self,
        number: usize,
        statement: &Statement,
        values: &[Value<'_>],
        timestamp: Option<i64>,
        answer: Answer,
    ) -> bool {
        if statement.conditional && answer == Answer::NotApplied {
            return false;
        }
        let table = &self.cluster.tables[number];
        if self.options.content != Content::Remembered {
            return true;
        }
        // What is not under a bound key is forgotten.
        let Some(key) = key_of(statement, values, 0..table.partition) else { return true };
        let clustering = key_of(statement, values, table.partition..table.key());
        if statement.verb == Verb::Delete {
            self.rows[number].delete(&key, clustering.as_deref().filter(|_| table.clustering > 0));
            return true;
        }
        let Some(clustering) = clustering else { return true };
        if statement.if_not_exists && self.rows[number].row(&key, &clustering).is_some() {
            return false;
        }
        let long = |value: Value<'_>| value.bytes().and_then(|b| b.try_into().ok()).map(i64::from_be_bytes);
        let mut own = None;
        let mut changes = Vec::with_capacity(values.len());
        for (marker, value) in statement.markers.iter().zip(values) {
            match (marker.role, value) {
                (Role::Column(_), Value::Unset) | (Role::Other, _) => {}
                (Role::Column(column), value) => changes.push(Change::Set(column, value.bytes())),
                (Role::Increment(column, sign), value) => {
                    changes.push(Change::Add(column, sign.wrapping_mul(long(*value).unwrap_or(0))));
                }
                (Role::Timestamp, value) => own = long(*value),
            }
        }
        let columns = table.columns.len();
        self.rows[number].write(&key, &clustering, own.or(timestamp), columns, &changes);
        true
    }

    fn batch(
        &mut self,
        question: &mut Question<'_>,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        if let Answer::Error(code) = question.answer {
            return Err(refusal(code, "as the stub was told"));
        }
        let _kind = reader.byte()?;
        let (mut conditional, mut applied) = (None, true);
        let mut parts = Vec::new();
        for _ in 0..reader.short()? {
            let known = match reader.byte()? {
                0 => {
                    let text = reader.long_string()?.to_owned();
                    self.prepare(&question.session.keyspace, &text)?
                }
                _ => self.find(reader.short_bytes()?)?,
            };
            parts.push((known, asked::values(reader, false)?));
        }
        let _consistency = reader.short()?;
        let flags = asked::flags(reader, question.version)?;
        if flags & crate::wire::query::SERIAL_CONSISTENCY != 0 {
            reader.short()?;
        }
        let timed = flags & crate::wire::query::DEFAULT_TIMESTAMP != 0;
        let timestamp = if timed { Some(asked::long(reader)?) } else { None };
        for (known, values) in parts {
            let Some((number, statement, _)) = &self.known[known].on else {
                return Err(refusal(INVALID, "only writes can be in a batch"));
            };
            let (number, statement) = (*number, statement.clone());
            applied &= self.write(number, &statement, &values, timestamp, question.answer);
            if statement.conditional {
                conditional = Some(number);
            }
        }
        match conditional {
            _ if question.answer == Answer::WrongKind => self.tell_applied(0, true, out),
            Some(table) => self.tell_applied(table, applied, out),
            None => reply::void(out),
        }
        Ok(())
    }

    /// What is not on a table of clients: system tables, and the schema.
    fn run(
        &mut self,
        question: &mut Question<'_>,
        known: &Known,
        asked: &Asked<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let mut cursor = Cursor(&known.words);
        if cursor.accept(&["select"]) {
            let done = self.cluster.select(question.node, &known.words, asked, out);
            return done.map_err(|message| refusal(INVALID, message));
        }
        if cursor.accept(&["use"]) {
            let name = cursor.word().ok_or_else(|| refusal(SYNTAX, "USE what?"))?;
            question.session.keyspace = name.to_owned();
            int(out, kind::SET_KEYSPACE);
            string(out, name);
            return Ok(());
        }
        let unreadable = || refusal(SYNTAX, format!("the stub cannot read: {}", known.text));
        let keyspace = question.session.keyspace.clone();
        if cursor.accept(&["create", "keyspace"]) {
            cursor.accept(&["if", "not", "exists"]);
            let name = cursor.word().ok_or_else(unreadable)?;
            if self.cluster.add_keyspace(name, cursor) {
                reply::schema_change(out, "CREATED", "KEYSPACE", name, "");
                return Ok(());
            }
        } else if cursor.accept(&["create", "table"]) {
            cursor.accept(&["if", "not", "exists"]);
            let table = schema::table(&mut cursor, &keyspace, &self.types).ok_or_else(unreadable)?;
            if self.cluster.table(&table.keyspace, &table.name).is_none() {
                reply::schema_change(out, "CREATED", "TABLE", &table.keyspace, &table.name);
                self.cluster.tables.push(table);
                self.rows.push(Rows::default());
                return Ok(());
            }
        } else if cursor.accept(&["create", "type"]) {
            cursor.accept(&["if", "not", "exists"]);
            schema::user_type(&mut cursor, &keyspace, &mut self.types).ok_or_else(unreadable)?;
        } else if cursor.accept(&["truncate"]) {
            cursor.accept(&["table"]);
            if let Some((given, name)) = cursor.name()
                && let Some(number) = self.cluster.table(given.unwrap_or(&keyspace), name)
            {
                self.rows[number] = Rows::default();
            }
        }
        reply::void(out);
        Ok(())
    }
}

/// What a question is asked by, and what becomes of it.
struct Question<'a> {
    session: &'a mut Session,
    node: usize,
    version: Version,
    answer: Answer,
    act: Act,
    /// Of the answer.
    opcode: u8,
}

/// What is found by a SELECT.
enum Found<'a> {
    Canned(u32),
    Rows(Vec<&'a Row>),
}

impl Known {
    fn nothing() -> Self {
        Known { id: [0; 16], text: String::new(), words: Vec::new(), bound: Vec::new(), result: Vec::new(), on: None }
    }
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

/// The bytes of these columns of the key, if they are all bound: one as it is, more with their lengths.
fn key_of(statement: &Statement, values: &[Value<'_>], columns: std::ops::Range<usize>) -> Option<Vec<u8>> {
    let alone = columns.len() == 1;
    let mut key = Vec::new();
    for column in columns {
        let place = statement.markers.iter().position(|marker| marker.role == Role::Column(column))?;
        let bytes = values.get(place)?.bytes()?;
        if !alone {
            write::bytes(&mut key, bytes);
        } else {
            key.extend_from_slice(bytes);
        }
    }
    Some(key)
}
