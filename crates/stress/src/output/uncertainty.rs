//! The standard error of the mean throughput: cassandra-stress's `stderr` column and the end of its `err<` runs.

use super::Interval;

/// Relative standard error of the mean of the adjusted row rate, over intervals.
///
/// `sqrt(E[x²] − E[x]²) ÷ sqrt(k) ÷ E[x]`, as in cassandra-stress: it says how steady the throughput is, nothing about
/// the latency, and treats neighbouring intervals as independent, which they are not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Uncertainty {
    count: u64,
    sum: f64,
    sum_of_squares: f64,
}

impl Uncertainty {
    /// Takes another interval into account, even an empty one.
    pub fn update(&mut self, interval: &Interval) {
        self.add(adjusted_row_rate(interval));
    }

    pub(super) fn add(&mut self, rate: f64) {
        self.count += 1;
        self.sum += rate;
        self.sum_of_squares += rate * rate;
    }

    /// How many intervals there were.
    pub fn measurements(&self) -> u64 {
        self.count
    }

    /// The relative standard error; 0 before the first interval, NaN while no row has been touched.
    pub fn value(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let count = self.count as f64;
        let mean = self.sum / count;
        // Rounding may leave the difference of two large numbers below zero.
        let deviation = (self.sum_of_squares / count - mean * mean).max(0.0).sqrt();
        deviation / count.sqrt() / mean
    }

    /// Whether an `err<target n>least n<most` run is finished.
    pub fn converged(&self, target: f64, least: u64, most: u64) -> bool {
        (self.value() < target && self.count >= least) || self.count >= most
    }
}

/// Rows ÷ (length − largest latency): the rate without the time in which the slowest operation may have held up all
/// others. An interval shorter than its largest latency has no such time to leave out (cassandra-stress then computes a
/// negative or an infinite rate and never converges): its plain row rate counts.
pub fn adjusted_row_rate(interval: &Interval) -> f64 {
    let rows: u64 = interval.operations.iter().map(|operation| operation.rows).sum();
    let largest = interval.operations.iter().map(|operation| operation.largest_ns(interval.measure)).max().unwrap_or(0);
    let left = if largest < interval.length_ns { interval.length_ns - largest } else { interval.length_ns };
    if left == 0 { 0.0 } else { rows as f64 * 1e9 / left as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_error_is_that_of_the_definition() {
        let mut uncertainty = Uncertainty::default();
        assert_eq!(uncertainty.value(), 0.0);
        for rate in [90.0, 100.0, 110.0] {
            uncertainty.add(rate);
        }
        let expected = (200.0_f64 / 3.0).sqrt() / 3.0_f64.sqrt() / 100.0;
        assert!((uncertainty.value() - expected).abs() < 1e-12);
        assert!(!uncertainty.converged(0.02, 3, 200));
        assert!(uncertainty.converged(0.05, 3, 200));
        assert!(!uncertainty.converged(0.05, 4, 200));
        assert!(uncertainty.converged(0.0, 4, 3));
    }

    #[test]
    fn equal_rates_have_no_error_and_no_nan() {
        let mut uncertainty = Uncertainty::default();
        for _ in 0..5 {
            uncertainty.add(1_234.567);
        }
        assert!(uncertainty.value() < 1e-6);
    }
}
