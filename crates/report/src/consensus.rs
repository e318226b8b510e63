//! What members of a cluster in which a leader decides say of their work, over time.

use std::collections::BTreeSet;

use brownout_analysis::{TimedStep, timed};
use brownout_record::EvidenceRow;

use crate::{
    figure::{Axis, Figure, Ink, Scale, Series, Unit},
    frame::Frame,
    scale::{from_zero, log_range},
    scores,
};

/// Where nothing was counted for so long, a line has a gap, ns.
const GAP_NS: u64 = 3_000_000_000;

/// A figure of times that members count.
struct Times {
    /// As analysis calls them.
    name: &'static str,
    id: &'static str,
    title: &'static str,
    said: &'static str,
}

const TIMES: [Times; 2] = [
    Times {
        name: "wal-fsync",
        id: "fsyncs",
        title: "Fsyncs of the members' logs",
        said: "Mean time of an fsync of each member's log over time; every proposal waits for a majority of them.",
    },
    Times {
        name: "apply",
        id: "applies",
        title: "Applies",
        said: "Mean time in which each member applies what is committed, over time.",
    },
];

/// Fsyncs, applies and pending proposals of a trial; none where no leader decides.
pub fn figures(frame: &Frame<'_>) -> Vec<Figure> {
    if frame.trial.database.as_ref().is_none_or(|found| found.leaders.is_empty()) {
        return Vec::new();
    }
    let members: BTreeSet<&str> = frame.evidence.database.iter().map(|row| row.node.as_str()).collect();
    TIMES.iter().filter_map(|what| times(frame, &members, what)).chain(pending(frame, &members)).collect()
}

/// One line for each member.
fn lines(members: &BTreeSet<&str>, points: impl Fn(&str) -> Vec<(f64, Option<f64>)>) -> Vec<Series> {
    let line = |(at, (member, ink)): (usize, (&&str, Ink))| Series {
        name: (*member).to_owned(),
        ink,
        dashed: at >= Ink::CYCLE.len(),
        reach: 0.0,
        points: points(member),
    };
    let all = members.iter().zip(Ink::CYCLE.into_iter().cycle()).enumerate().map(line);
    all.filter(|series| !series.points.is_empty()).collect()
}

fn times(frame: &Frame<'_>, members: &BTreeSet<&str>, what: &Times) -> Option<Figure> {
    let points = |member: &str| {
        let own = timed(&frame.evidence.database, member).into_iter().find(|one| one.name == what.name);
        own.map(|own| through(frame, &own.steps)).unwrap_or_default()
    };
    let series = lines(members, points);
    if series.is_empty() {
        return None;
    }
    let (from, to) = log_range(frame.measured(&series));
    let label = "mean time (log)".to_owned();
    let y = Axis { label, scale: Scale::Log, unit: Unit::Nanoseconds, from, to };
    let figure = frame.figure(what.id, what.title, what.said.to_owned(), y, series);
    Some(Figure { lanes: frame.lanes(), lane: true, ..figure })
}

/// The mean of each step, with a gap where there was none for long.
fn through(frame: &Frame<'_>, steps: &[TimedStep]) -> Vec<(f64, Option<f64>)> {
    let mut points = Vec::with_capacity(steps.len());
    let mut before: Option<u64> = None;
    for step in steps {
        if before.is_some_and(|before| step.at_ns.saturating_sub(before) > GAP_NS) {
            points.push((frame.seconds(step.at_ns - GAP_NS / 2), None));
        }
        points.push((frame.seconds(step.at_ns), Some(step.total_ns / step.count)));
        before = Some(step.at_ns);
    }
    points
}

fn pending(frame: &Frame<'_>, members: &BTreeSet<&str>) -> Option<Figure> {
    let rows = &frame.evidence.database;
    let is_own =
        |row: &EvidenceRow, member: &str| row.node == member && row.name == "pending" && row.subject == "proposals";
    let points = |member: &str| {
        let own: Vec<&EvidenceRow> = rows.iter().filter(|row| is_own(row, member)).collect();
        scores::points(frame, &own, &scores::heard(rows, member))
    };
    let series = lines(members, points);
    // Nobody waits where every proposal is committed before the next reading.
    if !series.iter().flat_map(|one| &one.points).any(|(_, y)| y.is_some_and(|y| y > 0.0)) {
        return None;
    }
    let (from, to) = from_zero(frame.measured(&series));
    let label = "proposals".to_owned();
    let y = Axis { label, scale: Scale::Linear, unit: Unit::Rate, from, to };
    let said = "How many proposals each member has passed on that are not committed yet, over time.".to_owned();
    let figure = frame.figure("pending", "Pending proposals", said, y, series);
    Some(Figure { lanes: frame.lanes(), lane: true, ..figure })
}
