//! The predefined commands: `standard1` and `counter1`, one row per partition.

mod counter_read;
mod counter_write;
mod read;
mod row;
mod thread;
mod write;

pub use counter_read::CounterRead;
pub use counter_write::CounterWrite;
pub use read::Read;
pub use row::PredefinedRow;
pub use write::Write;

use std::sync::Arc;

use brownout_generate::seeds::{SeedManager, SeedSource};
use brownout_load::{Consistency, Parameters, Request, Route, SerialConsistency, Values, murmur3_token};

/// What the four kinds have in common.
#[derive(Clone)]
pub struct Common {
    /// Its CQL statement.
    pub cql: String,
    /// Its index among the prepared statements; `None`: sent as text every time (`-mode unprepared`).
    pub statement: Option<usize>,
    /// Index of the table among those of the workload.
    pub table: u16,
    /// Which partition is next.
    pub seeds: Arc<SeedManager>,
    /// Its number among the kinds of the run, so that each draws independently.
    pub number: usize,
    /// What rows are made of.
    pub row: PredefinedRow,
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// The same for conditional writes.
    pub serial_consistency: Option<SerialConsistency>,
}

impl Common {
    fn source(&self, thread: usize) -> SeedSource {
        self.seeds.source(super::source_index(thread, self.number))
    }

    fn parameters(&self) -> Parameters<'static> {
        let metadata_is_known = self.statement.is_some();
        Parameters {
            serial_consistency: self.serial_consistency,
            skip_metadata: metadata_is_known,
            ..Parameters::new(self.consistency)
        }
    }

    fn send<'v>(&'v self, request: Request<'v>, parameters: &Parameters<'v>) -> Values<'v> {
        match self.statement {
            Some(statement) => request.execute(statement, parameters),
            None => request.query(&self.cql, parameters),
        }
    }

    fn route(&self, key: &[u8], by_token: bool) -> Route {
        if by_token { Route::Token { table: self.table, token: murmur3_token(key) } } else { Route::Any }
    }
}

/// A key as cassandra-stress prints it: `KL (hex: 4b4c)`. Keys are digits and capitals.
fn key_text(key: &[u8]) -> String {
    format!("{} (hex: {})", String::from_utf8_lossy(key), super::hexadecimal(key))
}
