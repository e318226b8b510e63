//! Shares near 0 or 1, such as errors: on the scale of their odds, from counts.

/// ln of the odds of being bad, with one half added to both counts, so that none and all have a place (Haldane, "The estimation
/// and significance of the logarithm of a ratio of frequencies", Annals of Human Genetics 20, 1956).
pub fn log_odds(bad: u64, total: u64) -> f64 {
    ((bad as f64 + 0.5) / (total.saturating_sub(bad) as f64 + 0.5)).ln()
}

/// The least standard error of a difference of [`log_odds`] over all blocks: that of counting, without any other noise.
/// `bad` are those of the cell, `bad_without` those of the trials without a fault, all of them.
pub fn log_odds_floor(bad: &[u64], bad_without: &[u64]) -> f64 {
    let part = |counts: &[u64]| 1.0 / (counts.iter().sum::<u64>() as f64 + 0.5);
    (part(bad) + part(bad_without)).sqrt()
}
