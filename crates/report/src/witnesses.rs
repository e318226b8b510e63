//! What witnesses saw over time, where a fault of that kind is there: clocks, heartbeats, disks, rates.

use std::collections::BTreeMap;

use brownout_record::{Quantity, Subject, WitnessRow};

use crate::{
    figure::{Axis, Figure, Ink, Scale, Series, Unit},
    frame::Frame,
    scale::{around_zero, log_range},
};

/// Lines that a figure can have and still be read. Subjects that a fault hits come first.
const LINES: usize = 12;
/// Measurements are drawn in steps of this, ns.
const STEP_NS: u64 = 1_000_000_000;

/// One kind of figure.
struct Kind {
    /// What is drawn.
    quantity: Quantity,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    label: &'static str,
    unit: Unit,
}

const KINDS: [Kind; 8] = [
    Kind {
        quantity: Quantity::ClockOffset,
        name: "clocks",
        title: "Clock offset",
        description: "What each host's clock shows less true time, by who asked it, over time.",
        label: "clock − true time",
        unit: Unit::Nanoseconds,
    },
    Kind {
        quantity: Quantity::Answers,
        name: "answers",
        title: "Heartbeats answered",
        description: "The share of the heartbeats that each node answered, over time.",
        label: "answered",
        unit: Unit::Share,
    },
    Kind {
        quantity: Quantity::Running,
        name: "running",
        title: "Processes running",
        description: "The share of the time in which each node's process was there and not stopped.",
        label: "running",
        unit: Unit::Share,
    },
    Kind {
        quantity: Quantity::SyncTime,
        name: "fsync",
        title: "Time of an fsync",
        description: "How long an fsync took in each directory, over time.",
        label: "fsync (log)",
        unit: Unit::Nanoseconds,
    },
    Kind {
        quantity: Quantity::WriteTime,
        name: "write",
        title: "Time of a write",
        description: "How long a write took in each directory, over time.",
        label: "write (log)",
        unit: Unit::Nanoseconds,
    },
    Kind {
        quantity: Quantity::ReadTime,
        name: "read",
        title: "Time of a read",
        description: "How long a read from the disk took in each directory, over time.",
        label: "read (log)",
        unit: Unit::Nanoseconds,
    },
    Kind {
        quantity: Quantity::Rate,
        name: "rate",
        title: "Rate of short bursts",
        description: "What trains of packets got through between pairs of hosts, over time.",
        label: "bit/s (log)",
        unit: Unit::Bits,
    },
    Kind {
        quantity: Quantity::SyncErrors,
        name: "fsync-errors",
        title: "Fsyncs that failed",
        description: "The share of the fsyncs that failed in each directory, over time.",
        label: "failed",
        unit: Unit::Share,
    },
];

/// The figures of a trial; none for what no fault is about.
pub fn figures(frame: &Frame<'_>) -> Vec<Figure> {
    KINDS.iter().filter_map(|kind| figure(frame, kind)).collect()
}

fn figure(frame: &Frame<'_>, kind: &Kind) -> Option<Figure> {
    let severities = frame.evidence.faults.iter().flat_map(|fault| &fault.severities);
    // A drift is drawn as the offset that it makes.
    let about =
        |of: Quantity| of == kind.quantity || (of == Quantity::ClockDrift && kind.quantity == Quantity::ClockOffset);
    let asked: Vec<_> =
        severities.flat_map(|severity| &severity.expectations).filter(|one| about(one.quantity)).collect();
    if !asked.iter().any(|one| one.hit && one.asked != 0.0) {
        return None;
    }
    let mut lines: BTreeMap<(bool, &Subject, &str), Vec<&WitnessRow>> = BTreeMap::new();
    for row in frame.evidence.witnesses.iter().filter(|row| row.quantity == kind.quantity) {
        let spared = !asked.iter().any(|one| one.hit && one.asked != 0.0 && one.subject == row.subject);
        lines.entry((spared, &row.subject, &row.source)).or_default().push(row);
    }
    let sources = lines.keys().map(|(.., source)| *source).collect::<std::collections::BTreeSet<_>>().len();
    let left = lines.len().saturating_sub(LINES);
    let series: Vec<Series> = lines
        .into_iter()
        .take(LINES)
        .zip(Ink::CYCLE.into_iter().cycle())
        .enumerate()
        .map(|(at, (((_, subject, source), rows), ink))| Series {
            name: if sources > 1 { format!("{subject} ({source})") } else { subject.to_string() },
            ink,
            dashed: at >= Ink::CYCLE.len(),
            reach: STEP_NS as f64 / 2e9,
            points: steps(frame, kind, &rows),
        })
        .collect();
    if series.iter().all(|series| series.points.iter().all(|(_, y)| y.is_none())) {
        return None;
    }
    let values = series.iter().flat_map(|series| series.points.iter().filter_map(|(_, y)| *y));
    let (scale, (from, to)) = match (kind.quantity, kind.unit) {
        (_, Unit::Share) => (Scale::Linear, (0.0, 1.05)),
        (Quantity::ClockOffset, _) => (Scale::Linear, around_zero(values)),
        _ => (Scale::Log, log_range(values)),
    };
    let y = Axis { label: kind.label.to_owned(), scale, unit: kind.unit, from, to };
    let more = if left > 0 { format!(" ({left} more lines are in the run file)") } else { String::new() };
    Some(frame.figure(kind.name, &format!("{}{more}", kind.title), kind.description.to_owned(), y, series))
}

/// Measurements second by second: shares as means, all else as medians.
fn steps(frame: &Frame<'_>, kind: &Kind, rows: &[&WitnessRow]) -> Vec<(f64, Option<f64>)> {
    let starts = frame.evidence.row.starts_ns;
    let mut by_step: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for row in rows {
        by_step.entry(row.at_ns.saturating_sub(starts) / STEP_NS).or_default().push(row.value);
    }
    let (Some((first, _)), Some((last, _))) = (by_step.first_key_value(), by_step.last_key_value()) else {
        return Vec::new();
    };
    let value = |values: &Vec<f64>| match kind.unit {
        Unit::Share => brownout_analysis::stats::mean(values),
        _ => brownout_analysis::stats::quantile(&mut values.clone(), 0.5),
    };
    (*first..=*last)
        .map(|step| ((step as f64 + 0.5) * STEP_NS as f64 / 1e9, by_step.get(&step).and_then(value)))
        .collect()
}
