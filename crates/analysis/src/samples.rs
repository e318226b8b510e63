//! What the probes of a pair show.

use brownout_record::{ProbeRow, Quantity};

use crate::{
    links::LinkCounts,
    measure::Measure,
    segments::{Class, REACH_NS, Segment},
    stats,
};

/// One probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) sent_ns: u64,
    pub(crate) delay_ns: Option<u64>,
    copies: u8,
}

/// The probes of a pair in the order of their sending.
pub(crate) fn of(rows: &[&ProbeRow]) -> Vec<Sample> {
    let samples = rows.iter().flat_map(|row| &row.samples);
    let mut samples: Vec<Sample> = samples
        .map(|sample| Sample { sent_ns: sample.sent_ns, delay_ns: sample.delay_ns, copies: sample.copies })
        .collect();
    samples.sort_by_key(|sample| sample.sent_ns);
    samples
}

/// The same without those that the emulator may have dropped before a limit of rate: no more in any of its readings than it says that
/// it dropped there. What it did not drop, nor was asked to, was lost elsewhere.
pub(crate) fn without_queued(mut samples: Vec<Sample>, links: &[LinkCounts]) -> Vec<Sample> {
    let mut left: Vec<u64> = links.iter().map(|row| row.dropped_queue).collect();
    let reading = |at_ns: u64| links.partition_point(|row| row.ends_ns() <= at_ns);
    samples.retain(|sample| {
        if sample.delay_ns.is_some() {
            return true;
        }
        // It may have come to the emulator as late as that.
        let by = (reading(sample.sent_ns)..=reading(sample.sent_ns + REACH_NS)).find(|at| left.get(*at) > Some(&0));
        if let Some(left) = by.and_then(|at| left.get_mut(at)) {
            *left -= 1;
        }
        by.is_none()
    });
    samples
}

/// Those sent between two moments.
pub(crate) fn sent(samples: &[Sample], from: u64, to: u64) -> &[Sample] {
    let first = samples.partition_point(|sample| sample.sent_ns < from);
    let last = samples.partition_point(|sample| sample.sent_ns < to).max(first);
    &samples[first..last]
}

/// What they show of a quantity in some segments.
pub(crate) fn measure(quantity: Quantity, samples: &[Sample], segments: &[Segment], class: Class) -> Measure {
    let parts = || {
        segments.iter().map(|segment| {
            let (from, to) = segment.sent(class);
            sent(samples, from, to)
        })
    };
    let all = || parts().flatten();
    let delays = || all().filter_map(|sample| sample.delay_ns).collect::<Vec<u64>>();
    match quantity {
        Quantity::OneWayDelay => {
            let mut delays = delays();
            Measure { samples: delays.len() as u64, value: stats::median(&mut delays), ..Measure::default() }
        }
        Quantity::DelaySpread => {
            let mut delays: Vec<f64> = delays().into_iter().map(|delay| delay as f64).collect();
            let value = stats::quantile(&mut delays, 0.9).zip(stats::quantile(&mut delays, 0.1));
            Measure { samples: delays.len() as u64, value: value.map(|(high, low)| high - low), ..Measure::default() }
        }
        // What arrives damaged does not arrive at all.
        Quantity::Loss | Quantity::Corruption => {
            let lost = all().filter(|sample| sample.delay_ns.is_none()).count();
            Measure::share(lost as u64, all().count() as u64)
        }
        Quantity::Duplicates => {
            let arrived = || all().filter(|sample| sample.delay_ns.is_some());
            let twice = arrived().filter(|sample| sample.copies > 1).count();
            Measure::share(twice as u64, arrived().count() as u64)
        }
        Quantity::Reordered => overtaken(parts()),
        _ => Measure::default(),
    }
}

/// The share of probes that arrived before one sent earlier.
///
/// A packet that skips a delay can overtake only what was sent less than that delay before it. Where probes are
/// sent further apart than that, none can overtake another, and they are blind.
fn overtaken<'b>(parts: impl Iterator<Item = &'b [Sample]> + Clone) -> Measure {
    let (mut overtook, mut arrived) = (0, 0);
    let (mut delays, mut gaps) = (Vec::new(), Vec::new());
    for part in parts {
        let mut latest = 0;
        gaps.extend(part.windows(2).map(|pair| pair[1].sent_ns - pair[0].sent_ns));
        for (sample, delay) in part.iter().filter_map(|sample| Some((sample, sample.delay_ns?))) {
            let at = sample.sent_ns + delay;
            overtook += u64::from(at < latest);
            latest = latest.max(at);
            arrived += 1;
            delays.push(delay);
        }
    }
    let least = delays.iter().min().copied().unwrap_or(0) as f64;
    let reach = stats::median(&mut delays).map_or(0.0, |median| median - least);
    let gap = stats::median(&mut gaps).unwrap_or(f64::INFINITY);
    Measure { blind: reach < 1.5 * gap, ..Measure::share(overtook, arrived) }
}
