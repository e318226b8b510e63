//! A distribution that draws.

use super::hotspot::Hotspot;
use super::latest::{Latest, Newest};
use super::mixed::{Bounded, Offset};
use super::quantized::Quantized;
use super::zipf::Zipf;
use crate::{
    java::{Exponential, Normal, Random, Uniform, Weibull},
    permute::permute,
};

/// Draws whole numbers (or reals) of one distribution. Made by [`super::Spec::build`].
///
/// It is a value of its own: a clone draws the same from there on, and threads that share none need no lock.
#[derive(Debug, Clone)]
pub struct Distribution {
    random: Random,
    sampler: Sampler,
    /// The sum of the smallest and the largest value, where the distribution is mirrored.
    mirror: Option<Mirror>,
}

#[derive(Debug, Clone, Copy)]
struct Mirror {
    low: i64,
    high: i64,
}

/// One variant per kind, so that a draw is a jump and no indirection.
#[derive(Debug, Clone)]
pub(super) enum Sampler {
    Fixed(i64),
    Uniform(Bounded<Uniform>),
    Gaussian(Bounded<Normal>),
    Exponential(Offset<Exponential>),
    Extreme(Offset<Weibull>),
    Quantized(Quantized),
    Sequence { next: i64, start: i64, total: i64 },
    Zipf { zipf: Zipf, min: i64, scattered: bool },
    Latest(Latest),
    Hotspot(Hotspot),
}

/// What scatters the ranks of `szipf`. The same in every run, so that all threads, runs and tools agree which values are hot.
const SCATTER: u64 = 0x5ca7_7e2e_d217_f000;

impl Distribution {
    pub(super) fn new(sampler: Sampler, seed: i64) -> Self {
        let mut made = Distribution { random: Random::new(0), sampler, mirror: None };
        made.set_seed(seed);
        made
    }

    /// Starts over from this seed. A sequence continues at `min + seed`, modulo its length (with the sign of `seed`, as
    /// cassandra-stress has it: a negative seed gives values below `min`).
    #[inline]
    pub fn set_seed(&mut self, seed: i64) {
        match &mut self.sampler {
            Sampler::Fixed(_) => return,
            Sampler::Sequence { next, .. } => {
                *next = seed;
                return;
            }
            Sampler::Quantized(quantized) => quantized.set_seed(seed),
            // The first draws of java.util.Random from neighbouring seeds are close; what need not be compatible avoids that.
            Sampler::Zipf { .. } | Sampler::Latest(_) | Sampler::Hotspot(_) => {
                self.random.set_seed(brownout_base::random::scramble(seed as u64) as i64);
                return;
            }
            _ => {}
        }
        self.random.set_seed(seed);
    }

    /// The next value.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "the word of all that draw here; it never ends")]
    pub fn next(&mut self) -> i64 {
        let random = &mut self.random;
        let value = match &mut self.sampler {
            Sampler::Fixed(value) => *value,
            Sampler::Uniform(uniform) => uniform.whole(random),
            Sampler::Gaussian(gaussian) => gaussian.whole(random),
            Sampler::Exponential(exponential) => exponential.whole(random),
            Sampler::Extreme(extreme) => extreme.whole(random),
            Sampler::Quantized(quantized) => quantized.whole(random),
            Sampler::Sequence { next, start, total } => {
                let at = *next;
                *next = at.wrapping_add(1);
                *start + at % *total
            }
            Sampler::Zipf { zipf, min, scattered } => {
                let rank = zipf.rank(random);
                *min + if *scattered { scatter(rank, zipf.items()) } else { rank }
            }
            Sampler::Latest(latest) => latest.next(random),
            Sampler::Hotspot(hotspot) => hotspot.next(random),
        };
        match self.mirror {
            None => value,
            Some(mirror) => mirror.high.wrapping_sub(value.wrapping_sub(mirror.low)),
        }
    }

    /// The next value with its fraction, where the distribution has one; otherwise the next whole value.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        let random = &mut self.random;
        let value = match &mut self.sampler {
            Sampler::Uniform(uniform) => uniform.fraction(random),
            Sampler::Gaussian(gaussian) => gaussian.fraction(random),
            Sampler::Exponential(exponential) => exponential.fraction(random),
            Sampler::Extreme(extreme) => extreme.fraction(random),
            _ => return self.next() as f64,
        };
        match self.mirror {
            None => value,
            Some(mirror) => mirror.high as f64 - (value - mirror.low as f64),
        }
    }

    /// The value that a share `p` (0 to 1) of the draws does not exceed; for a mirrored distribution, as in
    /// cassandra-stress, the mirror image of that value (so it falls as `p` grows).
    ///
    /// The values of `szipf` and `latest` are scattered or move; theirs is that of a uniform distribution, and of the
    /// moment, in which the last value of the range is the newest.
    pub fn inverse_cumulative(&self, p: f64) -> i64 {
        let value = match &self.sampler {
            Sampler::Fixed(value) => *value,
            Sampler::Uniform(uniform) => uniform.inverse(p),
            Sampler::Gaussian(gaussian) => gaussian.inverse(p),
            Sampler::Exponential(exponential) => exponential.inverse(p),
            Sampler::Extreme(extreme) => extreme.inverse(p),
            Sampler::Quantized(quantized) => quantized.inverse(p),
            Sampler::Sequence { start, total, .. } => (*start as f64 + (*total - 1) as f64 * p) as i64,
            Sampler::Zipf { zipf, min, scattered: false } => min + zipf.inverse(p),
            Sampler::Zipf { zipf, min, scattered: true } => {
                min + ((zipf.items() as f64 * p).ceil() as i64 - 1).clamp(0, zipf.items() - 1)
            }
            Sampler::Latest(latest) => latest.inverse(p),
            Sampler::Hotspot(hotspot) => hotspot.inverse(p),
        };
        match self.mirror {
            None => value,
            Some(mirror) => mirror.high.wrapping_sub(value.wrapping_sub(mirror.low)),
        }
    }

    /// The smallest value that can be drawn.
    ///
    /// cassandra-stress means `inverse_cumulative(0.0)` by this, which for a mirrored distribution is the *largest*.
    pub fn min(&self) -> i64 {
        self.range().0
    }

    /// The largest value that can be drawn (`inverse_cumulative(1.0)` in cassandra-stress, see [`Self::min`]).
    pub fn max(&self) -> i64 {
        self.range().1
    }

    fn range(&self) -> (i64, i64) {
        let (low, high) = match &self.sampler {
            Sampler::Fixed(value) => (*value, *value),
            Sampler::Uniform(Bounded { min, max, .. }) | Sampler::Gaussian(Bounded { min, max, .. }) => (*min, *max),
            Sampler::Exponential(Offset { min, delta, .. }) | Sampler::Extreme(Offset { min, delta, .. }) => {
                (*min, min + delta)
            }
            Sampler::Quantized(quantized) => quantized.range(),
            Sampler::Sequence { start, total, .. } => (*start, start + total - 1),
            Sampler::Zipf { zipf, min, .. } => (*min, min + zipf.items() - 1),
            Sampler::Latest(latest) => latest.range(),
            Sampler::Hotspot(hotspot) => hotspot.range(),
        };
        match self.mirror {
            None => (low, high),
            // The mirror's own ends may lie a value beside those drawn (qextreme).
            Some(mirror) => (mirror.high - (high - mirror.low), mirror.high - (low - mirror.low)),
        }
    }

    /// The mean, cut to a whole number: exact for `zipf`, `szipf` (taken as uniform), `latest` and `hotspot`; for the others the mean of 51
    /// quantiles, which is what cassandra-stress counts rows by.
    pub fn average(&self) -> i64 {
        let exact = match &self.sampler {
            Sampler::Zipf { zipf, min, scattered: false } => *min as f64 + zipf.mean(),
            Sampler::Zipf { zipf, min, scattered: true } => *min as f64 + (zipf.items() - 1) as f64 / 2.0,
            Sampler::Latest(latest) => latest.mean(),
            Sampler::Hotspot(hotspot) => hotspot.mean(),
            _ => return self.average_of_quantiles(),
        };
        match self.mirror {
            None => exact as i64,
            Some(mirror) => (mirror.high as f64 - (exact - mirror.low as f64)) as i64,
        }
    }

    /// The step is added to a number of 32 bits, so that it ends a little below 1 and an endless tail is left out.
    fn average_of_quantiles(&self) -> i64 {
        let (mut sum, mut count, mut p) = (0.0, 0, 0f32);
        while f64::from(p) <= 1.0 {
            sum += self.inverse_cumulative(f64::from(p)) as f64;
            count += 1;
            p = (f64::from(p) + 0.02) as f32;
        }
        (sum / f64::from(count)) as i64
    }

    /// Mirrored between its smallest and largest value; mirrored twice, it is as before.
    #[must_use]
    pub fn inverted(mut self) -> Self {
        self.mirror = match self.mirror {
            Some(_) => None,
            None => Some(Mirror { low: self.inverse_cumulative(0.0), high: self.inverse_cumulative(1.0) }),
        };
        self
    }

    /// Lets `latest` look at what is written meanwhile; of no effect on any other kind. Until then, the largest
    /// value counts as the newest.
    pub fn follow(&mut self, newest: &Newest) {
        if let Sampler::Latest(latest) = &mut self.sampler {
            latest.follow(newest);
        }
    }
}

/// Where the item of this rank lies among `items`: a permutation, so that each place belongs to one rank.
fn scatter(rank: i64, items: i64) -> i64 {
    permute(rank as u64, items as u64, SCATTER) as i64
}
