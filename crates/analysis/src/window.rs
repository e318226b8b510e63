//! What a source saw on a pair in the windows before, during and after a fault.

use brownout_record::{Expectation, FaultRecord, Quantity};

use crate::{
    TrialEvidence,
    evidence::phase,
    proof::{ENOUGH, Seen, overlap},
    stats,
};

/// Left out after a change besides the delay asked for, ns: a probe period, queues, and a busy machine.
pub const SETTLE_NS: u64 = 500_000_000;
/// What a probe may take to reach the emulator on a busy machine, ns. Left out before a healing, with the delay asked for.
pub const REACH_NS: u64 = 50_000_000;

/// Three windows of time, ns since the run's zero; an empty one says nothing.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    pub(crate) margin_ns: u64,
    /// Before the healing no probe is looked at that was sent within this, ns.
    ///
    /// On healing the emulator lets go of what it holds, so probes sent just before show less than the delay. One sent
    /// earlier by the delay asked for may still be let go early, if jitter made it later than that; but it was held for
    /// the delay at least, stays above the median where it was, and so leaves the median alone.
    early_ns: u64,
    spans: [(u64, u64); 3],
}

impl Windows {
    /// The windows of a fault. With other faults in force at the same time: before the first of them
    /// comes, while all are there, after the last has gone.
    pub(crate) fn of(evidence: &TrialEvidence, fault: &FaultRecord) -> Self {
        let together = || evidence.faults.iter().filter(|other| other.index == fault.index || overlap(fault, other));
        let asked = together()
            .flat_map(|fault| &fault.expectations)
            .filter(|pair| pair.quantity == Quantity::OneWayDelay)
            .fold(0.0, |most: f64, pair| most.max(pair.asked));
        let margin_ns = SETTLE_NS + asked as u64;
        let early_ns = REACH_NS + asked as u64;
        let mut spans = [(0, 0); 3];
        let Some(own) = fault.injected else { return Windows { margin_ns, early_ns, spans } };
        let injected = || together().filter_map(|fault| fault.injected).chain([own]);
        let first = injected().map(|stamp| stamp.at_ns.saturating_sub(stamp.error_ns)).min().unwrap_or(own.at_ns);
        let last = injected().map(|stamp| stamp.at_ns + stamp.error_ns).max().unwrap_or(own.at_ns);
        let starts = evidence.phase(phase::BASELINE).map_or(evidence.row.starts_ns, |phase| phase.starts_ns);
        spans[0] = (starts, first);
        // At the end of a trial, what was sent last may not have arrived when the record was closed.
        let end = evidence.ends_ns.saturating_sub(margin_ns);
        let healed = || together().filter_map(|fault| fault.healed);
        let all_healed = together().all(|fault| fault.healed.is_some());
        let first_healed = healed().map(|stamp| stamp.at_ns.saturating_sub(stamp.error_ns)).min().unwrap_or(end);
        spans[1] = (last + margin_ns, first_healed);
        if let Some(last_healed) = healed().map(|stamp| stamp.at_ns + stamp.error_ns).max().filter(|_| all_healed) {
            let recovery = evidence.phase(phase::RECOVERY).map_or(end, |phase| phase.ends_ns);
            spans[2] = (last_healed + margin_ns, recovery.min(end));
        }
        Windows { margin_ns, early_ns, spans }
    }

    /// The windows by the sending of probes.
    fn sent(&self) -> [(u64, u64); 3] {
        let [before, (from, to), after] = self.spans;
        [before, (from, to.saturating_sub(self.early_ns)), after]
    }
}

/// What one window showed.
#[derive(Default)]
pub(crate) struct Measure {
    value: Option<f64>,
    samples: u64,
    /// Half-width of the 99 % interval of a share.
    error: f64,
}

impl Measure {
    fn share(hits: u64, count: u64) -> Self {
        let value = (count > 0).then(|| hits as f64 / count as f64);
        Measure { value, samples: count, error: stats::share_half_width(hits, count) }
    }
}

fn seen(measure: impl Fn((u64, u64)) -> Measure, windows: [(u64, u64); 3]) -> Seen {
    let [before, during, after] = windows.map(measure);
    let change = |of: &Measure| {
        let enough = before.samples >= ENOUGH && of.samples >= ENOUGH;
        of.value.zip(before.value).filter(|_| enough).map(|(value, before)| value - before)
    };
    Seen {
        before: before.value,
        during: during.value,
        after: after.value,
        change: change(&during),
        after_change: change(&after),
        samples: [before.samples, during.samples, after.samples],
        // Errors of independent counts add as squares.
        error: before.error.hypot(during.error),
        after_error: before.error.hypot(after.error),
    }
}

/// What the probes of a pair showed.
pub(crate) fn probes(evidence: &TrialEvidence, pair: &Expectation, windows: &Windows) -> Seen {
    let rows = || evidence.probes.iter().filter(|row| row.from == pair.from && row.to == pair.to);
    let measure = |(from, to): (u64, u64)| {
        let samples =
            rows().flat_map(|row| &row.samples).filter(|sample| sample.sent_ns >= from && sample.sent_ns < to);
        match pair.quantity {
            Quantity::OneWayDelay => {
                let mut delays: Vec<u64> = samples.filter_map(|sample| sample.delay_ns).collect();
                Measure { samples: delays.len() as u64, value: stats::median(&mut delays), error: 0.0 }
            }
            Quantity::Loss => {
                let (lost, count) = samples
                    .fold((0, 0), |(lost, count), sample| (lost + u64::from(sample.delay_ns.is_none()), count + 1));
                Measure::share(lost, count)
            }
        }
    };
    seen(measure, windows.sent())
}

/// What the emulator counted on a pair, in the intervals that lie wholly in a window. It counts packets when it lets
/// them go, so none of those counted before the healing was let go by it.
pub(crate) fn counters(evidence: &TrialEvidence, pair: &Expectation, windows: &Windows) -> Seen {
    let rows = || evidence.links.iter().filter(|row| row.from == pair.from && row.to == pair.to);
    let measure = |(from, to): (u64, u64)| {
        let inside = rows().filter(|row| row.starts_ns >= from && row.starts_ns + row.length_ns <= to);
        match pair.quantity {
            Quantity::OneWayDelay => {
                let Ok(mut held) = crate::latency::empty() else { return Measure::default() };
                for row in inside {
                    // Histograms of one recorder always fit into each other.
                    let _ = held.add(&row.held);
                }
                let value = (!held.is_empty()).then(|| held.value_at_quantile(0.5) as f64);
                Measure { value, samples: held.len(), error: 0.0 }
            }
            Quantity::Loss => {
                let (lost, offered) =
                    inside.fold((0, 0), |(lost, offered), row| (lost + row.lost, offered + row.offered));
                Measure::share(lost, offered)
            }
        }
    };
    seen(measure, windows.spans)
}
