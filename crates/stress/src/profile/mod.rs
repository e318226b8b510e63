//! The YAML profiles of `user` commands: cassandra-stress's keys (its `StressYaml`), and those that this tool adds.
//!
//! [`Profile::load`] reads and checks a file; [`resolve`] finds the operations that a command line names;
//! [`Profile::block`] is a profile's part of the block of settings.
//!
//! Keys may be written in any case, and with `-`, `_` or nothing between their words, so that `consistencyLevel` works
//! where cassandra-stress documents it but fails. Anchors, aliases and merge keys (`<<: *name`) are resolved, as
//! SnakeYAML does.

mod block;
mod check;
mod cql;
mod fetch;
mod ops;
mod place;
mod read;
mod select;
mod source;

pub use block::{HEADING, batches};
/// What is wrong with a profile, where, and what to do about it.
pub use brownout_yaml::FileError as ProfileError;
pub use ops::{Resolved, What, rate, resolve};
pub use place::load_all;
pub use select::{Extent, Selection, selection};

use brownout_generate::{
    distribution::{RatioSpec, Spec},
    sizes::SizeTarget,
    types::{TableDefinition, UserTypes},
};
use brownout_load::{Consistency, SerialConsistency};
use brownout_units::Rate;

use crate::settings::{Batch, Generator};

/// Default number of rows in a page: that of cassandra-stress's driver, and of its token range queries.
pub const PAGE_SIZE: u32 = 5_000;

/// A table, how its rows are made, and what is asked of it.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The file, as named on the command line.
    pub file: String,
    /// Its content.
    pub text: String,
    /// `specname:`, by which `ops(…)` names it; `keyspace.table` unless given.
    pub name: String,
    /// `keyspace:`, as written.
    pub keyspace: String,
    /// `table:`, as written.
    pub table: String,
    /// `keyspace_definition:`, CQL.
    pub keyspace_definition: Option<String>,
    /// `table_definition:`, CQL.
    pub table_definition: Option<String>,
    /// `extra_definitions:`, CQL: types, indexes, views.
    pub extra_definitions: Vec<String>,
    /// `columnspec:`, in the order written.
    pub columns: Vec<ColumnSpec>,
    /// `insert:`
    pub insert: InsertSpec,
    /// `queries:`, in the order written.
    pub queries: Vec<Query>,
    /// `token_range_queries:`, in the order written.
    pub token_range_queries: Vec<TokenRangeQuery>,
    /// `generator:`, ours.
    pub generator: Option<Generator>,
    /// `compress:`, ours: the ratio, compressed to raw, that whole rows reach on disk.
    pub compress: Option<f64>,
    /// `partition_sizes:`, ours.
    pub partition_sizes: Option<SizeTarget>,
    /// The table that [`Profile::table_definition`] defines; `None` if there is none, or if it uses types that only the
    /// servers know, or keywords that the parser does not.
    pub definition: Option<TableDefinition>,
    /// Types that [`Profile::extra_definitions`] define.
    pub types: UserTypes,
    /// Remarks for stderr.
    pub notes: Vec<String>,
}

/// An entry of `columnspec:`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnSpec {
    /// `name:`, as spelled: in compat its spelling affects the values.
    pub name: String,
    /// `size:`
    pub size: Option<Spec>,
    /// `population:`
    pub population: Option<Spec>,
    /// `cluster:`
    pub cluster: Option<Spec>,
    /// `element_size:`, ours: sizes within collections, tuples and user-defined types.
    pub element_size: Option<Spec>,
    /// `element_population:`, ours: values within them.
    pub element_population: Option<Spec>,
    /// `compress:`, ours: the ratio, compressed to raw, of the column's bytes.
    pub compress: Option<f64>,
}

/// `insert:`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InsertSpec {
    /// `partitions:`, per visit.
    pub partitions: Option<Spec>,
    /// `select:`, the share of a visit's rows that is written.
    pub select: Option<RatioSpec>,
    /// `row-population:`, the share of a row's columns that is written. cassandra-stress reads it but lets its own
    /// default override it; here it takes effect.
    pub row_population: Option<RatioSpec>,
    /// `visits:`, in how many visits a partition is written. Only on the command line in cassandra-stress.
    pub visits: Option<Spec>,
    /// `revisit:`, which of the incomplete partitions is next. Only on the command line in cassandra-stress.
    pub revisit: Option<Spec>,
    /// `batchtype:`
    pub batch: Option<Batch>,
    /// `batch-size:`, ours: most rows in a batch.
    pub batch_size: Option<u32>,
    /// How it is asked.
    pub request: RequestSpec,
    /// Keys and values as written, for the block of settings.
    written: Vec<(String, String)>,
}

/// Settings that any operation may have.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestSpec {
    /// `consistencyLevel:`
    pub consistency: Option<Consistency>,
    /// `serialConsistencyLevel:`
    pub serial_consistency: Option<SerialConsistency>,
    /// `rate:`, ours: operations per second.
    pub rate: Option<Rate>,
    /// `pin:`, ours: the node that coordinates the operation.
    pub pin: Option<String>,
}

/// An entry of `queries:`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Its name.
    pub name: String,
    /// `cql:`
    pub cql: String,
    /// `fields:`
    pub fields: Fields,
    /// `page_size:`, ours: rows per page; `None`: [`PAGE_SIZE`].
    pub page_size: Option<u32>,
    /// `check:`, ours: compare its rows with those that were written.
    pub check: bool,
    /// How it is asked.
    pub request: RequestSpec,
    /// `fields:`, `consistencyLevel:` and `serialConsistencyLevel:` as written.
    written: [Option<String>; 3],
}

/// Where the variables of a query come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fields {
    /// All from one row.
    SameRow,
    /// Each from a row of its own.
    #[default]
    MultiRow,
}

/// An entry of `token_range_queries:`.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenRangeQuery {
    /// Its name.
    pub name: String,
    /// `columns:` as written; `*` means all.
    pub columns: String,
    /// `page_size:`, rows.
    pub page_size: u32,
    /// How it is asked.
    pub request: RequestSpec,
}
