//! The result of a comparison: the JSON object of `--json`, documented in `docs/json.md`.

use brownout_record::Objective;
use serde::Serialize;

use crate::Outcome;

/// Version of the JSON object; raised when a field changes its meaning or goes.
pub const COMPARISON_FORMAT: u32 = 1;

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
    /// Trials that are compared.
    pub trials: u32,
    /// Trials that are not, with the reason.
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
    /// Of each trial, in order.
    pub trials: Vec<f64>,
    /// Their arithmetic mean.
    pub mean: f64,
    /// In some trial the true value may be larger: the percentile lies among operations that timed out.
    pub at_least: bool,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The phase.
    pub phase: String,
    /// The operation; none: all of them.
    pub operation: Option<String>,
    /// `goodput`, `delivered`, `errors`, `p50`, `p95`, `p99`, `p99.9`, `degradation`.
    pub figure: String,
    /// `1/s`, `ns` or `share`.
    pub unit: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// A's.
    pub a: Sample,
    /// B's.
    pub b: Sample,
    /// (B − A) ÷ A of the means; of shares B − A. None if A is 0.
    pub change: Option<f64>,
    /// 95 % confidence interval of the change, from five trials a side on (seeded bootstrap).
    pub interval: Option<(f64, f64)>,
    /// Effect size: the share of pairs of one trial of each side in which B's value is the larger (ties count half).
    pub superiority: f64,
    /// Largest difference between the two halves of a trial's phase, in the measure of `change`; at least 0.5 %.
    pub noise_floor: f64,
    /// A change counts from here on: twice the noise floor, at least 1 %.
    pub threshold: f64,
    /// What follows.
    pub outcome: Outcome,
    /// How it was reached, or why not.
    pub reason: String,
}
