//! `COUNTER_WRITE`: adds to every counter of one row of `counter1`.
//!
//! An increment that was not answered may or may not have been applied; a retry may count it twice. This is so in every
//! client.

use brownout_generate::distribution::{Distribution, Spec};
use brownout_load::{Answer, Meaning};

use super::{
    Common, PredefinedRow,
    thread::{PredefinedThread, RowOperation, written},
};
use crate::operations::{Bound, Kind, KindThread, complaints::Why};

/// The kind.
pub struct CounterWrite {
    /// What it has in common with the others.
    pub common: Common,
    /// How much is added to each counter.
    pub add: Spec,
    /// Seed for the amounts.
    pub seed: i64,
}

impl Kind for CounterWrite {
    fn thread(&self, thread: usize, _: usize) -> Box<dyn KindThread> {
        let add = self.add.build(self.seed.wrapping_add(thread as i64));
        Box::new(PredefinedThread::new(&self.common, thread, Increment { add }))
    }
}

struct Increment {
    add: Distribution,
}

impl RowOperation for Increment {
    const WRITES: bool = true;
    // The server sets the timestamps of increments.
    const STAMPED: bool = false;

    fn draw_amounts(&mut self, row: &PredefinedRow, amounts: &mut Vec<i64>) {
        amounts.extend(row.names().map(|_| self.add.next()));
    }

    fn bind(&mut self, _: &mut PredefinedRow, key: &[u8], amounts: &[i64], bound: &mut Bound) {
        for amount in amounts {
            bound.value(&amount.to_be_bytes());
        }
        bound.value(key);
    }

    fn judge(&mut self, _: &mut PredefinedRow, _: &[u8], answer: &Answer<'_>, _: Option<&mut Option<Why>>) -> Meaning {
        written(answer)
    }
}
