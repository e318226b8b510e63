//! The target: which share of the partitions is at most how large.

use std::fmt;

use brownout_units::{Bytes, Share};

use super::{SizeError, TableHistogram, bucket_of};

/// How large a partition is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Bytes on disk before compression, as nodetool counts them.
    Bytes(u64),
    /// Rows.
    Rows(u64),
    /// Cells, as nodetool counts them.
    Cells(u64),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Bytes(bytes) => write!(f, "{}", Bytes(*bytes)),
            Amount::Rows(rows) => write!(f, "{rows} rows"),
            Amount::Cells(cells) => write!(f, "{cells} cells"),
        }
    }
}

/// One point of the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The share of partitions, 0 to 1, that are at most so large.
    pub share: f64,
    /// What was asked.
    pub amount: Amount,
    /// What is aimed at, in the unit of `amount`: the amount itself where a person wrote it; the middle of its bucket where
    /// nodetool printed it, because nodetool prints a bucket's upper boundary for all that is in it.
    pub aim: f64,
    /// Nodetool printed it. Its `Min` is the lower boundary of the bucket of one partition, which may have been one row
    /// smaller than rows are on average.
    pub printed: bool,
}

impl Point {
    /// The share as it is written: `50%`, `min`, `max`.
    pub fn share_text(&self) -> String {
        match self.share {
            0.0 => "min".to_owned(),
            1.0 => "max".to_owned(),
            share => Share::new(share).map_or_else(String::new, |share| share.to_string()),
        }
    }
}

/// The sizes asked for: points with rising shares and sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeTarget {
    points: Vec<Point>,
}

impl SizeTarget {
    /// From entries `share: amount` as a profile has them, in any order. Shares: `50%`, `99.9%`, `min` (or `0%`), `max` (or
    /// `100%`). Amounts: bytes (`2KiB`), `300 rows` or `900 cells`.
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, SizeError> {
        let points = entries.into_iter().map(|(share, text)| {
            let amount = amount(text)?;
            let (Amount::Bytes(aim) | Amount::Rows(aim) | Amount::Cells(aim)) = amount;
            Ok(Point { share: self::share(share)?, amount, aim: aim as f64, printed: false })
        });
        SizeTarget::new(points.collect::<Result<_, SizeError>>()?)
    }

    /// The `Partition Size` column of a table's histogram.
    pub fn from_partition_size(histogram: &TableHistogram) -> Result<Self, SizeError> {
        SizeTarget::printed(histogram, &histogram.partition_size, "Partition Size", Amount::Bytes)
    }

    /// The `Cell Count` column of a table's histogram.
    pub fn from_cell_count(histogram: &TableHistogram) -> Result<Self, SizeError> {
        SizeTarget::printed(histogram, &histogram.cell_count, "Cell Count", Amount::Cells)
    }

    fn printed(
        histogram: &TableHistogram,
        values: &[(f64, Option<u64>)],
        column: &'static str,
        unit: fn(u64) -> Amount,
    ) -> Result<Self, SizeError> {
        let points = values.iter().map(|(share, value)| {
            let value = value.ok_or_else(|| SizeError::NoData { table: histogram.table.clone(), column })?;
            Ok(Point { share: *share, amount: unit(value), aim: bucket_of(value).middle(), printed: true })
        });
        SizeTarget::new(points.collect::<Result<_, SizeError>>()?)
    }

    fn new(mut points: Vec<Point>) -> Result<Self, SizeError> {
        if points.is_empty() {
            return Err(SizeError::Nothing);
        }
        points.sort_by(|left, right| left.share.total_cmp(&right.share));
        let target = SizeTarget { points };
        // Sizes of one unit are compared here; those of several when a row's size is known.
        for pair in target.points.windows(2) {
            let (earlier, later) = (&pair[0], &pair[1]);
            let same_unit = std::mem::discriminant(&earlier.amount) == std::mem::discriminant(&later.amount);
            if earlier.share == later.share || (same_unit && earlier.aim > later.aim) {
                return Err(not_rising(earlier, later));
            }
        }
        Ok(target)
    }

    /// The points, by rising share.
    pub fn points(&self) -> &[Point] {
        &self.points
    }
}

pub(super) fn not_rising(earlier: &Point, later: &Point) -> SizeError {
    SizeError::NotRising {
        earlier: earlier.share_text(),
        larger: earlier.amount.to_string(),
        later: later.share_text(),
        smaller: later.amount.to_string(),
    }
}

fn share(text: &str) -> Result<f64, SizeError> {
    match text.trim().to_ascii_lowercase().as_str() {
        "min" => Ok(0.0),
        "max" => Ok(1.0),
        other => other.parse::<Share>().map(Share::fraction).map_err(|_| SizeError::Unreadable {
            text: text.to_owned(),
            expected: "a share of the partitions",
            example: "50%, 99.9%, min or max",
        }),
    }
}

fn amount(text: &str) -> Result<Amount, SizeError> {
    let unreadable = || SizeError::Unreadable {
        text: text.to_owned(),
        expected: "a partition's size",
        example: "2KiB, 300 rows or 900 cells",
    };
    let trimmed = text.trim();
    let counted = |unit: &str, short: &str| {
        trimmed.strip_suffix(unit).or_else(|| trimmed.strip_suffix(short)).map(|number| number.trim().replace('_', ""))
    };
    let amount = if let Some(number) = counted("rows", "row") {
        Amount::Rows(number.parse().map_err(|_| unreadable())?)
    } else if let Some(number) = counted("cells", "cell") {
        Amount::Cells(number.parse().map_err(|_| unreadable())?)
    } else {
        Amount::Bytes(trimmed.parse::<Bytes>().map_err(|_| unreadable())?.0)
    };
    match amount {
        Amount::Bytes(0) | Amount::Rows(0) | Amount::Cells(0) => Err(unreadable()),
        amount => Ok(amount),
    }
}
