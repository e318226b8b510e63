//! What the clocks of hosts say of each other, over the network between them.

use rusqlite::params;

use crate::{RecordError, Recorder, Run, reader::unsigned, recorder::sql_ns};

/// One exchange by NTP: what a host has learned of the clock of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockRow {
    /// When the answer was there, ns since the run's zero.
    pub at_ns: u64,
    /// Who asked.
    pub host: String,
    /// Who was asked.
    pub server: String,
    /// From question to answer, without the time that the server took, ns.
    pub round_trip_ns: u64,
    /// What the server's clock shows − what the host's shows, ns, if both ways took equally long.
    pub offset_ns: i64,
    /// Whatever each way took: the truth lies within `offset_ns ± bound_ns`.
    pub bound_ns: u64,
}

impl Recorder {
    /// Appends an exchange.
    pub fn clock(&self, trial: u32, row: &ClockRow) -> Result<(), RecordError> {
        self.execute(
            "write what clocks say of each other",
            "INSERT INTO clock (trial, at_ns, host, server, round_trip_ns, offset_ns, bound_ns)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![
                trial,
                sql_ns(row.at_ns),
                row.host,
                row.server,
                sql_ns(row.round_trip_ns),
                row.offset_ns,
                sql_ns(row.bound_ns)
            ],
        )
    }
}

impl Run {
    /// What the clocks of a trial's hosts said of each other, in order of time.
    pub fn clocks(&self, trial: u32) -> Result<Vec<ClockRow>, RecordError> {
        self.rows(
            "SELECT at_ns, host, server, round_trip_ns, offset_ns, bound_ns
             FROM clock WHERE trial = ? ORDER BY at_ns, id",
            [trial],
            |row| {
                Ok(ClockRow {
                    at_ns: unsigned(row, 0)?,
                    host: row.get(1)?,
                    server: row.get(2)?,
                    round_trip_ns: unsigned(row, 3)?,
                    offset_ns: row.get(4)?,
                    bound_ns: unsigned(row, 5)?,
                })
            },
        )
    }
}
