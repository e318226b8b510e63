//! What the fault took from the users: degradation, recovery, residual.
//!
//! The terms are those of Lu et al., "One-Size-Fits-None" (NSDI 2025), applied to goodput instead of throughput, and
//! with a stricter end of recovery: there one interval above mean − 1 sd ends it, which one healthy interval in six
//! does not reach and a lucky sick one does; here three in a row have to lie above mean − 2 sd.

use brownout_record::{FaultRecord, Objective};
use serde::Serialize;

use crate::{
    Interval, TrialEvidence,
    evidence::phase,
    stats,
    sums::{Ended, good},
};

/// Consecutive intervals that have to be back in the baseline's band.
pub const RECOVERY_INTERVALS: usize = 3;
/// The band below the baseline's mean: this many standard deviations of its intervals …
pub const BAND_DEVIATIONS: f64 = 2.0;
/// … and at least this share of the mean, since a constant open loop that is healthy has a deviation of nearly nothing.
pub const BAND_SHARE: f64 = 0.05;
/// The band ends at this share of the mean: with a noisy baseline it would reach 0, and an outage would pass for recovery.
pub const LEAST_FLOOR: f64 = 0.5;

/// The effect of a trial's faults on its goodput: operations answered ok within the objective, per second of intended time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Effect {
    /// Mean goodput of the baseline, operations per second.
    pub baseline: Option<f64>,
    /// Sample standard deviation of the baseline's intervals, operations per second.
    pub baseline_deviation: Option<f64>,
    /// Mean goodput of the fault phase, operations per second.
    pub fault: Option<f64>,
    /// (baseline − fault) ÷ baseline; negative when the fault phase was better.
    pub degradation: Option<f64>,
    /// The same of delivered operations, however slow: comparable with published throughput figures.
    pub delivered_degradation: Option<f64>,
    /// ln(goodput of the fault phase ÷ that of the baseline), with half an operation more in each: none at all has a place, too.
    pub log_ratio: Option<f64>,
    /// The same of delivered operations.
    pub delivered_log_ratio: Option<f64>,
    /// Goodput counts as recovered from here on, operations per second; at least half of the baseline.
    pub recovery_floor: Option<f64>,
    /// From healing to the start of the first of three consecutive intervals at or above the floor,
    /// ns; none if that was not reached, or nothing was healed.
    pub recovery_ns: Option<u64>,
    /// `recovery_ns` is known to within one interval of this length, ns.
    pub recovery_resolution_ns: Option<u64>,
    /// Whether goodput came back within the recovery phase; none if there was nothing to come back from.
    pub recovered: Option<bool>,
    /// Mean goodput after recovery (or of the second half of what follows the healing, if it did not recover) ÷ baseline.
    pub residual: Option<f64>,
    /// Difference between the goodput of the two halves of the baseline ÷ baseline: what "no fault" looks like.
    pub noise: Option<f64>,
}

/// One interval's share in goodput.
struct IntervalGoodput {
    starts_ns: u64,
    length_ns: u64,
    good: u64,
    ok: u64,
}

fn points<'a>(intervals: impl Iterator<Item = &'a Interval>, objective: &Objective) -> Vec<IntervalGoodput> {
    // An interval with operations still open has not shown its goodput yet.
    let settled = intervals.filter(|interval| interval.settled && interval.length_ns > 0);
    settled
        .map(|interval| IntervalGoodput {
            starts_ns: interval.starts_ns,
            length_ns: interval.length_ns,
            good: good(interval, objective),
            ok: Ended::of_operation(interval, objective.operation.as_deref()).ok,
        })
        .collect()
}

fn rate(points: &[IntervalGoodput], count: impl Fn(&IntervalGoodput) -> u64) -> Option<f64> {
    let length: u64 = points.iter().map(|point| point.length_ns).sum();
    (length > 0).then(|| points.iter().map(count).sum::<u64>() as f64 / (length as f64 / 1e9))
}

fn goodput(points: &[IntervalGoodput]) -> Option<f64> {
    rate(points, |point| point.good)
}

/// The effect of a trial's faults.
pub(crate) fn effect(evidence: &TrialEvidence, objective: &Objective) -> Effect {
    let of_phase = |name: &str| {
        let window = evidence.phase(name);
        window.map(|window| points(evidence.intervals_of(window), objective)).unwrap_or_default()
    };
    let (baseline, fault) = (of_phase(phase::BASELINE), of_phase(phase::FAULT));
    let per_second = |point: &IntervalGoodput| point.good as f64 / (point.length_ns as f64 / 1e9);
    let mean = goodput(&baseline);
    let deviation = stats::deviation(&baseline.iter().map(per_second).collect::<Vec<_>>());
    let band = |mean: f64| (BAND_DEVIATIONS * deviation.unwrap_or(0.0)).max(BAND_SHARE * mean);
    let floor = mean.map(|mean| (mean - band(mean)).max(LEAST_FLOOR * mean));
    let mut effect = Effect {
        baseline: mean,
        baseline_deviation: deviation,
        fault: goodput(&fault),
        degradation: stats::loss(mean, goodput(&fault)),
        delivered_degradation: stats::loss(rate(&baseline, |point| point.ok), rate(&fault, |point| point.ok)),
        log_ratio: log_ratio(&baseline, &fault, |point| point.good),
        delivered_log_ratio: log_ratio(&baseline, &fault, |point| point.ok),
        recovery_floor: floor,
        noise: halves(&baseline).zip(mean).filter(|(_, mean)| *mean > 0.0).map(|(apart, mean)| apart / mean),
        ..Effect::default()
    };
    // With one of several faults still in force there is nothing to recover from yet.
    let healed = evidence.faults.iter().filter_map(FaultRecord::healed).map(|stamp| stamp.at_ns).max();
    let healed = healed.filter(|_| evidence.without_faults().1.is_some());
    let (Some(healed), Some(floor), Some(mean)) = (healed, floor, mean) else { return effect };
    let recovery = points(after_healing(evidence), objective);
    if recovery.len() < RECOVERY_INTERVALS || mean <= 0.0 {
        return effect;
    }
    let back = recovery.windows(RECOVERY_INTERVALS).position(|run| {
        run.iter().all(|point| per_second(point) >= floor)
            && run.windows(2).all(|pair| pair[0].starts_ns + pair[0].length_ns == pair[1].starts_ns)
    });
    effect.recovered = Some(back.is_some());
    effect.recovery_ns = back.map(|at| recovery[at].starts_ns.saturating_sub(healed));
    effect.recovery_resolution_ns = back.map(|at| recovery[at].length_ns);
    let settled = &recovery[back.unwrap_or(recovery.len() / 2)..];
    effect.residual = goodput(settled).map(|after| after / mean);
    effect
}

/// ln(rate during ÷ rate before), with half an operation more in each (as in the odds of Haldane, see crates/statistics).
fn log_ratio(
    before: &[IntervalGoodput],
    during: &[IntervalGoodput],
    count: impl Fn(&IntervalGoodput) -> u64,
) -> Option<f64> {
    let rate = |points: &[IntervalGoodput]| {
        let length: u64 = points.iter().map(|point| point.length_ns).sum();
        let half_more = points.iter().map(&count).sum::<u64>() as f64 + 0.5;
        (length > 0).then(|| half_more / length as f64)
    };
    Some((rate(during)? / rate(before)?).ln())
}

/// The intervals from the last healing to the end of the recovery phase, whatever phase they lie in: a fault may end
/// before its phase does.
fn after_healing(evidence: &TrialEvidence) -> impl Iterator<Item = &Interval> {
    let from = evidence.without_faults().1.map_or(u64::MAX, |healed| evidence.begun_after(healed));
    let to = evidence.phase(phase::RECOVERY).map_or(evidence.ends_ns, |recovery| recovery.ends_ns);
    let inside = move |one: &&Interval| one.starts_ns >= from && one.starts_ns + one.length_ns <= to;
    evidence.intervals.iter().filter(inside)
}

/// How far the two halves of a baseline lie apart, operations per second.
fn halves(baseline: &[IntervalGoodput]) -> Option<f64> {
    let (first, second) = baseline.split_at(baseline.len() / 2);
    Some((goodput(first)? - goodput(second)?).abs())
}
