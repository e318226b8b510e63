//! Latencies that no operation can have: an answer cannot be faster than the packets that carry it.
//!
//! The load's clock and the probes' know nothing of each other. What the load measured is held against what the
//! network took: a generator whose clock or histograms are broken is found out, however well its counts balance.

use brownout_record::{Description, LatencyRow, Quantity};
use brownout_units::format_ns;

use crate::{
    Interval, TrialEvidence,
    evidence::{PhaseWindow, phase},
    proof::ENOUGH,
    sums::Outcome,
    window::REACH_NS,
};

/// With jitter some operation may meet a shorter delay than any probe did. The true minimum is taken to lie as far below
/// the smallest probe as this one lies above it: where delays spread evenly, it lies further once in 2^(n − 1) cases.
const RANK: usize = 10;

/// Which coordinator answered faster than packets get there and back, in which phase, in words; of several the first.
pub(crate) fn impossible(description: &Description, evidence: &TrialEvidence) -> Option<String> {
    let load = description.hosts.iter().find(|host| host.role == "load")?;
    let phases = phase::MEASURED.into_iter().filter_map(|name| evidence.phase(name));
    let mut found = phases.flat_map(|phase| {
        let (from, to) = steady(evidence, phase);
        let inside = move |one: &&Interval| {
            phase.holds(one.starts_ns, one.length_ns) && one.starts_ns >= from && one.starts_ns + one.length_ns <= to
        };
        let nodes = description.hosts.iter().filter(|host| host.role != "load");
        nodes.filter_map(move |node| {
            let answers = evidence.intervals.iter().filter(inside).flat_map(|interval| &interval.latencies);
            let fastest = answers.filter(|row| row.coordinator == node.name).filter_map(fastest).min()?;
            let there = least_delay(evidence, &load.name, &node.name, (from, to))?;
            let back = least_delay(evidence, &node.name, &load.name, (from, to))?;
            (fastest < there + back).then(|| {
                format!(
                    "{} answered within {} in the {}, which no packet can: by the probes {} → {} takes {} at least, and \
                     back {}; the load's latencies are wrong",
                    node.name,
                    format_ns(fastest as f64),
                    phase.name,
                    load.name,
                    node.name,
                    format_ns(there as f64),
                    format_ns(back as f64)
                )
            })
        })
    });
    let first = found.next()?;
    // A broken clock shows everywhere.
    Some(match found.count() {
        0 => first,
        more => format!("{first} (and so in {more} more combinations of coordinator and phase)"),
    })
}

/// The part of a phase in which the network does not change under an operation's way: from an injection on, and up to
/// a healing but for the delay asked for, there and back, since a healing lets go of what is on its way.
fn steady(evidence: &TrialEvidence, phase: &PhaseWindow) -> (u64, u64) {
    let changes = evidence.changes();
    let (mut from, mut to) = (phase.measured_from_ns, phase.measured_to_ns);
    if phase.name == phase::FAULT {
        let pairs = evidence.faults.iter().flat_map(|fault| &fault.expectations);
        let delays = pairs.filter(|pair| pair.quantity == Quantity::OneWayDelay).map(|pair| pair.asked as u64);
        let early = REACH_NS + 2 * delays.max().unwrap_or(0);
        from = from.max(changes.last_injected.unwrap_or(0));
        to = changes.first_healed.map_or(to, |healed| to.min(healed.saturating_sub(early)));
    }
    (from, to)
}

/// The fastest answer of a row, at most: the histogram knows it to three digits.
fn fastest(row: &LatencyRow) -> Option<u64> {
    let answered = matches!(Outcome::of(&row.outcome), Outcome::Ok) && !row.response.is_empty();
    answered.then(|| row.response.highest_equivalent(row.response.min()))
}

/// What a packet takes at least; none without enough probes to know.
fn least_delay(evidence: &TrialEvidence, from: &str, to: &str, span: (u64, u64)) -> Option<u64> {
    let rows = evidence.probes.iter().filter(|row| row.from == from && row.to == to);
    let samples = rows.flat_map(|row| &row.samples).filter(|one| one.sent_ns >= span.0 && one.sent_ns < span.1);
    let mut delays: Vec<u64> = samples.filter_map(|sample| sample.delay_ns).collect();
    if (delays.len() as u64) < ENOUGH {
        return None;
    }
    let (below, ranked, _) = delays.select_nth_unstable(RANK - 1);
    let smallest = below.iter().min().copied()?;
    Some(smallest.saturating_sub(*ranked - smallest))
}
