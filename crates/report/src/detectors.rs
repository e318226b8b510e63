//! Would anyone have noticed? One table of the detectors, over all valid trials.

use brownout_analysis::{DetectorSummary, detectors::summaries};
use brownout_units::format_ns;

use crate::{
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
    let all = summaries(scope.trials.iter().copied());
    if all.is_empty() {
        return;
    }
    page.section(&format!("Would anyone have noticed? {CAPTION}"));
    let mut lines = Table::new(&HEADINGS);
    for one in &all {
        lines.row(Paint::Plain, cells(one).to_vec());
    }
    page.table(&lines);
    page.line(Paint::Dim, &format!("  {}", explained(&all)));
}

/// The table of the report; none where no valid trial has detectors.
pub(crate) fn html(scope: &Scope<'_>) -> Option<String> {
    let all = summaries(scope.trials.iter().copied());
    let rows = all.iter().map(|one| {
        let [name, rest @ ..] = cells(one);
        let mut row = vec![cell(name), marked("words", &one.looks_at)];
        row.extend(rest.iter().map(cell));
        ("", row)
    });
    let [first, rest @ ..] = HEADINGS;
    let headings: Vec<&str> = [first, "looks at"].into_iter().chain(rest).collect();
    let caption = format!("{CAPTION}. {}", explained(&all));
    (!all.is_empty()).then(|| table("wide", &caption, &headings, rows.collect()))
}

fn cells(one: &DetectorSummary) -> [String; 6] {
    let times = &one.times_to_detect_ns;
    let after = match (one.median_ns(), times.first(), times.last()) {
        (Some(median), Some(least), Some(most)) if least != most => {
            let [median, least, most] = [median, *least as f64, *most as f64].map(text::seconds);
            format!("{median}; {least} … {most}")
        }
        (Some(median), ..) => text::seconds(median),
        _ => text::NONE.to_owned(),
    };
    let detected = if one.faults > 0 { format!("{} of {}", times.len(), one.faults) } else { text::NONE.to_owned() };
    let named =
        if times.is_empty() { text::NONE.to_owned() } else { format!("{}/{}/{}", one.right, one.wrong, one.nobody) };
    let per_hour = one.per_hour().zip(one.per_hour_at_most());
    [
        one.detector.clone(),
        detected,
        after,
        named,
        format!("{} in {}", one.false_alarms, format_ns(one.quiet_ns as f64)),
        text::or_none(per_hour, |(rate, most)| format!("{}, ≤ {}", text::rate(rate), text::rate(most))),
    ]
}

fn explained(all: &[DetectorSummary]) -> String {
    let faults = all.iter().map(|one| one.faults).max().unwrap_or(0);
    let faults = if faults > 0 {
        "after: from the injection to the first alarm (median; range); right/wrong/none: the place that it named; "
    } else {
        ""
    };
    format!(
        "{faults}false alarms: with no fault in force, nor within 10s of a healing; ≤: the 95% bound that so long a watch allows"
    )
}
