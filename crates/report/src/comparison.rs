//! Two sides beside each other, on the terminal.

use brownout_analysis::{Compared, Comparison, Outcome, Sample, Side};
use brownout_units::format_ns;

use crate::{
    page::{Page, Style},
    table::{Paint, Table},
    text,
};

/// What a comparison says, as text. Ends with a line feed.
pub fn comparison(comparison: &Comparison, style: Style) -> String {
    let mut page = Page::new(style);
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        page.line(Paint::Plain, &about(name, side));
    }
    for setting in &comparison.differs {
        let line = format!("{} differs: {} → {}", setting.name, or_none(&setting.a), or_none(&setting.b));
        page.line(Paint::Dim, &line);
    }
    for of_phase in comparison.figures.chunk_by(|one, next| (&one.cell, &one.phase) == (&next.cell, &next.phase)) {
        let has_kept = of_phase.iter().any(|figure| figure.figure == "kept");
        page.section(&format!(
            "{}{} (p50 … p99.9: response times of those {}{})",
            capital(&of_phase[0].phase),
            if of_phase[0].cell.is_empty() { String::new() } else { format!(", {}", of_phase[0].cell) },
            text::SHOWN,
            if has_kept { "; kept: goodput ÷ that of the baseline" } else { "" }
        ));
        page.table(&table(of_phase, comparison.confidence));
    }
    page.out.push('\n');
    for warning in &comparison.warnings {
        page.line(Paint::Warn, &format!("! {warning}"));
    }
    page.line(Paint::Bold, &comparison.sentence);
    page.out
}

fn about(name: &str, side: &Side) -> String {
    let many = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let of = format!("{} of {}", many(side.trials, "valid trial"), many(side.compared, "run"));
    format!("{name}: {}, {of}: {}", side.name, side.runs.join(" "))
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { text::NONE } else { text }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn table(figures: &[Compared], confidence: Option<f64>) -> Table {
    let interval = confidence.map_or_else(|| "interval".to_owned(), |share| format!("{} interval", text::share(share)));
    let mut table = Table::new(&["", "A", "B", "change", &interval, "could be seen", "B is"]).left(6);
    for figure in figures {
        let (paint, word) = match figure.outcome {
            Outcome::Worse => (Paint::Bad, "worse".to_owned()),
            Outcome::Better => (Paint::Good, "better".to_owned()),
            Outcome::NoDifference => (Paint::Plain, text::or_none(figure.no_larger_than, no_larger)),
            Outcome::Changed | Outcome::Inconclusive => (Paint::Warn, "inconclusive".to_owned()),
            Outcome::NotJudged => (Paint::Plain, text::NONE.to_owned()),
        };
        let of = figure.operation.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let odds = if figure.unit == "share" { " of odds" } else { "" };
        let is_judged = figure.outcome != Outcome::NotJudged;
        let row = vec![
            format!("{of}{}", figure.figure),
            value(figure, &figure.a),
            value(figure, &figure.b),
            text::or_none(Some(figure.change).filter(|_| is_judged), |change| format!("{}{odds}", signed(change))),
            text::or_none(figure.interval, |(low, high)| format!("{} … {}", signed(low), signed(high))),
            text::or_none(figure.smallest_seen, |size| factor(size, "±")),
            word,
        ];
        table.row(paint, row);
    }
    table
}

fn no_larger(size: f64) -> String {
    format!("no different by {} or more", text::bound(size))
}

fn value(figure: &Compared, sample: &Sample) -> String {
    let bound = if sample.at_least { "≥" } else { "" };
    match figure.unit.as_str() {
        "ns" => format!("{bound}{}", format_ns(sample.mean)),
        "share" | "ratio" => text::share(sample.mean),
        _ => format!("{}/s", text::rate(sample.mean)),
    }
}

fn signed(change: f64) -> String {
    factor(change, if change >= 0.0 { "+" } else { "" })
}

/// A change as a share, with its sign; one that makes more than ten times of it as the factor.
fn factor(change: f64, sign: &str) -> String {
    const MANY: f64 = 9.0;
    if change < MANY { format!("{sign}{}", text::share(change)) } else { format!("×{}", text::rate(change + 1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(unit: &str, change: f64, outcome: Outcome) -> Compared {
        let sample = |mean| Sample { runs: vec![mean; 2], mean, at_least: false };
        Compared {
            cell: String::new(),
            phase: "baseline".to_owned(),
            operation: None,
            figure: "figure".to_owned(),
            unit: unit.to_owned(),
            more_is_better: true,
            a: sample(0.5),
            b: sample(0.5 * (1.0 + change)),
            change,
            interval: Some((change - 0.1, change + 0.1)),
            p: Some(0.01),
            no_larger_than: Some(0.0052),
            smallest_seen: Some(0.2),
            superiority: 1.0,
            outcome,
            reason: String::new(),
        }
    }

    fn cells(figure: &Compared) -> String {
        let mut page = Page::new(Style { color: false, width: 200 });
        page.table(&table(std::slice::from_ref(figure), Some(0.9875)));
        page.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
    }

    #[test]
    fn a_figure_shows_its_change_its_interval_and_what_follows() {
        let worse = cells(&figure("ns", -0.25, Outcome::Worse));
        assert!(worse.starts_with("A B change 98.8% interval could be seen B is\n"), "{worse}");
        assert!(worse.contains("-25.0% -35.0% … -15.0% ±20.0% worse"), "{worse}");
        let same = cells(&figure("1/s", 0.0, Outcome::NoDifference));
        assert!(same.contains("no different by 0.52% or more"), "{same}");
        assert!(cells(&figure("1/s", 0.1, Outcome::Inconclusive)).contains("inconclusive"));
    }

    #[test]
    fn a_share_changes_by_its_odds_and_a_large_change_is_a_factor() {
        assert!(cells(&figure("share", 0.5, Outcome::Worse)).contains("50.0% 75.0% +50.0% of odds"));
        assert!(cells(&figure("ns", 11.0, Outcome::Worse)).contains(" ×12 ×12 … ×12 "));
    }
}
