//! Histograms of times: all of three significant digits, so that each can be added to any other.

use crate::Histogram;

/// Times that can be added to others. These are distinguished by three digits, too, and grow as they need to: it cannot
/// fail.
pub trait AddTo {
    /// Adds all of them.
    fn add_to(&self, sum: &mut Histogram);
}

impl AddTo for Histogram {
    fn add_to(&self, sum: &mut Histogram) {
        let _ = sum.add(self);
    }
}

/// No times yet.
pub(crate) fn empty() -> Histogram {
    // Three digits are within the 0 to 5 that the constructor takes.
    Histogram::new(3).unwrap_or_else(|_| unreachable!("three significant digits are always allowed"))
}
