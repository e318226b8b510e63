//! The machines of a run that is made on several, and what they know of each other's clocks.

use std::fmt;

use rusqlite::params;
use serde::{Deserialize, Serialize};

use crate::{RecordError, Recorder, Run, document, document::Document, reader::unsigned, recorder::sql_ns};

/// What a machine does in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineRole {
    /// Hosts run there, whose links and processes are impaired and measured.
    Agent,
    /// Operations are sent from there.
    Load,
}

impl MachineRole {
    const ALL: [MachineRole; 2] = [MachineRole::Agent, MachineRole::Load];
}

impl fmt::Display for MachineRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MachineRole::Agent => "agent",
            MachineRole::Load => "load",
        })
    }
}

/// One machine of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineRow {
    /// Its name.
    pub machine: String,
    /// What it does.
    pub role: MachineRole,
    /// The hosts that run there.
    pub hosts: Vec<String>,
}

/// What a machine knows of the monotonic clock of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineClockRow {
    /// Who knows it.
    pub machine: String,
    /// Of whose clock.
    pub other: String,
    /// When, ns since the run's zero.
    pub at_ns: u64,
    /// By how much the other's is ahead, ns.
    pub ahead_ns: i64,
    /// The truth lies within `ahead_ns ± error_ns`.
    pub error_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct Hosts {
    hosts: Vec<String>,
}

impl Document for Hosts {
    const WHAT: &'static str = "machine";
    const FORMAT: u64 = 1;
}

impl Recorder {
    /// Inserts or updates a machine of a trial.
    pub fn machine(&self, trial: u32, row: &MachineRow) -> Result<(), RecordError> {
        let hosts = document::write(&Hosts { hosts: row.hosts.clone() })?;
        self.execute(
            "write a machine",
            "INSERT OR REPLACE INTO machine VALUES (?, ?, ?, ?)",
            params![trial, row.machine, row.role.to_string(), hosts],
        )
    }

    /// Inserts or updates what a machine knows of the clock of another at a moment.
    pub fn machine_clock(&self, trial: u32, row: &MachineClockRow) -> Result<(), RecordError> {
        self.execute(
            "write what machines know of each other's clocks",
            "INSERT OR REPLACE INTO machine_clock VALUES (?, ?, ?, ?, ?, ?)",
            params![trial, row.machine, row.other, sql_ns(row.at_ns), row.ahead_ns, sql_ns(row.error_ns)],
        )
    }
}

impl Run {
    /// The machines of a trial, by name; none: all of it was one machine's.
    pub fn machines(&self, trial: u32) -> Result<Vec<MachineRow>, RecordError> {
        let rows =
            self.rows("SELECT machine, role, hosts FROM machine WHERE trial = ? ORDER BY machine", [trial], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
            })?;
        let machine = |(machine, role, hosts): (String, String, String)| {
            let damaged = || RecordError::Damaged { what: "machine", why: format!("its role is {role}") };
            let known = MachineRole::ALL.into_iter().find(|known| known.to_string() == role).ok_or_else(damaged)?;
            Ok(MachineRow { machine, role: known, hosts: document::read::<Hosts>(&hosts)?.hosts })
        };
        rows.into_iter().map(machine).collect()
    }

    /// What a trial's machines knew of each other's clocks, in order of time.
    pub fn machine_clocks(&self, trial: u32) -> Result<Vec<MachineClockRow>, RecordError> {
        self.rows(
            "SELECT machine, other, at_ns, ahead_ns, error_ns FROM machine_clock WHERE trial = ?
             ORDER BY at_ns, machine, other",
            [trial],
            |row| {
                Ok(MachineClockRow {
                    machine: row.get(0)?,
                    other: row.get(1)?,
                    at_ns: unsigned(row, 2)?,
                    ahead_ns: row.get(3)?,
                    error_ns: unsigned(row, 4)?,
                })
            },
        )
    }
}
