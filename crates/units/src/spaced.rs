use std::str::FromStr;

use crate::{BitRate, Bytes, Count, Delay, Rate, Share, UnitError, number};

/// Values from one to another: `0.1ms..100ms log 7` (each the same factor above the one before), `1%..5% even 5` (each as far
/// from it). Any amount with a unit, and whole numbers. The ends are as written, what is between them has three significant
/// digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spaced(Vec<String>);

/// More are no range but a mistake.
const MOST: usize = 1_000;

impl Spaced {
    /// The values, each as it would be written.
    pub fn values(self) -> Vec<String> {
        self.0
    }
}

impl FromStr for Spaced {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError {
            text: text.to_owned(),
            expected: "a range of 2 to 1,000 values",
            example: "0.1ms..100ms log 7 or 1%..5% even 5",
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [ends, how, count] = words[..] else { return Err(error()) };
        let (from, to) = ends.split_once("..").ok_or_else(error)?;
        let count: usize = count.parse().ok().filter(|count| (2..=MOST).contains(count)).ok_or_else(error)?;
        let is_log = match how {
            "log" => true,
            "even" => false,
            _ => return Err(error()),
        };
        let kind = kinds().into_iter().find(|kind| (kind.read)(from).is_some() && (kind.read)(to).is_some());
        let kind = kind.ok_or_else(error)?;
        let (low, high) = ((kind.read)(from).ok_or_else(error)?, (kind.read)(to).ok_or_else(error)?);
        if low == high || (is_log && (low <= 0.0 || high <= 0.0)) {
            return Err(error());
        }
        let between = |step: usize| {
            let share = step as f64 / (count - 1) as f64;
            let value = if is_log { low * (high / low).powf(share) } else { low + (high - low) * share };
            (kind.write)(three_digits(value))
        };
        let inner: Option<Vec<String>> = (1..count - 1).map(between).collect();
        let mut values = vec![from.to_owned()];
        values.extend(inner.ok_or_else(error)?);
        values.push(to.to_owned());
        let distinct = values.windows(2).all(|pair| pair[0] != pair[1]);
        distinct.then_some(Spaced(values)).ok_or_else(error)
    }
}

/// A kind of amount: as a number, and as it is written.
struct Kind {
    read: fn(&str) -> Option<f64>,
    write: fn(f64) -> Option<String>,
}

fn kinds() -> [Kind; 6] {
    [
        Kind {
            read: |text| Some(text.parse::<Delay>().ok()?.ns() as f64),
            write: |ns| Some(Delay::from_ns(ns.round() as u64).to_string()),
        },
        Kind {
            read: |text| Some(text.parse::<Share>().ok()?.fraction()),
            write: |share| Some(format!("{}%", number::short(share * 100.0, 6))),
        },
        Kind {
            read: |text| Some(text.parse::<Rate>().ok()?.get()),
            write: |rate| Some(Rate::per_second(rate)?.to_string()),
        },
        Kind {
            read: |text| Some(text.parse::<BitRate>().ok()?.bits_per_second() as f64),
            write: |bits| Some(BitRate::new(bits.round() as u64)?.to_string()),
        },
        Kind {
            read: |text| Some(text.parse::<Bytes>().ok()?.0 as f64),
            write: |bytes| Some(Bytes(bytes.round() as u64).to_string()),
        },
        Kind {
            read: |text| Some(text.parse::<Count>().ok()?.0 as f64),
            write: |count| Some(Count(count.round() as u64).to_string()),
        },
    ]
}

fn three_digits(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10f64.powi(2 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Spaced>().unwrap().values()
    }

    #[test]
    fn the_ends_are_as_written_and_what_is_between_is_evenly_spaced() {
        assert_eq!(values("0.1ms..100ms log 7"), ["0.1ms", "316us", "1ms", "3.16ms", "10ms", "31.6ms", "100ms"]);
        assert_eq!(values("1%..5% even 5"), ["1%", "2%", "3%", "4%", "5%"]);
        assert_eq!(values("100/s..1k/s log 3"), ["100/s", "316/s", "1k/s"]);
        assert_eq!(values("1mbit..100mbit log 3"), ["1mbit", "10mbit", "100mbit"]);
        assert_eq!(values("1KiB..4KiB log 3"), ["1KiB", "2050B", "4KiB"]);
        assert_eq!(values("64..1 log 3"), ["64", "8", "1"], "downwards, too");
        assert_eq!(values("0ms..10ms even 3"), ["0ms", "5ms", "10ms"]);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "1ms..10ms",
            "1ms..10ms log",
            "1ms..10ms log 1",
            "1ms..10ms log 1001",
            "1ms..10% log 3",
            "0ms..10ms log 3",
            "1ms..1ms even 3",
            "a..b log 3",
            "1ms..10ms sqrt 3",
            "1..2 even 9",
        ] {
            assert!(text.parse::<Spaced>().is_err(), "{text}");
        }
    }
}
