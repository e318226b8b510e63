//! Severities and rates as they are written, and as numbers.

use brownout_units::{BitRate, Bytes, Delay, Rate, Share};

/// What is measured in one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// `31.6ms`.
    Time,
    /// `3.16%`.
    Share,
    /// `400/s`.
    Rate,
    /// `10mbit`.
    BitRate,
    /// `64KiB`.
    Bytes,
}

impl Amount {
    const ALL: [Amount; 5] = [Amount::Time, Amount::Share, Amount::Rate, Amount::BitRate, Amount::Bytes];

    /// What this is an amount of; none: it is no number with a unit.
    pub fn of(text: &str) -> Option<Amount> {
        Amount::ALL.into_iter().find(|kind| kind.read(text).is_some())
    }

    /// The number; none: this is no such amount.
    pub fn read(self, text: &str) -> Option<f64> {
        match self {
            Amount::Time => text.parse::<Delay>().ok().map(|delay| delay.ns() as f64),
            Amount::Share => text.parse::<Share>().ok().map(Share::fraction),
            Amount::Rate => text.parse::<Rate>().ok().map(Rate::get),
            Amount::BitRate => text.parse::<BitRate>().ok().map(|rate| rate.bits_per_second() as f64),
            Amount::Bytes => text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64),
        }
    }

    /// As a person would write it, with three significant digits; none: there is no such amount.
    pub fn write(self, value: f64) -> Option<String> {
        if !(value.is_finite() && value > 0.0) {
            return None;
        }
        let scale = 10f64.powi(2 - value.log10().floor() as i32);
        let value = (value * scale).round() / scale;
        Some(match self {
            Amount::Time => Delay::from_ns(value.round() as u64).to_string(),
            Amount::Share => Share::new(value)?.to_string(),
            Amount::Rate => Rate::per_second(value)?.to_string(),
            Amount::BitRate => BitRate::new(value.round() as u64)?.to_string(),
            Amount::Bytes => Bytes(value.round() as u64).to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same_to_three_digits() {
        for (text, kind) in [
            ("31.6ms", Amount::Time),
            ("178us", Amount::Time),
            ("3.16%", Amount::Share),
            ("0.178%", Amount::Share),
            ("812/s", Amount::Rate),
            ("31.6mbit", Amount::BitRate),
            ("2050B", Amount::Bytes),
        ] {
            assert_eq!(Amount::of(text), Some(kind), "{text}");
            let value = kind.read(text).unwrap_or_default();
            assert_eq!(kind.write(value * 1.0004).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_number_without_a_unit_and_a_word_are_no_amounts() {
        for text in ["3", "quorum", "", "n2", "-1ms"] {
            assert_eq!(Amount::of(text), None, "{text}");
        }
    }
}
