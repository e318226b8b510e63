//! Compressibility as a dial: data that a table's compressor brings to a ratio asked for.
//!
//! A share of the bytes of texts and blobs repeats what other rows have; the rest is random. How large that share must be
//! depends on the compressor, the chunk it works on, and on all the bytes around the values: keys, timestamps, lengths. So
//! it is not computed but tried: [`calibrate`] makes rows of the table, lays them out as an SSTable does, compresses chunks
//! of them with the real compressor, and halves the interval until the ratio is the one asked for. It depends on nothing
//! but its arguments, so every process that calibrates the same table gets the same data.

mod calibrate;
mod compressor;
mod sstable;

pub use calibrate::{Calibrated, calibrate, measure};
pub use compressor::{Compression, Compressor};
pub use sstable::row_size;

use thiserror::Error;

use crate::rows::RowError;

/// A ratio that cannot be reached, or a compressor that is not known.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CompressError {
    /// The table's rows cannot be made at all.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A ratio that is none.
    #[error("compress: {0} is not a ratio; give the compressed size as a part of the raw size, above 0 and below 1")]
    Ratio(f64),
    /// Nothing there whose content may be chosen.
    #[error(
        "compress: the table has no column outside its primary key with text, ascii or blob that may repeat (as keys of maps and \
         elements of sets they must differ), is generated as v2 and has no compress of its own; add one, or write 'generator: v2'"
    )]
    NoColumns,
    /// A key that holds texts or blobs, and differs from others by their content alone.
    #[error(
        "column '{column}' of the primary key has the type {cql_type}; if its parts repeated, keys would no longer differ; remove \
         its compress"
    )]
    Key {
        /// The column.
        column: String,
        /// Its type.
        cql_type: String,
    },
    /// Too much is random anyway, or too much repeats anyway.
    #[error(
        "compress: {asked} cannot be reached by {what} under {compressor} in chunks of {chunk} bytes, only {least:.2} to {most:.2}; {remedy}"
    )]
    Unreachable {
        /// What was asked.
        asked: f64,
        /// The table, or a column.
        what: String,
        /// The compressor.
        compressor: Compressor,
        /// Bytes of a chunk.
        chunk: usize,
        /// The smallest ratio.
        least: f64,
        /// The largest.
        most: f64,
        /// What to do.
        remedy: &'static str,
    },
    /// A class that is not one of Cassandra's.
    #[error(
        "compression class '{0}' is not known; use LZ4Compressor, SnappyCompressor, DeflateCompressor or ZstdCompressor"
    )]
    UnknownClass(String),
    /// A chunk length that is none.
    #[error("chunk_length_in_kb '{0}' is not a power of two from 1 to 65536")]
    Chunk(String),
    /// The table is not compressed.
    #[error(
        "compress is asked for, but the table is not compressed; give it WITH compression = {{'class': 'LZ4Compressor'}}"
    )]
    NotCompressed,
    /// The compressor failed.
    #[error("{compressor} could not compress a sample of {length} bytes: {reason}")]
    Failed {
        /// The compressor.
        compressor: Compressor,
        /// Bytes of the sample.
        length: usize,
        /// What it said.
        reason: String,
    },
}

#[cfg(test)]
mod tests;
