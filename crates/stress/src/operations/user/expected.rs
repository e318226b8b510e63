//! The rows that answers must contain, and how they are compared.
//!
//! Rows are found by their clustering values, not by their position: cassandra-stress sorts as Java does, servers as
//! the CQL types do, and neither is wrong.

use brownout_generate::{
    rows::{Cell, Cells, PartitionLayout},
    types::{CqlType, Value, decode, describe},
};
use brownout_load::{Meaning, Rows};

use crate::{
    operations::{Bound, complaints::Why},
    profile::Extent,
};

/// Rows, sorted by the bytes of the values that distinguish them.
#[derive(Default)]
pub(super) struct Expected {
    rows: Vec<Row>,
    cells: Bound,
    found: usize,
}

#[derive(Default)]
struct Row {
    key: Vec<u8>,
    from: usize,
    to: usize,
    found: bool,
}

/// What the columns of an answer are.
#[derive(Default)]
pub(super) struct Columns {
    /// For each, its index in the layout; `None`: it cannot be compared.
    places: Vec<Option<usize>>,
    /// The clustering columns among them: their indices in the answer, in the table's order.
    keys: Vec<usize>,
    scratch: Vec<u8>,
}

impl Columns {
    pub(super) fn new(layout: &PartitionLayout, places: Vec<Option<usize>>) -> Self {
        let first = layout.key_columns();
        let clustering = first..first + layout.clustering_columns();
        let keys =
            clustering.filter_map(|column| places.iter().position(|place| *place == Some(column))).collect::<Vec<_>>();
        Columns { places, keys, scratch: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Indices in the layout of the columns that distinguish rows.
    pub(super) fn key_columns(&self) -> impl Iterator<Item = usize> {
        self.keys.iter().filter_map(|key| self.places[*key])
    }
}

impl Expected {
    /// Drops all rows but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.cells.clear();
        self.found = 0;
    }

    /// Adds a row, which these columns distinguish from others.
    pub(super) fn add(&mut self, row: &Cells, layout: &PartitionLayout, keys: impl Iterator<Item = usize>) {
        let mut key = Vec::new();
        keys.for_each(|column| put(&mut key, row.get(column).value()));
        let from = self.cells.len();
        for column in 0..layout.columns.len() {
            match row.get(column) {
                Cell::Value(value) => drop(self.cells.value(value)),
                Cell::Null | Cell::Unset => self.cells.null(),
            }
        }
        self.rows.push(Row { key, from, to: self.cells.len(), found: false });
    }

    /// To be called after the last row.
    pub(super) fn sort(&mut self) {
        self.rows.sort_by(|a, b| a.key.cmp(&b.key));
        self.rows.dedup_by(|a, b| a.key == b.key);
    }

    /// Checks the rows of a page, which is the last one if no other is announced.
    pub(super) fn check(
        &mut self,
        rows: &Rows<'_>,
        layout: &PartitionLayout,
        columns: &mut Columns,
        extent: Extent,
        told: Option<&mut Option<Why>>,
    ) -> Option<Meaning> {
        let say = |text: String| {
            if let Some(told) = told {
                *told = Some(Why::Content(text));
            }
        };
        for (number, row) in rows.iter().enumerate() {
            columns.scratch.clear();
            for column in &columns.keys {
                put(&mut columns.scratch, row.cell(*column).flatten());
            }
            let scratch = &columns.scratch;
            let found = self.rows.binary_search_by(|known| known.key.as_slice().cmp(scratch));
            let Some(known) = found.ok().map(|found| &mut self.rows[found]).filter(|known| !known.found) else {
                say(format!("row {}: nobody has written a row with these clustering values", number + 1));
                return Some(Meaning::mismatch());
            };
            known.found = true;
            let wanted: Vec<Option<&[u8]>> = self.cells.between(known.from, known.to).collect();
            for (place, got) in columns.places.iter().zip(row.cells()) {
                let Some(place) = *place else { continue };
                let column = &layout.columns[place];
                // The current value of a counter cannot be known.
                if matches!(column.cql_type.unfrozen(), CqlType::Counter) || same(wanted[place], got, &column.cql_type)
                {
                    continue;
                }
                say(format!(
                    "row {}, column {}: value mismatch (expected {}, got {})",
                    number + 1,
                    column.name,
                    describe(wanted[place], &column.cql_type, 100),
                    describe(got, &column.cql_type, 100)
                ));
                return Some(Meaning::mismatch());
            }
            self.found += 1;
        }
        let least = match extent {
            Extent::All => self.rows.len(),
            Extent::Limited => self.rows.len().min(1),
            Extent::Unknown => 0,
        };
        if rows.paging_state().is_none() && self.found < least {
            say(format!("expected {least} rows but result set exhausted after {} (row empty/missing)", self.found));
            return Some(Meaning::missing());
        }
        None
    }
}

/// Appends a cell with its length.
fn put(out: &mut Vec<u8>, cell: Option<&[u8]>) {
    match cell {
        Some(bytes) => {
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
    }
}

/// Whether a received cell equals the written one. Servers sort sets and maps, and keep no empty collections.
fn same(wanted: Option<&[u8]>, got: Option<&[u8]>, cql_type: &CqlType) -> bool {
    if wanted == got {
        return true;
    }
    let value = |cell: Option<&[u8]>| match cell.map(|bytes| decode(bytes, cql_type)) {
        None => Some(Value::Null),
        Some(decoded) => decoded.ok(),
    };
    match (value(wanted), value(got)) {
        (Some(wanted), Some(got)) => normal(&wanted) == normal(&got),
        _ => false,
    }
}

/// A text that is equal for equal content.
fn normal(value: &Value) -> String {
    let sorted = |mut parts: Vec<String>| {
        parts.sort_unstable();
        parts.join(",")
    };
    let all = |values: &[Value]| values.iter().map(normal).collect::<Vec<_>>();
    match value {
        Value::Set(elements) if elements.is_empty() => normal(&Value::Null),
        Value::Map(entries) if entries.is_empty() => normal(&Value::Null),
        Value::List(elements) if elements.is_empty() => normal(&Value::Null),
        Value::Set(elements) => format!("{{{}}}", sorted(all(elements))),
        Value::Map(entries) => {
            let entry = |(key, value): &(Value, Value)| format!("{}:{}", normal(key), normal(value));
            format!("{{{}}}", sorted(entries.iter().map(entry).collect()))
        }
        Value::List(elements) | Value::Tuple(elements) => format!("[{}]", all(elements).join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use brownout_generate::types::{UserTypes, encode};

    use super::*;

    #[test]
    fn the_order_of_sets_and_maps_is_the_servers_affair_that_of_lists_is_not() {
        let is_same = |text: &str, one: Value, other: Value| {
            let cql_type = CqlType::parse(text, &UserTypes::new()).unwrap();
            let bytes = |value: Value| {
                let mut out = Vec::new();
                encode(&value, &cql_type, &mut out).unwrap();
                out
            };
            same(Some(&bytes(one)), Some(&bytes(other)), &cql_type)
        };
        let ints = |values: &[i32]| values.iter().copied().map(Value::Int).collect::<Vec<_>>();
        assert!(is_same("set<int>", Value::Set(ints(&[2, 1])), Value::Set(ints(&[1, 2]))));
        assert!(!is_same("set<int>", Value::Set(ints(&[2, 1])), Value::Set(ints(&[1, 3]))));
        assert!(!is_same("list<int>", Value::List(ints(&[2, 1])), Value::List(ints(&[1, 2]))));
        let nested = |sets: [&[i32]; 2]| Value::List(sets.map(|set| Value::Set(ints(set))).to_vec());
        assert!(is_same("list<frozen<set<int>>>", nested([&[2, 1], &[3]]), nested([&[1, 2], &[3]])));
        let map = |entries: [(i32, i32); 2]| {
            Value::Map(entries.map(|(key, value)| (Value::Int(key), Value::Int(value))).to_vec())
        };
        assert!(is_same("map<int, int>", map([(2, 0), (1, 5)]), map([(1, 5), (2, 0)])));
        assert!(!is_same("map<int, int>", map([(2, 0), (1, 5)]), map([(1, 0), (2, 5)])));
    }

    #[test]
    fn an_empty_collection_is_kept_as_nothing() {
        let cql_type = CqlType::parse("set<int>", &UserTypes::new()).unwrap();
        assert!(same(Some(&[0, 0, 0, 0]), None, &cql_type));
        assert!(!same(Some(&[]), None, &CqlType::Text), "an empty text is not null");
    }
}
