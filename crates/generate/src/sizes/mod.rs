//! Partition sizes as a target: a histogram asked for, partitions that follow it, and how near the table came.
//!
//! A [`SizeTarget`] is written by hand (`50%: 2KiB`, `99%: 300 rows`) or read from what `nodetool tablehistograms`
//! printed of the table to be imitated. With the size of a row it becomes [`PartitionSizes`], which gives every partition
//! its number of rows as a function of its seed. [`compare()`] holds what the loaded table shows against the target.

mod bucket;
mod compare;
mod nodetool;
mod partitions;
mod target;

pub use bucket::{Bucket, bucket_of};
pub use compare::{PercentileComparison, compare};
pub use nodetool::{TableHistogram, parse_tablehistograms};
pub use partitions::{PartitionSizes, RowSize};
pub use target::{Amount, Point, SizeTarget};

use thiserror::Error;

/// A target that cannot be read or cannot be met.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SizeError {
    /// A share or an amount that is none.
    #[error("partition_sizes: '{text}' is not {expected}; write it as {example}")]
    Unreadable {
        /// What was written.
        text: String,
        /// What it should be.
        expected: &'static str,
        /// Texts that would do.
        example: &'static str,
    },
    /// No entry at all.
    #[error("partition_sizes names no sizes; give at least one, such as 50%: 2KiB")]
    Nothing,
    /// A larger share with a smaller size, or a share given twice.
    #[error(
        "partition_sizes: {later} is given as {smaller}, but {earlier} as {larger}; sizes must grow with the share of partitions"
    )]
    NotRising {
        /// The smaller share.
        earlier: String,
        /// Its size.
        larger: String,
        /// The larger share.
        later: String,
        /// Its size.
        smaller: String,
    },
    /// A partition cannot be smaller than one row.
    #[error(
        "partition_sizes: {share} of the partitions should have at most {asked}, but one row of this table takes {least} bytes; \
         make the columns smaller or ask for more"
    )]
    TooSmall {
        /// The share.
        share: String,
        /// What was asked.
        asked: String,
        /// What a partition of one row takes.
        least: u64,
    },
    /// The text is not the output of `nodetool tablehistograms`.
    #[error("{what} in the output of nodetool tablehistograms; save it with: nodetool tablehistograms KEYSPACE TABLE")]
    NotHistograms {
        /// What is missing or wrong.
        what: String,
    },
    /// The table had no data on disk, or too much, when the histogram was printed.
    #[error(
        "nodetool tablehistograms knows no {column} of {table} (NaN); flush the table first, so that there are SSTables: \
         nodetool flush"
    )]
    NoData {
        /// The table.
        table: String,
        /// The column of the output.
        column: &'static str,
    },
}

#[cfg(test)]
mod tests;
