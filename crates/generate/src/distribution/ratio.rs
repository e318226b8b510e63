//! Ratios: a distribution over a divisor.

use std::fmt;

use super::text::whole;
use super::{Distribution, Spec, SpecError};
use crate::java;

/// `DIST/divisor`: a share between 0 and 1.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioSpec {
    /// What is divided.
    pub spec: Spec,
    /// The divisor, at least 1.
    pub divisor: i64,
}

impl RatioSpec {
    /// Makes the ratio that draws, starting from `seed`.
    pub fn build(&self, seed: i64) -> Ratio {
        Ratio { distribution: self.spec.build(seed), divisor: self.divisor as f64 }
    }

    /// The line by which cassandra-stress shows a ratio in its block of settings.
    pub fn settings(&self) -> String {
        format!("Ratio: divisor={};delegate={}", java::fixed(self.divisor as f64, 6), self.spec.settings())
    }
}

impl std::str::FromStr for RatioSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let wrong = || SpecError::Ratio(text.to_owned());
        let (spec, divisor) = text.rsplit_once('/').ok_or_else(wrong)?;
        if !divisor.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong());
        }
        let divisor = whole(divisor).ok().filter(|divisor| *divisor > 0).ok_or_else(wrong)?;
        Ok(RatioSpec { spec: spec.parse()?, divisor })
    }
}

impl fmt::Display for RatioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.spec, self.divisor)
    }
}

/// Draws shares between 0 and 1.
#[derive(Debug, Clone)]
pub struct Ratio {
    distribution: Distribution,
    divisor: f64,
}

impl Ratio {
    /// The next share. What the distribution gives beyond 0 or the divisor counts as 0 or 1.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "the word of all that draw here; it never ends")]
    pub fn next(&mut self) -> f64 {
        (self.distribution.next_f64() / self.divisor).clamp(0.0, 1.0)
    }

    /// Starts over from this seed.
    pub fn set_seed(&mut self, seed: i64) {
        self.distribution.set_seed(seed);
    }

    /// The smallest share as cassandra-stress reckons it: the inverse at 0 over the divisor, at most 1 (and below 0 if negative).
    pub fn min(&self) -> f64 {
        (self.distribution.inverse_cumulative(0.0) as f64 / self.divisor).min(1.0)
    }

    /// The largest share, reckoned likewise from the inverse at 1.
    pub fn max(&self) -> f64 {
        (self.distribution.inverse_cumulative(1.0) as f64 / self.divisor).min(1.0)
    }
}
