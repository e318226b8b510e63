//! What the database itself tells of what it does.

use rusqlite::params;

use crate::{RecordError, Recorder, Run, reader::unsigned, recorder::sql_ns};

/// One thing that a node of the database shows: the value that a counter or a gauge has from then on, or something that
/// happened.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceRow {
    /// When.
    pub at_ns: u64,
    /// Known to within this.
    pub error_ns: u64,
    /// The node that shows it.
    pub node: String,
    /// `jmx`, `system-log`, `safepoint-log`.
    pub source: String,
    /// Of what: another node, a verb, a thread pool, a cause; empty where there is only one.
    pub subject: String,
    /// What: `speculative-retries`, `snitch-score`, `marked-down`, `pause`, …; see `docs/run-file.md`.
    pub name: String,
    /// A count since the node's start, a gauge, or a length in ns.
    pub value: f64,
}

impl Recorder {
    /// Appends what the database tells.
    pub fn evidence(&self, trial: u32, row: &EvidenceRow) -> Result<(), RecordError> {
        self.execute(
            "write the database's evidence",
            "INSERT INTO evidence (trial, at_ns, error_ns, node, source, subject, name, value)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                trial,
                sql_ns(row.at_ns),
                sql_ns(row.error_ns),
                row.node,
                row.source,
                row.subject,
                row.name,
                row.value
            ],
        )
    }
}

impl Run {
    /// What the database told in a trial, in order of time.
    pub fn evidence(&self, trial: u32) -> Result<Vec<EvidenceRow>, RecordError> {
        self.rows(
            "SELECT at_ns, error_ns, node, source, subject, name, value FROM evidence WHERE trial = ?
             ORDER BY at_ns, id",
            [trial],
            |row| {
                Ok(EvidenceRow {
                    at_ns: unsigned(row, 0)?,
                    error_ns: unsigned(row, 1)?,
                    node: row.get(2)?,
                    source: row.get(3)?,
                    subject: row.get(4)?,
                    name: row.get(5)?,
                    value: row.get(6)?,
                })
            },
        )
    }
}
