//! A distribution cut in bands of equal probability, uniform inside each.

use std::cmp::Ordering;
use std::sync::Arc;

use super::mixed::Offset;
use crate::java::{Random, Weibull};

/// `qextreme`: a Weibull draw chooses the band, a generator of its own the value inside.
///
/// cassandra-stress never seeds that second generator and so cannot repeat its draws; here it follows the seed.
#[derive(Debug, Clone)]
pub(super) struct Quantized {
    inner: Offset<Weibull>,
    inside: Random,
    /// The first value of each band, and one past the last value.
    bounds: Arc<[i64]>,
}

impl Quantized {
    pub fn new(inner: Offset<Weibull>, max: i64, bands: i32) -> Self {
        let count = f64::from(bands);
        let first = std::iter::once(inner.min);
        let between = (1..bands).map(|i| inner.inverse(f64::from(i) / count));
        let bounds = first.chain(between).chain(std::iter::once(max + 1)).collect();
        Quantized { inner, inside: Random::new(0), bounds }
    }

    pub fn set_seed(&mut self, seed: i64) {
        self.inside.set_seed(!seed);
    }

    #[inline]
    pub fn whole(&mut self, random: &mut Random) -> i64 {
        // The smallest value of all is below the first band, where cassandra-stress fails; it belongs to the first.
        let band = self.band(self.inner.whole(random)).max(0) as usize;
        let (from, to) = (self.bounds[band], self.bounds[band + 1]);
        from + (self.inside.next_f64() * (to - from) as f64) as i64
    }

    pub fn range(&self) -> (i64, i64) {
        (self.bounds[0], self.bounds[self.bounds.len() - 1] - 1)
    }

    pub fn inverse(&self, p: f64) -> i64 {
        let bands = self.bounds.len() - 1;
        let band = self.band(self.inner.inverse(p));
        if band < 0 {
            return self.bounds[0];
        }
        let band = band as usize;
        if band >= bands {
            return self.bounds[bands] - 1;
        }
        let share = (p - band as f64 / bands as f64) * bands as f64;
        self.bounds[band] + (share * (self.bounds[band + 1] - self.bounds[band]) as f64) as i64
    }

    /// The band of a value; a bound itself counts to the band below it. Where bounds coincide, it matters which of them
    /// the search meets, so the steps of Java's binary search are kept.
    fn band(&self, value: i64) -> isize {
        let (mut low, mut high) = (0isize, self.bounds.len() as isize - 1);
        while low <= high {
            let middle = (low + high) / 2;
            match self.bounds[middle as usize].cmp(&value) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle - 1,
                Ordering::Equal => return middle - 1,
            }
        }
        low - 1
    }
}
