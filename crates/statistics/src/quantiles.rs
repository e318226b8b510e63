//! Quantiles and tails of distributions that have tables.

use std::{cell::RefCell, collections::HashMap};

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

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
/// side, which is next to nothing where the power is worth asking for, is left out. By the rule of midpoints over S,
/// good to three digits.
pub(crate) fn power_of_student(centre: f64, critical: f64, freedom: f64) -> f64 {
    const STEPS: usize = 1_000;
    let Ok(normal) = Normal::new(0.0, 1.0) else { return f64::NAN };
    let spread = 8.0 / (2.0 * freedom).sqrt();
    let (from, to) = ((1.0 - spread).max(0.0), 1.0 + spread);
    let (mut power, mut whole) = (0.0, 0.0);
    for step in 0..STEPS {
        let s = from + (to - from) * (step as f64 + 0.5) / STEPS as f64;
        // The density of S but for a factor; its mode is near 1.
        let density = ((freedom - 1.0) * s.ln() - freedom * (s * s - 1.0) / 2.0).exp();
        power += density * normal.cdf(centre - critical * s);
        whole += density;
    }
    power / whole
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
