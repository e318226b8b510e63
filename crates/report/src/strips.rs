//! What stands above a plot: its phases, and when which fault was in force.

use std::fmt::Write;

use crate::{
    escape::escape,
    figure::{Figure, Span},
    layout::{LEFT, LETTER, LINE, Layout},
};

/// A strip with the names of the phases.
pub(crate) fn phase_strip(figure: &Figure, layout: &Layout, phases: &[&Span], y: f64) -> String {
    let mut out = String::new();
    for span in phases {
        let (Some(from), Some(to)) = (layout.x(figure, span.from), layout.x(figure, span.to)) else { continue };
        let label = escape(&span.label);
        let _ = write!(
            out,
            r#"<rect class="phase {}" x="{:.1}" y="{y:.1}" width="{:.1}" height="{LINE}" rx="3"><title>{label}</title></rect>"#,
            phase_class(&span.label),
            from + 0.5,
            (to - from - 1.0).max(0.5)
        );
        if span.label.chars().count() as f64 * LETTER + 6.0 < to - from {
            let _ = write!(
                out,
                r#"<text class="phase-name" x="{:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#,
                (from + to) / 2.0,
                y + 14.5
            );
        }
        if from > LEFT + 1.0 {
            let _ = write!(out, r#"<path class="border" d="M{from:.1} {:.1}V{:.1}"/>"#, layout.top, layout.bottom);
        }
    }
    out
}

/// A line for each lane: its bars, and its name on the side of them that has more room.
pub(crate) fn lanes_of_faults(figure: &Figure, layout: &Layout, top: f64) -> String {
    let mut out = String::new();
    for (at, lane) in figure.lanes.iter().enumerate() {
        let y = top + at as f64 * LINE;
        let (mut first, mut last) = (layout.right(), LEFT);
        for bar in &lane.bars {
            let (Some(from), Some(to)) = (layout.x(figure, bar.from), layout.x(figure, bar.to)) else { continue };
            (first, last) = (first.min(from), last.max(to));
            let height = (LINE - 6.0) * bar.height.clamp(0.15, 1.0);
            let _ = write!(
                out,
                r#"<rect class="bar-of-fault" x="{from:.1}" y="{:.1}" width="{:.1}" height="{height:.1}"><title>{}</title></rect>"#,
                y + LINE - 3.0 - height,
                (to - from).max(1.0),
                escape(&bar.text)
            );
        }
        let (left_room, right_room) = (first - LEFT - 8.0, layout.right() - last - 8.0);
        let fits = (left_room.max(right_room) / LETTER).max(0.0) as usize;
        let label: String = if lane.label.chars().count() > fits {
            lane.label.chars().take(fits.saturating_sub(1)).chain(['…']).collect()
        } else {
            lane.label.clone()
        };
        let (x, anchor) = if left_room >= right_room { (first - 6.0, "end") } else { (last + 6.0, "start") };
        if fits > 3 {
            let _ = write!(
                out,
                r#"<text class="lane-name" x="{x:.1}" y="{:.1}" text-anchor="{anchor}">{}</text>"#,
                y + 14.5,
                escape(&label)
            );
        }
    }
    out
}

/// The class of a phase; a phase of a later version gets the one of the baseline.
fn phase_class(name: &str) -> &'static str {
    match name {
        "set-up" => "set-up",
        "warm-up" => "warm-up",
        "fault" => "in-fault",
        "recovery" => "recovery",
        _ => "baseline",
    }
}
