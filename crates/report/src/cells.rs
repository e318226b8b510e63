//! The cells of a design beside each other, and what its factors do: rows for the terminal and for the HTML report.

use brownout_analysis::{CellEffect, FactorFindings, FactorOutcome, Findings, Outcome, Quantile, Response, phase};

use crate::{scope::Scope, table::Paint, text};

/// The headings of [`rows`].
pub const HEADINGS: [&str; 7] = ["cell", "trials", "p50", "p99", "goodput", "interval", "verdict"];
/// What is said of every interval.
const INTERVALS: &str = "intervals: 95%, or more where one of several is significant";
/// Letters of a cell's levels that a table has room for; all of them stand with its sentence.
const LEVELS: usize = 30;

/// What [`rows`] are of.
pub fn caption(findings: &Findings) -> String {
    format!(
        "Cells: valid trials + those without a fault that they are compared with; p50 and p99 of the baseline → the fault phase, of \
         those {}; what the faults did to goodput, against trials without a fault (of a cell that is not judged, against its own \
         baselines); {INTERVALS}; no difference: of {} or more",
        text::SHOWN,
        text::percent(findings.design.margin)
    )
}

/// One row for each cell.
pub fn rows(scopes: &[Scope<'_>]) -> Vec<(Paint, Vec<String>)> {
    scopes.iter().map(|scope| (paint(scope.effect.outcome), row(scope))).collect()
}

/// What a cell is called where many stand beside each other: its number tells it from others that begin alike.
pub fn name(scope: &Scope<'_>) -> String {
    format!("{}: {}", scope.cell, text::shorten(&scope.text, LEVELS))
}

fn row(scope: &Scope<'_>) -> Vec<String> {
    let of = |name: &str, which: fn(&Response) -> Quantile| {
        let phase = scope.phases.iter().find(|phase| phase.name == name);
        text::or_none(phase.and_then(|phase| phase.response), |response| text::quantile(which(&response)))
    };
    let both =
        |which: fn(&Response) -> Quantile| [phase::BASELINE, phase::FAULT].map(|name| of(name, which)).join(" → ");
    let effect = &scope.effect;
    vec![
        name(scope),
        format!("{} + {}", scope.valid_trials.len(), scope.compared_with.len()),
        both(|response| response.p50),
        both(|response| response.p99),
        text::or_none(effect.change, text::relative),
        text::or_none(effect.interval, text::relative_range),
        effect.outcome.name().to_owned(),
    ]
}

/// The headings of [`figures`].
pub const FIGURE_HEADINGS: [&str; 5] = ["figure", "blocks", "change", "interval", "verdict"];

/// What [`figures`] are of.
pub fn figures_caption() -> String {
    format!(
        "What the faults did, against trials without a fault, block by block; p50 and p99: of those {}; {INTERVALS}",
        text::SHOWN
    )
}

/// What the faults of a cell did to each figure.
pub fn figures(scope: &Scope<'_>) -> Vec<(Paint, Vec<String>)> {
    let judged = std::iter::once(&scope.effect).chain(&scope.figures).filter(|one| one.interval.is_some());
    judged
        .map(|one| {
            let cells = vec![
                one.figure.clone(),
                format!("{} × (1 + {})", one.blocks, one.without_fault),
                text::or_none(one.change, text::relative),
                text::or_none(one.interval, text::relative_range),
                outcome(one),
            ];
            (paint(one.outcome), cells)
        })
        .collect()
}

/// A verdict in a word, with how large a difference there may be, or what would decide it.
fn outcome(effect: &CellEffect) -> String {
    match effect.outcome {
        Outcome::NoDifference => no_different(effect.no_larger_than.unwrap_or(0.0)),
        Outcome::Inconclusive => inconclusive(effect.more_blocks),
        other => other.name().to_owned(),
    }
}

fn no_different(by: f64) -> String {
    format!("not by {} or more", text::bound(by))
}

/// With the number of blocks that would decide it, if there is one.
fn inconclusive(more_blocks: Option<u32>) -> String {
    let more = more_blocks.map(|more| format!(", +{more} block{}", if more == 1 { "" } else { "s" }));
    format!("inconclusive{}", more.unwrap_or_default())
}

fn paint(outcome: Outcome) -> Paint {
    match outcome {
        Outcome::Worse => Paint::Bad,
        Outcome::Better => Paint::Good,
        Outcome::Changed | Outcome::Inconclusive => Paint::Warn,
        Outcome::NoDifference | Outcome::NotJudged => Paint::Plain,
    }
}

/// The headings of [`Factors`].
pub const FACTOR_HEADINGS: [&str; 5] = ["level / first level", "blocks", "change", "interval", "it is"];

/// What all [`Factors`] are of.
pub fn factors_caption() -> String {
    format!(
        "Factors: a level against the first one, over all cells that differ in nothing else; ×: by how much more at the other's \
         level; {INTERVALS}; + blocks: so many more would detect a change as large"
    )
}

/// What the factors do to one figure.
pub struct Factors {
    /// The figure.
    pub figure: String,
    /// Each factor by itself.
    pub alone: Vec<(Paint, Vec<String>)>,
    /// Each pair of them.
    pub together: Vec<(Paint, Vec<String>)>,
}

impl Factors {
    /// The figure; of a percentile, of which operations it is.
    pub fn caption(&self) -> String {
        if self.figure.starts_with('p') {
            format!("{}, of those {}", self.figure, text::SHOWN)
        } else {
            self.figure.clone()
        }
    }

    /// Each factor, and of pairs those that do something together.
    pub fn telling(&self) -> Vec<(Paint, Vec<String>)> {
        let pairs = self.together.iter().filter(|(paint, _)| *paint == Paint::Bold);
        self.alone.iter().chain(pairs).cloned().collect()
    }

    /// How many pairs are left out there.
    pub fn left_out(&self) -> usize {
        self.alone.len() + self.together.len() - self.telling().len()
    }
}

/// What each factor does, and each pair of factors, figure by figure.
pub fn factors(findings: &Findings) -> Vec<Factors> {
    let mut all: Vec<Factors> = Vec::new();
    for found in &findings.factors {
        if all.last().is_none_or(|last| last.figure != found.figure) {
            all.push(Factors { figure: found.figure.clone(), alone: Vec::new(), together: Vec::new() });
        }
        if let Some(last) = all.last_mut() {
            let of = if found.factors.len() == 1 { &mut last.alone } else { &mut last.together };
            of.push(factor(found));
        }
    }
    all
}

fn factor(found: &FactorFindings) -> (Paint, Vec<String>) {
    let names = found.factors.iter().zip(&found.levels).zip(&found.against);
    let words: Vec<String> = names.map(|((name, level), against)| format!("{name} {level} / {against}")).collect();
    let (outcome, paint) = match found.outcome {
        FactorOutcome::More => ("more".to_owned(), Paint::Bold),
        FactorOutcome::Less => ("less".to_owned(), Paint::Bold),
        FactorOutcome::NoDifference => (no_different(found.no_larger_than), Paint::Plain),
        FactorOutcome::Inconclusive => (inconclusive(found.more_blocks), Paint::Dim),
    };
    let cells = vec![
        words.join(" × "),
        found.blocks.to_string(),
        text::relative(found.change),
        text::relative_range(found.interval),
        outcome,
    ];
    (paint, cells)
}
