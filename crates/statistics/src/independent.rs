//! Two independent samples, where nothing ties a value of one to a value of the other: runs made at different times.
//!
//! The unit is whatever was drawn anew: of separate runs the run, since trials of one have in common what the run had.

use crate::{
    ALPHA, POWER,
    order::{deviation, mean},
    quantiles::{beyond_student_t, centre_for, student_t},
};

/// By how much the values of one sample are larger than those of the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Mean of the second less mean of the first, on the working scale.
    pub effect: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of that.
    pub freedom: f64,
    /// The two-sided p-value: the probability of a difference at least this large if there were none.
    pub p: f64,
}

impl Difference {
    /// Its 1 − `alpha` interval.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = student_t(1.0 - alpha / 2.0, self.freedom) * self.error;
        (self.effect - half, self.effect + half)
    }

    /// No difference is larger than this: the farther end of the 90 % interval, both ends at 5 % (Schuirmann 1987; see
    /// [`crate::Comparison::within`]).
    pub fn no_larger_than(&self) -> f64 {
        let (low, high) = self.interval(2.0 * ALPHA);
        low.abs().max(high.abs())
    }

    /// The smallest difference that four of five such pairs of samples would have shown, at a two-sided error of
    /// `alpha`: by the non-central t distribution.
    pub fn smallest_seen(&self, alpha: f64) -> f64 {
        let critical = student_t(1.0 - alpha / 2.0, self.freedom);
        centre_for(POWER, critical, self.freedom) * self.error
    }
}

/// The difference of `b` from `a`: Welch ("The generalization of 'Student's' problem when several different population
/// variances are involved", Biometrika 34, 1947), with the degrees of freedom of Satterthwaite ("An approximate
/// distribution of estimates of variance components", Biometrics Bulletin 2, 1946). Two values tell too little of how
/// their side scatters: where the other side has more, and two that scatter five times as much lie close together by
/// chance, that calls equal things different in one of ten. There the freedom is that of the two (Scheffé, "Practical
/// solutions of the Behrens-Fisher problem", Journal of the American Statistical Association 65, 1970).
///
/// `floor` is the least standard error that counts. None of fewer than two values on a side, or of one that is no number.
pub fn difference(a: &[f64], b: &[f64], floor: f64) -> Option<Difference> {
    if a.len().min(b.len()) < 2 || !a.iter().chain(b).all(|one| one.is_finite()) {
        return None;
    }
    let of_mean = |values: &[f64]| deviation(values).powi(2) / values.len() as f64;
    let (of_a, of_b) = (of_mean(a), of_mean(b));
    let of_both = of_a + of_b;
    let rest = |variance: f64, values: &[f64]| variance.powi(2) / (values.len() - 1) as f64;
    let freedom = if a.len() != b.len() && a.len().min(b.len()) == 2 {
        1.0
    } else if of_both > 0.0 {
        of_both.powi(2) / (rest(of_a, a) + rest(of_b, b))
    } else {
        (a.len() + b.len() - 2) as f64
    };
    let (effect, error) = (mean(b) - mean(a), of_both.sqrt().max(floor));
    Some(Difference { effect, error, freedom, p: beyond_student_t(effect / error, freedom) })
}
