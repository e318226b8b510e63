//! What changes by itself while it is looked at: warm-ups, and drifts over a run.
//!
//! Within a trial of a minute no test of stationarity keeps its error (what follows in time depends on what was before), so
//! a change within trials is judged over trials, by [`crate::estimate`] of one [`change_over`] of each.

use crate::{order::median, quantiles::beyond_normal};

/// Of each half of the stretch that a warm-up is judged by, in intervals.
const HALF: usize = 20;
/// So little (of the logarithm) may the older half be slower.
const LEFT: f64 = 0.05;

/// The first interval by whose end a warm-up is over: when the older half of the last 40 is at most 5 % slower than the newer. None if
/// that does not come. `p50` are the medians of latencies, interval by interval (a second each), in any unit.
pub fn warm_up_ends(p50: &[f64]) -> Option<usize> {
    let logarithms: Vec<f64> = p50.iter().map(|value| value.ln()).collect();
    (2 * HALF..=logarithms.len()).find(|end| {
        let (older, newer) = logarithms[end - 2 * HALF..*end].split_at(HALF);
        median(older) - median(newer) <= LEFT
    })
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
    /// The chance of as much without a trend, two-sided.
    pub p: f64,
}

/// The test of Mann ("Nonparametric tests against trend", Econometrica 13, 1945) and Kendall, with the correction for continuity.
/// None of fewer than four values.
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
