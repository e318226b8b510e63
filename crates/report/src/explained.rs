//! What arithmetic explains: what the plan says before a run, beside what was measured. The terminal and the HTML show the same.

use brownout_analysis::{Delayed, Explained, Loss, Prediction, Touched, TrialFindings, words};
use brownout_units::format_ns;

use crate::{
    cells::name,
    markup::{cell, table},
    page::Page,
    scope::Scope,
    table::{Paint, Table},
    text,
};

/// The title of the section.
const TITLE: &str = "What arithmetic explains";
/// Letters of a fault's text that name its row.
const NAMED: usize = 44;

/// A table and what is said below it.
struct Part {
    caption: String,
    headings: &'static [&'static str],
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

type Own<'a> = (&'a TrialFindings, &'a Explained);

/// All that there is to show; nothing where no record tells where rows lie.
fn parts(scope: &Scope<'_>) -> Vec<Part> {
    let own: Vec<Own<'_>> = scope.own().filter_map(|trial| Some((trial, trial.explained.as_ref()?))).collect();
    [touched(&own), predicted(&own), floors(&own)].into_iter().filter(|part| !part.rows.is_empty()).collect()
}

/// The section of the page; none if there is nothing to show.
pub fn html(scope: &Scope<'_>) -> Option<String> {
    let of = |part: Part| {
        let caption = [vec![part.caption], part.notes].concat().join("; ");
        let row = |cells: Vec<String>| ("", cells.into_iter().map(cell).collect());
        table("", &caption, part.headings, part.rows.into_iter().map(row).collect())
    };
    let html: String = parts(scope).into_iter().map(of).collect();
    (!html.is_empty()).then(|| format!("<section><h2>{TITLE}</h2>{html}</section>"))
}

impl Page {
    pub(crate) fn explained(&mut self, scope: &Scope<'_>) {
        for part in parts(scope) {
            self.section(&format!("{TITLE}: {}", part.caption));
            let mut table = Table::new(part.headings);
            for row in part.rows {
                table.row(Paint::Plain, row);
            }
            self.table(&table);
            for note in part.notes {
                self.line(Paint::Dim, &format!("  {note}"));
            }
        }
    }
}

/// The headings of [`beside`].
pub const BESIDE_HEADINGS: [&str; 6] =
    ["cell", "loss of", "measured", "by measured latency", "by the plan", "left over"];

/// What [`beside`] is of.
pub const BESIDE: &str = "What arithmetic explains of the losses: of trials with the faults against their own baselines, means over \
                          valid ones; by the plan: what the delays cost with the best and the worst choice of replicas (etcd: if reads \
                          find no round under way, and if they wait for a whole one); by measured latency: what a closed loop loses by \
                          Little's law";

/// The losses of many cells, with what arithmetic says of each; no rows where nothing is predicted.
pub(crate) fn beside(scopes: &[Scope<'_>]) -> Vec<(Paint, Vec<String>)> {
    scopes.iter().flat_map(losses).map(|row| (Paint::Plain, row)).collect()
}

fn losses(scope: &Scope<'_>) -> Vec<Vec<String>> {
    let row = |loss: &Loss| {
        vec![
            name(scope),
            loss.figure.clone(),
            text::or_none(loss.measured, text::share),
            text::or_none(loss.by_latency, text::share),
            between(text::share(loss.least), text::share(loss.most)),
            text::or_none(loss.remainder, text::share),
        ]
    };
    scope.losses.iter().map(row).collect()
}

/// By fault and operation; once where all trials have the same.
fn touched(own: &[Own<'_>]) -> Part {
    let mut rows = Vec::new();
    let mut shown: Option<&[Touched]> = None;
    for (trial, explained) in own.iter().filter(|(_, explained)| !explained.touched.is_empty()) {
        if shown == Some(&explained.touched) {
            continue;
        }
        let several = shown.replace(&explained.touched).is_some() || own[0].1.touched != own[own.len() - 1].1.touched;
        for one in &explained.touched {
            let name = match one.fault {
                None => "all faults together".to_owned(),
                Some(index) => {
                    let fault = trial.faults.iter().find(|fault| fault.index == index);
                    fault.map_or_else(String::new, |fault| text::shorten(&fault.text, NAMED))
                }
            };
            rows.push(vec![
                if several { format!("trial {}: {name}", trial.label()) } else { name },
                one.operation.as_ref().map_or_else(|| "all".to_owned(), |name| words::operations(name)),
                text::share(one.must),
                text::share(one.may),
            ]);
        }
    }
    let unexplained = own.iter().find(|(_, explained)| explained.touched.is_empty() && explained.floors.is_empty());
    let mut notes: Vec<String> = Vec::new();
    notes.extend(unexplained.and_then(|(_, explained)| explained.inapplicable.clone()));
    notes.extend(leaders(own));
    Part {
        caption: "operations that a fault can touch, by the plan".to_owned(),
        headings: &["fault", "operations", "must wait for it", "may wait for it"],
        rows,
        notes,
    }
}

/// With which leaders the ways of operations are counted; none where no leader decides.
fn leaders(own: &[Own<'_>]) -> Option<String> {
    let of = |(trial, explained): &Own<'_>| Some((trial.label(), explained.leader.clone()?));
    let led: Vec<(String, String)> = own.iter().filter_map(of).collect();
    let (_, first) = led.first()?;
    if led.iter().all(|(_, leader)| leader == first) {
        return Some(format!("{first} led when the faults came"));
    }
    let each: Vec<String> = led.iter().map(|(trial, leader)| format!("{leader} in trial {trial}")).collect();
    Some(format!("who led when the faults came: {}", each.join(", ")))
}

/// Losses and percentiles, measured and predicted.
fn predicted(own: &[Own<'_>]) -> Part {
    let mut rows = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for (trial, explained) in own {
        if let Some(why) = explained.inapplicable.as_ref().filter(|_| !explained.touched.is_empty()) {
            notes.push(format!("no prediction: {why}"));
        }
        let Some(prediction) = &explained.prediction else { continue };
        notes.push(delayed(prediction, explained.leader.is_some()));
        for loss in &prediction.losses {
            rows.push(vec![
                trial.label(),
                format!("loss of {}", loss.figure),
                text::or_none(loss.measured, text::share),
                between(text::share(loss.least), text::share(loss.most)),
                text::or_none(loss.by_latency, text::share),
                text::or_none(loss.remainder, text::share),
            ]);
        }
        for one in &prediction.latencies {
            let of = |name: &String| format!(" of {}", words::operations(name));
            let operation = one.operation.as_ref().map_or_else(String::new, of);
            let ns = |ns: u64| time(ns as f64);
            rows.push(vec![
                trial.label(),
                format!("p{}{operation}", one.quantile * 100.0),
                ns(one.measured_ns),
                between(ns(one.least_ns), ns(one.most_ns)),
                text::NONE.to_owned(),
                time(one.remainder_ns),
            ]);
        }
    }
    notes.dedup();
    Part {
        caption: format!("what the delays cost (times of the fault phase, of those {})", text::SHOWN),
        headings: &["trial", "figure", "measured", "by the plan", "by measured latency", "left over"],
        rows,
        notes,
    }
}

/// k and D in words. Where a leader decides, what is open is whether reads have to wait for each other.
fn delayed(Prediction { least, most, .. }: &Prediction, is_led: bool) -> String {
    let of = |one: &Delayed| format!("{} of the operations meet {}", text::share(one.share), time(one.delay_ns));
    let (least, most) = (of(least), of(most));
    match least == most {
        true => format!("by the plan {least}, whatever the database chooses"),
        false if is_led => {
            format!("by the plan {least} if reads find no round under way, and {most} if they wait for a whole one")
        }
        false => format!("by the plan {least} if it chooses the best replicas for each, and {most} if the worst"),
    }
}

/// A time; nothing is told without a unit of its own.
fn time(ns: f64) -> String {
    if ns.abs() < 0.5 { "0".to_owned() } else { format_ns(ns) }
}

/// One text if both are the same.
fn between(least: String, most: String) -> String {
    if least == most { least } else { format!("{least} … {most}") }
}

/// Where the network takes time.
fn floors(own: &[Own<'_>]) -> Part {
    let mut rows = Vec::new();
    for (trial, explained) in own {
        if explained.floors.iter().all(|floor| floor.floor_ns <= 0.0) {
            continue;
        }
        for floor in &explained.floors {
            let above = text::or_none(floor.above_ns, time);
            rows.push(vec![
                trial.label(),
                floor.phase.clone(),
                words::operations(&floor.operation),
                time(floor.floor_ns),
                text::or_none(floor.p50_ns, |ns| time(ns as f64)),
                if floor.impossible == Some(true) { format!("{above}: impossible") } else { above },
            ]);
        }
    }
    Part {
        caption: format!("the least latency that the distances allow (medians; measured: of those {})", text::SHOWN),
        headings: &["trial", "phase", "operations", "least", "measured", "hosts and database"],
        rows,
        notes: Vec::new(),
    }
}
