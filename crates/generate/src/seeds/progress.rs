//! Up to where all writes of a sequence have ended.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Numbers end in any order; what counts is how many, from the first on, have ended without a gap.
#[derive(Debug, Default)]
pub(super) struct Progress {
    contiguous: AtomicI64,
    ahead: Mutex<BTreeSet<i64>>,
}

impl Progress {
    /// How many numbers, from 1 on, have ended without a gap.
    pub fn contiguous(&self) -> i64 {
        self.contiguous.load(Ordering::Acquire)
    }

    /// This number has ended. Numbers below 1, and those that ended before, change nothing.
    pub fn ended(&self, number: i64) {
        if number <= self.contiguous() {
            return;
        }
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let mut contiguous = self.contiguous();
        if number <= contiguous {
            return;
        }
        ahead.insert(number);
        while ahead.first() == Some(&(contiguous + 1)) {
            ahead.pop_first();
            contiguous += 1;
        }
        self.contiguous.store(contiguous, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn a_gap_holds_back_what_ended_behind_it() {
        let progress = Progress::default();
        for (number, contiguous) in [(2, 0), (3, 0), (0, 0), (1, 3), (1, 3), (5, 3), (4, 5), (2, 5)] {
            progress.ended(number);
            assert_eq!(progress.contiguous(), contiguous, "after {number}");
        }
    }
}
