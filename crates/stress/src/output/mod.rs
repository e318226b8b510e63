//! What people and scripts read: rows, summary, logs, graphs, exports.
//!
//! The runner drains the engine's buckets once per interval and gives them to a [`Fold`], which makes an [`Interval`]
//! of what ended in it and keeps the [`Total`]. All output is a pure function of these two.
//!
//! Rows, summary, HdrHistogram log, graph and endpoint assign an operation to the interval in which it *ended*, as
//! cassandra-stress does; CSV series and run files assign it to that of its *intended start*, which shows what a user
//! experienced who arrived at that moment.

use brownout_record::percentile;

mod account;
mod csv;
mod error;
mod exporter;
mod fold;
mod graph;
mod hdrlog;
mod json;
mod machine;
mod metrics;
pub mod number;
mod progress;
mod record;
mod rows;
#[cfg(test)]
pub(crate) mod sample;
mod snapshot;
mod summary;
mod total;
mod uncertainty;
pub mod words;

pub use account::{account, populations};
pub use csv::{Csv, HEADER as CSV_HEADER};
pub use error::OutputError;
pub use exporter::Exporter;
pub use fold::Fold;
pub use graph::{GraphTest, check_graph, page, write_graph};
pub use hdrlog::HdrLog;
pub use json::{FORMAT, RunFacts, SearchFacts, to_json};
pub use metrics::{Now, exposition};
pub use progress::{Bar, Meter, Progress};
pub use record::{Ended, RunFile, RunPlan, rows_of, run_path, write_bucket};
pub use rows::{COLUMNS, Rows, Width};
pub use snapshot::{Cell, Findings, Interval, Measure, Operation, SHOWN, add_ended, ms, per_second};
pub use summary::{END, FAILURE, results, steps};
pub use total::{Drain, Late, Total};
pub use uncertainty::{Uncertainty, adjusted_row_rate};

/// What cassandra-stress prints on stderr when it cannot query the servers' garbage collections. This tool never does,
/// but prints the line for scripts that wait for it.
pub const NO_JMX: &str = "Failed to connect over JMX; not collecting these stats";
