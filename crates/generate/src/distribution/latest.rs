//! What was written last comes most often: YCSB's "latest".

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::zipf::Zipf;
use crate::java::Random;

/// The value written last, told by writers and looked at by readers; clones share it.
#[derive(Debug, Clone)]
pub struct Newest(Arc<AtomicI64>);

impl Newest {
    /// Begins with this value.
    pub fn new(value: i64) -> Self {
        Newest(Arc::new(AtomicI64::new(value)))
    }

    /// This value was written.
    #[inline]
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value written last.
    #[inline]
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ranks by Zipf, counted backwards from the newest value.
///
/// The range is a ring: before its first value comes its last. That is the order of age where all of the range was
/// written once and writers go through it again from its first value on.
#[derive(Debug, Clone)]
pub struct Latest {
    zipf: Zipf,
    min: i64,
    newest: Option<Newest>,
}

impl Latest {
    pub(super) fn new(min: i64, max: i64, exponent: f64) -> Self {
        Latest { zipf: Zipf::new(max - min + 1, exponent), min, newest: None }
    }

    pub(super) fn follow(&mut self, newest: &Newest) {
        self.newest = Some(newest.clone());
    }

    #[inline]
    pub(super) fn next(&self, random: &mut Random) -> i64 {
        let (min, max) = self.range();
        let newest = self.newest.as_ref().map_or(max, |newest| newest.get().clamp(min, max));
        let value = newest - self.zipf.rank(random);
        if value < min { value + self.zipf.items() } else { value }
    }

    pub(super) fn range(&self) -> (i64, i64) {
        (self.min, self.min + self.zipf.items() - 1)
    }

    pub(super) fn inverse(&self, p: f64) -> i64 {
        self.range().1 - self.zipf.inverse(1.0 - p)
    }

    pub(super) fn mean(&self) -> f64 {
        self.range().1 as f64 - self.zipf.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Spec;

    #[test]
    fn the_newest_value_is_the_most_frequent_wherever_it_is() -> Result<(), crate::distribution::SpecError> {
        let newest = Newest::new(10);
        let mut latest = "latest(1..10)".parse::<Spec>()?.build(1);
        latest.follow(&newest);
        for at in [10, 4, 1] {
            newest.set(at);
            let mut counts = [0; 11];
            (0..20_000).for_each(|_| counts[latest.next() as usize] += 1);
            // Going back from the newest, round the ring, each is rarer than the one before.
            let by_age: Vec<u32> = (0..10).map(|age| counts[((at - 1 - age).rem_euclid(10) + 1) as usize]).collect();
            assert!(by_age[..4].is_sorted_by(|a, b| a > b), "{by_age:?}");
            assert_eq!(counts[0], 0);
        }
        Ok(())
    }

    #[test]
    fn alone_it_takes_the_last_value_for_the_newest() -> Result<(), crate::distribution::SpecError> {
        let latest = "latest(1..100)".parse::<Spec>()?.build(1);
        assert_eq!((latest.inverse_cumulative(0.0), latest.inverse_cumulative(1.0)), (1, 100));
        let zipf = "zipf(0..99)".parse::<Spec>()?.build(1);
        assert_eq!(latest.inverse_cumulative(0.5), 100 - zipf.inverse_cumulative(0.5));
        Ok(())
    }
}
