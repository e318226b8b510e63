//! Why a table's rows cannot be made as asked.

use thiserror::Error;

use crate::values::ValueError;

/// Rows that cannot be made as asked.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RowError {
    /// A column cannot be generated.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// v2: siblings must differ, and there are not so many values.
    #[error(
        "clustering column '{column}' ({cql_type}) has {values} values to choose from, but up to {asked} rows are asked for under one \
         value of the column before it; give it a larger size or population, or a smaller cluster"
    )]
    TooFewValues {
        /// The column.
        column: String,
        /// Its type.
        cql_type: String,
        /// How many values it has.
        values: u64,
        /// The most that are asked for.
        asked: u64,
    },
    /// A clustering distribution that gives no rows.
    #[error(
        "clustering column '{column}' has on average {average} values (cluster: {cluster}); give it a distribution above 0"
    )]
    NoRows {
        /// The column.
        column: String,
        /// The distribution's average.
        average: i64,
        /// The distribution.
        cluster: String,
    },
    /// Keys and rows by different rules.
    #[error(
        "column '{column}' is part of the primary key and is generated as {column_flavour}, the table as {table_flavour}; \
         use one generator for the whole key"
    )]
    MixedKey {
        /// The column.
        column: String,
        /// Its generator.
        column_flavour: &'static str,
        /// The table's.
        table_flavour: &'static str,
    },
    /// Partition sizes where rows are made as cassandra-stress makes them.
    #[error("partition_sizes is not known to cassandra-stress's generator; write 'generator: v2' in the profile")]
    SizesNeedV2,
    /// Partition sizes for a table with one row in each partition.
    #[error("partition_sizes needs a clustering column: a partition of this table has one row")]
    SizesNeedClustering,
    /// A table without a partition key.
    #[error("the table has no partition key; list its key columns")]
    NoKey,
    /// A statement binds a column that the table does not have.
    #[error("the statement binds '{column}', which is not a column of the table{}", nearest.as_ref().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default())]
    NoSuchColumn {
        /// The bound name.
        column: String,
        /// The column with the nearest name.
        nearest: Option<String>,
    },
}
