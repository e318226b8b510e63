use std::{fmt, str::FromStr};

use crate::{UnitError, number, text_serde};

/// An amount of bytes: `512B`, `64KiB`, `192MiB`, `1GiB` (powers of 1024), `10kB`, `5MB` (of 1000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

const BYTE_UNITS: [(&str, u64); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            text: text.to_owned(),
            expected: "an amount of bytes",
            example: "512B, 64KiB, 192MiB or 1GiB",
        };
        let (value, unit) = number::split(text).ok_or_else(error)?;
        let (_, scale) = BYTE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        let bytes = (value * *scale as f64).round();
        if bytes > u64::MAX as f64 / 2.0 {
            return Err(error());
        }
        Ok(Bytes(bytes as u64))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) =
            BYTE_UNITS.iter().find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale)).unwrap_or(&("B", 1));
        f.pad(&format!("{}{unit}", self.0 / scale))
    }
}

text_serde!(Bytes);

/// Bits per second of a link, above zero: `10mbit`, `1gbit`, `64kbit`, `800bit` (powers of 1000, as tc means them).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// From bits per second; `None` for zero.
    pub fn new(bits_per_second: u64) -> Option<Self> {
        (bits_per_second > 0).then_some(BitRate(bits_per_second))
    }

    /// In bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
}

const BIT_UNITS: [(&str, u64); 4] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

impl FromStr for BitRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            text: text.to_owned(),
            expected: "a link rate above zero",
            example: "64kbit, 10mbit or 1gbit",
        };
        let (value, unit) = number::split(text).ok_or_else(error)?;
        let (_, scale) = BIT_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        let bits = (value * *scale as f64).round();
        if bits > u64::MAX as f64 / 2.0 {
            return Err(error());
        }
        BitRate::new(bits as u64).ok_or_else(error)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The largest unit in which it takes no more than three decimals.
        let is_short = |scale: u64| self.0.is_multiple_of((scale / 1_000).max(1));
        let (unit, scale) =
            BIT_UNITS.iter().find(|(_, scale)| self.0 >= *scale && is_short(*scale)).unwrap_or(&("bit", 1));
        f.pad(&format!("{}{unit}", self.0 as f64 / *scale as f64))
    }
}

text_serde!(BitRate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_parse_and_print_back() {
        for (text, bytes) in [("512B", 512), ("64KiB", 65_536), ("192MiB", 201_326_592), ("10kB", 10_000)] {
            let parsed: Bytes = text.parse().unwrap();
            assert_eq!(parsed.0, bytes, "{text}");
            assert_eq!(parsed.to_string(), text);
        }
        assert!("192".parse::<Bytes>().is_err());
        assert!("192mb".parse::<Bytes>().is_err());
    }

    #[test]
    fn link_rates_parse_and_print_back() {
        for (text, bits) in [
            ("800bit", 800),
            ("64kbit", 64_000),
            ("10mbit", 10_000_000),
            ("31.6mbit", 31_600_000),
            ("1234.567kbit", 1_234_567),
        ] {
            let parsed: BitRate = text.parse().unwrap();
            assert_eq!(parsed.bits_per_second(), bits, "{text}");
            assert_eq!(parsed.to_string(), text);
        }
        assert!("0mbit".parse::<BitRate>().is_err());
        assert!("10".parse::<BitRate>().is_err());
    }
}
