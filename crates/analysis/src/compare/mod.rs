//! Two sides beside each other, each of one or more runs: is B better or worse than A?
//!
//! The unit is the trial, as in a run's own verdict: figures are means over trials, an interval is quoted from five
//! trials a side on, and a difference counts only beyond what the halves of single phases differ by.

mod decide;
mod figures;
mod object;
mod trials;

use brownout_record::{Objective, Run};

pub use self::object::{COMPARISON_FORMAT, Compared, Comparison, Sample, Setting, Side};
use self::trials::Trial;
use crate::{AnalysisError, Outcome};

/// Trials below which no confidence interval is worth quoting.
const ENOUGH_TRIALS: usize = 5;

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
        warnings.push("a run is on both sides".to_owned());
    }
    let few = a.trials.min(b.trials);
    if (1..ENOUGH_TRIALS as u32).contains(&few) {
        warnings.push(format!(
            "{few} trial{} on one side: no confidence interval is quoted of fewer than {}",
            if few == 1 { "" } else { "s" },
            ENOUGH_TRIALS
        ));
    }
    warnings
}

fn sentence(a: &Side, b: &Side, figures: &[Compared]) -> String {
    for (name, side) in [("A", a), ("B", b)] {
        if side.trials == 0 {
            return format!("Invalid: {name} has no valid trial, so no conclusion can be drawn.");
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
            parts.push(format!("B is {word} in {} ({})", count(names.len()), listed(names)));
        }
    }
    let (same, open) = (named(Outcome::NoDifference).len(), named(Outcome::Inconclusive).len());
    if same > 0 {
        parts.push(format!("{} {} no difference", count(same), if same == 1 { "shows" } else { "show" }));
    }
    if open > 0 {
        parts.push(format!("{} {} inconclusive", count(open), if open == 1 { "is" } else { "are" }));
    }
    if parts.is_empty() { "The sides have no figure in common.".to_owned() } else { format!("{}.", parts.join("; ")) }
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
