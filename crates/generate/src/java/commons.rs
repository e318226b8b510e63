//! The distributions of commons-math 3.2 that cassandra-stress draws from, over [`Random`].
//!
//! A distribution holds its parameters only; the generator is passed in, so that one may be reseeded for each value.

use super::{Random, ln, pow};

/// The uniform distribution over the reals from `lower` to `upper`.
#[derive(Debug, Clone, Copy)]
pub struct Uniform {
    /// The smallest value.
    pub lower: f64,
    /// Above the smallest value.
    pub upper: f64,
}

impl Uniform {
    /// One draw.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> f64 {
        let u = random.next_f64();
        u * self.upper + (1.0 - u) * self.lower
    }

    /// The value below which a share `p` (0 to 1) of the draws lies.
    pub fn inverse(&self, p: f64) -> f64 {
        p * (self.upper - self.lower) + self.lower
    }
}

/// The normal distribution.
#[derive(Debug, Clone, Copy)]
pub struct Normal {
    /// Its centre.
    pub mean: f64,
    /// Its standard deviation, above 0.
    pub deviation: f64,
}

impl Normal {
    /// One draw.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> f64 {
        self.deviation * random.next_gaussian() + self.mean
    }

    /// The value below which a share `p` (0 to 1) of the draws lies.
    pub fn inverse(&self, p: f64) -> f64 {
        self.mean + self.deviation * std::f64::consts::SQRT_2 * inverse_erf(2.0 * p - 1.0)
    }
}

/// The exponential distribution.
#[derive(Debug, Clone, Copy)]
pub struct Exponential {
    /// Its mean, above 0.
    pub mean: f64,
}

/// Σ over k = 1 … n of (ln 2)^k / k!, for n = 1 … 16, summed in doubles; the last is 1.
const HALVES: [f64; 16] = halves();

const fn halves() -> [f64; 16] {
    let (mut sums, mut sum, mut term, mut n) = ([0.0; 16], 0.0, 1.0, 0);
    while n < 16 {
        term = term * std::f64::consts::LN_2 / (n + 1) as f64;
        sum += term;
        sums[n] = sum;
        n += 1;
    }
    sums
}

impl Exponential {
    /// One draw, by the algorithm SA of Ahrens and Dieter (1972), which needs uniform numbers and no logarithm: halving
    /// the uniform number counts whole ln 2s, and the rest is the least of a random count of further uniform numbers.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> f64 {
        let mut whole = 0.0;
        let mut u = random.next_f64();
        while u < 0.5 {
            whole += HALVES[0];
            u *= 2.0;
        }
        u += u - 1.0;
        if u <= HALVES[0] {
            return self.mean * (whole + u);
        }
        let mut least = random.next_f64();
        for sum in &HALVES[1..] {
            least = least.min(random.next_f64());
            if u <= *sum {
                break;
            }
        }
        self.mean * (whole + least * HALVES[0])
    }

    /// The value below which a share `p` (0 to 1) of the draws lies.
    pub fn inverse(&self, p: f64) -> f64 {
        if p == 1.0 { f64::INFINITY } else { -self.mean * ln(1.0 - p) }
    }
}

/// The Weibull distribution.
#[derive(Debug, Clone, Copy)]
pub struct Weibull {
    /// Its shape, above 0: below 1 a heavy tail, 1 an exponential distribution.
    pub shape: f64,
    /// Its scale, above 0.
    pub scale: f64,
}

impl Weibull {
    /// One draw.
    pub fn sample(&self, random: &mut Random) -> f64 {
        self.inverse(random.next_f64())
    }

    /// One draw cut to a whole number. The machine's own logarithm and power tell it unless it is next to a whole number.
    #[inline]
    pub fn sample_whole(&self, random: &mut Random) -> i64 {
        let p = random.next_f64();
        let near = self.scale * (-(1.0 - p).ln()).powf(1.0 / self.shape);
        let margin = near * 1e-12 + 1e-300;
        if near.is_finite() && (near - margin).floor() == (near + margin).floor() && p != 0.0 {
            return near as i64;
        }
        self.inverse(p) as i64
    }

    /// The value below which a share `p` (0 to 1) of the draws lies.
    pub fn inverse(&self, p: f64) -> f64 {
        if p == 0.0 {
            0.0
        } else if p == 1.0 {
            f64::INFINITY
        } else {
            self.scale * pow(-ln(1.0 - p), 1.0 / self.shape)
        }
    }
}

/// A choice among things by their weights: commons-math's `EnumeratedDistribution`, for the index of what is chosen.
#[derive(Debug, Clone)]
pub struct Weighted {
    shares: Vec<f64>,
}

/// Why things cannot be chosen by these weights.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// A weight is negative or not a number.
    #[error("cannot choose by weight {0}: a weight is a number of at least 0")]
    Weight(f64),
    /// There is no weight above zero.
    #[error("cannot choose among nothing: at least one weight must be above 0")]
    Nothing,
}

impl Weighted {
    /// A choice by these weights, which need not add up to anything.
    ///
    /// # Errors
    /// A weight is negative or not finite, or none is above 0.
    pub fn new(weights: &[f64]) -> Result<Self, WeightsError> {
        if let Some(bad) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
            return Err(WeightsError::Weight(*bad));
        }
        let sum: f64 = weights.iter().sum();
        if sum <= 0.0 {
            return Err(WeightsError::Nothing);
        }
        Ok(Weighted { shares: weights.iter().map(|weight| weight / sum).collect() })
    }

    /// One choice.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> usize {
        let u = random.next_f64();
        let mut sum = 0.0;
        for (i, share) in self.shares.iter().enumerate() {
            sum += share;
            if u < sum {
                return i;
            }
        }
        self.shares.len() - 1
    }
}

/// The inverse of the error function, by Giles's polynomials in double precision ("Approximating the erfinv function",
/// GPU Computing Gems 2, 2010; commons-math gives the coefficients in decimal), highest power first.
fn inverse_erf(x: f64) -> f64 {
    let w = -ln((1.0 - x) * (1.0 + x));
    let (at, polynomial): (f64, &[f64]) = if w < 6.25 {
        (w - 3.125, &CENTRE)
    } else if w < 16.0 {
        (w.sqrt() - 3.25, &SHOULDER)
    } else if w.is_finite() {
        (w.sqrt() - 5.0, &TAIL)
    } else {
        return f64::INFINITY * x;
    };
    polynomial.iter().skip(1).fold(polynomial[0], |sum, coefficient| coefficient + sum * at) * x
}

const CENTRE: [f64; 23] = [
    -3.64441206401782e-21,
    -1.6850591381820166e-19,
    1.28584807152564e-18,
    1.1157877678025181e-17,
    -1.333171662854621e-16,
    2.0972767875968562e-17,
    6.637638134358324e-15,
    -4.054566272975207e-14,
    -8.151934197605472e-14,
    2.6335093153082323e-12,
    -1.2975133253453532e-11,
    -5.415412054294628e-11,
    1.0512122733215323e-9,
    -4.112633980346984e-9,
    -2.9070369957882005e-8,
    4.2347877827932404e-7,
    -1.3654692000834679e-6,
    -1.3882523362786469e-5,
    1.8673420803405714e-4,
    -7.40702534166267e-4,
    -0.006033670871430149,
    0.24015818242558962,
    1.6536545626831027,
];

const SHOULDER: [f64; 19] = [
    2.2137376921775787e-9,
    9.075656193888539e-8,
    -2.7517406297064545e-7,
    1.8239629214389228e-8,
    1.5027403968909828e-6,
    -4.013867526981546e-6,
    2.9234449089955446e-6,
    1.2475304481671779e-5,
    -4.7318229009055734e-5,
    6.828485145957318e-5,
    2.4031110387097894e-5,
    -3.550375203628475e-4,
    9.532893797373805e-4,
    -0.0016882755560235047,
    0.002491442096107851,
    -0.003751208507569241,
    0.005370914553590064,
    1.0052589676941592,
    3.0838856104922208,
];

const TAIL: [f64; 17] = [
    -2.7109920616438573e-11,
    -2.555641816996525e-10,
    1.5076572693500548e-9,
    -3.789465440126737e-9,
    7.61570120807834e-9,
    -1.496002662714924e-8,
    2.914795345090108e-8,
    -6.771199775845234e-8,
    2.2900482228026655e-7,
    -9.9298272942317e-7,
    4.526062597223154e-6,
    -1.968177810553167e-5,
    7.599527703001776e-5,
    -2.1503011930044477e-4,
    -1.3871931833623122e-4,
    1.0103004648645344,
    4.849906401408584,
];
