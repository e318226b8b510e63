//! `validate`: a range of a partition's rows, every one compared with what was written.
//!
//! Rows are found by their clustering values, not by their place: cassandra-stress sorts as Java does, servers as the
//! types of CQL do, and neither is wrong.

use brownout_generate::{
    rows::{Cell, PartitionGenerator},
    seeds::SeedSource,
    types::{CqlType, Value, decode, describe},
};
use brownout_load::{Answer, ErrorClass, Next, Parameters, Received, Request, Route, Rows, Sending, Verdict};

use super::{Common, PATIENCE, bind};
use crate::operations::{Bound, Kind, KindThread, Permits, Place, complaints::Why, slab::Slab};

/// The kind: one for every number of clustering columns that bound the range.
#[derive(Clone)]
pub struct Validate {
    /// What it has in common with the others. Its statement selects all columns in the order of `order`.
    pub common: Common,
    /// How many clustering columns bound the range; 0: all rows of the partition.
    pub depth: usize,
    /// For each column of an answer: its place in the layout.
    pub order: Vec<usize>,
    /// Rows in a page.
    pub page_size: i32,
    /// Content is compared; otherwise only counted.
    pub validates: bool,
    /// A generator that was made with success; threads that cannot make theirs (which cannot be) use it.
    pub generator: PartitionGenerator,
}

#[derive(Default)]
struct Open {
    bound: Bound,
    seed: i64,
    token: i64,
    expected: Expected,
    paging_state: Vec<u8>,
    counted: bool,
}

/// The rows that have to come, sorted by the bytes of their clustering values.
#[derive(Default)]
struct Expected {
    rows: Vec<Row>,
    cells: Bound,
    found: usize,
}

#[derive(Default)]
struct Row {
    clustering: Vec<u8>,
    from: usize,
    to: usize,
    found: bool,
}

struct ValidateThread {
    kind: Validate,
    generator: PartitionGenerator,
    source: SeedSource,
    open: Slab<Open>,
    /// Places in an answer of the clustering columns.
    clustering: Vec<usize>,
    scratch: Vec<u8>,
}

impl Kind for Validate {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        let layout = &self.common.layout;
        let first = layout.key_columns();
        let wanted = first..first + layout.clustering_columns();
        let clustering = wanted.filter_map(|column| self.order.iter().position(|place| *place == column)).collect();
        Box::new(ValidateThread {
            generator: self.common.generator(thread).unwrap_or_else(|_| self.generator.clone()),
            source: self.common.source(thread),
            kind: self.clone(),
            open: Slab::new(),
            clustering,
            scratch: Vec::new(),
        })
    }
}

impl ValidateThread {
    /// What is wrong with the rows of a page.
    fn check(&mut self, place: u32, rows: &Rows<'_>, told: Option<&mut Option<Why>>) -> Option<Verdict> {
        let layout = &self.kind.common.layout;
        let expected = &mut self.open[place].expected;
        let say = |text: String| {
            if let Some(told) = told {
                *told = Some(Why::Content(text));
            }
        };
        for (number, row) in rows.iter().enumerate() {
            self.scratch.clear();
            for column in &self.clustering {
                put(&mut self.scratch, row.cell(*column).flatten());
            }
            let scratch = &self.scratch;
            let found = expected.rows.binary_search_by(|known| known.clustering.as_slice().cmp(scratch));
            let Some(known) = found.ok().map(|found| &mut expected.rows[found]).filter(|known| !known.found) else {
                say(format!("row {}: nobody has written a row with these clustering values", number + 1));
                return Some(Verdict::mismatch());
            };
            known.found = true;
            let cells = expected.cells.between(known.from, known.to);
            for ((wanted, got), column) in cells.zip(row.cells()).zip(&self.kind.order) {
                let column = &layout.columns[*column];
                // What counters have come to is nobody's to know.
                if matches!(column.cql_type.unfrozen(), CqlType::Counter) || same(wanted, got, &column.cql_type) {
                    continue;
                }
                say(format!(
                    "row {}, column {}: value mismatch (expected {}, got {})",
                    number + 1,
                    column.name,
                    describe(wanted, &column.cql_type, 100),
                    describe(got, &column.cql_type, 100)
                ));
                return Some(Verdict::mismatch());
            }
            expected.found += 1;
        }
        if rows.paging_state().is_none() && expected.found < expected.rows.len() {
            let (found, all) = (expected.found, expected.rows.len());
            say(format!("expected {all} rows but result set exhausted after {found} (row empty/missing)"));
            return Some(Verdict::missing());
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

/// Whether a cell that came is the one that was written. Servers sort sets and maps, and keep no empty collections.
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

/// A text that is the same for the same content.
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

impl KindThread for ValidateThread {
    fn draw(&mut self, permits: &Permits) -> Option<Place> {
        permits.take(1)?;
        let number = self.open.take();
        let mut range = None;
        for _ in 0..PATIENCE {
            let Some(seed) = self.source.next_read() else { break };
            let found = self.generator.validate(&seed, self.kind.depth);
            if let Some(found) = found.filter(|found| found.depth == self.kind.depth) {
                range = Some((seed, found));
                break;
            }
        }
        let Some((seed, range)) = range else {
            permits.give_back(1);
            self.open.give(number);
            return None;
        };
        let layout = &self.kind.common.layout;
        let (key, clustering) = (layout.key_columns(), layout.clustering_columns());
        let open = &mut self.open[number];
        open.token = self.generator.token();
        open.paging_state.clear();
        open.counted = false;
        open.bound.clear();
        open.seed = seed.value();
        let Expected { rows, cells, found } = &mut open.expected;
        rows.clear();
        cells.clear();
        *found = 0;
        let mut first = true;
        while let Some(row) = self.generator.next_row() {
            if std::mem::take(&mut first) {
                bind(&mut open.bound, row, 0..key);
            }
            let mut clustering_bytes = Vec::new();
            for column in key..key + clustering {
                put(&mut clustering_bytes, row.get(column).value());
            }
            let from = cells.len();
            for column in &self.kind.order {
                match row.get(*column) {
                    Cell::Value(value) => drop(cells.value(value)),
                    Cell::Null | Cell::Unset => cells.null(),
                }
            }
            rows.push(Row { clustering: clustering_bytes, from, to: cells.len(), found: false });
        }
        rows.sort_by(|a, b| a.clustering.cmp(&b.clustering));
        rows.dedup_by(|a, b| a.clustering == b.clustering);
        if first {
            // No row is expected, but the partition is asked for all the same.
            bind(&mut open.bound, self.generator.set_key(seed.value()), 0..key);
        }
        bind(&mut open.bound, &range.lower, 0..self.kind.depth);
        bind(&mut open.bound, &range.upper, 0..self.kind.depth);
        Some(Place { number, partitions: 1 })
    }

    fn route(&self, place: u32, by_token: bool) -> Route {
        self.kind.common.route(self.open[place].token, by_token)
    }

    fn request(&mut self, place: u32, _: &Sending, request: Request<'_>) {
        let open = &self.open[place];
        let parameters = Parameters {
            page_size: Some(self.kind.page_size),
            paging_state: (!open.paging_state.is_empty()).then_some(&open.paging_state[..]),
            ..self.kind.common.parameters()
        };
        open.bound.cells().write(&mut self.kind.common.send(request, &parameters));
    }

    fn answer(
        &mut self,
        place: u32,
        answer: &Answer<'_>,
        received: &Received,
        told: Option<&mut Option<Why>>,
    ) -> Verdict {
        let Answer::Rows(rows) = answer else { return Verdict::failed(ErrorClass::Unexpected) };
        // Of a late page nothing follows, and its rows were not counted off.
        if received.late {
            return Verdict::done(0, rows.len() as u32);
        }
        if self.kind.validates
            && let Some(wrong) = self.check(place, rows, told)
        {
            return wrong;
        }
        let open = &mut self.open[place];
        let partitions = u32::from(!open.counted && !rows.is_empty());
        open.counted |= partitions > 0;
        let next = match rows.paging_state() {
            Some(state) => {
                open.paging_state.clear();
                open.paging_state.extend_from_slice(state);
                Next::Page
            }
            None => Next::Done,
        };
        Verdict { next, page: true, ..Verdict::done(partitions, rows.len() as u32) }
    }

    fn key(&self, place: u32) -> String {
        self.kind.common.key_text(&self.generator, self.open[place].seed)
    }

    fn statement(&self) -> &str {
        &self.kind.common.cql
    }

    fn release(&mut self, place: u32) {
        self.open.give(place);
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
