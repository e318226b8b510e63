//! What changes by itself while it is looked at: warm-ups, and drifts over a run.
//!
//! Within a trial of a minute no test of stationarity keeps its error (what follows in time depends on what was before), so
//! a change within trials is judged over trials, by [`crate::estimate`] of one [`change_over`] of each.

use crate::{order::median, quantiles::beyond_normal};

/// Of each half of the stretch that a warm-up is judged by, in intervals, where there is time for as many.
pub const SETTLED_HALF: usize = 20;
/// So little (of the logarithm) may the older half be slower.
const LEFT: f64 = 0.05;

/// By how much the older half of some latencies is slower than the newer, by the logarithms of their medians; NaN of
/// fewer than two.
pub fn fall(p50: &[f64]) -> f64 {
    let logarithms: Vec<f64> = p50.iter().map(|value| value.ln()).collect();
    let (older, newer) = logarithms.split_at(logarithms.len() / 2);
    median(older) - median(newer)
}

/// Whether latency has settled over some intervals: the older half is at most 5 % slower than the newer. `p50` are the
/// medians of latencies, interval by interval (a second each), in any unit. Halves of [`SETTLED_HALF`] leave 3 % of
/// what falls by e in 20 s; the shorter, the more is left, and the more often noise looks like a fall.
pub fn has_settled(p50: &[f64]) -> bool {
    fall(p50) <= LEFT
}

/// How much the logarithm of some values changes over all of them, by least squares.
pub fn change_over(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let at = |place: usize| place as f64 - middle;
    let product: f64 = values.iter().enumerate().map(|(place, value)| at(place) * value.ln()).sum();
    let squares: f64 = (0..values.len()).map(|place| at(place).powi(2)).sum();
    if squares > 0.0 { product / squares * values.len() as f64 } else { 0.0 }
}

/// Whether values rise or fall in their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Pairs that rise less pairs that fall.
    pub score: i64,
    /// The two-sided p-value: the probability of a trend at least this strong if there were none.
    pub p: f64,
}

/// The test of Mann ("Nonparametric tests against trend", Econometrica 13, 1945) and Kendall, with the correction for
/// continuity. None of fewer than four values.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    const LEAST: usize = 4;
    let count = values.len();
    if count < LEAST {
        return None;
    }
    let pairs = values.iter().enumerate().flat_map(|(at, one)| values[at + 1..].iter().map(move |other| (one, other)));
    let score: i64 = pairs.map(|(one, other)| i64::from(other > one) - i64::from(other < one)).sum();
    let n = count as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let z = (score - score.signum()) as f64 / variance.sqrt();
    Some(Trend { score, p: beyond_normal(z) })
}

/// The index of the first value after the likeliest change: where the parts before and after it lie farthest apart by
/// the energy distance, each part having two values at least (Matteson and James, "A nonparametric approach for
/// multiple change point analysis of multivariate data", Journal of the American Statistical Association 109, 2014:
/// their E-divisive, one change, without its test). None of fewer than four values.
pub fn change_point(values: &[f64]) -> Option<usize> {
    const LEAST: usize = 2;
    let apart = |one: &[f64], other: &[f64]| -> f64 {
        one.iter().map(|one| other.iter().map(|other| (one - other).abs()).sum::<f64>()).sum()
    };
    let distance = |at: usize| {
        let (before, after) = values.split_at(at);
        let (m, n) = (before.len() as f64, after.len() as f64);
        let between = 2.0 * apart(before, after) / (m * n);
        let within = apart(before, before) / (m * (m - 1.0)) + apart(after, after) / (n * (n - 1.0));
        (between - within) * m * n / (m + n)
    };
    (LEAST..=values.len().saturating_sub(LEAST)).max_by(|one, other| distance(*one).total_cmp(&distance(*other)))
}
