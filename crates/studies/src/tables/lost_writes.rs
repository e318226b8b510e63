//! What a wrong clock does to last-write-wins: acknowledged writes that a later read does not find, per ms of skew.

use brownout_units::Delay;

use super::NODES;
use crate::{
    stored::{Cell, Lost, Stored},
    table::Table,
    words::{NONE, count, lost, or_none, ratio},
};

/// The skew of a level in seconds, ahead or behind: `100ms`, `-100ms`.
fn skew_s(level: &str) -> Option<f64> {
    let (sign, size) = match level.strip_prefix('-') {
        Some(size) => (-1.0, size),
        None => (1.0, level),
    };
    Some(sign * size.parse::<Delay>().ok()?.secs())
}

/// Share of the acknowledged writes that are lost, by arithmetic (docs/definitions.md, "Lost writes"): of three nodes that
/// coordinate alike, one is wrong.
fn predicted(cell: &Cell, skew_s: f64) -> Option<f64> {
    let writes = cell.writes.filter(|writes| writes.rows > 0)?;
    let per_row = cell.rate? * writes.share / writes.rows as f64;
    let fault = cell.phases.iter().find(|phase| phase.name == "fault")?;
    // A skew that is shorter than an acknowledgement takes loses nothing.
    let reach = (skew_s.abs() - fault.mean_ns? / 1e9).max(0.0);
    let wrong = 1.0 / NODES;
    let (loses, wins) = if skew_s > 0.0 { (1.0 - wrong, wrong) } else { (wrong, 1.0 - wrong) };
    Some(loses * (1.0 - (-per_row * wins * reach).exp()))
}

/// Of runs in which one clock's offset varies: `skew` with the coordinators' timestamps, `skew-client` with the client's.
pub fn lost_writes(runs: &[&Stored]) -> String {
    let mut table = Table::new([
        "timestamps of",
        "n2 is ahead by",
        "trials",
        "writes looked for",
        "lost",
        "share",
        "of single trials",
        "by arithmetic",
        "lost per s",
        "lost per 1,000 writes and ms of skew",
    ]);
    for run in runs {
        let client = run.name == "skew-client";
        let mut row = |level: &str, trials: &[Lost], skew: Option<f64>, by_arithmetic: Option<f64>| {
            let (looked_for, missed) =
                trials.iter().fold((0, 0), |sum, trial| (sum.0 + trial.looked_for, sum.1 + trial.lost));
            let seconds: f64 = trials.iter().map(|trial| trial.seconds).sum();
            let share = (looked_for > 0).then(|| missed as f64 / looked_for as f64);
            let each: Vec<f64> = trials.iter().map(|trial| trial.lost as f64 / trial.looked_for as f64).collect();
            let low = each.iter().copied().fold(f64::INFINITY, f64::min);
            let high = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // Of a thousand writes, by milliseconds.
            let per_ms = skew.zip(share).map(|(skew, share)| share / skew.abs());
            table.row([
                if client { "the client" } else { "the coordinators" }.to_owned(),
                level.to_owned(),
                trials.len().to_string(),
                count(looked_for as f64),
                missed.to_string(),
                or_none(share, lost),
                if each.is_empty() { NONE.to_owned() } else { format!("{} … {}", lost(low), lost(high)) },
                or_none(by_arithmetic, lost),
                or_none((seconds > 0.0).then(|| missed as f64 / seconds), count),
                or_none(per_ms, ratio),
            ]);
        };
        if let Some(without) = &run.without {
            row("nothing", &without.lost, None, Some(0.0));
        }
        for cell in &run.cells {
            let level = cell.levels.last().map_or("", String::as_str);
            let skew = skew_s(level);
            let by_arithmetic = if client { Some(0.0) } else { skew.and_then(|skew| predicted(cell, skew)) };
            row(level, &cell.lost, skew, by_arithmetic);
        }
    }
    table.text()
}
