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
        let compute = || t(freedom).map_or(f64::NAN, |t| t.inverse_cdf(p));
        if asked.len() < MOST { *asked.entry((p.to_bits(), freedom)).or_insert_with(compute) } else { compute() }
    })
}

/// The chance that Student's t lies farther from 0 than `value`, on either side.
pub(crate) fn beyond_student(value: f64, freedom: usize) -> f64 {
    t(freedom).map_or(1.0, |t| (2.0 * t.sf(value.abs())).min(1.0))
}

/// Quantile `p` of χ² with so many degrees of freedom.
pub fn chi_squared(p: f64, freedom: usize) -> f64 {
    ChiSquared::new(freedom.max(1) as f64).map_or(f64::NAN, |distribution| distribution.inverse_cdf(p))
}

/// The chance that a standard normal value lies farther from 0 than `value`, on either side.
pub(crate) fn beyond_normal(value: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(1.0, |normal| (2.0 * normal.sf(value.abs())).min(1.0))
}

fn t(freedom: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).ok()
}
