//! What the faults of a cell did to a figure, as findings have it; `effects` judges it.

use serde::Serialize;

use crate::Outcome;

/// What the faults of a cell did to one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellEffect {
    /// `goodput`, `delivered`, `p50`, `p99`.
    pub figure: String,
    /// What follows.
    pub outcome: Outcome,
    /// How it was reached, or why not.
    pub reason: String,
    /// Blocks that are used: each has a valid trial with the faults, and as many without as the next says.
    pub blocks: u32,
    /// Trials without a fault in each of them.
    pub without_fault: u32,
    /// (with − without) ÷ without; of a cell that is not judged the mean of its trials' fault phase against their baseline.
    pub change: Option<f64>,
    /// The smallest of a trial, against its own baseline.
    pub change_min: Option<f64>,
    /// The largest of a trial, against its own baseline.
    pub change_max: Option<f64>,
    /// The interval of `change`.
    pub interval: Option<(f64, f64)>,
    /// Its confidence: 0.95, or more where one of several cells is called different.
    pub confidence: f64,
    /// If there is a difference, it is not larger than this, with 95 % confidence.
    pub no_larger_than: Option<f64>,
    /// The smallest change that four of five such runs would detect, of one of as many cells.
    pub smallest_seen: Option<f64>,
    /// The two-sided p-value of this cell alone: the probability of an effect at least this large if there were none.
    pub p: Option<f64>,
    /// The same for one cell of several (Benjamini and Hochberg).
    pub p_adjusted: Option<f64>,
    /// Where it is inconclusive: how many more blocks would detect a change of this size (or of the margin, if that is larger) in four of
    /// five runs.
    pub more_blocks: Option<u32>,
}

impl Default for CellEffect {
    fn default() -> Self {
        CellEffect {
            figure: GOODPUT.to_owned(),
            outcome: Outcome::NotJudged,
            reason: String::new(),
            blocks: 0,
            without_fault: 0,
            change: None,
            change_min: None,
            change_max: None,
            interval: None,
            confidence: 0.95,
            no_larger_than: None,
            smallest_seen: None,
            p: None,
            p_adjusted: None,
            more_blocks: None,
        }
    }
}

/// The figure of a cell that is judged first.
pub(crate) const GOODPUT: &str = "goodput";
