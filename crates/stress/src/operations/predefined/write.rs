//! `WRITE`: one row of `standard1`.

use brownout_load::{Answer, Meaning};

use super::{
    Common, PredefinedRow,
    thread::{PredefinedThread, RowOperation, written},
};
use crate::operations::{Bound, Kind, KindThread, complaints::Why};

/// The kind.
pub struct Write(pub Common);

impl Kind for Write {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(PredefinedThread::new(&self.0, thread, WriteRow))
    }
}

struct WriteRow;

impl RowOperation for WriteRow {
    const WRITES: bool = true;
    const STAMPED: bool = true;

    fn bind(&mut self, row: &mut PredefinedRow, key: &[u8], _: &[i64], bound: &mut Bound) {
        row.cells(key, bound);
        bound.value(key);
    }

    fn judge(&mut self, _: &mut PredefinedRow, _: &[u8], answer: &Answer<'_>, _: Option<&mut Option<Why>>) -> Meaning {
        written(answer)
    }
}
