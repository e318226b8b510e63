use std::{fmt, str::FromStr, time::Duration};

use crate::{UnitError, number, text_serde};

/// A span of time, kept in nanoseconds: `100us`, `2.5ms`, `30s`, `2m`, `1h`.
///
/// On a link it is a one-way delay. The unit must be written: a bare `100` could be anything.
/// `0` alone is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Delay(u64);

impl Delay {
    /// No time at all.
    pub const ZERO: Delay = Delay(0);

    /// From nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Delay(ns)
    }

    /// From milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Delay(ms * 1_000_000)
    }

    /// From seconds.
    pub const fn from_secs(s: u64) -> Self {
        Delay(s * 1_000_000_000)
    }

    /// In nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// In seconds, for arithmetic and display.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// As the standard library's type.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Delay {
    /// Saturates at 584 years.
    fn from(duration: Duration) -> Self {
        Delay(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Delay {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error =
            || UnitError { text: text.to_owned(), expected: "a duration", example: "100us, 2.5ms, 30s, 2m or 1h" };
        let (value, unit) = number::split(text).ok_or_else(error)?;
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "" if value == 0.0 => 1.0,
            _ => return Err(error()),
        };
        let ns = (value * scale).round();
        if ns > u64::MAX as f64 / 2.0 {
            return Err(error());
        }
        Ok(Delay(ns as u64))
    }
}

impl fmt::Display for Delay {
    /// Exact: the largest unit of which this is a whole number or a short fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        for (scale, digits, unit) in [(1_000_000_000, 3, "s"), (1_000_000, 3, "ms"), (1_000, 3, "us")] {
            if ns >= scale && ns.is_multiple_of(scale / 1_000) {
                return f.pad(&format!("{}{unit}", number::short(ns as f64 / scale as f64, digits)));
            }
        }
        f.pad(&format!("{ns}ns"))
    }
}

text_serde!(Delay);

/// A measured time for people: three significant digits and the unit that suits it (`1.23ms`).
pub fn format_ns(ns: f64) -> String {
    let magnitude = ns.abs();
    let (value, unit) = match magnitude {
        m if m < 1e3 => (ns, "ns"),
        m if m < 1e6 => (ns / 1e3, "us"),
        m if m < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_in_every_unit() {
        for (text, ns) in [
            ("0", 0),
            ("0ms", 0),
            ("1ns", 1),
            ("100us", 100_000),
            ("2.5ms", 2_500_000),
            ("30s", 30_000_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
        ] {
            assert_eq!(text.parse::<Delay>().map(Delay::ns), Ok(ns), "{text}");
        }
    }

    #[test]
    fn a_duration_without_its_unit_is_refused() {
        for text in ["100", "ms", "100 parsecs", "-1ms", "1%", "n2"] {
            assert!(text.parse::<Delay>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_printed_parses_back_to_the_same() {
        for ns in [0, 1, 999, 1_000, 1_500, 100_000_000, 1_000_000_001, 90_000_000_000, 123_456_789] {
            let delay = Delay::from_ns(ns);
            assert_eq!(delay.to_string().parse::<Delay>(), Ok(delay), "{delay}");
        }
    }

    #[test]
    fn measured_times_print_three_digits() {
        for (ns, text) in [
            (812.0, "812ns"),
            (1_234.0, "1.23us"),
            (12_345_678.0, "12.3ms"),
            (100_312_000.0, "100ms"),
            (2.5e9, "2.50s"),
            (-1_500.0, "-1.50us"),
        ] {
            assert_eq!(format_ns(ns), text);
        }
    }
}
