//! Numbers as they are kept.

/// Rates to a thousandth: more digits are noise, and lines of a file.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Six digits, which come back from JSON as they were.
pub(crate) fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
