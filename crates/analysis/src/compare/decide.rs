//! The verdict on one figure, from its values on both sides.

use super::object::Compared;
use crate::{Outcome, stats};

/// How a figure is measured, and in which measure it changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    PerSecond,
    Nanoseconds,
    /// Its change is a difference, not a quotient.
    Share,
}

impl Unit {
    pub(super) fn word(self) -> &'static str {
        match self {
            Unit::PerSecond => "1/s",
            Unit::Nanoseconds => "ns",
            Unit::Share => "share",
        }
    }
}

/// The noise floor is at least this share: shorter baselines cannot show a smaller one.
const LEAST_NOISE: f64 = 0.005;
/// A difference below this share is never called one.
const LEAST_DIFFERENCE: f64 = 0.01;

/// Fills in everything that follows from the values and the noise.
pub(super) fn decided(mut figure: Compared, unit: Unit, seed: u64) -> Compared {
    let (a, b) = (&figure.a.trials, &figure.b.trials);
    let change = |a: f64, b: f64| match unit {
        Unit::Share => Some(b - a),
        _ => (a > 0.0).then(|| (b - a) / a),
    };
    figure.noise_floor = figure.noise_floor.max(LEAST_NOISE);
    figure.threshold = (2.0 * figure.noise_floor).max(LEAST_DIFFERENCE);
    figure.superiority = superiority(a, b);
    figure.change = change(figure.a.mean, figure.b.mean);
    figure.interval = stats::bootstrap_change(a, b, seed, change);
    let range = extremes(a, b, change);
    (figure.outcome, figure.reason) = match (figure.interval, range) {
        _ if a.len() < 2 || b.len() < 2 => (
            Outcome::NotJudged,
            "with one trial on a side, a difference cannot be distinguished from chance".to_owned(),
        ),
        (Some(interval), _) => of_change(&figure, "the 95% interval of the change", interval),
        (None, Some(range)) => of_change(&figure, "the change between any two trials", range),
        (None, None) => (Outcome::Inconclusive, "a trial of A has nothing to compare with".to_owned()),
    };
    figure
}

/// The smallest and the largest change between a trial of A and one of B.
fn extremes(a: &[f64], b: &[f64], change: impl Fn(f64, f64) -> Option<f64>) -> Option<(f64, f64)> {
    let mut range = (f64::INFINITY, f64::NEG_INFINITY);
    for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b))) {
        let change = change(a, b)?;
        range = (range.0.min(change), range.1.max(change));
    }
    Some(range)
}

fn of_change(figure: &Compared, what: &str, (low, high): (f64, f64)) -> (Outcome, String) {
    // The words of a verdict: above the threshold is worse.
    let loss = if figure.more_is_better { (-high, -low) } else { (low, high) };
    let (outcome, _) = decide(what, loss, figure.threshold);
    let (_, reason) = decide(what, (low, high), figure.threshold);
    // What may be larger than it was seen to be still is the larger one; that it is the smaller or the same is not known.
    let unknown = match outcome {
        Outcome::Worse => figure.a.at_least,
        Outcome::Better => figure.b.at_least,
        Outcome::NoDifference => figure.a.at_least || figure.b.at_least,
        Outcome::Changed | Outcome::Inconclusive | Outcome::NotJudged => false,
    };
    if unknown {
        return (Outcome::Inconclusive, "the percentile lies among operations that timed out".to_owned());
    }
    (outcome, reason)
}

/// Vargha and Delaney's A ("A critique and improvement of the CL common language effect size statistics", Journal of
/// Educational and Behavioral Statistics 25, 2000), of B over A.
fn superiority(a: &[f64], b: &[f64]) -> f64 {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| a.total_cmp(b)));
    let points = pairs.map(|order| match order {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 0.0,
    });
    points.sum::<f64>() / (a.len() * b.len()).max(1) as f64
}

/// The four verdicts do not overlap: everything (all trials, or the whole interval) must lie above the threshold, below
/// its negative, or between them; else nothing can be said.
fn decide(what: &str, (low, high): (f64, f64), threshold: f64) -> (Outcome, String) {
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let from_to = format!("{what} lies within {} … {}", percent(low), percent(high));
    let of = format!("the threshold is ±{}", percent(threshold));
    if low > threshold {
        (Outcome::Worse, format!("{from_to}; {of}"))
    } else if high < -threshold {
        (Outcome::Better, format!("{from_to}; {of}"))
    } else if low >= -threshold && high <= threshold {
        (Outcome::NoDifference, format!("{from_to}; {of}"))
    } else {
        (Outcome::Inconclusive, format!("{from_to}, on both sides of the threshold of ±{}", percent(threshold)))
    }
}
