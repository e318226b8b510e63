//! How coordinators scored replicas, over time: whom they read from while a fault is in force follows from it.

use std::collections::BTreeSet;

use brownout_record::{EvidenceRow, Subject};

use crate::{
    figure::{Axis, Figure, Ink, Scale, Series, Unit},
    frame::Frame,
    scale::from_zero,
};

/// Lines that a figure can have and still be read. Scores of nodes that a fault hits come first.
const LINES: usize = 12;
/// Scores are drawn in steps of this, ns: they are read once in an interval.
const STEP_NS: u64 = 1_000_000_000;
/// A node that was not heard of for so long is not drawn, ns.
const HEARD_WITHIN_NS: u64 = 2 * STEP_NS;

/// The figure of a trial; none without a fault, and where the record has no scores.
pub fn figure(frame: &Frame<'_>) -> Option<Figure> {
    let rows = &frame.evidence.database;
    if frame.evidence.faults.is_empty() {
        return None;
    }
    let scores = || rows.iter().filter(|row| row.name == "snitch-score" && row.subject != row.node);
    let hit = hit(frame);
    let pairs: BTreeSet<(bool, &str, &str)> =
        scores().map(|row| (!hit.contains(row.subject.as_str()), row.subject.as_str(), row.node.as_str())).collect();
    let left_out = pairs.len().saturating_sub(LINES);
    let series: Vec<Series> = pairs
        .into_iter()
        .take(LINES)
        .zip(Ink::CYCLE.into_iter().cycle())
        .enumerate()
        .map(|(at, ((_, of, node), ink))| {
            let own: Vec<&EvidenceRow> = scores().filter(|row| row.node == node && row.subject == of).collect();
            let heard = heard(rows, node);
            Series {
                name: format!("{node}'s of {of}"),
                ink,
                dashed: at >= Ink::CYCLE.len(),
                reach: 0.0,
                points: points(frame, &own, &heard),
            }
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let (from, to) = from_zero(frame.measured(&series));
    let label = "score: median latency ÷ the worst".to_owned();
    let y = Axis { label, scale: Scale::Linear, unit: Unit::Share, from, to };
    let more = if left_out > 0 { format!(" {left_out} more pairs are left out.") } else { String::new() };
    let said =
        format!("How each coordinator's snitch scores each other node as a replica to read from, over time.{more}");
    let figure = frame.figure("scores", "Snitch scores of replicas", said, y, series);
    Some(Figure { lanes: frame.lanes(), lane: true, ..figure })
}

/// The nodes that faults hit.
fn hit<'a>(frame: &'a Frame<'_>) -> BTreeSet<&'a str> {
    let severities = frame.evidence.faults.iter().flat_map(|fault| &fault.severities);
    let expected = severities.flat_map(|severity| &severity.expectations).filter(|one| one.hit && one.asked != 0.0);
    let nodes = expected.map(|one| match &one.subject {
        // What a node sends late, it answers late.
        Subject::Pair { from, .. } | Subject::Overlay { from, .. } => from.as_str(),
        Subject::Host { host } | Subject::Directory { host, .. } => host.as_str(),
    });
    nodes.collect()
}

/// When a node was heard of.
pub fn heard(rows: &[EvidenceRow], node: &str) -> Vec<u64> {
    rows.iter().filter(|row| row.node == node && row.name == "reading").map(|row| row.at_ns).collect()
}

/// A score, or another gauge, holds until the next, as long as its node is heard of.
pub fn points(frame: &Frame<'_>, own: &[&EvidenceRow], heard: &[u64]) -> Vec<(f64, Option<f64>)> {
    let Some(first) = own.first() else { return Vec::new() };
    let ends_ns = frame.evidence.ends_ns;
    let moments = (0..).map(|step| first.at_ns + step * STEP_NS).take_while(|at| *at <= ends_ns);
    let value = |at: u64| {
        let before = heard.partition_point(|one| *one <= at);
        let last = before.checked_sub(1).and_then(|index| heard.get(index))?;
        if at - last > HEARD_WITHIN_NS {
            return None;
        }
        own.iter().rfind(|row| row.at_ns <= at).map(|row| row.value)
    };
    moments.map(|at| (frame.seconds(at), value(at))).collect()
}
