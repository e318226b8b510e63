//! The cells of a design beside each other, and what its factors do: rows for the terminal and for the HTML report.

use brownout_analysis::{CellEffect, FactorFindings, FactorOutcome, Findings, Outcome, PhaseFindings, phase};

use crate::{scope::Scope, table::Paint, text};

/// The headings of [`rows`].
pub const HEADINGS: [&str; 9] =
    ["cell", "trials", "p50", "p99", "p50, fault", "p99, fault", "goodput, change", "interval", "verdict"];

/// What [`rows`] are of.
pub fn caption() -> String {
    format!(
        "Cells: p50 and p99 of the baseline and the fault phase, of those {}; what the faults did to goodput, against trials \
         without a fault",
        text::SHOWN
    )
}

/// One row for each cell.
pub fn rows(scopes: &[Scope<'_>]) -> Vec<(Paint, Vec<String>)> {
    scopes.iter().map(|scope| (paint(scope.effect.outcome), row(scope))).collect()
}

fn row(scope: &Scope<'_>) -> Vec<String> {
    let phase = |name: &str| scope.phases.iter().find(|phase| phase.name == name);
    let quantiles = |phase: Option<&PhaseFindings>| {
        let response = phase.and_then(|phase| phase.response);
        [
            text::or_none(response, |response| text::quantile(response.p50)),
            text::or_none(response, |response| text::quantile(response.p99)),
        ]
    };
    let effect = &scope.effect;
    let trials = format!("{} + {}", scope.valid_trials.len(), scope.compared_with.len());
    let mut cells = vec![scope.text.clone(), trials];
    cells.extend(quantiles(phase(phase::BASELINE)));
    cells.extend(quantiles(phase(phase::FAULT)));
    cells.extend([
        text::or_none(effect.change, text::relative),
        text::or_none(effect.interval, text::relative_range),
        outcome(effect).to_owned(),
    ]);
    cells
}

/// The headings of [`figures`].
pub const FIGURE_HEADINGS: [&str; 5] = ["figure", "blocks", "change", "interval", "verdict"];

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
                outcome(one).to_owned(),
            ];
            (paint(one.outcome), cells)
        })
        .collect()
}

/// A verdict in words.
pub fn outcome(effect: &CellEffect) -> &'static str {
    match effect.outcome {
        Outcome::Worse => "worse",
        Outcome::Better => "better",
        Outcome::NoDifference => "no difference",
        Outcome::Changed => "changed",
        Outcome::Inconclusive => "inconclusive",
        Outcome::NotJudged => "not judged",
    }
}

fn paint(outcome: Outcome) -> Paint {
    match outcome {
        Outcome::Worse => Paint::Bad,
        Outcome::Better => Paint::Good,
        Outcome::Changed | Outcome::Inconclusive => Paint::Warn,
        Outcome::NoDifference | Outcome::NotJudged => Paint::Plain,
    }
}

/// The headings of [`factors`].
pub const FACTOR_HEADINGS: [&str; 6] = ["factor", "figure", "blocks", "change", "interval", "it is"];

/// What each factor does, and each pair of factors.
pub fn factors(findings: &Findings) -> Vec<(Paint, Vec<String>)> {
    findings.factors.iter().map(factor).collect()
}

fn factor(found: &FactorFindings) -> (Paint, Vec<String>) {
    let names = found.factors.iter().zip(&found.levels).zip(&found.against);
    let words: Vec<String> =
        names.map(|((name, level), against)| format!("{name}: {level} against {against}")).collect();
    let outcome = match found.outcome {
        FactorOutcome::More => "more",
        FactorOutcome::Less => "less",
        FactorOutcome::NoDifference => "no different",
        FactorOutcome::Inconclusive => "inconclusive",
    };
    let cells = vec![
        words.join(" × "),
        found.figure.clone(),
        found.blocks.to_string(),
        text::relative(found.change),
        text::relative_range(found.interval),
        outcome.to_owned(),
    ];
    let paint = match found.outcome {
        FactorOutcome::Inconclusive => Paint::Dim,
        _ => Paint::Plain,
    };
    (paint, cells)
}
