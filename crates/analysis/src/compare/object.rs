//! The result of a comparison: the JSON object of `--json`, documented in `docs/json.md`.

use brownout_record::Objective;
use serde::Serialize;

use crate::Outcome;

/// Version of the JSON object; raised when a field changes its meaning or goes.
pub const COMPARISON_FORMAT: u32 = 2;

/// Everything that is said of two sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this object.
    pub format: u32,
    /// What is compared with.
    pub a: Side,
    /// What is compared.
    pub b: Side,
    /// Where the sides were asked for or ran on different things.
    pub differs: Vec<Setting>,
    /// What counts as good on both sides: A's objective.
    pub objective: Objective,
    /// A change below this is none, a share.
    pub margin: f64,
    /// How often intervals like these hold the truth, a share; none if nothing could be judged.
    pub confidence: Option<f64>,
    /// The figures, by phase, then by operation.
    pub figures: Vec<Compared>,
    /// Things to check before trusting the result.
    pub warnings: Vec<String>,
    /// All of it in one sentence.
    pub sentence: String,
}

impl Comparison {
    /// Whether both sides have a valid trial: else nothing follows.
    pub fn is_evidence(&self) -> bool {
        self.a.trials > 0 && self.b.trials > 0
    }
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Its runs' files.
    pub runs: Vec<String>,
    /// The experiment's name, of its first run.
    pub name: String,
    /// Runs that have a valid trial: these are compared.
    pub compared: u32,
    /// Their valid trials.
    pub trials: u32,
    /// Trials that are not valid, with the reason.
    pub left_out: Vec<String>,
}

/// Something asked for or given that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// What it is.
    pub name: String,
    /// A's; several runs of a side that differ are separated by ` | `.
    pub a: String,
    /// B's.
    pub b: String,
}

/// A figure's values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Of each run, in order: the geometric mean of its trials; of shares, bad ones of all trials ÷ all of them.
    pub runs: Vec<f64>,
    /// The geometric mean of the runs; of shares the arithmetic.
    pub mean: f64,
    /// In some trial the true value may be larger: the percentile lies among operations that timed out.
    pub at_least: bool,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The cell's levels in words; empty where nothing varies.
    pub cell: String,
    /// The phase.
    pub phase: String,
    /// The operation; none: all of them.
    pub operation: Option<String>,
    /// `goodput`, `delivered`, `errors`, `p50`, `p95`, `p99`, `p99.9`, `kept`.
    pub figure: String,
    /// `1/s`, `ns`, `share`, `ratio`.
    pub unit: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// A's.
    pub a: Sample,
    /// B's.
    pub b: Sample,
    /// B ÷ A − 1 of the means; of shares that of their odds.
    pub change: f64,
    /// Its interval, at the comparison's confidence; none with one run on a side.
    pub interval: Option<(f64, f64)>,
    /// The p-value, of this figure alone: the probability of a difference at least this large if there were none.
    pub p: Option<f64>,
    /// No change is larger than this, up or down: the farther end of the 90 % interval.
    pub no_larger_than: Option<f64>,
    /// The smallest change that four of five such comparisons would have shown, where this figure alone had changed;
    /// none if that is a factor of a thousand or more.
    pub smallest_seen: Option<f64>,
    /// Effect size: the share of pairs of one run of each side in which B's value is the larger (ties count half).
    pub superiority: f64,
    /// What follows.
    pub outcome: Outcome,
    /// How it was reached, or why not.
    pub reason: String,
}

impl Compared {
    /// `p99 of READ, fault`.
    pub fn name(&self) -> String {
        let of = self.operation.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
        let cell = if self.cell.is_empty() { String::new() } else { format!(", {}", self.cell) };
        format!("{}{of}, {}{cell}", self.figure, self.phase)
    }
}
