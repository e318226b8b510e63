//! Quantiles and tails of distributions that have tables.

use std::{cell::RefCell, collections::HashMap, f64::consts::LN_2};

use statrs::{
    distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT},
    function::gamma::ln_gamma,
};

/// Quantile `p` of Student's t with so many degrees of freedom.
pub fn student(p: f64, freedom: usize) -> f64 {
    /// More are not remembered.
    const MOST: usize = 1_000;
    thread_local! {
        /// What was asked for: few quantiles, again and again, and each takes as long as all else that is done with it.
        static ASKED: RefCell<HashMap<(u64, usize), f64>> = RefCell::default();
    }
    ASKED.with_borrow_mut(|asked| {
        let compute = || t(freedom as f64).map_or(f64::NAN, |t| t.inverse_cdf(p));
        if asked.len() < MOST { *asked.entry((p.to_bits(), freedom)).or_insert_with(compute) } else { compute() }
    })
}

/// The chance that Student's t lies farther from 0 than `value`, on either side.
pub(crate) fn beyond_student(value: f64, freedom: usize) -> f64 {
    beyond_student_t(value, freedom as f64)
}

/// As [`student`], with degrees of freedom that are no whole number.
pub(crate) fn student_t(p: f64, freedom: f64) -> f64 {
    t(freedom).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

/// As [`beyond_student`], with degrees of freedom that are no whole number.
pub(crate) fn beyond_student_t(value: f64, freedom: f64) -> f64 {
    t(freedom).map_or(1.0, |t| (2.0 * t.sf(value.abs())).min(1.0))
}

/// The chance that the non-central t distribution lies above `critical`: (Z + `centre`) ÷ S > critical, with S² = χ² ÷
/// `freedom` (Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions" 2, 1995, chapter 31). The other
/// side, which is next to nothing where the power is worth asking for, is left out. Where S is so small that Z hardly matters
/// the chance is that of χ²; above it Simpson's rule over √S, good to four digits.
pub(crate) fn power_of_student(centre: f64, critical: f64, freedom: f64) -> f64 {
    /// Even.
    const STEPS: usize = 64;
    /// Deviations of Z, and of S, beyond which there is nothing.
    const FAR: f64 = 8.0;
    let (Ok(normal), Ok(squared)) = (Normal::new(0.0, 1.0), ChiSquared::new(freedom)) else { return f64::NAN };
    let certain = ((centre - FAR) / critical).max(0.0);
    let spread = FAR / (2.0 * freedom).sqrt();
    let (from, to) = (certain.max(1.0 - spread), ((centre + FAR) / critical).min(1.0 + spread));
    let below = squared.cdf(freedom * certain * certain);
    if from >= to {
        return below;
    }
    // The density of √S, which is smooth at 0 for all degrees of freedom.
    let half = freedom / 2.0;
    let factor = 2.0 * LN_2 + half * half.ln() - ln_gamma(half);
    let density = |root: f64| (factor + (2.0 * freedom - 1.0) * root.ln() - half * root.powi(4)).exp();
    let (from, to) = (from.sqrt(), to.sqrt());
    let width = (to - from) / STEPS as f64;
    let weighted = |step: usize| {
        let root = from + width * step as f64;
        let weight = if step == 0 || step == STEPS { 1.0 } else { 2.0 + 2.0 * (step % 2) as f64 };
        weight * density(root) * normal.cdf(centre - critical * root * root)
    };
    below + (0..=STEPS).map(weighted).sum::<f64>() * width / 3.0
}

/// The centre of the non-central t distribution that lies above `critical` with the chance `power`.
pub(crate) fn centre_for(power: f64, critical: f64, freedom: f64) -> f64 {
    const MOST: f64 = 1e9;
    let mut beyond = 1.0;
    while power_of_student(beyond, critical, freedom) < power && beyond < MOST {
        beyond *= 2.0;
    }
    let mut within = 0.0;
    for _ in 0..40 {
        let middle = f64::midpoint(within, beyond);
        if power_of_student(middle, critical, freedom) < power { within = middle } else { beyond = middle }
    }
    beyond
}

/// Quantile `p` of χ² with so many degrees of freedom.
pub fn chi_squared(p: f64, freedom: usize) -> f64 {
    ChiSquared::new(freedom.max(1) as f64).map_or(f64::NAN, |distribution| distribution.inverse_cdf(p))
}

/// The chance that a standard normal value lies farther from 0 than `value`, on either side.
pub(crate) fn beyond_normal(value: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(1.0, |normal| (2.0 * normal.sf(value.abs())).min(1.0))
}

fn t(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_at_a_centre_of_zero_is_the_tail_of_student() {
        for freedom in [1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 9.0, 20.0, 50.0, 100.0, 1000.0] {
            for tail in [0.1, 0.05, 0.025, 0.005, 0.0005] {
                let power = power_of_student(0.0, student_t(1.0 - tail, freedom), freedom);
                assert!((power - tail).abs() < 5e-5, "{power} for {tail} with {freedom} degrees of freedom");
            }
        }
    }

    /// Beside SciPy's `scipy.stats.nct.sf(critical, freedom, centre)`.
    #[test]
    fn power_is_that_of_the_non_central_t_distribution() {
        for (critical, freedom, centre, expected) in [
            (12.7062, 1.0, 1.0, 0.067763),
            (12.7062, 1.0, 20.0, 0.883395),
            (636.6192, 1.0, 400.0, 0.470205),
            (4.3027, 2.0, 3.0, 0.387383),
            (4.3027, 2.5, 6.0, 0.842963),
            (2.7764, 4.0, 3.0, 0.619270),
            (2.2622, 9.0, 1.0, 0.143848),
            (2.2622, 9.0, 3.2, 0.812149),
            (1.9842, 99.0, 2.8, 0.791832),
            (3.3905, 99.0, 2.0, 0.089520),
        ] {
            let power = power_of_student(centre, critical, freedom);
            assert!((power - expected).abs() < 5e-5, "{power} for {critical}, {freedom}, {centre}: {expected}");
        }
    }
}
