//! `READ`: one row of `standard1`, compared byte for byte with what a write of its key writes.

use brownout_load::{Answer, ErrorClass, Meaning, Rows};

use super::{
    Common, PredefinedRow,
    thread::{PredefinedThread, RowOperation},
};
use crate::operations::{Bound, Kind, KindThread, complaints::Why, hexadecimal};

/// The kind.
pub struct Read {
    /// What it has in common with the others.
    pub common: Common,
    /// All columns are selected with `*`: they come in the order of the schema, the key first.
    pub slice: bool,
    /// Rows are compared.
    pub validates: bool,
}

impl Kind for Read {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        let names: Vec<&str> = self.common.row.names().collect();
        let mut order: Vec<Option<usize>> = (0..names.len()).map(Some).collect();
        if self.slice {
            order.sort_by_key(|column| column.map(|column| names[column]));
            order.insert(0, None);
        }
        let comparison = Comparison { validates: self.validates, order, expected: Bound::default() };
        Box::new(PredefinedThread::new(&self.common, thread, comparison))
    }
}

struct Comparison {
    validates: bool,
    /// For each column of an answer: the column of the row, or `None` for the key.
    order: Vec<Option<usize>>,
    expected: Bound,
}

impl Comparison {
    /// Checks the rows; `told` receives a description of what is wrong.
    fn check(
        &mut self,
        row: &mut PredefinedRow,
        key: &[u8],
        rows: &Rows<'_>,
        told: Option<&mut Option<Why>>,
    ) -> Option<Meaning> {
        let say = |text: &dyn Fn() -> String| {
            if let Some(told) = told {
                *told = Some(Why::Content(text()));
            }
        };
        if rows.is_empty() {
            let columns = self.order.len();
            say(&|| format!("row empty/missing (expected 1 row with {columns} columns; got 0 rows)"));
            return Some(Meaning::missing());
        }
        if rows.len() > 1 {
            say(&|| format!("row count mismatch (expected 1 row; got {})", rows.len()));
            return Some(Meaning::mismatch());
        }
        self.expected.clear();
        row.cells(key, &mut self.expected);
        if rows.column_count() != self.order.len() {
            say(&|| format!("column count mismatch (expected {}; got {})", self.order.len(), rows.column_count()));
            return Some(Meaning::mismatch());
        }
        for (cell, column) in rows.cells().zip(&self.order) {
            let expected = match column {
                None => Some(key),
                Some(column) => self.expected.cells().nth(*column).flatten(),
            };
            if cell != expected {
                let name = column.and_then(|column| row.names().nth(column)).unwrap_or("key");
                say(&|| {
                    format!("value mismatch in column {name} (expected {}; got {})", preview(expected), preview(cell))
                });
                return Some(Meaning::mismatch());
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

impl RowOperation for Comparison {
    const WRITES: bool = false;
    const STAMPED: bool = false;

    fn judge(
        &mut self,
        row: &mut PredefinedRow,
        key: &[u8],
        answer: &Answer<'_>,
        told: Option<&mut Option<Why>>,
    ) -> Meaning {
        let Answer::Rows(rows) = answer else { return Meaning::failed(ErrorClass::Unexpected) };
        let found = rows.len() as u32;
        if self.validates
            && let Some(wrong) = self.check(row, key, rows, told)
        {
            return wrong;
        }
        Meaning::done(found.min(1), found)
    }
}
