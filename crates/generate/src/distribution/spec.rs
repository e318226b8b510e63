//! The parsed form of a distribution.

use std::fmt;

use super::Distribution;
use super::draw::Sampler;
use super::hotspot::Hotspot;
use super::latest::Latest;
use super::mixed::{Bounded, Offset};
use super::quantized::Quantized;
use super::zipf::Zipf;
use crate::java::{self, Exponential, Normal, Uniform, Weibull};

/// A distribution as a user writes it. Parse it from text; its `Display` is a text that parses to the same.
///
/// `min` is below `max` in all of them; a range of one value parses as [`Spec::Fixed`].
#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    /// `fixed(value)`.
    Fixed(i64),
    /// `uniform(min..max)`: each value as likely as the other.
    Uniform {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// `gaussian(min..max[,r])` or `gaussian(min..max,mean,deviation)`: normal, cut to the range; what falls outside is
    /// moved to the nearer edge.
    Gaussian {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// Centre, before cutting.
        mean: f64,
        /// Standard deviation, before cutting.
        deviation: f64,
    },
    /// `exp(min..max)`: exponential from `min` on, with a mean such that `max` is seldom passed.
    Exponential {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// `extreme(min..max,shape)`: Weibull from `min` on, with a scale such that `max` is seldom passed.
    Extreme {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// Shape of the Weibull distribution.
        shape: f64,
    },
    /// `qextreme(min..max,shape,bands)`: the same, cut in bands of equal probability; uniform inside a band.
    Quantized {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// Shape of the Weibull distribution.
        shape: f64,
        /// Count of bands.
        bands: i32,
    },
    /// `seq(min..max)`: one after the other, round and round.
    Sequence {
        /// First value.
        min: i64,
        /// Last value.
        max: i64,
    },
    /// `zipf(min..max[,exponent])`: `min` most often; the k-th value in proportion to k^−exponent.
    Zipf {
        /// Smallest and most frequent value.
        min: i64,
        /// Largest and rarest value.
        max: i64,
        /// How steep, above 0; YCSB's is 0.99.
        exponent: f64,
    },
    /// `szipf(min..max[,exponent])`: the same frequencies, scattered over the range.
    ScrambledZipf {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// How steep, above 0.
        exponent: f64,
    },
    /// `latest(min..max[,exponent])`: what was written last most often, then what was written before it, and so on.
    Latest {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// How steep, above 0.
        exponent: f64,
    },
    /// `hotspot(min..max,hot set,hot draws)`: the first values, a share of all, get a share of all draws.
    Hotspot {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// Share of the values that is hot, 0 to 1.
        hot_set: f64,
        /// Share of the draws that goes to them, 0 to 1.
        hot_draws: f64,
    },
    /// `~X`: mirrored, so that what X gives least often comes most often.
    Inverted(Box<Spec>),
}

impl Spec {
    /// Makes the distribution that draws, starting from `seed`.
    pub fn build(&self, seed: i64) -> Distribution {
        let sampler = match *self {
            Spec::Fixed(value) => Sampler::Fixed(value),
            Spec::Uniform { min, max } => Sampler::Uniform(Bounded {
                real: Uniform { lower: min as f64, upper: (max.saturating_add(1)) as f64 },
                min,
                max,
            }),
            Spec::Gaussian { min, max, mean, deviation } => {
                Sampler::Gaussian(Bounded { real: Normal { mean, deviation }, min, max })
            }
            Spec::Exponential { min, max } => Sampler::Exponential(Offset {
                real: Exponential { mean: exponential_mean(min, max) },
                min,
                delta: max - min,
            }),
            Spec::Extreme { min, max, shape } => Sampler::Extreme(extreme(min, max, shape)),
            Spec::Quantized { min, max, shape, bands } => {
                Sampler::Quantized(Quantized::new(extreme(min, max, shape), max, bands))
            }
            Spec::Sequence { min, max } => Sampler::Sequence { next: 0, start: min, total: max - min + 1 },
            Spec::Zipf { min, max, exponent } => {
                Sampler::Zipf { zipf: Zipf::new(max - min + 1, exponent), min, scattered: false }
            }
            Spec::ScrambledZipf { min, max, exponent } => {
                Sampler::Zipf { zipf: Zipf::new(max - min + 1, exponent), min, scattered: true }
            }
            Spec::Latest { min, max, exponent } => Sampler::Latest(Latest::new(min, max, exponent)),
            Spec::Hotspot { min, max, hot_set, hot_draws } => {
                Sampler::Hotspot(Hotspot::new(min, max, hot_set, hot_draws))
            }
            Spec::Inverted(ref inner) => return inner.build(seed).inverted(),
        };
        Distribution::new(sampler, seed)
    }

    /// The smallest value that can be drawn.
    pub fn min(&self) -> i64 {
        self.range().0
    }

    /// The largest value that can be drawn.
    pub fn max(&self) -> i64 {
        self.range().1
    }

    fn range(&self) -> (i64, i64) {
        match *self {
            Spec::Fixed(value) => (value, value),
            Spec::Uniform { min, max }
            | Spec::Gaussian { min, max, .. }
            | Spec::Exponential { min, max }
            | Spec::Extreme { min, max, .. }
            | Spec::Quantized { min, max, .. }
            | Spec::Sequence { min, max }
            | Spec::Zipf { min, max, .. }
            | Spec::ScrambledZipf { min, max, .. }
            | Spec::Latest { min, max, .. }
            | Spec::Hotspot { min, max, .. } => (min, max),
            Spec::Inverted(ref inner) => inner.range(),
        }
    }

    /// The line by which cassandra-stress shows a distribution in its block of settings.
    pub fn settings(&self) -> String {
        let six = |value| java::fixed(value, 6);
        match self {
            Spec::Fixed(value) => format!("Fixed:  key={value}"),
            Spec::Uniform { min, max } => format!("Uniform:  min={min},max={max}"),
            Spec::Gaussian { min, max, mean, deviation } => {
                format!("Gaussian:  min={min},max={max},mean={},stdev={}", six(*mean), six(*deviation))
            }
            Spec::Exponential { min, max } => {
                format!("Exponential:  min={min},max={max},mean={}", six(exponential_mean(*min, *max)))
            }
            Spec::Extreme { min, max, shape } | Spec::Quantized { min, max, shape, .. } => {
                let scale = extreme(*min, *max, *shape).real.scale;
                format!("Extreme:  min={min},max={max},shape={}, scale={}", six(*shape), six(scale))
            }
            Spec::Sequence { min, max } => format!("Sequence:  start={min},end={max}"),
            Spec::Zipf { min, max, exponent } => format!("Zipf:  min={min},max={max},exponent={}", six(*exponent)),
            Spec::ScrambledZipf { min, max, exponent } => {
                format!("Scrambled Zipf:  min={min},max={max},exponent={}", six(*exponent))
            }
            Spec::Latest { min, max, exponent } => format!("Latest:  min={min},max={max},exponent={}", six(*exponent)),
            Spec::Hotspot { min, max, hot_set, hot_draws } => {
                format!("Hotspot:  min={min},max={max},hotset={},hotops={}", six(*hot_set), six(*hot_draws))
            }
            Spec::Inverted(inner) => format!("Inverse: {}", inner.settings()),
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::Fixed(value) => write!(f, "fixed({value})"),
            Spec::Uniform { min, max } => write!(f, "uniform({min}..{max})"),
            Spec::Gaussian { min, max, mean, deviation } => write!(f, "gaussian({min}..{max},{mean},{deviation})"),
            Spec::Exponential { min, max } => write!(f, "exp({min}..{max})"),
            Spec::Extreme { min, max, shape } => write!(f, "extreme({min}..{max},{shape})"),
            Spec::Quantized { min, max, shape, bands } => write!(f, "qextreme({min}..{max},{shape},{bands})"),
            Spec::Sequence { min, max } => write!(f, "seq({min}..{max})"),
            Spec::Zipf { min, max, exponent } => write!(f, "zipf({min}..{max},{exponent})"),
            Spec::ScrambledZipf { min, max, exponent } => write!(f, "szipf({min}..{max},{exponent})"),
            Spec::Latest { min, max, exponent } => write!(f, "latest({min}..{max},{exponent})"),
            Spec::Hotspot { min, max, hot_set, hot_draws } => write!(f, "hotspot({min}..{max},{hot_set},{hot_draws})"),
            Spec::Inverted(inner) => write!(f, "~{inner}"),
        }
    }
}

/// The share of draws up to `max`. cassandra-stress wants `max` to be met about as often as any value, which would
/// be 1 − 1/(max − min), finds that too skewed, and takes the root.
fn share_inside(min: i64, max: i64) -> f64 {
    1.0 - (1.0 / (max - min) as f64).sqrt()
}

fn exponential_mean(min: i64, max: i64) -> f64 {
    (max - min) as f64 / Exponential { mean: 1.0 }.inverse(share_inside(min, max))
}

fn extreme(min: i64, max: i64, shape: f64) -> Offset<Weibull> {
    let scale = (max - min) as f64 / Weibull { shape, scale: 1.0 }.inverse(share_inside(min, max));
    Offset { real: Weibull { shape, scale }, min, delta: max - min }
}
