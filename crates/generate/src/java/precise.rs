//! Logarithm and power of about 100 bits, from which the tables of [`super::fastmath`] are made.
//!
//! Numbers are pairs of doubles whose sum is the value ("double-double": Dekker 1971; sums and products without error:
//! Knuth, Shewchuk).

use std::ops::{Add, Mul};

/// A value of about 106 bits: the sum of both, the second below half a unit in the last place of the first.
#[derive(Debug, Clone, Copy)]
struct Pair(f64, f64);

/// ln 2, to 107 bits.
const LN2: Pair = Pair(f64::from_bits(0x3fe6_2e42_fefa_39ef), f64::from_bits(0x3c7a_bc9e_3b39_803f));

impl Pair {
    /// The exact sum of two doubles.
    fn sum(a: f64, b: f64) -> Pair {
        let sum = a + b;
        let part = sum - a;
        Pair(sum, (a - (sum - part)) + (b - part))
    }

    /// The exact product of two doubles.
    fn product(a: f64, b: f64) -> Pair {
        let product = a * b;
        Pair(product, a.mul_add(b, -product))
    }

    fn over(self, divisor: Pair) -> Pair {
        let first = self.0 / divisor.0;
        let rest = self + divisor * Pair(-first, 0.0);
        let second = rest.0 / divisor.0;
        let rest = rest + divisor * Pair(-second, 0.0);
        Pair::sum(first, second) + Pair(rest.0 / divisor.0, 0.0)
    }

    fn value(self) -> f64 {
        self.0 + self.1
    }
}

impl Add for Pair {
    type Output = Pair;
    fn add(self, other: Pair) -> Pair {
        let high = Pair::sum(self.0, other.0);
        let low = Pair::sum(self.1, other.1);
        let joined = Pair::sum(high.0, high.1 + low.0);
        Pair::sum(joined.0, joined.1 + low.1)
    }
}

impl Mul for Pair {
    type Output = Pair;
    fn mul(self, other: Pair) -> Pair {
        let high = Pair::product(self.0, other.0);
        Pair::sum(high.0, high.1 + (self.0 * other.1 + self.1 * other.0))
    }
}

/// The natural logarithm. −∞ of zero, NaN of what is negative.
pub(super) fn ln(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 || x.is_infinite() {
        return if x == 0.0 { f64::NEG_INFINITY } else { x };
    }
    logarithm(x).value()
}

/// `base` to the power of `exponent`, for a base of at least zero.
pub(super) fn pow(base: f64, exponent: f64) -> f64 {
    if exponent == 0.0 || base == 1.0 {
        return 1.0;
    }
    if base == 0.0 || base.is_infinite() || !exponent.is_finite() || base.is_nan() || base < 0.0 {
        return base.powf(exponent);
    }
    let power = logarithm(base) * Pair(exponent, 0.0);
    if power.0.abs() > 700.0 {
        // Near what a double can hold; nobody asks a distribution for this, so the machine's own will do.
        return base.powf(exponent);
    }
    exponential(power).value()
}

/// The natural logarithm of a finite number above zero, as a sum of two.
pub(super) fn ln_pair(x: f64) -> (f64, f64) {
    let Pair(value, rest) = logarithm(x);
    (value, rest)
}

/// e^x for x between −700 and 700, as a sum of two.
pub(super) fn exp_pair(x: f64) -> (f64, f64) {
    let Pair(value, rest) = exponential(Pair(x, 0.0));
    (value, rest)
}

/// Of a finite number above zero.
fn logarithm(x: f64) -> Pair {
    let (x, shift) = if x < f64::MIN_POSITIVE { (x * 2f64.powi(54), -54) } else { (x, 0) };
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023 + shift;
    let mut mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh s with s = (m − 1)/(m + 1), |s| < 0.172; the series is Σ s^(2k+1)/(2k+1).
    let s = Pair(mantissa - 1.0, 0.0).over(Pair::sum(mantissa, 1.0));
    let square = s * s;
    // The far terms weigh so little that plain doubles hold them: s^12 < 2⁻³⁰.
    let mut far = 0.0;
    for k in (6..22).rev() {
        far = far * square.0 + 1.0 / f64::from(2 * k + 1);
    }
    let mut series = Pair(far, 0.0);
    for k in (0..6).rev() {
        series = series * square + Pair(1.0, 0.0).over(Pair(f64::from(2 * k + 1), 0.0));
    }
    let ln = series * s * Pair(2.0, 0.0);
    if exponent == 0 { ln } else { LN2 * Pair(f64::from(exponent), 0.0) + ln }
}

/// Of a number between −700 and 700.
fn exponential(x: Pair) -> Pair {
    const HALVINGS: i32 = 6;
    let turns = (x.0 / LN2.0).round();
    let rest = x + LN2 * Pair(-turns, 0.0);
    let scale = 2f64.powi(-HALVINGS);
    let small = Pair(rest.0 * scale, rest.1 * scale);
    // e^small − 1 by its series, |small| < 0.0055; kept without the 1, so that doubling loses nothing.
    let mut less = Pair(0.0, 0.0);
    for k in (1..16).rev() {
        less = small.over(Pair(f64::from(k), 0.0)) * (Pair(1.0, 0.0) + less);
    }
    for _ in 0..HALVINGS {
        less = less * Pair(2.0, 0.0) + less * less;
    }
    let whole = Pair(1.0, 0.0) + less;
    let turn = 2f64.powi(turns as i32);
    Pair(whole.0 * turn, whole.1 * turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_the_nearest_doubles() {
        // By a computer algebra system, rounded to the nearest double.
        assert_eq!(ln(2.0).to_bits(), 0x3fe6_2e42_fefa_39ef);
        assert_eq!(ln(10.0).to_bits(), 0x4002_6bb1_bbb5_5516);
        assert_eq!(ln(0.5), -ln(2.0));
        assert_eq!((ln(1.0), ln(0.0), ln(f64::INFINITY)), (0.0, f64::NEG_INFINITY, f64::INFINITY));
        assert!(ln(-1.0).is_nan());
    }

    #[test]
    fn powers_of_whole_numbers_are_exact() {
        for (base, exponent, power) in
            [(3.0, 4.0, 81.0), (2.0, -3.0, 0.125), (7.0, 12.0, 13_841_287_201.0), (0.25, 0.5, 0.5)]
        {
            assert_eq!(pow(base, exponent), power, "{base}^{exponent}");
        }
        assert_eq!((pow(0.0, 2.0), pow(0.0, -1.0), pow(5.0, 0.0)), (0.0, f64::INFINITY, 1.0));
    }

    #[test]
    fn a_power_undoes_a_root() {
        for base in [1.5, 2.75, 1e-9, 12345.678] {
            for n in [2.0, 3.0, 7.0] {
                let back = pow(pow(base, 1.0 / n), n);
                assert!((back / base - 1.0).abs() < 1e-14, "{base} {n} {back}");
            }
        }
    }
}
