//! Real distributions cut to whole numbers of a range.

use crate::java::{Exponential, Normal, Random, Uniform, Weibull};

/// A distribution over the reals.
pub(super) trait Real {
    /// One draw.
    fn sample(&self, random: &mut Random) -> f64;
    /// The value below which a share `p` of the draws lies.
    fn inverse(&self, p: f64) -> f64;
    /// One draw, its fraction cut off.
    fn sample_whole(&self, random: &mut Random) -> i64 {
        self.sample(random) as i64
    }
}

macro_rules! real {
    ($($kind:ty)*) => {$(
        impl Real for $kind {
            #[inline]
            fn sample(&self, random: &mut Random) -> f64 {
                <$kind>::sample(self, random)
            }
            fn inverse(&self, p: f64) -> f64 {
                <$kind>::inverse(self, p)
            }
        }
    )*};
}
real!(Uniform Normal Exponential);

impl Real for Weibull {
    fn sample(&self, random: &mut Random) -> f64 {
        Weibull::sample(self, random)
    }
    fn inverse(&self, p: f64) -> f64 {
        Weibull::inverse(self, p)
    }
    #[inline]
    fn sample_whole(&self, random: &mut Random) -> i64 {
        Weibull::sample_whole(self, random)
    }
}

/// Values of the real distribution itself, those outside moved to the edges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounded<R> {
    pub real: R,
    pub min: i64,
    pub max: i64,
}

impl<R: Real> Bounded<R> {
    #[inline]
    pub fn whole(&self, random: &mut Random) -> i64 {
        self.real.sample_whole(random).clamp(self.min, self.max)
    }

    #[inline]
    pub fn fraction(&self, random: &mut Random) -> f64 {
        self.real.sample(random).clamp(self.min as f64, self.max as f64)
    }

    pub fn inverse(&self, p: f64) -> i64 {
        (self.real.inverse(p) as i64).clamp(self.min, self.max)
    }
}

/// Values of the real distribution counted from `min`, at most `delta` further.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offset<R> {
    pub real: R,
    pub min: i64,
    pub delta: i64,
}

impl<R: Real> Offset<R> {
    #[inline]
    pub fn whole(&self, random: &mut Random) -> i64 {
        self.min + self.real.sample_whole(random).clamp(0, self.delta)
    }

    #[inline]
    pub fn fraction(&self, random: &mut Random) -> f64 {
        self.min as f64 + self.real.sample(random).clamp(0.0, self.delta as f64)
    }

    pub fn inverse(&self, p: f64) -> i64 {
        self.min + (self.real.inverse(p) as i64).clamp(0, self.delta)
    }
}
