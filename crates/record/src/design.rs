//! The design of a run: what varies, in which cells, and how often each is tried.

use serde::{Deserialize, Serialize};

use crate::{Description, Document};

/// The design as planned. A run without one has one cell, and as many trials as its description says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesignDescription {
    /// What varies, in the file's order.
    pub factors: Vec<FactorDescription>,
    /// How often each cell is run.
    pub blocks: u32,
    /// Trials without a fault in each block, for all cells that differ in nothing but their faults.
    pub without_fault: u32,
    /// How often a trial is tried until one is valid.
    pub attempts: u32,
    /// How many trials all of it has, without those that are repeated.
    pub trials: u32,
    /// The number of the one trial that is to be run; none: all.
    #[serde(default)]
    pub only: Option<u32>,
}

/// Something that varies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorDescription {
    /// Its name in the file.
    pub name: String,
    /// Its levels, in the file's order.
    pub levels: Vec<String>,
}

impl Document for DesignDescription {
    const WHAT: &'static str = "design";
}

/// One combination of levels, with a plan of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRow {
    /// From 1.
    pub cell: u32,
    /// The name of its level of each factor.
    pub levels: Vec<String>,
    /// The cell under whose number its trials without a fault are: the first that differs in nothing but its faults.
    pub compared_with: u32,
    /// Its plan.
    pub description: Description,
}

/// A stretch of time in which a run was made, without an interruption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// From 1.
    pub session: u32,
    /// The kernel's `boot_id`; empty in a run of format 5 and before.
    pub boot_id: String,
    /// Wall-clock time of its start, ms since 1970 UTC.
    pub started_unix_ms: u64,
    /// `CLOCK_MONOTONIC` at its start.
    pub zero_monotonic_ns: u64,
    /// Its start, ns since the run's zero.
    pub starts_ns: u64,
}
