//! When the instrument kept packets or answers waiting where its own clocks do not look.
//!
//! The emulator stamps a packet when it has read it, and the load an answer when it gets to run: time that either
//! spent waiting for a processor is in neither's own error, but in every latency. Probes on pairs that no fault hits
//! show the one; the kernel's account of the threads shows the other.

use std::collections::{BTreeMap, HashMap, HashSet};

use brownout_record::{CpuRow, Subject};

use crate::{
    AnalysisError, TrialEvidence,
    evidence::phase,
    links::{LinkCounts, held},
    stats,
};

/// An interval is late when 1 % of its probes on spared pairs took this much longer than is usual on their pair, ns.
pub const LATE_PROBE_NS: u64 = 5_000_000;
/// An interval is late when the load's threads, the emulator's or an overlay's waited for a processor for a larger share of it: with the hundreds of
/// turns that they take in a second, 10 % are still below a millisecond a turn.
pub const WAITED_SHARE: f64 = 0.1;

/// What there is to say of it.
pub(crate) struct Stalls {
    /// The spans in which it did, ns since the run's zero.
    pub(crate) spans: Vec<(u64, u64)>,
    /// Those of which somebody can say whether packets waited for the emulator: probes on spared pairs, or the kernel.
    witnessed: Vec<(u64, u64)>,
}

impl Stalls {
    /// Whether somebody can say of a moment whether packets waited for the emulator.
    pub(crate) fn is_witnessed(&self, at_ns: u64) -> bool {
        self.witnessed.iter().any(|(from, to)| (*from..*to).contains(&at_ns))
    }
}

pub(crate) fn stalls(evidence: &TrialEvidence) -> Result<Stalls, AnalysisError> {
    let mut spans = starved(evidence);
    let told = evidence.cpu.iter().filter(|row| row.subject == EMULATOR_WAITED);
    let mut witnessed: Vec<(u64, u64)> = told.map(|row| (row.starts_ns, row.starts_ns + row.length_ns)).collect();
    spans.extend(waited(evidence, LOAD_WAITED));
    spans.extend(waited(evidence, OVERLAY_WAITED));
    let usual = usual_delays(evidence)?;
    let mut excess: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for row in &evidence.probes {
        let Some(usual) = usual.get(&(row.from.as_str(), row.to.as_str())) else { continue };
        let delays = row.samples.iter().filter_map(|sample| sample.delay_ns);
        excess.entry(row.starts_ns).or_default().extend(delays.map(|delay| delay.saturating_sub(*usual)));
    }
    for (starts_ns, mut excess) in excess {
        excess.sort_unstable();
        // Below a hundred probes, the worst one is no percentile.
        let Some(worst) = excess.len().checked_sub(1 + excess.len() / 100).filter(|_| excess.len() >= 100) else {
            continue;
        };
        let interval = evidence.intervals.iter().find(|interval| interval.starts_ns == starts_ns);
        let span = (starts_ns, starts_ns + interval.map_or(1_000_000_000, |interval| interval.length_ns));
        witnessed.push(span);
        if excess[worst] > LATE_PROBE_NS {
            spans.push(span);
        }
    }
    Ok(Stalls { spans, witnessed })
}

/// The kernel's account of how long the load's threads waited for a processor.
const LOAD_WAITED: &str = "load-waited";
/// The same of the thread that carries an overlay's packets.
const OVERLAY_WAITED: &str = "overlay-waited";
/// The same of the emulator's thread. Where a fault hits every pair, nobody else can say that packets were kept waiting.
pub(crate) const EMULATOR_WAITED: &str = "emulator-waited";

/// The spans in which the emulator's thread waited for a processor, by the kernel's account, ns since the run's zero.
pub(crate) fn starved(evidence: &TrialEvidence) -> Vec<(u64, u64)> {
    waited(evidence, EMULATOR_WAITED).collect()
}

fn waited<'a>(evidence: &'a TrialEvidence, who: &'static str) -> impl Iterator<Item = (u64, u64)> + 'a {
    let too_long = |row: &&CpuRow| row.busy_ns as f64 > WAITED_SHARE * row.length_ns as f64;
    let own = evidence.cpu.iter().filter(move |row| row.subject == who).filter(too_long);
    own.map(|row| (row.starts_ns, row.starts_ns + row.length_ns))
}

/// What a packet may usually take on every pair that no fault hits, ns: the median in the baseline, and as much more as the
/// network itself lets some be later than others (a network with jitter is not a late instrument).
fn usual_delays(evidence: &TrialEvidence) -> Result<HashMap<(&str, &str), u64>, AnalysisError> {
    let Some(baseline) = evidence.phase(phase::BASELINE) else { return Ok(HashMap::new()) };
    let severities = evidence.faults.iter().flat_map(|fault| &fault.severities);
    let hit: HashSet<&Subject> = severities
        .flat_map(|severity| &severity.expectations)
        .filter(|one| one.hit && matches!(one.subject, Subject::Pair { .. }))
        .map(|one| &one.subject)
        .collect();
    let hit: HashSet<(&str, &str)> = hit
        .into_iter()
        .filter_map(|subject| match subject {
            Subject::Pair { from, to } => Some((from.as_str(), to.as_str())),
            _ => None,
        })
        .collect();
    let mut delays: HashMap<(&str, &str), Vec<u64>> = HashMap::new();
    for row in &evidence.probes {
        let pair = (row.from.as_str(), row.to.as_str());
        if (baseline.starts_ns..baseline.ends_ns).contains(&row.starts_ns) && !hit.contains(&pair) {
            delays.entry(pair).or_default().extend(row.samples.iter().filter_map(|sample| sample.delay_ns));
        }
    }
    let mut usual = HashMap::new();
    for (pair, mut delays) in delays {
        let Some(median) = stats::median(&mut delays) else { continue };
        let inside = |row: &&LinkCounts| row.starts_ns >= baseline.starts_ns && row.ends_ns() <= baseline.ends_ns;
        let times = held(evidence.links.of(pair.0, pair.1).iter().filter(inside))?;
        let later = times.value_at_quantile(0.99).saturating_sub(times.value_at_quantile(0.5));
        usual.insert(pair, median as u64 + later);
    }
    Ok(usual)
}
