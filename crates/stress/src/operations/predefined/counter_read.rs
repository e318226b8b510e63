//! `COUNTER_READ`: one row of `counter1`, which must exist.

use brownout_load::{Answer, ErrorClass, Meaning};

use super::{
    Common, PredefinedRow,
    thread::{PredefinedThread, RowOperation},
};
use crate::operations::{Kind, KindThread, complaints::Why};

/// The kind.
pub struct CounterRead {
    /// What it has in common with the others.
    pub common: Common,
    /// The row must exist.
    pub validates: bool,
}

impl Kind for CounterRead {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        Box::new(PredefinedThread::new(&self.common, thread, Presence { validates: self.validates }))
    }
}

struct Presence {
    validates: bool,
}

impl RowOperation for Presence {
    const WRITES: bool = false;
    const STAMPED: bool = false;

    fn judge(
        &mut self,
        _: &mut PredefinedRow,
        _: &[u8],
        answer: &Answer<'_>,
        told: Option<&mut Option<Why>>,
    ) -> Meaning {
        let Answer::Rows(rows) = answer else { return Meaning::failed(ErrorClass::Unexpected) };
        if rows.is_empty() && self.validates {
            if let Some(told) = told {
                *told = Some(Why::Content("row empty/missing (expected a row of counters)".to_owned()));
            }
            return Meaning::missing();
        }
        let found = rows.len() as u32;
        Meaning::done(found.min(1), found)
    }
}
