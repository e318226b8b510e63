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
    for of_phase in comparison.figures.chunk_by(|one, next| one.phase == next.phase) {
        page.section(&format!(
            "{} (p50 … p99.9: response times of those {})",
            capital(&of_phase[0].phase),
            text::SHOWN
        ));
        page.table(&table(of_phase));
    }
    page.out.push('\n');
    for warning in &comparison.warnings {
        page.line(Paint::Warn, &format!("! {warning}"));
    }
    page.line(Paint::Bold, &comparison.sentence);
    page.out
}

fn about(name: &str, side: &Side) -> String {
    let trials = match side.trials {
        1 => "1 trial".to_owned(),
        trials => format!("{trials} trials"),
    };
    format!("{name}: {}, {trials}: {}", side.name, side.runs.join(" "))
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { text::NONE } else { text }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn table(figures: &[Compared]) -> Table {
    let mut table = Table::new(&["", "A", "B", "change", "95% interval", "threshold", "B is"]).left(6);
    for figure in figures {
        let (paint, word) = match figure.outcome {
            Outcome::Worse => (Paint::Bad, "worse"),
            Outcome::Better => (Paint::Good, "better"),
            Outcome::NoDifference => (Paint::Plain, "no different"),
            Outcome::Changed | Outcome::Inconclusive => (Paint::Warn, "not to be told"),
            Outcome::NotJudged => (Paint::Plain, text::NONE),
        };
        let of = figure.operation.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let row = vec![
            format!("{of}{}", figure.figure),
            value(figure, &figure.a),
            value(figure, &figure.b),
            text::or_none(figure.change, signed),
            text::or_none(figure.interval, |(low, high)| format!("{} … {}", signed(low), signed(high))),
            format!("±{}", text::share(figure.threshold)),
            word.to_owned(),
        ];
        table.row(paint, row);
    }
    table
}

fn value(figure: &Compared, sample: &Sample) -> String {
    let bound = if sample.at_least { "≥" } else { "" };
    match figure.unit.as_str() {
        "ns" => format!("{bound}{}", format_ns(sample.mean)),
        "share" => text::share(sample.mean),
        _ => format!("{}/s", text::rate(sample.mean)),
    }
}

fn signed(share: f64) -> String {
    format!("{}{}", if share >= 0.0 { "+" } else { "" }, text::share(share))
}
