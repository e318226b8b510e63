//! Writes of a sequence that were not acknowledged: readers that look back step past them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs that are remembered at the most, some 2 MB of them. An outage is one run or a few, however long it is, so that
/// many mean failures all over the sequence. Of more, the oldest are forgotten: readers may be sent there again.
const LIMIT: usize = 65_536;

/// Ordinals that were given up, as runs from the first to behind the last. Two runs never touch, so that the neighbours of
/// a run were not given up.
#[derive(Debug, Default)]
pub(super) struct GivenUp {
    /// Readers take no lock before anything was given up.
    any: AtomicBool,
    runs: Mutex<BTreeMap<i64, i64>>,
}

impl GivenUp {
    /// This one was given up. What lies before `oldest` is looked at no more, and forgotten.
    pub fn add(&self, ordinal: i64, oldest: i64) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut start, mut end) = (ordinal, ordinal + 1);
        if let Some((&before, &behind)) = runs.range(..=ordinal).next_back().filter(|(_, behind)| **behind >= ordinal) {
            (start, end) = (before, end.max(behind));
        }
        if let Some(behind) = runs.remove(&end) {
            end = behind;
        }
        runs.insert(start, end);
        while runs.len() > LIMIT || runs.first_key_value().is_some_and(|(_, behind)| *behind <= oldest) {
            runs.pop_first();
        }
        self.any.store(true, Ordering::Release);
    }

    /// The newest from this one backwards that was not given up; if there is none in `within`, the oldest after it; this
    /// one itself if all were.
    #[inline]
    pub fn step_past(&self, ordinal: i64, within: Range<i64>) -> i64 {
        if self.any.load(Ordering::Acquire) { self.search(ordinal, &within) } else { ordinal }
    }

    fn search(&self, ordinal: i64, within: &Range<i64>) -> i64 {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        match runs.range(..=ordinal).next_back() {
            Some((&start, &end)) if ordinal < end => {
                [start - 1, end].into_iter().find(|near| within.contains(near)).unwrap_or(ordinal)
            }
            _ => ordinal,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::java::Random;

    #[test]
    fn the_nearest_is_what_a_walk_would_find() {
        let (given_up, mut plain, mut random) = (GivenUp::default(), BTreeSet::new(), Random::new(1));
        for _ in 0..150 {
            let ordinal = i64::from(random.next_below(200));
            plain.insert(ordinal);
            given_up.add(ordinal, 0);
            for from in 0..200 {
                let mut walk = (20..=from).rev().chain(from..180);
                let expected = walk.find(|ordinal| !plain.contains(ordinal)).unwrap_or(from);
                if (20..180).contains(&from) {
                    assert_eq!(given_up.step_past(from, 20..180), expected, "from {from} past {plain:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_never_looked_at_again_and_the_oldest_of_too_many_are_forgotten() {
        let given_up = GivenUp::default();
        let runs = |given_up: &GivenUp| given_up.runs.lock().expect("no panic").clone();
        (0..10).for_each(|ordinal| given_up.add(ordinal, 0));
        assert_eq!(runs(&given_up), BTreeMap::from([(0, 10)]), "an outage is one run");
        given_up.add(50, 10);
        assert_eq!(runs(&given_up), BTreeMap::from([(50, 51)]));
        (0..2 * LIMIT as i64).for_each(|number| given_up.add(100 + 2 * number, 0));
        assert_eq!(runs(&given_up).len(), LIMIT);
        let newest = 100 + 2 * (2 * LIMIT as i64 - 1);
        assert_eq!(given_up.step_past(newest, 0..newest + 1), newest - 1);
        assert_eq!(given_up.step_past(100, 0..newest), 100, "forgotten");
    }
}
