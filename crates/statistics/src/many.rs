//! Many questions at once: some answers are false by chance alone.

/// Which of many are called different.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Their indices, ascending.
    pub selected: Vec<usize>,
    /// Of each, the smallest false discovery rate at which it would be selected.
    pub adjusted: Vec<f64>,
    /// Intervals of those selected are quoted at 1 − this, so that they agree with the selection and as few of them miss the truth
    /// (Benjamini and Yekutieli, "False discovery rate–adjusted multiple confidence intervals for selected parameters", Journal
    /// of the American Statistical Association 100, 2005).
    pub interval_alpha: f64,
}

/// Selects so that at most `q` of the selected are false in the long run (Benjamini and Hochberg, "Controlling the false
/// discovery rate", Journal of the Royal Statistical Society B 57, 1995).
pub fn benjamini_hochberg(p: &[f64], q: f64) -> Selection {
    let count = p.len();
    let order = ascending(p);
    let passes = |rank: &usize| p[order[*rank]] <= (*rank + 1) as f64 * q / count as f64;
    let kept = (0..count).rev().find(passes).map_or(0, |rank| rank + 1);
    let mut adjusted = vec![0.0; count];
    let mut best = 1.0f64;
    for (rank, at) in order.iter().enumerate().rev() {
        best = best.min(p[*at] * count as f64 / (rank + 1) as f64);
        adjusted[*at] = best;
    }
    let mut selected = order[..kept].to_vec();
    selected.sort_unstable();
    Selection { selected, adjusted, interval_alpha: kept.max(1) as f64 * q / count.max(1) as f64 }
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    order
}
