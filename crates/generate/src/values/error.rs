//! Why a column cannot be generated as asked.

use thiserror::Error;

/// A column whose values cannot be made as asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// A type that cassandra-stress does not know.
    #[error(
        "column '{column}' has the type {cql_type}, which cassandra-stress cannot generate; write 'generator: v2' in the profile"
    )]
    Unsupported {
        /// The column.
        column: String,
        /// Its type.
        cql_type: String,
    },
    /// A setting that only v2 knows, on a column that is generated as cassandra-stress does.
    #[error(
        "column '{column}': {setting} is not known to cassandra-stress's generators; write 'generator: v2' in the profile"
    )]
    NeedsV2 {
        /// The column.
        column: String,
        /// The setting.
        setting: &'static str,
    },
    /// Compression of what has no text or bytes that may repeat.
    #[error(
        "column '{column}' has the type {cql_type}; compress works on text, ascii and blob, by themselves or as values of maps, \
         elements of lists and fields of tuples and types (keys of maps and elements of sets must differ); remove it there"
    )]
    NotCompressible {
        /// The column.
        column: String,
        /// Its type.
        cql_type: String,
    },
    /// A ratio that is none.
    #[error(
        "column '{column}': compress is {ratio}; give the compressed size as a part of the raw size, above 0 and below 1"
    )]
    Ratio {
        /// The column.
        column: String,
        /// What was given.
        ratio: String,
    },
    /// A size below zero.
    #[error("column '{column}': its size {size} can be below zero; let it begin at 0 or above")]
    NegativeSize {
        /// The column.
        column: String,
        /// The distribution.
        size: String,
    },
}
