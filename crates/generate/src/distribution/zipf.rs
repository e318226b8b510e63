//! Zipf's distribution: the k-th of n items in proportion to k^−s.

use crate::java::Random;

/// Draws ranks. Exact for any count of items and any exponent above 0, with constant memory and set-up: rejection-inversion
/// (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", 1996).
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    items: i64,
    exponent: f64,
    /// The integral of the hat at its left end, and at its right end.
    left: f64,
    right: f64,
    /// Below this distance from the rank, no comparison is needed.
    squeeze: f64,
}

/// Up to here, sums are added term by term; beyond, by the Euler–Maclaurin formula, which is then good to the last digits.
const TERMS: i64 = 256;

impl Zipf {
    /// Ranks of `items` (at least 1) items by `exponent`, above 0.
    pub fn new(items: i64, exponent: f64) -> Self {
        let items = items.max(1);
        let left = integral(1.5, exponent) - 1.0;
        let right = integral(items as f64 + 0.5, exponent);
        let squeeze = 2.0 - inverse_integral(integral(2.5, exponent) - height(2.0, exponent), exponent);
        Zipf { items, exponent, left, right, squeeze }
    }

    /// How many items there are.
    pub fn items(&self) -> i64 {
        self.items
    }

    /// A rank, from 0 (the most frequent) to below the count of items.
    #[inline]
    pub fn rank(&self, random: &mut Random) -> i64 {
        loop {
            let u = self.right + random.next_f64() * (self.left - self.right);
            let x = inverse_integral(u, self.exponent);
            let k = ((x + 0.5) as i64).clamp(1, self.items);
            let at = k as f64;
            if at - x <= self.squeeze || u >= integral(at + 0.5, self.exponent) - height(at, self.exponent) {
                return k - 1;
            }
        }
    }

    /// The share of draws that rank `rank` or a smaller one gets.
    pub fn cumulative(&self, rank: i64) -> f64 {
        if rank < 0 {
            return 0.0;
        }
        sum((rank + 1).min(self.items), self.exponent) / sum(self.items, self.exponent)
    }

    /// The smallest rank that, with those before it, gets at least a share `p` of the draws.
    pub fn inverse(&self, p: f64) -> i64 {
        let wanted = p * sum(self.items, self.exponent);
        let (mut low, mut high) = (1, self.items);
        while low < high {
            let middle = low + (high - low) / 2;
            if sum(middle, self.exponent) >= wanted {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low - 1
    }

    /// The mean rank.
    pub fn mean(&self) -> f64 {
        sum(self.items, self.exponent - 1.0) / sum(self.items, self.exponent) - 1.0
    }
}

/// x^−s.
fn height(x: f64, exponent: f64) -> f64 {
    libm::exp(-exponent * libm::log(x))
}

/// The integral of x^−s from 1 to x: (x^(1−s) − 1)/(1 − s), which is ln x for s = 1.
fn integral(x: f64, exponent: f64) -> f64 {
    let ln = libm::log(x);
    let t = (1.0 - exponent) * ln;
    if t.abs() > 1e-8 { libm::expm1(t) / t * ln } else { (1.0 + t / 2.0) * ln }
}

/// Where the integral reaches `area`.
fn inverse_integral(area: f64, exponent: f64) -> f64 {
    let t = (area * (1.0 - exponent)).max(-1.0);
    let ln = if t.abs() > 1e-8 { libm::log1p(t) / t * area } else { (1.0 - t / 2.0) * area };
    libm::exp(ln)
}

/// Σ i^−s for i from 1 to `n`. The exponent may be below 0.
fn sum(n: i64, exponent: f64) -> f64 {
    let terms = n.min(TERMS);
    // The smallest terms first.
    let head: f64 = (1..=terms).rev().map(|i| height(i as f64, exponent)).sum();
    if n <= TERMS {
        return head;
    }
    let (a, b, s) = (TERMS as f64, n as f64, exponent);
    let slope = |x: f64| -s * height(x, s + 1.0);
    let third = |x: f64| -s * (s + 1.0) * (s + 2.0) * height(x, s + 3.0);
    head + (integral(b, s) - integral(a, s)) + (height(b, s) - height(a, s)) / 2.0 + (slope(b) - slope(a)) / 12.0
        - (third(b) - third(a)) / 720.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's statistic of so many draws against the exact shares; its mean is the count of items less one.
    fn misfit(items: i64, exponent: f64, draws: usize) -> f64 {
        let zipf = Zipf::new(items, exponent);
        let mut random = Random::new(1);
        let mut counts = vec![0u32; items as usize];
        for _ in 0..draws {
            counts[zipf.rank(&mut random) as usize] += 1;
        }
        let all: f64 = (1..=items).map(|i| (i as f64).powf(-exponent)).sum();
        let shares = (1..=items).map(|i| (i as f64).powf(-exponent) / all);
        shares
            .zip(&counts)
            .map(|(share, count)| (f64::from(*count) - share * draws as f64).powi(2) / (share * draws as f64))
            .sum()
    }

    #[test]
    fn each_rank_comes_as_often_as_its_power_says() {
        for (items, exponent) in [(1, 0.99), (2, 1.0), (10, 0.99), (10, 1.0), (50, 0.2), (50, 2.5), (100, 1.01)] {
            let (misfit, freedom) = (misfit(items, exponent, 200_000), (items - 1) as f64);
            // Five standard deviations of the chi-square distribution.
            assert!(misfit < freedom + 5.0 * (2.0 * freedom).sqrt() + 1e-9, "{items} {exponent}: {misfit}");
        }
    }

    #[test]
    fn sums_of_powers_agree_with_their_closed_forms() {
        // ζ(2) = π²/6 less the tail; the harmonic number by Euler's constant; Σ i by Gauss.
        let n = 1_000_000i64;
        let tail = 1.0 / n as f64 - 0.5 / (n as f64).powi(2);
        assert!((sum(n, 2.0) - (std::f64::consts::PI.powi(2) / 6.0 - tail)).abs() < 1e-13);
        assert!((sum(n, 1.0) - ((n as f64).ln() + 0.577_215_664_901_532_9 + 0.5 / n as f64)).abs() < 1e-10);
        assert!((sum(n, -1.0) / (n as f64 * (n + 1) as f64 / 2.0) - 1.0).abs() < 1e-13);
    }

    #[test]
    fn long_sums_continue_short_ones() {
        for exponent in [0.3, 0.99, 1.0, 1.7, 4.0] {
            let direct: f64 = (1..=5000).rev().map(|i| f64::from(i).powf(-exponent)).sum();
            assert!((sum(5000, exponent) / direct - 1.0).abs() < 1e-13, "{exponent}");
        }
    }

    #[test]
    fn the_mean_of_a_zipf_is_its_closed_form() {
        // Two items at s = 1: shares 2/3 and 1/3, so the mean rank is 1/3.
        assert!((Zipf::new(2, 1.0).mean() - 1.0 / 3.0).abs() < 1e-15);
        let zipf = Zipf::new(1000, 0.99);
        let mut random = Random::new(7);
        let draws = 400_000;
        let mean = (0..draws).map(|_| zipf.rank(&mut random) as f64).sum::<f64>() / f64::from(draws);
        assert!((mean / zipf.mean() - 1.0).abs() < 0.01, "{mean} {}", zipf.mean());
    }

    #[test]
    fn the_inverse_is_the_first_rank_that_reaches_the_share() {
        for (items, exponent) in [(10, 0.99), (100_000_000_000, 0.99), (5_000, 1.4)] {
            let zipf = Zipf::new(items, exponent);
            for p in [0.01, 0.2, 0.5, 0.9, 0.999] {
                let rank = zipf.inverse(p);
                assert!(
                    zipf.cumulative(rank) >= p * (1.0 - 1e-12) && zipf.cumulative(rank - 1) <= p * (1.0 + 1e-12),
                    "{items} {p} {rank}"
                );
            }
            assert_eq!((zipf.inverse(0.0), zipf.inverse(1.0)), (0, items - 1));
        }
    }
}
