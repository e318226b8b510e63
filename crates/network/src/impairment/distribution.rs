//! How delays scatter.

use std::{fmt, str::FromStr, sync::OnceLock};

use thiserror::Error;

use super::normal;

/// How delays scatter around their mean, as netem's `distribution`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Distribution {
    /// All delays of `delay − jitter ..= delay + jitter` alike.
    #[default]
    Uniform,
    /// The normal distribution; jitter is its standard deviation.
    Normal,
    /// Pareto with α = 3, centred and scaled so that jitter is its standard deviation: a sharp lower edge at −0.58
    /// jitter and a heavy tail.
    Pareto,
    /// A quarter of a normal and three quarters of a Pareto variable, scaled so that jitter is its standard deviation:
    /// Pareto with a rounded lower edge.
    ParetoNormal,
}

/// Quantiles beyond these are cut off: of one packet in a million on either side. It bounds how long a packet can take.
const TAIL: f64 = 1e-6;

/// The shape of the Pareto distribution, and with its least value 1 its mean α ÷ (α − 1) and standard deviation
/// √(α ÷ ((α − 1)²·(α − 2))).
const ALPHA: f64 = 3.0;
const PARETO_MEAN: f64 = 1.5;
const PARETO_DEVIATION: f64 = 0.866_025_403_784_438_6;

/// What a mixture of these parts has to be divided by.
const NORMAL_PART: f64 = 0.25;
const PARETO_PART: f64 = 0.75;
const MIXED_DEVIATION: f64 = 0.790_569_415_042_094_8;

impl Distribution {
    /// All there are.
    pub const ALL: [Distribution; 4] =
        [Distribution::Uniform, Distribution::Normal, Distribution::Pareto, Distribution::ParetoNormal];

    /// How far from `delay` the share `q` (0 to 1) of all delays lies below, in units of jitter.
    ///
    /// Cut off at one in a million on either side, except for the uniform distribution, which has bounds of its own.
    pub fn quantile(self, q: f64) -> f64 {
        match self {
            Distribution::Uniform => 2.0 * q.clamp(0.0, 1.0) - 1.0,
            Distribution::Normal => normal::quantile(q.clamp(TAIL, 1.0 - TAIL)),
            Distribution::Pareto => pareto(1.0 - q.clamp(TAIL, 1.0 - TAIL)),
            Distribution::ParetoNormal => mixture(normal::quantile(q.clamp(TAIL, 1.0 - TAIL))),
        }
    }

    /// The same for the quantile that has `z` in the standard normal distribution.
    pub(crate) fn at_normal(self, z: f64) -> f64 {
        let bound = *tail_bound();
        match self {
            Distribution::Uniform => 2.0 * normal::cumulative(z) - 1.0,
            Distribution::Normal => z.clamp(-bound, bound),
            Distribution::Pareto => pareto(normal::cumulative(-z).clamp(TAIL, 1.0 - TAIL)),
            Distribution::ParetoNormal => mixture(z.clamp(-bound, bound)),
        }
    }

    /// The correlation of two standard normal variables that gives two of this distribution the correlation `rho`.
    ///
    /// Exact for uniform (2·sin(π·ρ ÷ 6)) and normal. For the two with a tail it is ρ itself: theirs, computed from
    /// values, comes out lower, and hardly converges, because it hangs on the rarest values; of ranks it is right.
    pub(crate) fn underlying_correlation(self, rho: f64) -> f64 {
        match self {
            Distribution::Uniform => 2.0 * (std::f64::consts::PI * rho / 6.0).sin(),
            _ => rho,
        }
    }

    /// The largest quantile.
    pub(crate) fn most(self) -> f64 {
        self.quantile(1.0)
    }

    /// Makes what takes a while to make, so that no thread in a hurry has to.
    pub(crate) fn prepare(self) {
        self.most();
    }
}

fn tail_bound() -> &'static f64 {
    static BOUND: OnceLock<f64> = OnceLock::new();
    BOUND.get_or_init(|| normal::quantile(1.0 - TAIL))
}

/// The Pareto quantile that this share of values exceeds.
fn pareto(exceeding: f64) -> f64 {
    (exceeding.powf(-1.0 / ALPHA) - PARETO_MEAN) / PARETO_DEVIATION
}

/// The share of Pareto values above `x`.
fn exceeding_pareto(x: f64) -> f64 {
    let value = x * PARETO_DEVIATION + PARETO_MEAN;
    if value <= 1.0 { 1.0 } else { value.powf(-ALPHA) }
}

/// The mixture's quantile, by the quantile of the standard normal distribution: linear between the table's points.
fn mixture(z: f64) -> f64 {
    let table = table();
    let bound = *tail_bound();
    let place = (z + bound) / (2.0 * bound) * (table.len() - 1) as f64;
    let below = (place.max(0.0) as usize).min(table.len() - 2);
    let part = place - below as f64;
    table[below] + (table[below + 1] - table[below]) * part
}

/// The mixture has no closed form. Its quantiles at this many values of `z`, evenly spaced between the tails.
const POINTS: usize = 4_097;

fn table() -> &'static [f64] {
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let bound = *tail_bound();
        let step = 2.0 * bound / (POINTS - 1) as f64;
        // Quantiles rise with z, so each search begins where the last has ended.
        let mut low = -3.0;
        let quantile = |place| {
            let exceeding = normal::cumulative(bound - step * place as f64);
            low = solve(low, exceeding);
            low
        };
        (0..POINTS).map(quantile).collect()
    })
}

/// The least `x` from `low` on that no more than `exceeding` of the mixture's values exceed.
fn solve(low: f64, exceeding: f64) -> f64 {
    let (mut low, mut width) = (low, 1e-3);
    while exceeding_mixture(low + width) > exceeding {
        low += width;
        width *= 2.0;
    }
    let mut high = low + width;
    while high - low > 1e-9 * high.abs().max(1e-2) {
        let middle = 0.5 * (low + high);
        if exceeding_mixture(middle) > exceeding { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The share of the mixture's values above `x`: the Pareto part's, averaged over the normal part by the trapezoidal
/// rule, which converges faster than any power for such an integrand.
fn exceeding_mixture(x: f64) -> f64 {
    static WEIGHTS: OnceLock<Vec<(f64, f64)>> = OnceLock::new();
    const STEPS: i32 = 32;
    const REACH: f64 = 6.0;
    let weights = WEIGHTS.get_or_init(|| {
        let points = (-STEPS..=STEPS).map(|n| REACH * f64::from(n) / f64::from(STEPS));
        let density = |z: f64| (-0.5 * z * z).exp();
        let sum: f64 = points.clone().map(density).sum();
        points.map(|z| (z, density(z) / sum)).collect()
    });
    let scaled = x * MIXED_DEVIATION;
    weights.iter().map(|(z, weight)| weight * exceeding_pareto((scaled - NORMAL_PART * z) / PARETO_PART)).sum()
}

/// A name that is none of a distribution.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no distribution of delays; choose uniform, normal, pareto or paretonormal")]
pub struct UnknownDistribution(String);

impl FromStr for Distribution {
    type Err = UnknownDistribution;

    fn from_str(text: &str) -> Result<Self, UnknownDistribution> {
        let named = Distribution::ALL.into_iter().find(|distribution| distribution.to_string() == text);
        named.ok_or_else(|| UnknownDistribution(text.to_owned()))
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Distribution::Uniform => "uniform",
            Distribution::Normal => "normal",
            Distribution::Pareto => "pareto",
            Distribution::ParetoNormal => "paretonormal",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance by the midpoints of many equally likely parts.
    fn moments(distribution: Distribution) -> (f64, f64) {
        const PARTS: u32 = 4_000_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for part in 0..PARTS {
            let x = distribution.quantile((f64::from(part) + 0.5) / f64::from(PARTS));
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(PARTS);
        (mean, squares / f64::from(PARTS) - mean * mean)
    }

    #[test]
    fn jitter_is_the_standard_deviation_and_half_the_width_of_the_uniform_range() {
        for distribution in Distribution::ALL {
            let (mean, variance) = moments(distribution);
            let expected = if distribution == Distribution::Uniform { 1.0 / 3.0 } else { 1.0 };
            // What is cut off of the tail of a Pareto variable with α = 3 holds 2 to 3 % of its variance.
            assert!(mean.abs() < 2e-3, "{distribution}: mean {mean}");
            assert!((variance / expected - 1.0).abs() < 0.03, "{distribution}: variance {variance}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (distribution, q, expected) in [
            (Distribution::Uniform, 0.25, -0.5),
            (Distribution::Normal, 0.975, 1.959_963_985),
            (Distribution::Normal, 0.1, -1.281_551_566),
            // ((1 − q)^(−1/3) − 1.5) ÷ √0.75
            (Distribution::Pareto, 0.0, -0.577_350_269),
            (Distribution::Pareto, 0.875, 0.577_350_269),
            (Distribution::Pareto, 0.999, 9.814_954_576),
        ] {
            let found = distribution.quantile(q);
            assert!((found - expected).abs() < 1e-6, "{distribution} at {q}: {found} is not {expected}");
        }
    }

    #[test]
    fn a_quantile_is_exceeded_by_the_rest() {
        for q in [1e-5, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.999_99] {
            let exceeding = exceeding_mixture(Distribution::ParetoNormal.quantile(q));
            assert!((exceeding / (1.0 - q) - 1.0).abs() < 1e-3, "{q}: {exceeding}");
        }
    }

    #[test]
    fn the_mixture_is_the_sum_of_its_parts() {
        // Against the sum of independent draws on a grid: an independent way to the same distribution.
        const SIDE: u32 = 2_000;
        let at = |n: u32| (f64::from(n) + 0.5) / f64::from(SIDE);
        let (normals, paretos): (Vec<_>, Vec<_>) = (0..SIDE).map(|n| (normal::quantile(at(n)), pareto(at(n)))).unzip();
        for q in [0.01, 0.1, 0.5, 0.9, 0.99] {
            let bound = Distribution::ParetoNormal.quantile(q) * MIXED_DEVIATION;
            let below = |z: &f64| paretos.iter().filter(|p| NORMAL_PART * z + PARETO_PART * **p <= bound).count();
            let share = normals.iter().map(below).sum::<usize>() as f64 / f64::from(SIDE * SIDE);
            assert!((share - q).abs() < 1e-3, "{q}: {share}");
        }
    }

    #[test]
    fn quantiles_rise_and_end() {
        for distribution in Distribution::ALL {
            let quantiles: Vec<f64> = (0..=10_000).map(|n| distribution.quantile(f64::from(n) / 10_000.0)).collect();
            assert!(quantiles.is_sorted(), "{distribution}");
            assert!(quantiles.iter().all(|x| x.is_finite()));
            assert_eq!(distribution.most(), quantiles[10_000]);
            assert!(distribution.most() < 120.0);
            for z in [-9.0, -2.0, 0.0, 0.5, 3.0, 9.0] {
                let (a, b) = (distribution.at_normal(z), distribution.quantile(normal::cumulative(z)));
                assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{distribution} at {z}: {a}, {b}");
            }
        }
    }

    #[test]
    fn names_parse_and_print_back() {
        for distribution in Distribution::ALL {
            assert_eq!(distribution.to_string().parse(), Ok(distribution));
        }
        let error = "gauss".parse::<Distribution>().unwrap_err().to_string();
        assert!(error.contains("'gauss'") && error.contains("normal"), "{error}");
    }
}
