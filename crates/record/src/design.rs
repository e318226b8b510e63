//! The design of a run: what varies, in which cells, and how often each is tried.

use serde::{Deserialize, Serialize};

use crate::{Description, Document};

/// The design as planned. A run without one has one cell, and as many trials as its description says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DesignDescription {
    /// What varies, in the file's order.
    pub factors: Vec<FactorDescription>,
    /// How often each cell is run.
    pub blocks: u32,
    /// Trials without a fault in each block, for all cells that differ in nothing but their faults.
    pub without_fault: u32,
    /// How often a trial is tried until one is valid.
    pub attempts: u32,
    /// How many trials all of it has, without those that are repeated; of a search how many at most.
    pub trials: u32,
    /// The number of the one trial that is to be run; none: all.
    #[serde(default)]
    pub only: Option<u32>,
    /// How many labs work at once, at most.
    #[serde(default = "one")]
    pub labs: u32,
    /// A relative change that is smaller is none; none: the run is of before a file could say.
    #[serde(default)]
    pub margin: Option<f64>,
    /// What is searched; none: the cells are known beforehand. The levels of a search's one factor are those of its cells.
    #[serde(default)]
    pub search: Option<SearchDescription>,
}

/// Before a run could have several labs at once, it had one.
fn one() -> u32 {
    1
}

/// What a search looks for. Severities and rates are texts, as they are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SearchDescription {
    /// The severities at which the loss of goodput passes thresholds.
    DangerZone {
        /// Shares of loss, ascending.
        thresholds: Vec<f64>,
        /// The mildest severity.
        from: String,
        /// The most severe one. Of a limit of rate the smaller value.
        to: String,
    },
    /// The largest rate that keeps an objective in the phase `fault`; without faults, in the baseline.
    MaxRate {
        /// So many of all operations that are due, a share: 0.5, 0.95, 0.99 or 0.999 ...
        share: f64,
        /// ... are answered right within this, ns.
        response_ns: u64,
        /// The first rate.
        from: String,
        /// The highest one that is tried.
        to: String,
        /// How narrow the interval has to be, as a share of the rate.
        precision: f64,
    },
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

/// The names of the levels of a cell, one of each factor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Levels {
    pub(crate) levels: Vec<String>,
}

impl Document for Levels {
    const WHAT: &'static str = "levels of a cell";
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
