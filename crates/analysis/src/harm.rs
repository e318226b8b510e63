//! Harm that nobody asked for.
//!
//! A fault says what it does, and to whom. Whatever else a pair of hosts shows, anywhere and at any time, is no part of
//! the experiment, and a result drawn from it would be of another one. So every ordered pair is expected to show
//! none of every quantity that no fault in force asks of it, beyond what it showed in the baseline; and the
//! baseline itself has to be the same from end to end. Node and disk likewise, as far as anybody looked at them.

use std::collections::{BTreeMap, BTreeSet};

use brownout_record::{Description, Expectation, FaultRecord, Quantity, Subject};
use serde::Serialize;

use crate::{
    AnalysisError, FaultFindings, Proof, Routes, TrialEvidence,
    evidence::phase,
    index::Index,
    judgement::Row,
    measure::Source,
    observe::{SubjectEvidence, Window},
    proof::{by_subject, touching},
    segments::{Segment, Segments, Span},
    stalls::starved,
    steady::Alone,
    subject::SubjectSeries,
    target::Asks,
    words,
};

/// What a pair may show without any fault, and by how much a busy machine may change that between one phase and the next: of
/// delays twice what it adds to a median, of spreads what makes an interval late, of shares what bursts of losses do. With the
/// machine alone, in four trials of `experiments/slow-replica.yaml`, medians of the spared links moved by 7 µs at most, their
/// spreads by 70 µs, and nothing was lost.
const OF_PAIRS: [(Quantity, f64); 6] = [
    (Quantity::OneWayDelay, 2e6),
    (Quantity::DelaySpread, 5e6),
    (Quantity::Loss, 0.005),
    (Quantity::Duplicates, 0.005),
    (Quantity::Reordered, 0.005),
    (Quantity::Corruption, 0.005),
];

/// The same of ways through an overlay. Packets may wait there for a process that is one among others, and damaged ones are
/// lost.
const OF_OVERLAYS: [(Quantity, f64); 5] = [
    (Quantity::OneWayDelay, 4e6),
    (Quantity::DelaySpread, 10e6),
    (Quantity::Loss, 0.005),
    (Quantity::Duplicates, 0.005),
    (Quantity::Reordered, 0.005),
];

/// What a process that carries packets may lose of them because it is busy: one that is gone loses all.
const MOST_QUEUED: f64 = 0.5;

/// The same of hosts and disks, where witnesses looked at them. A node that is busy may not answer in time, and a
/// disk that others use is slow by itself: of times nothing is said.
const OF_OTHERS: [(Quantity, f64); 11] = [
    (Quantity::Answers, 0.2),
    (Quantity::Running, 0.05),
    (Quantity::ClockOffset, 5e6),
    (Quantity::ReadErrors, 0.01),
    (Quantity::WriteErrors, 0.01),
    (Quantity::SyncErrors, 0.01),
    (Quantity::MetadataErrors, 0.01),
    (Quantity::ReadDelayed, 0.01),
    (Quantity::WriteDelayed, 0.01),
    (Quantity::SyncDelayed, 0.01),
    (Quantity::MetadataDelayed, 0.01),
];

/// Something that a place showed and that no fault asked of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HarmFindings {
    /// The place.
    pub subject: Subject,
    /// What was harmed.
    pub quantity: Quantity,
    /// The stretch of time in which it was seen first, ns since the run's zero.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// Who saw what.
    pub text: String,
}

/// All that was seen in a trial and that nobody asked for: the first of each place and quantity. What a fault's own
/// proof says already is left out.
pub(crate) fn harm(
    description: &Description,
    evidence: &TrialEvidence,
    faults: &[FaultFindings],
) -> Result<Vec<HarmFindings>, AnalysisError> {
    let said: BTreeSet<(&Subject, Quantity)> = faults
        .iter()
        .flat_map(|fault| &fault.rows)
        .filter(|row| row.verdict == Proof::Refuted)
        .map(|row| (&row.subject, row.quantity))
        .collect();
    let before = Window { id: 0, segments: baseline(evidence), forces: Vec::new() };
    let (index, starved) = (Index::of(evidence), starved(evidence));
    let (asked, touching) = (by_subject(&evidence.faults), touching(&evidence.faults));
    let hosts: Vec<String> = description.hosts.iter().map(|host| host.name.clone()).collect();
    let routes = Routes::new(&description.overlay, &hosts);
    let mut timelines: BTreeMap<Vec<usize>, Vec<Segment>> = BTreeMap::new();
    let mut found = Vec::new();
    for subject in &places(evidence) {
        let asked = asked.get(subject).cloned().unwrap_or_default();
        let mut hit: Vec<usize> = asked.iter().filter(|(_, one)| one.hit).map(|((fault, _), _)| *fault).collect();
        hit.sort_unstable();
        hit.dedup();
        let touched = match subject {
            Subject::Host { host } => touching.get(host.as_str()).map_or(&[][..], |faults| &faults[..]),
            _ => &[],
        };
        let disks = on_disks(&evidence.faults, subject);
        let place = SubjectSeries::of(evidence, &index, subject, hit.is_empty());
        let place = SubjectEvidence::new(place, Asks::new(asked), &before, &starved);
        let queues = match subject {
            Subject::Overlay { from, to } => {
                let below = |(from, to): &(String, String)| description.may_queue(&Subject::pair(from, to));
                routes.of(from, to).iter().any(below)
            }
            _ => description.may_queue(subject),
        };
        let in_process = matches!(subject, Subject::Overlay { .. }) && routes.has_queues();
        let quantities: &[(Quantity, f64)] = match subject {
            Subject::Pair { .. } => &OF_PAIRS,
            Subject::Overlay { .. } => &OF_OVERLAYS,
            Subject::Host { .. } | Subject::Directory { .. } => &OF_OTHERS,
        };
        for (quantity, tolerance) in quantities.iter().filter(|(quantity, _)| !said.contains(&(subject, *quantity))) {
            if queues && matches!(quantity, Quantity::OneWayDelay | Quantity::DelaySpread | Quantity::Loss) {
                continue;
            }
            let tolerance = match quantity {
                Quantity::OneWayDelay | Quantity::DelaySpread if in_process => continue,
                Quantity::Loss if in_process => MOST_QUEUED,
                _ => *tolerance,
            };
            let disturbing = match quantity {
                Quantity::Answers => touched,
                Quantity::Running => &disks[..],
                // Nothing that is done to links, disks or processors moves a clock.
                _ => &[],
            };
            let mut cutting = hit.clone();
            cutting.extend(disturbing);
            cutting.sort_unstable();
            cutting.dedup();
            let segments = timelines.entry(cutting).or_insert_with_key(|cutting| timeline(evidence, cutting));
            let none = Expectation {
                subject: subject.clone(),
                quantity: *quantity,
                hit: false,
                asked: 0.0,
                tolerance,
                burst: None,
            };
            let row = Row { fault: usize::MAX, asked: &none, least: f64::INFINITY, disturbing };
            for segment in segments.iter() {
                if let Some(text) = seen(&place, &row, segment)? {
                    let (from_ns, to_ns) = segment.between;
                    found.push(HarmFindings { subject: subject.clone(), quantity: *quantity, from_ns, to_ns, text });
                    break;
                }
            }
        }
    }
    // Packets that do not arrive are neither delayed nor damaged: where a pair is cut, that alone is told.
    let cut: Vec<Subject> =
        found.iter().filter(|one| one.quantity == Quantity::Loss).map(|one| one.subject.clone()).collect();
    found.retain(|one| one.quantity != Quantity::Corruption || !cut.contains(&one.subject));
    Ok(found)
}

/// What contradicts in one stretch of time that a quantity is as it was in the baseline.
fn seen(place: &SubjectEvidence<'_>, row: &Row<'_>, segment: &Segment) -> Result<Option<String>, AnalysisError> {
    let quantity = row.asked.quantity;
    let asks = |quantity| place.asks.any(quantity, &segment.forces, None);
    let excused = match quantity {
        // Packets that skip a delay, or have one of their own each, move the median as well.
        Quantity::OneWayDelay => asks(Quantity::Reordered) || asks(Quantity::DelaySpread),
        // A clock that drifts is away from where it was.
        Quantity::ClockOffset => asks(Quantity::ClockDrift),
        // One limit for several operations: an fsync waits for the writes before it.
        Quantity::SyncDelayed => asks(Quantity::WriteDelayed) || asks(Quantity::WriteTime) || asks(Quantity::SyncTime),
        Quantity::ReadDelayed => asks(Quantity::ReadTime),
        Quantity::WriteDelayed => asks(Quantity::WriteTime),
        Quantity::MetadataDelayed => asks(Quantity::MetadataTime),
        _ => false,
    };
    if excused || asks(quantity) {
        return Ok(None);
    }
    let window = Window { id: usize::MAX, segments: vec![segment.clone()], forces: segment.forces.clone() };
    for source in place.place.sources(quantity) {
        // Probes cannot tell damage from loss, and the kernel's checksums are compared with what is asked for.
        if source == Source::Checksums || (source == Source::Probes && quantity == Quantity::Corruption) {
            continue;
        }
        if let Alone::Contradicts(why) = place.alone(source, row, &window, segment)? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// Every ordered pair that was probed, below and through the overlay, and every host and directory that a witness looked at.
fn places(evidence: &TrialEvidence) -> BTreeSet<Subject> {
    let pairs: BTreeSet<(&str, &str)> =
        evidence.probes.iter().map(|row| (row.from.as_str(), row.to.as_str())).collect();
    let pairs = pairs.into_iter().map(|(from, to)| Subject::pair(from, to));
    let above: BTreeSet<(&str, &str)> =
        evidence.overlay_probes.iter().map(|row| (row.from.as_str(), row.to.as_str())).collect();
    let above = above.into_iter().map(|(from, to)| Subject::overlay(from, to));
    let others = evidence.witnesses.iter().map(|row| &row.subject);
    let others: BTreeSet<&Subject> = others.filter(|subject| !matches!(subject, Subject::Pair { .. })).collect();
    pairs.chain(above).chain(others.into_iter().cloned()).collect()
}

/// The faults that hit a disk of a host: a database whose disk failed is ended and started again, which is part of the healing.
fn on_disks(faults: &[FaultRecord], subject: &Subject) -> Vec<usize> {
    let Subject::Host { host } = subject else { return Vec::new() };
    let own = |subject: &Subject| matches!(subject, Subject::Directory { host: of, .. } if of == host);
    let hits = |fault: &FaultRecord| {
        let mut asked = fault.severities.iter().flat_map(|severity| &severity.expectations);
        asked.any(|one| one.hit && one.asked != 0.0 && own(&one.subject))
    };
    faults.iter().enumerate().filter(|(_, fault)| hits(fault)).map(|(at, _)| at).collect()
}

/// What everything is compared with: before the first injection of any fault, and in the baseline.
fn baseline(evidence: &TrialEvidence) -> Vec<Segment> {
    let Some(phase) = evidence.phase(phase::BASELINE) else { return Vec::new() };
    let span: Span = (phase.starts_ns, phase.ends_ns);
    Segments::before(evidence).iter().map(|segment| segment.within(span)).filter(Segment::lasts).collect()
}

/// The time line of a place, cut where its faults change and where phases end.
fn timeline(evidence: &TrialEvidence, faults: &[usize]) -> Vec<Segment> {
    let phases: Vec<Span> = evidence.phases.iter().map(|phase| (phase.starts_ns, phase.ends_ns)).collect();
    let all = Segments::of(evidence, faults).all;
    let of = |segment: &Segment| phases.iter().map(|span| segment.within(*span)).collect::<Vec<Segment>>();
    all.iter().flat_map(of).filter(Segment::lasts).collect()
}

/// "n1 → n3 also lost 30 %": what makes the trial invalid.
pub(crate) fn reason(harm: &HarmFindings, faults: &[FaultRecord]) -> String {
    let seconds = |at_ns: u64| at_ns as f64 / 1e9;
    let also = if faults.is_empty() { "" } else { " also" };
    format!(
        "{}{also} showed {} that no fault asked for, between {:.1} s and {:.1} s: {}",
        harm.subject,
        words::name(harm.quantity),
        seconds(harm.from_ns),
        seconds(harm.to_ns),
        harm.text
    )
}
