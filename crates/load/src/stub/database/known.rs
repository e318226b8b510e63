//! Statements: what they say, the values bound to them, and their results.

use super::{Database, INVALID, Refusal, UNPREPARED, refusal};
use crate::{
    stub::{
        Content,
        schema::sample,
        statement::{self, Statement},
        tokens::{Token, tokens},
    },
    wire::{ColumnType, NativeType, write},
};

/// First byte of the ids of prepared statements: those on tables, and all others.
const ON_TABLE: u8 = b'T';
const OTHER: u8 = b'S';

/// A prepared statement.
pub(super) struct Known {
    pub(super) id: [u8; 16],
    pub(super) text: String,
    pub(super) words: Vec<Token>,
    pub(super) bound: Vec<(String, ColumnType)>,
    pub(super) result: Vec<(String, ColumnType)>,
    /// For statements on tables: the table, the statement, and one row as it is always returned.
    pub(super) on: Option<(usize, Statement, Vec<u8>)>,
}

impl Known {
    pub(super) fn nothing() -> Self {
        Known { id: [0; 16], text: String::new(), words: Vec::new(), bound: Vec::new(), result: Vec::new(), on: None }
    }
}

/// Whether an EXECUTE is of a statement that is not on a client's table.
pub(in crate::stub) fn is_system(body: &[u8]) -> bool {
    body.get(2) == Some(&OTHER)
}

impl Database {
    pub(super) fn find(&self, id: &[u8]) -> Result<usize, Refusal> {
        let number = id.last_chunk().map_or(usize::MAX, |number| u64::from_be_bytes(*number) as usize);
        let known = self.known.get(number).is_some_and(|known| known.id == id);
        if known { Ok(number) } else { Err(refusal(UNPREPARED, "the stub does not know this statement")) }
    }

    pub(super) fn prepare(&mut self, keyspace: &str, text: &str) -> Result<usize, Refusal> {
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

    pub(super) fn read_statement(&self, keyspace: &str, text: &str) -> Result<Known, Refusal> {
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
}
