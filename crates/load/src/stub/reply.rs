//! Bodies of answers (section 4.2).

use super::schema::Table;
use crate::wire::{
    ColumnType, Version, kind, metadata,
    write::{bytes, int, short, short_bytes, string},
};

pub(super) fn void(out: &mut Vec<u8>) {
    int(out, kind::VOID);
}

pub(super) fn error(out: &mut Vec<u8>, version: Version, code: u32, message: &str) {
    int(out, code);
    string(out, message);
    // The shortest forms of the extra fields that some codes carry: consistency, counts, kind of write, id. Version 5
    // lists the replicas that failed, with their addresses and reasons.
    let failures: &[u8] = match version {
        Version::V4 => &[0, 0, 0, 1],
        Version::V5 => &[0, 0, 0, 1, 4, 127, 0, 0, 1, 0, 0],
    };
    let replies = [0, 4, 0, 0, 0, 1, 0, 0, 0, 2];
    match code {
        0x1000 => out.extend_from_slice(&[0, 4, 0, 0, 0, 2, 0, 0, 0, 1]),
        0x1100 => out.extend_from_slice(&[&replies[..], b"\0\x06SIMPLE"].concat()),
        0x1200 => out.extend_from_slice(&[&replies[..], &[0]].concat()),
        0x1300 => out.extend_from_slice(&[&replies[..], failures, &[0]].concat()),
        0x1500 => out.extend_from_slice(&[&replies[..], failures, b"\0\x06SIMPLE"].concat()),
        0x1700 => out.extend_from_slice(&replies),
        0x2400 => out.extend_from_slice(&[0; 4]),
        0x2500 => out.extend_from_slice(&[0, 1, b'?']),
        _ => {}
    }
}

pub(super) fn schema_change(out: &mut Vec<u8>, change: &str, target: &str, keyspace: &str, name: &str) {
    int(out, kind::SCHEMA_CHANGE);
    string(out, change);
    string(out, target);
    string(out, keyspace);
    if !name.is_empty() {
        string(out, name);
    }
}

/// What precedes rows.
pub(super) struct Head<'a> {
    pub(super) keyspace: &'a str,
    pub(super) table: &'a str,
    pub(super) columns: &'a [(String, ColumnType)],
    pub(super) skip_metadata: bool,
    pub(super) paging_state: Option<u32>,
}

impl Head<'_> {
    /// Kind, metadata and number of rows; the cells follow.
    pub(super) fn append(&self, out: &mut Vec<u8>, rows: u32) {
        int(out, kind::ROWS);
        let more = if self.paging_state.is_some() { metadata::MORE_PAGES } else { 0 };
        int(out, more | if self.skip_metadata { metadata::NO_METADATA } else { metadata::GLOBAL_TABLE });
        int(out, self.columns.len() as u32);
        if let Some(state) = self.paging_state {
            bytes(out, &state.to_be_bytes());
        }
        if !self.skip_metadata {
            specs(out, self.keyspace, self.table, self.columns.iter().map(|(name, kind)| (name.as_str(), kind)));
        }
        int(out, rows);
    }
}

fn specs<'a>(out: &mut Vec<u8>, keyspace: &str, table: &str, columns: impl Iterator<Item = (&'a str, &'a ColumnType)>) {
    string(out, keyspace);
    string(out, table);
    for (name, kind) in columns {
        string(out, name);
        kind.append(out);
    }
}

/// A prepared statement: its values, which of them form the partition key, and its rows.
pub(super) struct Prepared<'a> {
    pub(super) id: &'a [u8],
    pub(super) table: Option<&'a Table>,
    pub(super) bound: &'a [(String, ColumnType)],
    pub(super) key: &'a [u16],
    pub(super) result: &'a [(String, ColumnType)],
}

/// The stub's tables do not change, so one id is enough for all metadata.
const METADATA_ID: [u8; 16] = *b"the stub's rows.";

impl Prepared<'_> {
    pub(super) fn append(&self, out: &mut Vec<u8>, version: Version) {
        let (keyspace, table) = self.table.map_or(("", ""), |table| (&table.keyspace, &table.name));
        let columns = |columns: &'_ [(String, ColumnType)], out: &mut Vec<u8>| {
            if !columns.is_empty() {
                specs(out, keyspace, table, columns.iter().map(|(name, kind)| (name.as_str(), kind)));
            }
        };
        int(out, kind::PREPARED);
        short_bytes(out, self.id);
        if version == Version::V5 {
            short_bytes(out, &METADATA_ID);
        }
        int(out, if self.bound.is_empty() { 0 } else { metadata::GLOBAL_TABLE });
        int(out, self.bound.len() as u32);
        int(out, self.key.len() as u32);
        self.key.iter().for_each(|place| short(out, *place));
        columns(self.bound, out);
        int(out, if self.result.is_empty() { metadata::NO_METADATA } else { metadata::GLOBAL_TABLE });
        int(out, self.result.len() as u32);
        columns(self.result, out);
    }
}
