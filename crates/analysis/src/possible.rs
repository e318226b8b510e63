//! Latencies that no operation can have: an answer cannot be faster than the packets that carry it.
//!
//! The load's clock and the probes' know nothing of each other. What the load measured is held against what the
//! network took: a generator whose clock or histograms are broken is found out, however well its counts balance.

use std::collections::BTreeMap;

use brownout_record::{Description, EncodedTimes, LatencyRow, Quantity, Subject};
use brownout_units::format_ns;

use crate::{
    Interval, TrialEvidence,
    evidence::phase,
    index::Index,
    latency::OperationOutcome,
    samples::{self, Sample},
    segments::{Force, REACH_NS, Segment, Segments, Span, longest_delay},
    stats::ENOUGH,
};

/// With jitter some operation may meet a shorter delay than any probe did. The true minimum is taken to lie as far below
/// the smallest probe as this one lies above it: where delays spread evenly, it lies further once in 2^(n − 1) cases.
const RANK: usize = 10;
/// A tail that thins out, as a normal distribution's, goes further: there are many more packets than probes.
const TAIL: u64 = 2;

/// Which coordinator answered faster than packets get there and back, in which phase, in words; of several the first.
///
/// Phases are looked at by what is in force: between two changes the network is the same for every packet.
pub(crate) fn impossible(description: &Description, evidence: &TrialEvidence) -> Option<String> {
    let load = description.hosts.iter().find(|host| host.role == "load")?;
    let index = Index::of(evidence);
    let every: Vec<usize> = (0..evidence.faults.len()).collect();
    let segments = Segments::of(evidence, &every);
    let mut steady: BTreeMap<(usize, &[Force]), Vec<Span>> = BTreeMap::new();
    for segment in &segments.all {
        for (at, phase) in phase::MEASURED.iter().enumerate() {
            let Some(phase) = evidence.phase(phase) else { continue };
            let (from, to) = calm(evidence, segment);
            // A fault may be healed before its phase ends: what follows shows the recovery.
            let span = (from.max(phase.starts_ns), to.min(phase.ends_ns));
            if span.0 < span.1 {
                steady.entry((at, &segment.forces)).or_default().push(span);
            }
        }
    }
    let mut found = Vec::new();
    for node in description.hosts.iter().filter(|host| host.role != "load") {
        let there = samples::of(index.service_probes(&load.name, &node.name));
        let back = samples::of(index.service_probes(&node.name, &load.name));
        for ((phase, forces), spans) in &steady {
            if reorders(evidence, forces, &load.name, &node.name) {
                continue;
            }
            let Some(fastest) = fastest(evidence, &node.name, spans) else { continue };
            let least = least_delay(&there, spans).zip(least_delay(&back, spans));
            let Some((there, back)) = least.filter(|(there, back)| fastest < there + back) else { continue };
            found.push((
                *phase,
                format!(
                    "{} answered within {} in the {}, which no packet can: by the probes {} → {} takes {} at least, and \
                     back {}; the load's latencies are wrong",
                    node.name,
                    format_ns(fastest as f64),
                    phase::MEASURED[*phase],
                    load.name,
                    node.name,
                    format_ns(there as f64),
                    format_ns(back as f64)
                ),
            ));
        }
    }
    found.sort_by_key(|(phase, _)| *phase);
    let more = found.len().saturating_sub(1);
    let (_, first) = found.into_iter().next()?;
    // A broken clock shows everywhere.
    Some(match more {
        0 => first,
        more => format!("{first} (and so in {more} more combinations of coordinator and phase)"),
    })
}

/// The part of a segment in which the network does not change under an operation's way: not just after a change, which
/// comes a moment after the interval that it is planned for has begun, and up to the next one but for the delay asked for,
/// there and back, since a healing lets go of what is on its way.
fn calm(evidence: &TrialEvidence, segment: &Segment) -> Span {
    let delays = segment.forces.iter().map(|force| longest_delay(&evidence.faults[force.0])).sum::<u64>();
    let early = if segment.forces.is_empty() { 0 } else { REACH_NS + 2 * delays };
    (segment.between.0 + REACH_NS, segment.between.1.saturating_sub(early))
}

/// Whether packets between two hosts may skip a delay that the probes, being fewer, all had.
fn reorders(evidence: &TrialEvidence, forces: &[Force], load: &str, node: &str) -> bool {
    let expectations = forces.iter().filter_map(|(fault, severity)| evidence.faults[*fault].severities.get(*severity));
    expectations.flat_map(|severity| &severity.expectations).any(|one| {
        let between = |from: &str, to: &str| match &one.subject {
            Subject::Pair { from: a, to: b } | Subject::Overlay { from: a, to: b } => a == from && b == to,
            _ => false,
        };
        one.hit && one.quantity == Quantity::Reordered && (between(load, node) || between(node, load))
    })
}

/// The fastest answer of a node to operations of intervals wholly inside, at most: the histogram knows it to three digits.
fn fastest(evidence: &TrialEvidence, node: &str, spans: &[Span]) -> Option<u64> {
    let inside = |one: &&Interval| {
        let (from, to) = (one.starts_ns, one.starts_ns + one.length_ns);
        evidence.phase_of(one.starts_ns, one.length_ns).is_some()
            && spans.iter().any(|span| evidence.begun_after(span.0) <= from && to <= span.1)
    };
    let answers = evidence.intervals.iter().filter(inside).flat_map(|interval| &interval.latencies);
    answers.filter(|row| row.coordinator == node).filter_map(fastest_of).min()
}

fn fastest_of(row: &LatencyRow) -> Option<u64> {
    let answered = matches!(OperationOutcome::of(&row.outcome), OperationOutcome::Ok);
    row.response.iter().next().filter(|_| answered).map(|(least, _)| EncodedTimes::most_of(least))
}

/// What a packet takes at least; none without enough probes to know.
fn least_delay(probes: &[Sample], spans: &[Span]) -> Option<u64> {
    let inside = spans.iter().flat_map(|(from, to)| samples::sent(probes, *from, *to));
    let mut delays: Vec<u64> = inside.filter_map(|sample| sample.delay_ns).collect();
    if (delays.len() as u64) < ENOUGH {
        return None;
    }
    let (below, ranked, _) = delays.select_nth_unstable(RANK - 1);
    let smallest = below.iter().min().copied()?;
    Some(smallest.saturating_sub(TAIL * (*ranked - smallest)))
}
