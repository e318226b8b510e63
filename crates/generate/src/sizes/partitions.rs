//! Partitions that follow a target.

use brownout_base::random::GOLDEN;

use super::{Amount, Point, SizeError, SizeTarget, bucket_of, target::not_rising};

/// What a partition of a table takes on disk before compression, in bytes, as `nodetool tablehistograms` counts it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSize {
    /// Per partition, whatever its rows: key, deletion time, static columns, end.
    pub partition: f64,
    /// Per row, on average: clustering, cells and all that is around them.
    pub row: f64,
    /// Cells per row, on average.
    pub cells: f64,
}

/// The number of rows of every partition, so that their sizes follow a target.
///
/// Between the target's points sizes are interpolated on the scale of ratios, that being the scale on which Cassandra
/// counts them. Below the first point they rise to it from a partition of one row; above the last they stay.
#[derive(Debug, Clone)]
pub struct PartitionSizes {
    row: RowSize,
    /// Share of partitions and the logarithm of the size in bytes.
    points: Vec<(f64, f64)>,
}

impl PartitionSizes {
    /// For rows of this size. Errors: a target below one row (further than the bucket it would be counted in, unless it is
    /// the `Min` that nodetool printed), or one that falls where its units are brought together.
    pub fn new(target: &SizeTarget, row: RowSize) -> Result<Self, SizeError> {
        let least = row.partition + row.row;
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut before: Option<(&Point, f64)> = None;
        for point in target.points() {
            let bytes = in_bytes(point, &row);
            let one_small_row = point.printed && point.share == 0.0;
            // A quarter more is about one bucket: what cannot be told from what was asked.
            if !one_small_row && least > bytes && bucket_of(least as u64).index > bucket_of(bytes as u64).index + 1 {
                return Err(SizeError::TooSmall {
                    share: point.share_text(),
                    asked: point.amount.to_string(),
                    least: least.round() as u64,
                });
            }
            if let Some((earlier, smaller)) = before
                && smaller > bytes
            {
                return Err(not_rising(earlier, point));
            }
            before = Some((point, bytes));
            points.push((point.share, bytes.max(least).ln()));
        }
        if let Some((share, _)) = points.first()
            && *share > 0.0
        {
            points.insert(0, (0.0, least.ln()));
        }
        Ok(PartitionSizes { row, points })
    }

    /// The size in bytes below which a share of the partitions (0 to 1) lies.
    pub fn quantile(&self, share: f64) -> f64 {
        let above = self.points.partition_point(|(point, _)| *point < share);
        let size = match (above.checked_sub(1).and_then(|below| self.points.get(below)), self.points.get(above)) {
            (Some((low, from)), Some((high, to))) => from + (to - from) * (share - low) / (high - low),
            (Some((_, size)), None) | (None, Some((_, size))) => *size,
            (None, None) => 0.0,
        };
        size.exp()
    }

    /// The rows of the partition at this share of all partitions by size; at least one.
    pub fn rows_at(&self, share: f64) -> u64 {
        ((self.quantile(share) - self.row.partition) / self.row.row).round().max(1.0) as u64
    }

    /// The rows of the partition of this seed.
    ///
    /// Consecutive seeds are spread over the target as evenly as can be (multiples of the golden ratio, modulo one), so
    /// that even a few hundred partitions meet its percentiles.
    pub fn rows(&self, seed: i64) -> u64 {
        let place = (seed as u64).wrapping_mul(GOLDEN);
        self.rows_at((place >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// The most rows that any partition has.
    pub fn most_rows(&self) -> u64 {
        self.rows_at(1.0)
    }

    /// The mean number of rows of a partition (by the middles of a thousand equal shares).
    pub fn mean_rows(&self) -> f64 {
        (0..1000).map(|place| self.rows_at((f64::from(place) + 0.5) / 1000.0) as f64).sum::<f64>() / 1000.0
    }
}

fn in_bytes(point: &Point, row: &RowSize) -> f64 {
    match point.amount {
        Amount::Bytes(_) => point.aim,
        Amount::Rows(_) => row.partition + point.aim * row.row,
        Amount::Cells(_) => row.partition + point.aim / row.cells.max(1.0) * row.row,
    }
}
