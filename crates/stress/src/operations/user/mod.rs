//! The operations of a profile.

mod checked;
mod expected;
mod insert;
mod query;
mod token_range;
mod validate;

pub use insert::Insert;
pub use query::Query;
pub use token_range::{Ranges, TokenRange};
pub use validate::Validate;

use std::sync::Arc;

use brownout_base::random::GOLDEN;
use brownout_generate::{
    rows::{Cell, Cells, Column, PartitionGenerator, PartitionLayout, RowError, RowSettings},
    seeds::{SeedManager, SeedSource},
    types::describe,
};
use brownout_load::{Consistency, Parameters, Request, Route, SerialConsistency, Values};

/// After skipping this many partitions without rows in a row, there are taken to be none at all.
const PATIENCE: usize = 100_000;

/// What the operations on rows of a table have in common.
#[derive(Clone)]
pub struct Common {
    /// Its CQL statement, with the keyspace.
    pub cql: String,
    /// Its index among the prepared statements; `None`: sent as text every time (`-mode unprepared`).
    pub statement: Option<usize>,
    /// Index of the table among those of the workload.
    pub table: u16,
    /// The table's columns, and how they are made.
    pub layout: Arc<PartitionLayout>,
    /// How rows are visited.
    pub rows: RowSettings,
    /// Which partition is next.
    pub seeds: Arc<SeedManager>,
    /// Its number among the kinds of the run, so that each draws independently.
    pub number: usize,
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// The same for conditional writes.
    pub serial_consistency: Option<SerialConsistency>,
}

impl Common {
    /// The generator of a load thread.
    ///
    /// # Errors
    /// Rows that cannot be made as asked.
    pub fn generator(&self, thread: usize) -> Result<PartitionGenerator, RowError> {
        let own = super::source_index(thread, self.number);
        let rows = RowSettings { seed: self.rows.seed ^ own.wrapping_mul(GOLDEN), ..self.rows.clone() };
        PartitionGenerator::new(&self.layout, &rows)
    }

    fn source(&self, thread: usize) -> SeedSource {
        self.seeds.source(super::source_index(thread, self.number))
    }

    fn parameters(&self) -> Parameters<'static> {
        Parameters {
            serial_consistency: self.serial_consistency,
            skip_metadata: self.statement.is_some(),
            ..Parameters::new(self.consistency)
        }
    }

    fn send<'v>(&'v self, request: Request<'v>, parameters: &Parameters<'v>) -> Values<'v> {
        match self.statement {
            Some(statement) => request.execute(statement, parameters),
            None => request.query(&self.cql, parameters),
        }
    }

    fn route(&self, token: i64, by_token: bool) -> Route {
        if by_token { Route::Token { table: self.table, token } } else { Route::Any }
    }

    /// The partition key for a seed, for people: the values of its columns separated by bars, as in cassandra-stress.
    /// It is generated again, since only failures need it.
    fn key_text(&self, generator: &PartitionGenerator, seed: i64) -> String {
        let mut generator = generator.clone();
        let cells = generator.set_key(seed);
        let text = |(place, column): (usize, &Column)| describe(cells.get(place).value(), &column.cql_type, 100);
        self.layout.key().iter().enumerate().map(text).collect::<Vec<_>>().join("|")
    }
}

/// Writes cells of a row as values of a statement.
fn write(row: &Cells, columns: impl IntoIterator<Item = usize>, values: &mut Values<'_>) {
    for column in columns {
        match row.get(column) {
            Cell::Value(value) => values.value(value),
            Cell::Null => values.null(),
            Cell::Unset => values.unset(),
        };
    }
}

/// The same with all of its cells.
fn write_all(row: &Cells, values: &mut Values<'_>) {
    write(row, 0..row.len(), values);
}
