//! `WRITE`: one row of `standard1`.

use std::ops::Range;

use brownout_load::{Answer, Verdict};

use super::{
    Common, PredefinedRow,
    thread::{PredefinedThread, RowOperation, written},
};
use crate::operations::{Bound, Kind, KindThread, complaints::Why};

/// The kind.
pub struct Write(pub Common);

impl Kind for Write {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(PredefinedThread::new(&self.0, thread, WriteRow { key: Vec::new() }))
    }
}

struct WriteRow {
    /// Reused: the row is a function of the key, but the key comes last.
    key: Vec<u8>,
}

impl RowOperation for WriteRow {
    const WRITES: bool = true;
    const STAMPED: bool = true;

    fn bind(&mut self, row: &mut PredefinedRow, seed: i64, bound: &mut Bound) -> Range<usize> {
        self.key.clear();
        row.key(seed, &mut self.key);
        row.cells(&self.key, bound);
        bound.value(&self.key)
    }

    fn judge(&mut self, _: &mut PredefinedRow, _: &[u8], answer: &Answer<'_>, _: Option<&mut Option<Why>>) -> Verdict {
        written(answer)
    }
}
