//! Two sides beside each other, each of one or more runs: is B better or worse than A?
//!
//! The unit is the run: trials of one run have in common what the run had (the state of the machine, where files lay,
//! how the compiler chose), so trials of two equal runs differ more than they scatter. Runs of a side differ by all of
//! that, and tell it.

mod decide;
mod figures;
mod object;
mod runs;
mod settings;

use brownout_record::{Objective, Run};

pub use self::object::{COMPARISON_FORMAT, Compared, Comparison, Sample, Setting, Side};
use self::settings::Settings;
use crate::{AnalysisError, MARGIN, Outcome, words::percent};

/// So many runs a side see more than the coarsest changes.
const ADVISED_RUNS: u32 = 3;

/// Compares the runs of two sides.
///
/// # Errors
/// A run cannot be read.
pub fn compare(a: &[Run], b: &[Run]) -> Result<Comparison, AnalysisError> {
    let objective = match a.first() {
        Some(run) => run.description()?.objective,
        None => Objective::default(),
    };
    let (side_a, runs_a) = runs::side(a, &objective)?;
    let (side_b, runs_b) = runs::side(b, &objective)?;
    let few = too_few(&side_a, &side_b);
    let mut warnings = warnings(&side_a, &side_b);
    let mut figures = Vec::new();
    for (cell, a) in &runs_a {
        let Some((_, b)) = runs_b.iter().find(|(other, _)| other == cell) else { continue };
        let (of_cell, lacking) = figures::of_cell(cell, a, b);
        figures.extend(of_cell);
        if !lacking.is_empty() {
            let of = if cell.is_empty() { String::new() } else { format!("of cell '{cell}' ") };
            let lacking = lacking.join(", ");
            warnings.push(format!(
                "{of}some trials have no {lacking}: not compared, as others' means would be of something else"
            ));
        }
    }
    let margin = margin(a)?.max(margin(b)?);
    let (figures, confidence) = decide::judged(figures, few.as_deref(), margin);
    let (settings_a, settings_b) = (Settings::of(a)?, Settings::of(b)?);
    for (name, cells, others) in [("A", &runs_a, &runs_b), ("B", &runs_b, &runs_a)] {
        let alone = cells.iter().filter(|(cell, _)| others.iter().all(|(other, _)| other != cell));
        let alone: Vec<String> = alone.map(|(cell, _)| format!("'{cell}'")).collect();
        if !alone.is_empty() {
            warnings.push(format!("only {name} has the cells {}; they are left out", alone.join(", ")));
        }
    }
    for (name, settings) in [("A", &settings_a), ("B", &settings_b)] {
        warnings.extend(settings.mixed().into_iter().map(|mixed| format!("the runs of {name} are not alike: {mixed}")));
    }
    let sentence = sentence(&side_a, &side_b, &figures, few, margin);
    Ok(Comparison {
        format: COMPARISON_FORMAT,
        differs: settings_a.differing(&settings_b),
        objective,
        margin,
        confidence,
        figures,
        warnings,
        sentence,
        a: side_a,
        b: side_b,
    })
}

/// The largest change that one of these runs' files takes for none.
fn margin(runs: &[Run]) -> Result<f64, AnalysisError> {
    let of = |run: &Run| Ok(run.design()?.and_then(|design| design.margin).unwrap_or(MARGIN));
    let all = runs.iter().map(of).collect::<Result<Vec<f64>, AnalysisError>>()?;
    Ok(all.into_iter().fold(0.0, f64::max))
}

/// Why nothing can be judged, if a side has a single run.
fn too_few(a: &Side, b: &Side) -> Option<String> {
    let sides: Vec<String> = [("A", a), ("B", b)]
        .into_iter()
        .filter(|(_, side)| side.compared < 2)
        .map(|(name, side)| format!("{name} {} more", ADVISED_RUNS - side.compared))
        .collect();
    (!sides.is_empty()).then(|| {
        format!(
            "one run on a side cannot be told from the noise between runs, however many trials it has: run {}, and compare them \
             all (compare A1 A2 … --with B1 B2 …)",
            sides.join(" and ")
        )
    })
}

fn warnings(a: &Side, b: &Side) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, side) in [("A", a), ("B", b)] {
        warnings.extend(side.left_out.iter().map(|why| format!("{name}: {why}; it is left out")));
    }
    if a.runs.iter().any(|run| b.runs.contains(run)) {
        warnings.push("a run is on both sides".to_owned());
    }
    warnings
}

fn sentence(a: &Side, b: &Side, figures: &[Compared], few: Option<String>, margin: f64) -> String {
    for (name, side) in [("A", a), ("B", b)] {
        if side.trials == 0 {
            return format!("Invalid: {name} has no valid trial, so no conclusion can be drawn.");
        }
    }
    if let Some(why) = few {
        return format!("Inconclusive: {why}.");
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
        let show = if same == 1 { "shows" } else { "show" };
        parts.push(format!("{} {show} no difference of {} or more", count(same), percent(margin)));
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
