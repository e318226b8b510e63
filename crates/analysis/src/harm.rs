//! Harm that nobody asked for.
//!
//! A fault says what it does, and to whom. Whatever else a pair of hosts shows, anywhere and at any time, is no part of
//! the experiment, and a result drawn from it would be of another one. So every ordered pair is expected to show
//! none of every quantity that no fault in force asks of it, beyond what it showed in the baseline; and the
//! baseline itself has to be the same from end to end. Node and disk likewise, as far as anybody looked at them.

use std::collections::{BTreeMap, BTreeSet};

use brownout_record::{Description, Expectation, FaultRecord, ProbeRow, ProbeSample, Quantity, Subject};
use serde::Serialize;

use crate::{
    AnalysisError, FaultFindings, PhaseWindow, Proof, Routes, TrialEvidence,
    evidence::phase,
    index::Index,
    judgement::{Leeway, Row},
    measure::Source,
    observe::{SubjectEvidence, Window},
    proof::{by_subject, touching},
    segments::{Class, Force, Segment, Segments, Span},
    stalls::starved,
    stats::ENOUGH,
    steady::Alone,
    strain::Strain,
    subject::SubjectSeries,
    target::Asks,
    words,
};

/// What a quantity may be besides what it was in the baseline, in its unit.
#[derive(Clone, Copy)]
struct Tolerated {
    quantity: Quantity,
    /// Where packets never wait for the machine: of times what they scattered by in the baseline counts, if that is more.
    still: f64,
    /// Where the machine may have kept all of them waiting, and at most in any case.
    strained: f64,
    /// The share of the time in which it has to, to move the figure by all of that.
    moved_by: f64,
}

const fn of_pairs(quantity: Quantity, still: f64, strained: f64, moved_by: f64) -> Tolerated {
    Tolerated { quantity, still, strained, moved_by }
}

/// The same whatever the machine does.
const fn always(quantity: Quantity, most: f64) -> Tolerated {
    Tolerated { quantity, still: most, strained: most, moved_by: 1.0 }
}

/// What a pair may show without any fault: with the machine alone, in four trials of `experiments/slow-replica.yaml`, medians of
/// the spared links moved by 7 µs at most, their spreads by 70 µs, and nothing was lost. A machine that is busy may do more
/// between one phase and the next: to delays twice what it adds to a median, to spreads what makes an interval late, to shares
/// what bursts of losses do.
const OF_PAIRS: [Tolerated; 6] = [
    of_pairs(Quantity::OneWayDelay, 2e5, 2e6, 0.5),
    of_pairs(Quantity::DelaySpread, 5e5, 5e6, 0.1),
    of_pairs(Quantity::Loss, 0.001, 0.005, 0.1),
    of_pairs(Quantity::Duplicates, 0.001, 0.005, 0.1),
    of_pairs(Quantity::Reordered, 0.001, 0.005, 0.1),
    of_pairs(Quantity::Corruption, 0.001, 0.005, 0.1),
];

/// The same of ways through an overlay. Packets may wait there for a process that is one among others, and damaged ones are
/// lost.
const OF_OVERLAYS: [Tolerated; 5] = [
    always(Quantity::OneWayDelay, 4e6),
    always(Quantity::DelaySpread, 10e6),
    always(Quantity::Loss, 0.005),
    always(Quantity::Duplicates, 0.005),
    always(Quantity::Reordered, 0.005),
];

/// What a process that carries packets may lose of them because it is busy: one that is gone loses all.
const MOST_QUEUED: f64 = 0.5;

/// The same of hosts and disks, where witnesses looked at them. A node that is busy may not answer in time, and a
/// disk that others use is slow by itself: of times nothing is said.
const OF_OTHERS: [Tolerated; 11] = [
    always(Quantity::Answers, 0.2),
    always(Quantity::Running, 0.05),
    always(Quantity::ClockOffset, 5e6),
    always(Quantity::ReadErrors, 0.01),
    always(Quantity::WriteErrors, 0.01),
    always(Quantity::SyncErrors, 0.01),
    always(Quantity::MetadataErrors, 0.01),
    always(Quantity::ReadDelayed, 0.01),
    always(Quantity::WriteDelayed, 0.01),
    always(Quantity::SyncDelayed, 0.01),
    always(Quantity::MetadataDelayed, 0.01),
];

/// What a cluster may take after a fault until each of its nodes answers in time again, ns: what waited is done at once, peers
/// connect anew, hints are sent. On two processors nodes were silent for up to 4.8 s after six seconds of isolation beside a clock
/// that was wrong, and for 2.5 s after eight seconds of a pause.
const CATCH_UP_NS: u64 = 5_000_000_000;
/// The same of a node that was started again: the load connects to it anew after up to 13 s, and what is asked then is new to its
/// process. On two processors one was silent for a second, some 10 s after it had first served.
const WARM_UP_NS: u64 = 20_000_000_000;

/// For so long a node may not answer by itself, ns: it collects garbage; and it may be stopped by a fault that comes while it is
/// asked, so that what it was asked within a heartbeat's patience before is not answered either.
const MOMENT_NS: u64 = 1_000_000_000;

/// Something that a subject showed and that no fault asked of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HarmFindings {
    /// The subject.
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

/// How many ordered pairs of hosts sent too few probes in the baseline for anything to be compared with it.
pub(crate) fn not_judged(description: &Description, evidence: &TrialEvidence) -> u64 {
    let sent = |segments: &[Segment], row: &ProbeRow| {
        let counts = |sample: &&ProbeSample| {
            let inside = |segment: &Segment| {
                let (from, to) = segment.sent(Class::Pairs);
                (from..to).contains(&sample.sent_ns)
            };
            segments.iter().any(inside)
        };
        row.samples.iter().filter(counts).count() as u64
    };
    let before = baseline(evidence);
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in &evidence.probes {
        *counts.entry((&row.from, &row.to)).or_default() += sent(&before, row);
    }
    let hosts = if description.external { 0 } else { description.hosts.len() as u64 };
    let judged = counts.values().filter(|count| **count >= ENOUGH).count() as u64;
    (hosts * hosts.saturating_sub(1)).saturating_sub(judged)
}

/// After the baseline, half of the probes that were sent there in the same time have to have been sent.
const LEAST_SENT: f64 = 0.5;

/// In which phases after the baseline hardly any probes were sent on how many pairs that were probed in it, in words: what nobody looks
/// for must not pass for no harm.
pub(crate) fn unseen(evidence: &TrialEvidence) -> Vec<String> {
    let sent = |rows: &[ProbeRow], phase: &PhaseWindow| {
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in rows {
            let own = row.samples.iter().filter(|sample| (phase.starts_ns..phase.ends_ns).contains(&sample.sent_ns));
            *counts.entry((row.from.clone(), row.to.clone())).or_default() += own.count() as u64;
        }
        counts
    };
    let Some(baseline) = evidence.phase(phase::BASELINE) else { return Vec::new() };
    let length = |phase: &PhaseWindow| phase.ends_ns.saturating_sub(phase.starts_ns) as f64;
    let mut found = Vec::new();
    for (rows, which) in [(&evidence.probes, ""), (&evidence.overlay_probes, " of the overlay")] {
        let before = sent(rows, baseline);
        for phase in [phase::FAULT, phase::RECOVERY].iter().filter_map(|name| evidence.phase(name)) {
            let during = sent(rows, phase);
            let mut few = before.iter().filter_map(|(pair, before)| {
                let due = *before as f64 * length(phase) / length(baseline);
                let sent = during.get(pair).copied().unwrap_or(0);
                // A phase in which so few were due cannot tell of any harm, and a pair of which so few were sent was never judged.
                let told = *before >= ENOUGH && due >= ENOUGH as f64 / 2.0;
                (told && (sent as f64) < LEAST_SENT * due).then_some((pair, sent, due))
            });
            if let Some(((from, to), sent, due)) = few.next() {
                let pairs = 1 + few.count();
                found.push(format!(
                    "in the {} hardly any probes{which} were sent on {pairs} of {} ordered pairs, so nobody looked for harm there: \
                     {from} → {to} sent {sent} of about {due:.0}",
                    phase.name,
                    before.len()
                ));
            }
        }
    }
    found
}

/// All that was seen in a trial and that nobody asked for: the first of each subject and quantity. What a fault's own
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
    let asked = by_subject(&evidence.faults);
    let anywhere: BTreeSet<usize> = touching(&evidence.faults).into_values().flatten().collect();
    let anywhere: Vec<usize> = anywhere.into_iter().collect();
    let hosts: Vec<String> = description.hosts.iter().map(|host| host.name.clone()).collect();
    let routes = Routes::new(&description.overlay, &hosts);
    let subjects = subjects(evidence);
    let mut timelines: BTreeMap<(Vec<usize>, Option<&str>), Timeline> = BTreeMap::new();
    let strain = Strain::of(evidence);
    let mut found = Vec::new();
    for subject in &subjects {
        let asked = asked.get(subject).cloned().unwrap_or_default();
        let mut hit: Vec<usize> = asked.iter().filter(|(_, one)| one.hit).map(|((fault, _), _)| *fault).collect();
        hit.sort_unstable();
        hit.dedup();
        let disks = on_disks(&evidence.faults, subject);
        let series = SubjectSeries::of(evidence, &index, subject, hit.is_empty()).without_queued();
        let counted = series.is_counted();
        let asks = Asks::new(asked);
        let asks = if counted { asks.without_queued() } else { asks };
        let facts = SubjectEvidence::new(series, asks, &before, &starved);
        let usual = scatter(&facts, &before)?;
        let queues = match subject {
            Subject::Overlay { from, to } => {
                let below = |(from, to): &(String, String)| description.may_queue(&Subject::pair(from, to));
                routes.of(from, to).iter().any(below)
            }
            _ => description.may_queue(subject),
        };
        let in_process = matches!(subject, Subject::Overlay { .. }) && routes.has_queues();
        let quantities: &[Tolerated] = match subject {
            Subject::Pair { .. } => &OF_PAIRS,
            Subject::Overlay { .. } => &OF_OVERLAYS,
            Subject::Host { .. } | Subject::Directory { .. } => &OF_OTHERS,
        };
        for tolerated in quantities.iter().filter(|one| !said.contains(&(subject, one.quantity))) {
            let quantity = tolerated.quantity;
            let hidden = match quantity {
                Quantity::OneWayDelay | Quantity::DelaySpread => queues || in_process,
                // What a full queue drops, the emulator counts.
                Quantity::Loss => queues && !counted,
                _ => false,
            };
            if hidden {
                continue;
            }
            let tolerance = match quantity {
                Quantity::Loss if in_process => MOST_QUEUED,
                Quantity::OneWayDelay | Quantity::DelaySpread => {
                    tolerated.still.max(usual.unwrap_or(f64::INFINITY)).min(tolerated.strained)
                }
                _ => tolerated.still,
            };
            let disturbing = match quantity {
                // A node waits for the others, with all of its threads if need be: what a fault elsewhere makes of that is what
                // the experiment asks for. That it runs is looked at by itself.
                Quantity::Answers => &anywhere[..],
                Quantity::Running => &disks[..],
                // Nothing that is done to links, disks or processors moves a clock.
                _ => &[],
            };
            let mut cutting = hit.clone();
            cutting.extend(disturbing);
            cutting.sort_unstable();
            cutting.dedup();
            let node = match subject {
                Subject::Host { host } if quantity == Quantity::Answers => Some(host.as_str()),
                _ => None,
            };
            let timeline = timelines.entry((cutting, node));
            let timeline = timeline.or_insert_with_key(|(cutting, node)| Timeline::of(evidence, cutting, *node));
            let leeway = if quantity == Quantity::Answers {
                Leeway::Moment(MOMENT_NS)
            } else {
                let most = (tolerated.strained - tolerance).max(0.0);
                Leeway::Strained { strain: &strain, most, moved_by: tolerated.moved_by }
            };
            for window in timeline.alone.iter().chain(&timeline.together) {
                let tolerance = tolerance + resolution(&facts.asks, quantity, window);
                let none = expected_none(subject, quantity, tolerance);
                let row = Row { fault: usize::MAX, asked: &none, least: f64::INFINITY, disturbing, leeway };
                if let Some(text) = seen(&facts, &row, window)? {
                    let (from_ns, to_ns) = window.span();
                    found.push(HarmFindings { subject: subject.clone(), quantity, from_ns, to_ns, text });
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

fn expected_none(subject: &Subject, quantity: Quantity, tolerance: f64) -> Expectation {
    Expectation { subject: subject.clone(), quantity, hit: false, asked: 0.0, tolerance, burst: None }
}

/// How far delays of a pair lie from each other by themselves, ns; none where nobody measured any.
fn scatter(facts: &SubjectEvidence<'_>, before: &Window) -> Result<Option<f64>, AnalysisError> {
    let delays = facts.series.distribution(Source::Probes, Quantity::OneWayDelay, &before.segments, &[])?;
    Ok(delays.and_then(|delays| Some(delays.quantile(0.99)? - delays.quantile(0.5)?)))
}

/// What histograms may err by where packets are delayed, ns: each end of a spread by half of a thousandth.
fn resolution(asks: &Asks<'_>, quantity: Quantity, window: &Window) -> f64 {
    const STEP: f64 = 1.0 / 1024.0;
    if quantity == Quantity::DelaySpread {
        2.0 * STEP * asks.sum(Quantity::OneWayDelay, &window.forces, None)
    } else {
        0.0
    }
}

/// What contradicts in one stretch of time, or in several together, that a quantity is as it was in the baseline.
fn seen(facts: &SubjectEvidence<'_>, row: &Row<'_>, window: &Window) -> Result<Option<String>, AnalysisError> {
    let quantity = row.asked.quantity;
    let asks = |quantity| facts.asks.any(quantity, &window.forces, None);
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
    for source in facts.series.sources(quantity) {
        // Probes cannot tell damage from loss, and the kernel's checksums are compared with what is asked for.
        if source == Source::Checksums || (source == Source::Probes && quantity == Quantity::Corruption) {
            continue;
        }
        let why = match &window.segments[..] {
            [segment] => match facts.alone(source, row, window, segment)? {
                Alone::Contradicts(why) => Some(why),
                _ => None,
            },
            _ => facts.pooled(source, row, window)?,
        };
        if why.is_some() {
            return Ok(why);
        }
    }
    Ok(None)
}

/// Every ordered pair that was probed, below and through the overlay, and every host and directory that a witness looked at.
fn subjects(evidence: &TrialEvidence) -> BTreeSet<Subject> {
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

/// The time line of a subject, cut where its faults change and where phases end.
struct Timeline {
    /// Each stretch by itself.
    alone: Vec<Window>,
    /// Those of one phase with the same things in force, where there are several.
    together: Vec<Window>,
}

impl Timeline {
    /// `node`: without what lies so shortly behind a fault that this node may still do what had to wait for its end.
    fn of(evidence: &TrialEvidence, faults: &[usize], node: Option<&str>) -> Self {
        let ends = evidence.events.iter().filter(|event| matches!(event.kind.as_str(), "node-ended" | "node-died"));
        let own_ends: Vec<u64> =
            ends.filter(|event| node == Some(event.subject.as_str())).map(|event| event.at_ns).collect();
        let periods = faults.iter().flat_map(|fault| &evidence.faults[*fault].periods);
        // When each period ended, and when the node has caught up.
        let ended: Vec<(u64, u64)> = periods
            .filter_map(|period| {
                let (injected, healed) = (period.injected?, period.healed?);
                let is_started_again = own_ends.iter().any(|at| (injected.at_ns..healed.at_ns).contains(at));
                let after_ns = match node {
                    None => 0,
                    Some(_) if is_started_again => WARM_UP_NS,
                    Some(_) => CATCH_UP_NS,
                };
                // A start takes seconds, and its stamp is in the middle: at its end the node serves.
                Some((healed.at_ns, healed.at_ns.saturating_add(healed.error_ns).saturating_add(after_ns)))
            })
            .collect();
        let behind = |segment: &Segment| {
            let before = ended.iter().filter(|(end, _)| *end <= segment.between.0);
            before.map(|(_, caught_up)| *caught_up).max().unwrap_or(0)
        };
        let all = Segments::of(evidence, faults).all;
        let all: Vec<Segment> = all.iter().map(|segment| segment.within((behind(segment), u64::MAX))).collect();
        let window = |segments: Vec<Segment>| Window { id: usize::MAX, forces: segments[0].forces.clone(), segments };
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for phase in &evidence.phases {
            let span: Span = (phase.starts_ns, phase.ends_ns);
            let mut pools: BTreeMap<Vec<Force>, Vec<Segment>> = BTreeMap::new();
            for segment in all.iter().map(|segment| segment.within(span)).filter(Segment::lasts) {
                pools.entry(segment.forces.clone()).or_default().push(segment.clone());
                alone.push(window(vec![segment]));
            }
            together.extend(pools.into_values().filter(|pool| pool.len() > 1).map(window));
        }
        alone.sort_by_key(|window| window.span().0);
        Timeline { alone, together }
    }
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
