//! What all figures of a trial over time have in common.

use brownout_analysis::{Point, TrialEvidence, TrialFindings, phase};
use brownout_record::{Event, FaultRecord, Period};

use crate::{
    figure::{Axis, Bar, Figure, Ink, Lane, Mark, Scale, Series, Span, SpanKind, Unit},
    text::shorten,
};

/// Labels of marks longer than this are cut; the full text is in their title and in the table of events.
const LABEL: usize = 44;

/// The same of lanes; they have the width of the plot.
const LANE_LABEL: usize = 70;
/// Lanes of faults above a plot: more would leave no room for it.
const LANES: usize = 8;

/// What the figures of a trial have in common.
pub struct Frame<'a> {
    pub evidence: &'a TrialEvidence,
    pub trial: &'a TrialFindings,
}

impl Frame<'_> {
    /// Of the trial.
    pub fn seconds(&self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.evidence.row.starts_ns) as f64 / 1e9
    }

    /// A figure over the time of the trial.
    pub fn figure(&self, name: &str, title: &str, description: String, y: Axis, series: Vec<Series>) -> Figure {
        let number = self.evidence.row.trial;
        let to = self.seconds(self.evidence.ends_ns).max(1.0);
        let label = "seconds since the trial began".to_owned();
        Figure {
            id: format!("trial-{number}-{name}"),
            title: format!("{title}, trial {}", self.trial.label()),
            description,
            x: Axis { label, scale: Scale::Linear, unit: Unit::Seconds, from: 0.0, to },
            y,
            series,
            bands: Vec::new(),
            spans: self.spans(),
            lanes: Vec::new(),
            marks: self.marks(),
            rules: Vec::new(),
            beyond: None,
            lane: false,
            wide: true,
        }
    }

    /// The values of the phases that are measured, for which axes are made: a warm-up floods, and would dwarf them. All
    /// values, if there is no such phase.
    pub fn measured<'a>(&'a self, series: &'a [Series]) -> impl Iterator<Item = f64> {
        let phases = phase::MEASURED.iter().filter_map(|name| self.evidence.phase(name));
        let first = self.seconds(phases.map(|phase| phase.starts_ns).min().unwrap_or(0));
        series.iter().flat_map(|series| &series.points).filter(move |(x, _)| *x >= first).filter_map(|(_, y)| *y)
    }

    fn spans(&self) -> Vec<Span> {
        let evidence = self.evidence;
        let phases = evidence.phases.iter().map(|phase| Span {
            from: self.seconds(phase.starts_ns),
            to: self.seconds(phase.ends_ns),
            label: phase.name.clone(),
            kind: SpanKind::Phase,
        });
        let faults = evidence.faults.iter().flat_map(|fault| {
            let period = |period: &Period| {
                let to = period.healed.map_or(evidence.ends_ns, |healed| healed.at_ns);
                let from = self.seconds(period.injected?.at_ns);
                Some(Span { from, to: self.seconds(to), label: fault.text.clone(), kind: SpanKind::Fault })
            };
            fault.periods.iter().filter_map(period)
        });
        let lengths = evidence.intervals.first().map_or(0, |interval| interval.length_ns);
        let late = self.trial.instrument.late_intervals.iter().map(|starts| Span {
            from: self.seconds(*starts),
            to: self.seconds(starts + lengths),
            label: "the instrument was late in this interval".to_owned(),
            kind: SpanKind::Late,
        });
        let disturbed = self.trial.instrument.disturbed_intervals.iter().map(|starts| Span {
            from: self.seconds(*starts),
            to: self.seconds(starts + lengths),
            label: "other programs disturbed this interval".to_owned(),
            kind: SpanKind::Late,
        });
        phases.chain(faults).chain(late).chain(disturbed).collect()
    }

    /// A lane for each fault, with a bar for each period: a ramp's rises. Of many faults, the last lane has all that are left.
    pub fn lanes(&self) -> Vec<Lane> {
        let faults = &self.evidence.faults;
        let (own, rest) = faults.split_at(if faults.len() > LANES { LANES - 1 } else { faults.len() });
        let mut lanes: Vec<Lane> = own
            .iter()
            .map(|fault| Lane { label: shorten(&fault.text, LANE_LABEL), bars: self.bars(fault).collect() })
            .collect();
        if !rest.is_empty() {
            let bars = rest.iter().flat_map(|fault| self.bars(fault)).collect();
            lanes.push(Lane { label: format!("{} more faults", rest.len()), bars });
        }
        lanes
    }

    fn bars<'b>(&'b self, fault: &'b FaultRecord) -> impl Iterator<Item = Bar> + 'b {
        let severities = fault.severities.len().max(1) as f64;
        fault.periods.iter().filter_map(move |period| {
            let to = period.healed.map_or(self.evidence.ends_ns, |healed| healed.at_ns);
            let severity = fault.severities.get(period.severity as usize).map_or("", |severity| &severity.text);
            let (from, to) = (self.seconds(period.injected?.at_ns), self.seconds(to));
            let how = if severity.is_empty() { String::new() } else { format!(", {severity}") };
            Some(Bar {
                from,
                to,
                height: f64::from(period.severity + 1) / severities,
                text: format!("{}{how}: {from:.1}s to {to:.1}s", fault.text),
            })
        })
    }

    /// All events but the phases' own, which stand in the strip above the plot, and the faults' coming and going, which
    /// have their lanes.
    fn marks(&self) -> Vec<Mark> {
        let lanes = !self.evidence.faults.is_empty();
        let drawn = |kind: &str| kind == "phase" || (lanes && matches!(kind, "inject" | "heal" | "change" | "step"));
        let events = self.evidence.events.iter().filter(|event| !drawn(&event.kind));
        events
            .map(|event| {
                let x = self.seconds(event.at_ns);
                let label = words(event);
                let text = format!("{:.3}s {}: {}", x, label, event.text);
                Mark { x, label: shorten(label.trim(), LABEL), text, bad: is_bad(&event.kind) }
            })
            .chain(self.leaders())
            .collect()
    }

    /// Every change of the leader, where one decides.
    fn leaders(&self) -> impl Iterator<Item = Mark> {
        let changes = self.trial.database.iter().flat_map(|found| found.leaders.iter().skip(1));
        changes.map(move |change| {
            let x = self.seconds(change.at_ns);
            let label = change.node.as_ref().map_or_else(|| "no leader".to_owned(), |node| format!("{node} leads"));
            let text = format!("{x:.3}s {label} in term {}", change.term);
            Mark { x, label, text, bad: change.node.is_none() }
        })
    }

    /// A line through the intervals of the load.
    pub fn series(
        &self,
        name: &str,
        ink: Ink,
        dashed: bool,
        points: &[Point],
        value: impl Fn(&Point) -> Option<f64>,
    ) -> Series {
        let place = |point: &Point| self.seconds(point.starts_ns) + point.length_ns as f64 / 2e9;
        let reach = points.first().map_or(0.0, |point| point.length_ns as f64 / 2e9);
        let points = points.iter().map(|point| (place(point), value(point))).collect();
        Series { name: name.to_owned(), ink, dashed, reach, points }
    }
}

/// An event at its mark: its kind and whom it is of; in words, where the kind alone does not say what it means.
fn words(event: &Event) -> String {
    let Event { kind, subject, text, .. } = event;
    match kind.as_str() {
        // Its first word is what Kubernetes calls it.
        "kubernetes" => format!("{subject} {}", text.split(':').next().unwrap_or_default()),
        "reattached" => format!("{subject} is attached again"),
        "not-reattached" => format!("{subject} cannot be attached again"),
        "load-lost" => format!("{subject}, which sends operations, is lost"),
        "exit-gone" => format!("an interface of {subject} is gone"),
        _ => format!("{kind} {subject}"),
    }
}

/// Whether it is something that nobody has asked for. That an interface of a container is gone says only that it has ended.
fn is_bad(kind: &str) -> bool {
    matches!(kind, "node-died" | "host-failed" | "load-lost" | "not-reattached" | "warning" | "balance" | "failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_containers_is_marked_with_words() {
        let event = |kind: &str| Event {
            trial: Some(1),
            at_ns: 0,
            error_ns: 0,
            kind: kind.to_owned(),
            subject: "db-2".to_owned(),
            text: String::new(),
        };
        assert_eq!(words(&event("reattached")), "db-2 is attached again");
        assert_eq!(words(&event("not-reattached")), "db-2 cannot be attached again");
        assert_eq!(words(&event("exit-gone")), "an interface of db-2 is gone");
        assert_eq!(words(&event("node-died")), "node-died db-2");
        let killed = Event { text: "Killing: it failed its probe".to_owned(), ..event("kubernetes") };
        assert_eq!(words(&killed), "db-2 Killing");
        assert_eq!(
            words(&Event { subject: "load-1".to_owned(), ..event("load-lost") }),
            "load-1, which sends operations, is lost"
        );
        let bad = ["reattached", "exit-gone", "not-reattached", "node-died", "load-lost"].map(is_bad);
        assert_eq!(bad, [false, false, true, true, true]);
    }
}
