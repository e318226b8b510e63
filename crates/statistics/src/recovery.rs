//! When a rate is back after a fault, and how much was lost until then.

use crate::order::{mean, median};

/// Consecutive intervals that tell, one alone does not.
const RUN: usize = 3;

/// How a rate came back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recovery {
    /// An interval below this is not back.
    pub floor: f64,
    /// The start of the first three consecutive intervals that are back, in intervals after the healing.
    pub first: Option<usize>,
    /// The end of the last three consecutive intervals that are not; without such the same as `first`. None: not within the time
    /// looked at.
    pub last: Option<usize>,
    /// What was lost, in intervals' worth of the baseline's mean; negative: more was done than before.
    pub lost: f64,
}

impl Recovery {
    /// Whether it was back and fell again.
    pub fn has_relapsed(&self) -> bool {
        self.first.zip(self.last).is_some_and(|(first, last)| last > first)
    }
}

/// What an interval of a baseline like this has at least, nearly always: three standard deviations (from the median absolute
/// deviation, which stalled seconds do not widen) and at least 5 % below the median, at most half of it.
pub fn goodput_floor(baseline: &[f64]) -> f64 {
    let middle = median(baseline);
    let apart: Vec<f64> = baseline.iter().map(|value| (value - middle).abs()).collect();
    let deviation = 1.4826 * median(&apart);
    (middle - (3.0 * deviation).max(0.05 * middle)).max(0.5 * middle)
}

/// The recovery of a rate, interval by interval from the healing on; none without a baseline that has something.
pub fn recovery(baseline: &[f64], after: &[f64]) -> Option<Recovery> {
    let before = mean(baseline);
    if before <= 0.0 {
        return None;
    }
    let floor = goodput_floor(baseline);
    let back: Vec<bool> = after.iter().map(|value| *value >= floor).collect();
    let first = back.windows(RUN).position(|run| run.iter().all(|is| *is));
    let bad = back.windows(RUN).rposition(|run| !run.iter().any(|is| *is)).map(|at| at + RUN);
    let last = bad.or(first).filter(|at| *at < after.len());
    let lost = after.iter().map(|value| 1.0 - value / before).sum();
    Some(Recovery { floor, first, last, lost })
}

/// The middle of some times over trials, with order statistics as its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianOverTrials {
    /// The median; infinite: half of the trials or more never got there.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How often such an interval holds the median: 95 % or more from six trials on, 1 − 2^(1−N) below, where it is the range.
    pub confidence: f64,
}

/// Times over trials; none in `times` is a trial that never got there. None of no trials.
pub fn median_over_trials(times: &[Option<f64>]) -> Option<MedianOverTrials> {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    if count == 0 {
        return None;
    }
    // P(at most k of N coins show heads), k from 0 on.
    let mut chance = 0.5f64.powi(count as i32);
    let mut below = Vec::new();
    let mut sum = 0.0;
    for heads in 0..count {
        sum += chance;
        below.push(sum);
        chance *= (count - heads) as f64 / (heads + 1) as f64;
    }
    let place = below.iter().take_while(|chance| **chance <= crate::ALPHA / 2.0).count().saturating_sub(1);
    Some(MedianOverTrials {
        median: median(&sorted),
        low: sorted[place],
        high: sorted[count - 1 - place],
        confidence: 1.0 - 2.0 * below[place],
    })
}
