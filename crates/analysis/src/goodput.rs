//! What the fault took from the users: degradation, recovery, residual.
//!
//! The terms are those of Lu et al., "One-Size-Fits-None" (NSDI 2025), applied to goodput instead of throughput, and
//! with another end of recovery: there one interval above mean − 1 sd ends it, which one healthy interval in six does
//! not reach and a lucky sick one does; here it ends with the last three in a row that lie below what the baseline
//! nearly always has (`brownout_statistics::recovery`), so that a relapse counts.

use brownout_record::{FaultRecord, Objective};
use brownout_statistics::{goodput_floor, recovery};
use serde::Serialize;

use crate::{
    Interval, TrialEvidence,
    evidence::phase,
    stats,
    sums::{Ended, good},
};

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
    /// ln(goodput of the fault phase ÷ that of the baseline), with half an operation more in each: a fault phase without any has a
    /// place, too. None where the baseline has none: there is nothing to lose.
    pub log_ratio: Option<f64>,
    /// The same of delivered operations.
    pub delivered_log_ratio: Option<f64>,
    /// An interval below this is not back, operations per second: three deviations (by the median absolute deviation),
    /// and 5 % at least, below the baseline's median, and at least half of it.
    pub recovery_floor: Option<f64>,
    /// From healing to the end of the last three consecutive intervals below the floor (none: to the start of the first
    /// three at or above it), ns; none if that was not reached within the recovery phase, or nothing was healed.
    pub recovery_ns: Option<u64>,
    /// Goodput came back in the interval of this length, ns, that ends at `recovery_ns`.
    pub recovery_resolution_ns: Option<u64>,
    /// Whether goodput came back within the recovery phase; none if there was nothing to come back from.
    pub recovered: Option<bool>,
    /// Whether it had been back for three consecutive intervals before, and fell again.
    pub relapsed: Option<bool>,
    /// What was lost from the healing to the end of the recovery phase, in time of the baseline's mean goodput, ns;
    /// negative: more was done than before.
    pub lost_ns: Option<i64>,
    /// Mean goodput after recovery (or of the second half of what follows the healing, if it did not recover) ÷ baseline.
    pub residual: Option<f64>,
}

/// Fewer intervals after the healing tell no recovery.
const LEAST_AFTER: usize = 3;

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
    let before: Vec<f64> = baseline.iter().map(per_second).collect();
    let mut effect = Effect {
        baseline: mean,
        baseline_deviation: stats::deviation(&before),
        fault: goodput(&fault),
        degradation: stats::loss(mean, goodput(&fault)),
        delivered_degradation: stats::loss(rate(&baseline, |point| point.ok), rate(&fault, |point| point.ok)),
        log_ratio: log_ratio(&baseline, &fault, |point| point.good),
        delivered_log_ratio: log_ratio(&baseline, &fault, |point| point.ok),
        recovery_floor: mean.map(|_| goodput_floor(&before)),
        ..Effect::default()
    };
    // With one of several faults still in force there is nothing to recover from yet.
    let healed = evidence.faults.iter().filter_map(FaultRecord::healed).map(|stamp| stamp.at_ns).max();
    let healed = healed.filter(|_| evidence.without_faults().1.is_some());
    let (Some(healed), Some(mean)) = (healed, mean) else { return effect };
    let after = unbroken(points(after_healing(evidence), objective));
    let rates: Vec<f64> = after.iter().map(per_second).collect();
    let Some(found) = recovery(&before, &rates).filter(|_| after.len() >= LEAST_AFTER) else { return effect };
    let length_ns = after[0].length_ns;
    effect.recovered = Some(found.last.is_some());
    effect.recovery_ns = found.last.map(|at| after[at].starts_ns.saturating_sub(healed));
    effect.recovery_resolution_ns = found.last.map(|_| length_ns);
    effect.relapsed = Some(found.has_relapsed());
    effect.lost_ns = Some((found.lost * length_ns as f64) as i64);
    let settled = &after[found.last.unwrap_or(after.len() / 2)..];
    effect.residual = goodput(settled).map(|after| after / mean);
    effect
}

/// ln(rate during ÷ rate before), with half an operation more in each (as in the odds of Haldane, see crates/statistics); none of
/// a time before that had none: that would be called no difference, whatever came.
fn log_ratio(
    before: &[IntervalGoodput],
    during: &[IntervalGoodput],
    count: impl Fn(&IntervalGoodput) -> u64,
) -> Option<f64> {
    if before.iter().all(|point| count(point) == 0) {
        return None;
    }
    let rate = |points: &[IntervalGoodput]| {
        let length: u64 = points.iter().map(|point| point.length_ns).sum();
        let half_more = points.iter().map(&count).sum::<u64>() as f64 + 0.5;
        (length > 0).then(|| half_more / length as f64)
    };
    Some((rate(during)? / rate(before)?).ln())
}

/// Up to the first gap: an interval with operations still open has not shown its goodput, and those after it follow no
/// other.
fn unbroken(mut intervals: Vec<IntervalGoodput>) -> Vec<IntervalGoodput> {
    let gap = intervals.windows(2).position(|pair| pair[0].starts_ns + pair[0].length_ns != pair[1].starts_ns);
    intervals.truncate(gap.map_or(usize::MAX, |at| at + 1));
    intervals
}

/// The intervals from the last healing to the end of the recovery phase, whatever phase they lie in: a fault may end
/// before its phase does.
fn after_healing(evidence: &TrialEvidence) -> impl Iterator<Item = &Interval> {
    let from = evidence.without_faults().1.map_or(u64::MAX, |healed| evidence.begun_after(healed));
    let to = evidence.phase(phase::RECOVERY).map_or(evidence.ends_ns, |recovery| recovery.ends_ns);
    let inside = move |one: &&Interval| one.starts_ns >= from && one.starts_ns + one.length_ns <= to;
    evidence.intervals.iter().filter(inside)
}
