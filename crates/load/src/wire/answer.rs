//! Answers, borrowed from the received bytes, without allocation. No input makes the decoder panic.

use super::{
    Garbage, Header, Version,
    column::{Column, Columns},
    failure::Failure,
    flag, kind, metadata, opcode,
    reader::Reader,
    rows::{Metadata, Rows},
};

/// What a server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Success, without a result.
    Void,
    /// Rows, possibly none.
    Rows(Rows<'a>),
    /// An error.
    Error(Failure<'a>),
    /// A statement is prepared.
    Prepared(Prepared<'a>),
    /// A keyspace is in use now: its name.
    SetKeyspace(&'a str),
    /// The schema has changed.
    SchemaChange(SchemaChange<'a>),
    /// The connection is open.
    Ready,
    /// The server requires credentials; the name of its authenticator.
    Authenticate(&'a str),
    /// The server's next challenge.
    AuthChallenge(Option<&'a [u8]>),
    /// The credentials were accepted.
    AuthSuccess(Option<&'a [u8]>),
    /// What the server supports.
    Supported(Supported<'a>),
    /// An event; its type.
    Event(&'a str),
}

/// A prepared statement (section 4.2.5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared<'a> {
    /// Its id.
    pub id: &'a [u8],
    /// The id of its rows' metadata; empty before version 5.
    pub result_metadata_id: &'a [u8],
    key: &'a [u8],
    bound: Columns<'a>,
    result: Columns<'a>,
}

impl<'a> Prepared<'a> {
    fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, Garbage> {
        let id = reader.short_bytes()?;
        let result_metadata_id = if version >= Version::V5 { reader.short_bytes()? } else { &[] };
        let flags = reader.int()?;
        let count = reader.int()?;
        let key_parts = reader.int()?;
        let key = reader.take((key_parts as usize).checked_mul(2).ok_or("a key of too many columns")?)?;
        let bound = Columns::read(reader, count, flags & metadata::GLOBAL_TABLE != 0)?;
        let result = Metadata::read(reader, version)?.specs.unwrap_or(Columns::NONE);
        Ok(Prepared { id, result_metadata_id, key, bound, result })
    }

    /// The values that it takes, in order. This allocates.
    pub fn bound(&self) -> Vec<Column> {
        self.bound.to_vec()
    }

    /// The columns of its rows; empty if it has none, and of conditional writes. This allocates.
    pub fn result(&self) -> Vec<Column> {
        self.result.to_vec()
    }

    /// For each column of the partition key, the index of its value; empty if not all are among the values.
    pub fn partition_key(&self) -> impl Iterator<Item = u16> + 'a {
        self.key.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair))
    }
}

/// A change of the schema (section 4.2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaChange<'a> {
    /// `CREATED`, `UPDATED`, `DROPPED`.
    pub change: &'a str,
    /// `KEYSPACE`, `TABLE`, `TYPE`, `FUNCTION`, `AGGREGATE`.
    pub target: &'a str,
    /// The keyspace.
    pub keyspace: &'a str,
    /// The object within it; empty for the keyspace itself.
    pub name: &'a str,
}

impl<'a> SchemaChange<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Garbage> {
        let (change, target, keyspace) = (reader.string()?, reader.string()?, reader.string()?);
        let name = if target == "KEYSPACE" { "" } else { reader.string()? };
        Ok(SchemaChange { change, target, keyspace, name })
    }
}

/// What a server supports: options of STARTUP with their values (section 4.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supported<'a> {
    pairs: u16,
    bytes: &'a [u8],
}

impl<'a> Supported<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Garbage> {
        let pairs = reader.short()?;
        let bytes = reader.span(|reader| {
            (0..pairs).try_for_each(|_| {
                reader.string()?;
                (0..reader.short()?).try_for_each(|_| reader.string().map(drop))
            })
        })?;
        Ok(Supported { pairs, bytes })
    }

    /// Whether this value of `option` is supported.
    pub fn has(&self, option: &str, value: &str) -> bool {
        self.values(option).any(|known| known.eq_ignore_ascii_case(value))
    }

    /// The supported values of `option`.
    pub fn values(&self, option: &str) -> impl Iterator<Item = &'a str> + 'a {
        let mut reader = Reader(self.bytes);
        let mut left = 0;
        for _ in 0..self.pairs {
            let (Ok(name), Ok(count)) = (reader.string(), reader.short()) else { break };
            if name == option {
                left = count;
                break;
            }
            for _ in 0..count {
                // These strings have been decoded once already.
                let _ = reader.string();
            }
        }
        (0..left).map_while(move |_| reader.string().ok())
    }
}

/// Decodes the body that belongs to `header`.
pub(crate) fn answer(header: Header, body: &[u8]) -> Result<Answer<'_>, Garbage> {
    let version = header.version;
    let mut reader = Reader(body);
    if header.flags & (flag::TRACING | flag::WARNING | flag::CUSTOM_PAYLOAD) != 0 {
        skip_prelude(&mut reader, header.flags)?;
    }
    Ok(match header.opcode {
        opcode::RESULT => match reader.int()? {
            kind::VOID => Answer::Void,
            kind::ROWS => Answer::Rows(Rows::read(&mut reader, version)?),
            kind::SET_KEYSPACE => Answer::SetKeyspace(reader.string()?),
            kind::PREPARED => Answer::Prepared(Prepared::read(&mut reader, version)?),
            kind::SCHEMA_CHANGE => Answer::SchemaChange(SchemaChange::read(&mut reader)?),
            _ => return Err("a result of unknown kind"),
        },
        opcode::ERROR => Answer::Error(Failure::read(&mut reader, version)?),
        opcode::READY => Answer::Ready,
        opcode::AUTHENTICATE => Answer::Authenticate(reader.string()?),
        opcode::AUTH_CHALLENGE => Answer::AuthChallenge(reader.bytes()?),
        opcode::AUTH_SUCCESS => Answer::AuthSuccess(reader.bytes()?),
        opcode::SUPPORTED => Answer::Supported(Supported::read(&mut reader)?),
        opcode::EVENT => Answer::Event(reader.string()?),
        _ => return Err("an opcode that no server sends"),
    })
}

/// Skips what may precede a message (section 2.2).
fn skip_prelude(reader: &mut Reader<'_>, flags: u8) -> Result<(), Garbage> {
    if flags & flag::TRACING != 0 {
        reader.take(16)?;
    }
    if flags & flag::WARNING != 0 {
        (0..reader.short()?).try_for_each(|_| reader.string().map(drop))?;
    }
    if flags & flag::CUSTOM_PAYLOAD != 0 {
        (0..reader.short()?).try_for_each(|_| {
            reader.string()?;
            reader.bytes().map(drop)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
