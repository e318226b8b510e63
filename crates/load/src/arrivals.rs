//! How the starts of an open loop are spaced.

/// How the starts of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// As independent users would arrive: exponential gaps.
    Poisson,
}
