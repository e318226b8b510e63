//! Two sides beside each other, each of one or more runs: is B better or worse than A?
//!
//! The unit is the trial, as in a run's own verdict: figures are means over trials, an interval is quoted from five
//! trials a side on, and a difference counts only beyond what the halves of single phases differ by.

mod decide;
mod figures;
mod trials;

use brownout_record::{Objective, Run};
use serde::Serialize;

use crate::{AnalysisError, Outcome};
use decide::decided;
use trials::Trial;

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
    /// A's; several runs of a side that differ are told apart by ` | `.
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

/// Compares the runs of two sides.
///
/// # Errors
/// A run cannot be read.
pub fn compare(a: &[Run], b: &[Run]) -> Result<Comparison, AnalysisError> {
    let objective = match a.first() {
        Some(run) => run.description()?.objective,
        None => Objective::default(),
    };
    let (side_a, trials_a) = trials::side(a, &objective)?;
    let (side_b, trials_b) = trials::side(b, &objective)?;
    let figures = figures::figures(&trials_a, &trials_b, seed(&trials_a, &trials_b));
    let warnings = warnings(&side_a, &side_b);
    let sentence = sentence(&side_a, &side_b, &figures);
    Ok(Comparison {
        format: COMPARISON_FORMAT,
        differs: trials::differing(a, b)?,
        objective,
        figures,
        warnings,
        sentence,
        a: side_a,
        b: side_b,
    })
}

/// The same files give the same intervals for ever.
fn seed(a: &[Trial], b: &[Trial]) -> u64 {
    a.iter().chain(b).fold(0, |seed: u64, trial| seed.rotate_left(7) ^ trial.seed)
}

fn warnings(a: &Side, b: &Side) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, side) in [("A", a), ("B", b)] {
        warnings.extend(side.left_out.iter().map(|why| format!("{name}: {why}; it is left out")));
    }
    if a.runs.iter().any(|run| b.runs.contains(run)) {
        warnings.push("a run stands on both sides".to_owned());
    }
    let few = a.trials.min(b.trials);
    if (1..crate::ENOUGH_TRIALS as u32).contains(&few) {
        warnings.push(format!(
            "{few} trial{} on one side: no confidence interval is quoted of fewer than {}",
            if few == 1 { "" } else { "s" },
            crate::ENOUGH_TRIALS
        ));
    }
    warnings
}

fn sentence(a: &Side, b: &Side, figures: &[Compared]) -> String {
    for (name, side) in [("A", a), ("B", b)] {
        if side.trials == 0 {
            return format!("Invalid: {name} has no valid trial. Nothing follows.");
        }
    }
    if let Some(not) = figures.iter().find(|figure| figure.outcome == Outcome::NotJudged) {
        return format!("Not judged: {}.", not.reason);
    }
    let named = |outcome: Outcome| {
        let of = figures.iter().filter(|figure| figure.outcome == outcome);
        of.map(|figure| figure.name()).collect::<Vec<_>>()
    };
    let (worse, better) = (named(Outcome::Worse), named(Outcome::Better));
    let mut parts = Vec::new();
    for (word, names) in [("worse", &worse), ("better", &better)] {
        if !names.is_empty() {
            parts.push(format!("{word} in {} ({})", count(names.len()), listed(names)));
        }
    }
    let (same, open) = (named(Outcome::NoDifference).len(), named(Outcome::Inconclusive).len());
    if same > 0 {
        parts.push(format!("without a difference in {}", count(same)));
    }
    if open > 0 {
        parts.push(format!("{} cannot be told", count(open)));
    }
    if parts.is_empty() {
        "The sides have no figure in common.".to_owned()
    } else {
        format!("B is {}.", parts.join("; "))
    }
}

fn count(figures: usize) -> String {
    format!("{figures} figure{}", if figures == 1 { "" } else { "s" })
}

/// The first three; who wants all has the table.
fn listed(names: &[String]) -> String {
    let more = if names.len() > 3 { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(3)].join(", "))
}

impl Compared {
    /// `p99 of READ in the fault phase`.
    pub fn name(&self) -> String {
        let of = self.operation.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
        format!("{}{of}, {}", self.figure, self.phase)
    }
}
