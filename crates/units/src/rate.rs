use std::{fmt, str::FromStr};

use crate::{UnitError, number, text_serde};

/// Events per second, above zero: `400/s`, `2_000/s`, `0.5/s`, `90/min`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// From events per second; `None` unless finite and above zero.
    pub fn per_second(value: f64) -> Option<Self> {
        (value.is_finite() && value > 0.0).then_some(Rate(value))
    }

    /// In events per second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error =
            || UnitError { text: text.to_owned(), expected: "a rate above zero", example: "400/s, 2_000/s or 90/min" };
        let (value, unit) = number::split(text).ok_or_else(error)?;
        let per_second = match unit {
            "/s" => value,
            "k/s" => value * 1e3,
            "/min" | "/m" => value / 60.0,
            _ => return Err(error()),
        };
        Rate::per_second(per_second).ok_or_else(error)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/s", number::short(self.0, 6)))
    }
}

text_serde!(Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_parse_per_second_and_per_minute() {
        for (text, rate) in [("400/s", 400.0), ("2_000/s", 2000.0), ("2k/s", 2000.0), ("90/min", 1.5)] {
            assert_eq!(text.parse::<Rate>().map(Rate::get), Ok(rate), "{text}");
        }
    }

    #[test]
    fn a_rate_is_above_zero_and_has_its_unit() {
        for text in ["0/s", "400", "-1/s", "fast", "1%"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
