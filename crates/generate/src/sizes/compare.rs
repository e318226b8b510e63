//! Asked against got.

use super::{Amount, Bucket, PartitionSizes, RowSize, SizeTarget, TableHistogram, bucket_of};

/// One percentile of the loaded table beside what was asked of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PercentileComparison {
    /// The share of partitions: `50%`, `min`, `max`.
    pub share: String,
    /// What was asked, as written, or what the target comes to at a share that it does not name.
    pub asked: Amount,
    /// The bucket in which the asked size is counted.
    pub asked_bucket: Bucket,
    /// What nodetool shows, in bytes (or cells, where cells were asked); `None` where it shows none.
    pub got: Option<u64>,
    /// How many buckets what was got is above what was asked.
    pub buckets_off: Option<i64>,
    /// Whether it counts: nodetool's Min and Max are one partition each, which the chance of a few small or large rows
    /// moves by several buckets; a percentile is many.
    pub judged: bool,
    /// Whether nodetool has a line for this share. Others, such as 90%, cannot be compared; that they were asked is shown.
    pub printed: bool,
}

impl PercentileComparison {
    /// Whether what was got is counted in the asked bucket or one beside it, or does not count. Nodetool's percentiles are
    /// boundaries of buckets, so nothing nearer can be told.
    pub fn met(&self) -> bool {
        !self.printed || self.buckets_off.is_some_and(|off| !self.judged || off.abs() <= 1)
    }

    /// What there is to say of it, for people; nothing of one that is met.
    pub fn remark(&self) -> &'static str {
        match (self.printed, self.met(), self.judged) {
            (false, ..) => "nodetool does not print it",
            (_, false, _) => "NOT MET",
            (_, true, false) => "not judged",
            (_, true, true) => "",
        }
    }
}

/// Compare a loaded table's histogram with the target, at every share that nodetool prints or the target names. `row` is the
/// size of the table's rows, to bring rows and bytes together.
pub fn compare(
    target: &SizeTarget,
    sizes: &PartitionSizes,
    row: &RowSize,
    got: &TableHistogram,
) -> Vec<PercentileComparison> {
    let in_cells = target.points().iter().all(|point| matches!(point.amount, Amount::Cells(_)));
    let column = if in_cells { &got.cell_count } else { &got.partition_size };
    let is_same = |one: f64, other: f64| (one - other).abs() < 1e-9;
    let asked = target.points().iter().map(|point| point.share);
    let unprinted = asked.filter(|share| !column.iter().any(|(printed, _)| is_same(*printed, *share)));
    let mut shares: Vec<(f64, Option<u64>, bool)> = unprinted.map(|share| (share, None, false)).collect();
    shares.extend(column.iter().map(|(share, got)| (*share, *got, true)));
    shares.sort_by(|one, other| one.0.total_cmp(&other.0));
    shares
        .iter()
        .map(|(share, got, printed)| {
            let named = target.points().iter().find(|point| is_same(point.share, *share));
            // What the partitions really are made to have there: whole rows.
            let rows = sizes.rows_at(*share) as f64;
            let aim = if in_cells { rows * row.cells } else { row.partition + rows * row.row };
            let asked_bucket = match named.map(|point| point.amount) {
                Some(Amount::Bytes(size)) if !in_cells => bucket_of(size),
                Some(Amount::Cells(size)) if in_cells => bucket_of(size),
                _ => bucket_of(aim.round() as u64),
            };
            let unit = if in_cells { Amount::Cells } else { Amount::Bytes };
            PercentileComparison {
                share: match *share {
                    0.0 => "min".to_owned(),
                    1.0 => "max".to_owned(),
                    share => format!("{}%", (share * 1e4).round() / 100.0),
                },
                asked: named.map_or(unit(aim.round() as u64), |point| point.amount),
                asked_bucket,
                got: *got,
                judged: *share > 0.0 && *share < 1.0,
                printed: *printed,
                buckets_off: got.map(|got| bucket_of(got).index as i64 - asked_bucket.index as i64),
            }
        })
        .collect()
}
