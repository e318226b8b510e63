use std::{fmt, str::FromStr};

use crate::{UnitError, text_serde};

/// A whole number that people group: `3`, `100_000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let digits = text.trim();
        let grouped = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.ends_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == '_');
        grouped.then(|| digits.replace('_', "").parse().ok()).flatten().map(Count).ok_or_else(|| UnitError {
            text: text.to_owned(),
            expected: "a whole number",
            example: "3 or 100_000",
        })
    }
}

impl fmt::Display for Count {
    /// Grouped by threes with `_`, which also parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                grouped.push('_');
            }
            grouped.push(digit);
        }
        f.pad(&grouped)
    }
}

text_serde!(Count);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_parse_and_print_grouped() {
        for (text, value) in [("0", 0), ("3", 3), ("100_000", 100_000), ("1_234_567", 1_234_567)] {
            let count: Count = text.parse().unwrap();
            assert_eq!(count.0, value);
            assert_eq!(count.to_string(), text);
        }
        for text in ["", "_1", "1_", "1.5", "-1", "+1", "1k", "99999999999999999999"] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }
}
