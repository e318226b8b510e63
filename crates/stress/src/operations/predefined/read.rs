//! `READ`: one row of `standard1`, compared byte for byte with what a write of its key writes.

use std::ops::Range;

use brownout_generate::seeds::SeedSource;
use brownout_load::{Answer, ErrorClass, Received, Request, Route, Rows, Sending, Verdict};

use super::{Common, key_text};
use crate::operations::{Bound, Kind, KindThread, Permits, Place, complaints::Why, hexadecimal, slab::Slab};

/// The kind.
pub struct Read {
    /// What it has in common with the others.
    pub common: Common,
    /// All columns are asked for with `*`: they come in the order of the schema, the key first.
    pub slice: bool,
    /// Rows are compared.
    pub validates: bool,
}

#[derive(Default)]
struct Open {
    bound: Bound,
    key: Range<usize>,
}

struct ReadThread {
    common: Common,
    seeds: SeedSource,
    validates: bool,
    /// For each column of an answer: the column of the row, or `None` for the key.
    order: Vec<Option<usize>>,
    open: Slab<Open>,
    expected: Bound,
}

impl Kind for Read {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        let names: Vec<&str> = self.common.row.names().collect();
        let mut order: Vec<Option<usize>> = (0..names.len()).map(Some).collect();
        if self.slice {
            order.sort_by_key(|column| column.map(|column| names[column]));
            order.insert(0, None);
        }
        Box::new(ReadThread {
            common: self.common.clone(),
            seeds: self.common.source(thread),
            validates: self.validates,
            order,
            open: Slab::new(),
            expected: Bound::default(),
        })
    }
}

impl ReadThread {
    /// What is wrong with the rows; `told` gets it in words.
    fn check(&mut self, place: u32, rows: &Rows<'_>, told: Option<&mut Option<Why>>) -> Option<Verdict> {
        let open = &self.open[place];
        let key = open.bound.at(&open.key);
        let say = |text: &dyn Fn() -> String| {
            if let Some(told) = told {
                *told = Some(Why::Content(text()));
            }
        };
        if rows.is_empty() {
            let columns = self.order.len();
            say(&|| format!("row empty/missing (expected 1 row with {columns} columns; got 0 rows)"));
            return Some(Verdict::missing());
        }
        if rows.len() > 1 {
            say(&|| format!("row count mismatch (expected 1 row; got {})", rows.len()));
            return Some(Verdict::mismatch());
        }
        self.expected.clear();
        self.common.row.cells(key, &mut self.expected);
        if rows.column_count() != self.order.len() {
            say(&|| format!("column count mismatch (expected {}; got {})", self.order.len(), rows.column_count()));
            return Some(Verdict::mismatch());
        }
        for (cell, column) in rows.cells().zip(&self.order) {
            let expected = match column {
                None => Some(key),
                Some(column) => self.expected.cells().nth(*column).flatten(),
            };
            if cell != expected {
                let name = column.and_then(|column| self.common.row.names().nth(column)).unwrap_or("key");
                say(&|| {
                    format!("value mismatch in column {name} (expected {}; got {})", preview(expected), preview(cell))
                });
                return Some(Verdict::mismatch());
            }
        }
        None
    }
}

/// The first bytes of a cell.
fn preview(cell: Option<&[u8]>) -> String {
    match cell {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() > 32 => format!("0x{}... ({} bytes)", hexadecimal(&bytes[..32]), bytes.len()),
        Some(bytes) => format!("0x{}", hexadecimal(bytes)),
    }
}

impl KindThread for ReadThread {
    fn draw(&mut self, permits: &Permits) -> Option<Place> {
        permits.take(1)?;
        let Some(seed) = self.seeds.next_read() else {
            permits.give_back(1);
            return None;
        };
        let number = self.open.take();
        let Open { bound, key } = &mut self.open[number];
        bound.clear();
        let row = &mut self.common.row;
        *key = bound.value_with(|out| row.key(seed.value(), out));
        Some(Place { number, partitions: 1 })
    }

    fn route(&self, place: u32, by_token: bool) -> Route {
        let open = &self.open[place];
        self.common.route(open.bound.at(&open.key), by_token)
    }

    fn request(&mut self, place: u32, _: &Sending, request: Request<'_>) {
        let parameters = self.common.parameters();
        self.open[place].bound.cells().write(&mut self.common.send(request, &parameters));
    }

    fn answer(&mut self, place: u32, answer: &Answer<'_>, _: &Received, told: Option<&mut Option<Why>>) -> Verdict {
        let Answer::Rows(rows) = answer else { return Verdict::failed(ErrorClass::Unexpected) };
        let found = rows.len() as u32;
        if self.validates
            && let Some(wrong) = self.check(place, rows, told)
        {
            return wrong;
        }
        Verdict::done(found.min(1), found)
    }

    fn key(&self, place: u32) -> String {
        let open = &self.open[place];
        key_text(&open.bound, &open.key)
    }

    fn statement(&self) -> &str {
        &self.common.cql
    }

    fn release(&mut self, place: u32) {
        self.open.give(place);
    }
}
