use std::{fmt, str::FromStr};

use crate::{UnitError, number, text_serde};

/// A part of a whole, 0 to 1, written in percent: `1%`, `0.05%`, `100%`.
///
/// The sign must be written: `0.5` could mean half or half a percent.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Share(f64);

impl Share {
    /// Nothing.
    pub const ZERO: Share = Share(0.0);
    /// All of it.
    pub const ALL: Share = Share(1.0);

    /// From a fraction; `None` outside 0 ..= 1.
    pub fn new(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then_some(Share(fraction))
    }

    /// As a fraction, 0 to 1.
    pub const fn fraction(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            text: text.to_owned(),
            expected: "a percentage from 0% to 100%",
            example: "1%, 0.05% or 100%",
        };
        let (value, unit) = number::split(text).ok_or_else(error)?;
        if unit != "%" {
            return Err(error());
        }
        Share::new(value / 100.0).ok_or_else(error)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", number::short(self.0 * 100.0, 6)))
    }
}

text_serde!(Share);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_parse_and_print_back() {
        for (text, fraction) in [("0%", 0.0), ("1%", 0.01), ("0.05%", 0.0005), ("100%", 1.0)] {
            let share: Share = text.parse().unwrap();
            assert!((share.fraction() - fraction).abs() < 1e-12, "{text}");
            assert_eq!(share.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_percentage_is_refused() {
        for text in ["0.5", "101%", "-1%", "%", "n2", "1ms"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
