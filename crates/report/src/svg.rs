//! Figures as SVG.
//!
//! Colours and fonts come from classes; the report's style sheet knows them, a file of its own carries
//! `figure.css` inside.

use std::fmt::Write;

use crate::{
    escape::escape,
    figure::{Figure, Span, SpanKind},
    layout::{LEFT, LETTER, LINE, Layout},
    strips::{lanes_of_faults, phase_strip},
};

/// Marks are labelled in at most this many lines; further ones keep their line through the plot and their title.
const LANES: usize = 6;

/// A figure as an SVG element. Writing to a `String` cannot fail, so results of `write!` are dropped.
pub fn draw(figure: &Figure) -> String {
    let width = Layout::new(figure, 0.0).width;
    let (legend, legend_lines) = legend(figure, width);
    let strip = legend_lines as f64 * LINE + 6.0;
    let phases: Vec<&Span> = spans(figure, SpanKind::Phase).collect();
    let lane_top = strip + if phases.is_empty() { 0.0 } else { LINE + 4.0 };
    let bars_top = lane_top;
    let lane_top = bars_top + figure.lanes.len() as f64 * LINE;
    let labels = if figure.lane { lanes(figure) } else { Vec::new() };
    let lanes_used = labels.iter().filter_map(|label| label.lane).max().map_or(0, |most| most + 1);
    let top = lane_top + lanes_used as f64 * LINE + 8.0;
    let layout = Layout::new(figure, top);

    let id = &figure.id;
    let mut out = format!(
        r#"<svg class="figure" id="{id}" viewBox="0 0 {width} {:.0}" role="img" aria-labelledby="{id}-title {id}-desc">"#,
        layout.height
    );
    let _ = write!(out, r#"<title id="{id}-title">{}</title>"#, escape(&figure.title));
    let _ = write!(out, r#"<desc id="{id}-desc">{}</desc>"#, escape(&figure.description));
    out += &legend;
    out += &shades(figure, &layout);
    out += &axes(figure, &layout);
    out += &phase_strip(figure, &layout, &phases, strip);
    out += &lanes_of_faults(figure, &layout, bars_top);
    out += &marks(figure, &layout, &labels, lane_top);
    let (left, right) = (LEFT, layout.right());
    let _ = write!(
        out,
        r#"<clipPath id="{id}-clip"><rect x="{left}" y="{:.1}" width="{:.1}" height="{:.1}"/></clipPath><g clip-path="url(#{id}-clip)">"#,
        layout.top - 2.0,
        right - left,
        layout.bottom - layout.top + 4.0
    );
    out += &bands(figure, &layout);
    out += &lines(figure, &layout);
    out += "</g>";
    out += &rules(figure, &layout);
    out += &beyond(figure, &layout);
    let _ = write!(out, r#"<line class="cross" x1="0" x2="0" y1="{:.1}" y2="{:.1}"/>"#, layout.top, layout.bottom);
    out += "</svg>";
    out
}

/// Where the pointer finds which values, for the script: places, and per place a text for x and one for each series.
pub fn read_out(figure: &Figure) -> serde_json::Value {
    let layout = Layout::new(figure, 0.0);
    let mut xs: Vec<f64> = figure.series.iter().flat_map(|series| series.points.iter().map(|(x, _)| *x)).collect();
    xs.sort_unstable_by(f64::total_cmp);
    xs.dedup();
    xs.retain(|x| layout.x(figure, *x).is_some());
    let values = |x: f64| {
        figure.series.iter().map(move |series| {
            let at = series.points.binary_search_by(|(own, _)| own.total_cmp(&x)).ok();
            at.and_then(|at| series.points[at].1).map_or_else(|| "–".to_owned(), |y| figure.y.write(y))
        })
    };
    let rows: Vec<Vec<String>> =
        xs.iter().map(|x| std::iter::once(figure.x.write(*x)).chain(values(*x)).collect()).collect();
    let places: Vec<f64> =
        xs.iter().filter_map(|x| layout.x(figure, *x)).map(|place| (place * 10.0).round() / 10.0).collect();
    let heads: Vec<[&str; 2]> = figure.series.iter().map(|series| [series.name.as_str(), series.ink.class()]).collect();
    serde_json::json!({ "width": layout.width, "places": places, "series": heads, "rows": rows })
}

fn spans(figure: &Figure, kind: SpanKind) -> impl Iterator<Item = &Span> {
    figure.spans.iter().filter(move |span| span.kind == kind)
}

fn legend(figure: &Figure, width: f64) -> (String, usize) {
    let mut out = String::from(r#"<g class="legend">"#);
    let (mut x, mut line) = (LEFT, 0);
    for series in &figure.series {
        let room = 30.0 + series.name.chars().count() as f64 * LETTER + 18.0;
        if x + room > width && x > LEFT {
            x = LEFT;
            line += 1;
        }
        let y = line as f64 * LINE + 10.0;
        let dash = if series.dashed { " dashed" } else { "" };
        let _ = write!(
            out,
            r#"<path class="line {}{dash}" d="M{x:.1} {y:.1}h22"/><text x="{:.1}" y="{:.1}">{}</text>"#,
            series.ink.class(),
            x + 28.0,
            y + 4.0,
            escape(&series.name)
        );
        x += room;
    }
    out += "</g>";
    (out, line + 1)
}

fn shades(figure: &Figure, layout: &Layout) -> String {
    let mut out = String::new();
    for span in &figure.spans {
        let (Some(from), Some(to)) = (layout.x(figure, span.from), layout.x(figure, span.to)) else { continue };
        let (class, y, height) = match span.kind {
            SpanKind::Phase => continue,
            SpanKind::Fault => ("fault", layout.top, layout.bottom - layout.top),
            SpanKind::Late => ("late", layout.bottom - 5.0, 5.0),
        };
        let _ = write!(
            out,
            r#"<rect class="window {class}" x="{from:.1}" y="{y:.1}" width="{:.1}" height="{height:.1}"><title>{}</title></rect>"#,
            (to - from).max(0.5),
            escape(&span.label)
        );
    }
    out
}

fn axes(figure: &Figure, layout: &Layout) -> String {
    let mut out = String::from(r#"<g class="axes">"#);
    let (left, right) = (LEFT, layout.right());
    for (value, text) in figure.y.ticks(5) {
        let Some(y) = layout.y(figure, value) else { continue };
        let _ = write!(
            out,
            r#"<path class="grid" d="M{left} {y:.1}H{right}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
            left - 7.0,
            y + 4.0
        );
    }
    for (value, text) in figure.x.ticks(if figure.wide { 12 } else { 6 }) {
        let Some(x) = layout.x(figure, value) else { continue };
        let _ = write!(
            out,
            r#"<path class="tick" d="M{x:.1} {:.1}v5"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
            layout.bottom,
            layout.bottom + 20.5
        );
    }
    let _ = write!(
        out,
        r#"<path class="axis" d="M{left} {:.1}H{right}"/><text class="label" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text><text class="label" transform="translate(13 {:.1}) rotate(-90)" text-anchor="middle">{}</text></g>"#,
        layout.bottom,
        (left + right) / 2.0,
        layout.bottom + 41.0,
        escape(&figure.x.label),
        (layout.top + layout.bottom) / 2.0,
        escape(&figure.y.label)
    );
    out
}

/// Drawn over the lines: their names have a halo.
fn rules(figure: &Figure, layout: &Layout) -> String {
    let mut out = String::new();
    for rule in &figure.rules {
        let Some(y) = layout.y(figure, rule.y) else { continue };
        let right = layout.right();
        let _ = write!(
            out,
            r#"<path class="rule" d="M{LEFT} {y:.1}H{right}"/><text class="rule-name" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            right - 4.0,
            y - 5.0,
            escape(&rule.label)
        );
    }
    out
}

/// The edge at which values are cut off, with arrows on it, and their name on the side that has more room.
fn beyond(figure: &Figure, layout: &Layout) -> String {
    /// Of an arrow.
    const WIDTH: f64 = 10.0;
    const APART: f64 = 60.0;
    let Some(beyond) = &figure.beyond else { return String::new() };
    let (Some(from), Some(to)) = (layout.x(figure, beyond.from), layout.x(figure, beyond.to)) else {
        return String::new();
    };
    let (top, label) = (layout.top, escape(&beyond.label));
    let mut out = format!(
        r#"<g class="beyond"><title>{label}</title><path class="edge" d="M{from:.1} {top:.1}H{:.1}"/>"#,
        to.max(from + WIDTH)
    );
    let arrows = ((to - from) / APART).floor().max(1.0) as u32;
    for at in 0..arrows {
        let x = from + (to - from) * (f64::from(at) + 0.5) / f64::from(arrows);
        let _ = write!(
            out,
            r#"<path d="M{:.1} {:.1}l{:.1} -9l{:.1} 9z"/>"#,
            x - WIDTH / 2.0,
            top + 11.0,
            WIDTH / 2.0,
            WIDTH / 2.0
        );
    }
    let (x, anchor) = if to - LEFT <= layout.right() - to { (to + 6.0, "start") } else { (from - 6.0, "end") };
    let _ = write!(out, r#"<text x="{x:.1}" y="{:.1}" text-anchor="{anchor}">{label}</text></g>"#, top + 12.0);
    out
}

/// Where the label of a mark goes.
struct Label {
    lane: Option<usize>,
    x: f64,
    flush_right: bool,
}

/// Gives each mark the first lane in which its label fits, from left to right.
fn lanes(figure: &Figure) -> Vec<Label> {
    let layout = Layout::new(figure, 0.0);
    let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); LANES];
    figure
        .marks
        .iter()
        .map(|mark| {
            let x = layout.x(figure, mark.x).unwrap_or(LEFT);
            let room = mark.label.chars().count() as f64 * LETTER + 12.0;
            let flush_right = x + room > layout.right();
            let (from, to) = if flush_right { (x - room, x) } else { (x, x + room) };
            let free =
                |lane: &Vec<(f64, f64)>| lane.iter().all(|(other_from, other_to)| to < *other_from || from > *other_to);
            let lane = taken.iter().position(free);
            if let Some(lane) = lane {
                taken[lane].push((from, to));
            }
            Label { lane, x, flush_right }
        })
        .collect()
}

fn marks(figure: &Figure, layout: &Layout, labels: &[Label], lane_top: f64) -> String {
    let (mut stems, mut names) = (String::new(), String::new());
    for (at, mark) in figure.marks.iter().enumerate() {
        let Some(x) = layout.x(figure, mark.x) else { continue };
        let class = if mark.bad { "mark bad" } else { "mark" };
        let text = escape(&mark.text);
        let label = labels.get(at).and_then(|label| Some((label, lane_top + label.lane? as f64 * LINE)));
        let from = label.as_ref().map_or(layout.top, |(_, top)| top + 3.0);
        let (bottom, title) = (layout.bottom, format!("<title>{text}</title>"));
        let _ = write!(stems, r#"<path class="{class}" d="M{x:.1} {from:.1}V{bottom:.1}">{title}</path>"#);
        if let Some((label, top)) = label {
            let (x, anchor) = if label.flush_right { (label.x - 5.0, "end") } else { (label.x + 5.0, "start") };
            let (y, name) = (top + 14.5, escape(&mark.label));
            let _ = write!(
                names,
                r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{name}{title}</text>"#
            );
        }
    }
    // Names come after all stems: their halo keeps the stems of later marks out of them.
    stems + &names
}

fn bands(figure: &Figure, layout: &Layout) -> String {
    let mut out = String::new();
    for band in &figure.bands {
        let place = |x: f64, y: f64| Some((layout.x(figure, x)?, layout.y(figure, y)?));
        let upper = band.points.iter().filter_map(|(x, _, high)| place(*x, *high));
        let lower = band.points.iter().rev().filter_map(|(x, low, _)| place(*x, *low));
        let path: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if path.len() > 2 {
            let _ = write!(out, r#"<path class="band {}" d="M{}Z"/>"#, band.ink.class(), path.join("L"));
        }
    }
    out
}

fn lines(figure: &Figure, layout: &Layout) -> String {
    let mut out = String::new();
    for series in &figure.series {
        let mut path = String::new();
        let mut drawing = false;
        for (x, y) in &series.points {
            let place = y.and_then(|y| {
                let (from, to) = (layout.x(figure, x - series.reach)?, layout.x(figure, x + series.reach)?);
                Some((from, to, layout.y(figure, y)?))
            });
            if let Some((from, to, y)) = place {
                // A step of no length makes a point between two gaps visible: its ends are round.
                let _ = write!(path, "{}{from:.1} {y:.1}H{to:.1}", if drawing { 'L' } else { 'M' });
            }
            drawing = place.is_some();
        }
        if !path.is_empty() {
            let dash = if series.dashed { " dashed" } else { "" };
            let _ = write!(
                out,
                r#"<path class="line {}{dash}" d="{path}"><title>{}</title></path>"#,
                series.ink.class(),
                escape(&series.name)
            );
        }
    }
    out
}
