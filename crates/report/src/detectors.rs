//! Would anyone have noticed? The detectors over the valid trials of a cell, and of many cells beside each other.

use brownout_analysis::{DetectorSummary, detectors::DETECTORS};
use brownout_units::format_ns;

use crate::{
    cells::name,
    markup::{cell, marked, table},
    page::Page,
    scope::Scope,
    table::{Paint, Table},
    text,
};

const HEADINGS: [&str; 6] = ["detector", "detected", "after", "right/wrong/none", "false alarms", "per hour"];

/// What all of it is of.
const CAPTION: &str = "Detectors that see what a monitoring system sees, over valid trials and proven faults";

/// The section of the summary.
pub(crate) fn summary(page: &mut Page, scope: &Scope<'_>) {
    let all = &scope.detectors;
    if all.is_empty() {
        return;
    }
    page.section(&format!("Would anyone have noticed? {CAPTION}"));
    let mut lines = Table::new(&HEADINGS);
    for one in all {
        lines.row(Paint::Plain, cells(one).to_vec());
    }
    page.table(&lines);
    page.line(Paint::Dim, &format!("  {}", explained(all)));
}

/// The table of the report; none where no valid trial has detectors.
pub(crate) fn html(scope: &Scope<'_>) -> Option<String> {
    let all = &scope.detectors;
    let rows = all.iter().map(|one| {
        let [name, rest @ ..] = cells(one);
        let mut row = vec![cell(name), marked("words", &one.looks_at)];
        row.extend(rest.iter().map(cell));
        ("", row)
    });
    let [first, rest @ ..] = HEADINGS;
    let headings: Vec<&str> = [first, "looks at"].into_iter().chain(rest).collect();
    let caption = format!("{CAPTION}. {}", explained(all));
    (!all.is_empty()).then(|| table("wide", &caption, &headings, rows.collect()))
}

/// A table of many cells, with a column for each detector.
pub(crate) struct Beside {
    pub(crate) caption: &'static str,
    pub(crate) headings: Vec<&'static str>,
    pub(crate) rows: Vec<(Paint, Vec<String>)>,
}

/// What was noticed in each of many cells, and what was reported there without a fault; empty where no cell has detectors.
pub(crate) fn beside(scopes: &[Scope<'_>]) -> Vec<Beside> {
    let all = DETECTORS.iter().map(|one| one.name);
    let names: Vec<&'static str> = all.filter(|name| scopes.iter().any(|scope| of(scope, name).is_some())).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let table = |caption, show: fn(&DetectorSummary) -> String| Beside {
        caption,
        headings: ["cell"].into_iter().chain(names.iter().copied()).collect(),
        rows: scopes
            .iter()
            .map(|scope| {
                let cells = names.iter().map(|name| text::or_none(of(scope, name), show));
                (Paint::Plain, [name(scope)].into_iter().chain(cells).collect())
            })
            .collect(),
    };
    vec![
        table(
            "Would anyone have noticed? Of the proven faults of each cell those that a detector detected, and the median time \
             from their injection to the alarm",
            |one| {
                let after = one.time_to_detect_ns.map(|ns| format!(", {}", text::seconds(ns as f64)));
                format!("{}{}", detected(one), after.unwrap_or_default())
            },
        ),
        table(
            "False alarms of the detectors per hour, of each cell with the trials without a fault that it is compared with; ≤: the \
             95% bound that so long a watch allows",
            per_hour,
        ),
    ]
}

fn of<'a>(scope: &'a Scope<'_>, name: &str) -> Option<&'a DetectorSummary> {
    scope.detectors.iter().find(|one| one.detector == name)
}

fn detected(one: &DetectorSummary) -> String {
    if one.faults > 0 { format!("{} of {}", one.detected, one.faults) } else { text::NONE.to_owned() }
}

fn per_hour(one: &DetectorSummary) -> String {
    let rates = one.false_alarms_per_hour.zip(one.false_alarms_per_hour_at_most);
    text::or_none(rates, |(rate, most)| format!("{}, ≤ {}", text::rate(rate), text::rate(most)))
}

fn cells(one: &DetectorSummary) -> [String; 6] {
    let times = &one.times_to_detect_ns;
    let after = match (one.time_to_detect_ns, times.first(), times.last()) {
        (Some(median), Some(least), Some(most)) if least != most => {
            let [median, least, most] = [median, *least, *most].map(|ns| text::seconds(ns as f64));
            format!("{median}; {least} … {most}")
        }
        (Some(median), ..) => text::seconds(median as f64),
        _ => text::NONE.to_owned(),
    };
    let named =
        if times.is_empty() { text::NONE.to_owned() } else { format!("{}/{}/{}", one.right, one.wrong, one.nobody) };
    [
        one.detector.clone(),
        detected(one),
        after,
        named,
        format!("{} in {}", one.false_alarms, format_ns(one.quiet_ns as f64)),
        per_hour(one),
    ]
}

fn explained(all: &[DetectorSummary]) -> String {
    let faults = all.iter().map(|one| one.faults).max().unwrap_or(0);
    let faults = if faults > 0 {
        "after: from the injection to the first alarm (median of those detected; range); right/wrong/none: the host or link that it named; "
    } else {
        ""
    };
    format!(
        "{faults}false alarms: with no fault in force, nor within 10s of a healing; ≤: the 95% bound that so long a watch allows"
    )
}
