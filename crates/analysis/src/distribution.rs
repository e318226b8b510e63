//! The individual measurements of a source, where it has any.

use brownout_record::Histogram;

/// How single measurements are distributed.
pub(crate) enum Distribution {
    /// In ascending order.
    Values(Vec<f64>),
    /// Of those that the emulator counts, ns.
    Counted(Histogram),
}

impl Distribution {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Distribution::Values(values)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Distribution::Values(values) => values.len() as u64,
            Distribution::Counted(histogram) => histogram.len(),
        }
    }

    /// The smallest value that at least the share `q` does not exceed; none of nothing.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        match self {
            Distribution::Values(values) => {
                let rank = (values.len() as f64 * q).ceil() as usize;
                values.get(rank.clamp(1, values.len().max(1)) - 1).copied()
            }
            Distribution::Counted(histogram) => (!histogram.is_empty()).then(|| histogram.value_at_quantile(q) as f64),
        }
    }

    /// How many lie below a value.
    pub(crate) fn below(&self, limit: f64) -> u64 {
        match self {
            Distribution::Values(values) => values.partition_point(|value| *value < limit) as u64,
            Distribution::Counted(histogram) if limit >= 1.0 => histogram.count_between(0, limit as u64 - 1),
            Distribution::Counted(_) => 0,
        }
    }

    /// How many lie above it.
    pub(crate) fn above(&self, limit: f64) -> u64 {
        match self {
            Distribution::Values(values) => (values.len() - values.partition_point(|value| *value <= limit)) as u64,
            Distribution::Counted(histogram) => self.count() - histogram.count_between(0, limit.max(0.0) as u64),
        }
    }

    /// Standard deviation as the upper half shows it, as if it were normal: a stretch in which something was missing
    /// lies in the lower half, and does not widen it.
    pub(crate) fn upper_deviation(&self) -> f64 {
        /// The 90th percentile of the normal distribution.
        const P90: f64 = 1.2816;
        self.quantile(0.9).zip(self.quantile(0.5)).map_or(0.0, |(high, middle)| (high - middle) / P90)
    }
}
