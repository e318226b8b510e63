//! Values that may be written in more than one form.

use std::{fmt, path::PathBuf};

use brownout_network::QueueLimit;
use brownout_units::{Bytes, Delay, Rate, Share};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// Operations per second of all loads together: more is beyond what one lab can offer.
pub(crate) const MAX_RATE: f64 = 1e6;

/// `400/s`, or `30%` of the capacity measured in the warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateChoice {
    /// Operations per second.
    Fixed(Rate),
    /// Of the measured capacity.
    OfCapacity(Share),
}

impl<'de> Deserialize<'de> for RateChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.trim_end().ends_with('%') {
            let share: Share = text.parse().map_err(D::Error::custom)?;
            if share == Share::ZERO {
                return Err(D::Error::custom("'0%' offers no load; write a share above zero"));
            }
            return Ok(RateChoice::OfCapacity(share));
        }
        text.parse().map(RateChoice::Fixed).map_err(|error: brownout_units::UnitError| {
            D::Error::custom(format!("{error}, or as a share of the measured capacity: 30%"))
        })
    }
}

impl fmt::Display for RateChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateChoice::Fixed(rate) => rate.fmt(f),
            RateChoice::OfCapacity(share) => write!(f, "{share} of the capacity measured in the warm-up"),
        }
    }
}

/// A version to resolve, or an unpacked tarball.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CassandraChoice {
    /// `"5.0"` or a full version.
    Version(String),
    /// `{ home: DIR }`.
    Home(PathBuf),
}

impl fmt::Display for CassandraChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CassandraChoice::Version(version) => f.pad(version),
            CassandraChoice::Home(home) => write!(f, "of {}", home.display()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HomeMap {
    home: PathBuf,
}

impl<'de> Deserialize<'de> for CassandraChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = CassandraChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a version such as \"5.0\", or { home: DIR } of an unpacked tarball")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CassandraChoice, E> {
                Ok(CassandraChoice::Version(text.to_owned()))
            }

            // A version without quotes: YAML readers see 5.0 as a number. Its text is lost by then only
            // for a trailing zero, which no Cassandra version but x.0 has.
            fn visit_f64<E: Error>(self, number: f64) -> Result<CassandraChoice, E> {
                Ok(CassandraChoice::Version(format!("{number:?}")))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CassandraChoice, A::Error> {
                HomeMap::deserialize(MapAccessDeserializer::new(map)).map(|map| CassandraChoice::Home(map.home))
            }
        }

        deserializer.deserialize_any(Choice)
    }
}

/// A value that is written as text and read by its own parser.
pub(super) fn text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: std::str::FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// One name or a list of names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names(pub Vec<String>);

impl Names {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" and "))
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name such as n2, or a list of names such as [n2, n3]")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Names, E> {
                if text.trim().is_empty() {
                    return Err(E::custom("a name is missing"));
                }
                Ok(Names(vec![text.trim().to_owned()]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element::<String>()? {
                    names.push(name);
                }
                if names.is_empty() {
                    return Err(A::Error::custom("the list is empty; write at least one name"));
                }
                Ok(Names(names))
            }
        }

        deserializer.deserialize_any(Choice)
    }
}

/// `64KiB` or `50ms`: what may wait before a bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueChoice {
    /// Bytes of IP packets.
    Bytes(Bytes),
    /// As long as the bottleneck takes for them.
    Time(Delay),
}

impl QueueChoice {
    /// As the network takes it.
    pub fn limit(self) -> QueueLimit {
        match self {
            QueueChoice::Bytes(bytes) => QueueLimit::Bytes(bytes),
            QueueChoice::Time(time) => QueueLimit::Time(time),
        }
    }
}

impl<'de> Deserialize<'de> for QueueChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if let Ok(time) = text.parse() {
            return Ok(QueueChoice::Time(time));
        }
        text.parse().map(QueueChoice::Bytes).map_err(|_| {
            D::Error::custom(format!("'{text}' is neither an amount such as 64KiB nor a time such as 50ms"))
        })
    }
}

/// `5s` or `-5s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepChoice {
    /// Nanoseconds ahead; negative: behind.
    pub ns: i64,
}

impl std::str::FromStr for StepChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let (sign, rest) = match trimmed.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, trimmed.strip_prefix('+').unwrap_or(trimmed)),
        };
        let delay: Delay = rest.parse().map_err(|error| format!("{error}"))?;
        let ns = i64::try_from(delay.ns()).map_err(|_| format!("{text} is too far from the true time"))?;
        Ok(StepChoice { ns: sign * ns })
    }
}

impl fmt::Display for StepChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.ns < 0 { "-" } else { "+" }, Delay::from_ns(self.ns.unsigned_abs()))
    }
}

impl<'de> Deserialize<'de> for StepChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer)
    }
}

/// `100ppm`, `-100ppm` or `1%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriftChoice {
    /// Nanoseconds gained per second; negative: lost.
    pub ppb: i64,
}

impl std::str::FromStr for DriftChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let units = [("ppm", 1e3), ("ppb", 1.0), ("%", 1e7)];
        let parsed = units.iter().find_map(|(unit, ppb)| {
            let number: f64 = trimmed.strip_suffix(unit)?.trim().parse().ok()?;
            Some(number * ppb)
        });
        match parsed {
            // A clock that runs twice as fast, or stands: beyond that it is no clock.
            Some(ppb) if ppb.abs() <= 1e9 => Ok(DriftChoice { ppb: ppb.round() as i64 }),
            _ => Err(format!("'{text}' is not a drift; write 100ppm, -50ppm or 1%, up to 100%")),
        }
    }
}

impl fmt::Display for DriftChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+}ppm", self.ppb as f64 / 1e3)
    }
}

impl<'de> Deserialize<'de> for DriftChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer)
    }
}

/// `5s..20s`, or `5s` for always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// At least.
    pub least: Delay,
    /// At most.
    pub most: Delay,
}

impl std::str::FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let parse = |part: &str| part.trim().parse::<Delay>().map_err(|error| error.to_string());
        let (least, most) = (parse(least)?, parse(most)?);
        if least > most {
            return Err(format!("the range '{text}' is reversed; write {most}..{least}"));
        }
        Ok(Span { least, most })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer)
    }
}

/// `1` or `1..2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountSpan {
    /// At least.
    pub least: u64,
    /// At most.
    pub most: u64,
}

impl Default for CountSpan {
    fn default() -> Self {
        CountSpan { least: 1, most: 1 }
    }
}

impl std::str::FromStr for CountSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let parse = |part: &str| part.trim().parse::<u64>().ok().filter(|count| *count > 0);
        match (parse(least), parse(most)) {
            (Some(least), Some(most)) if least <= most => Ok(CountSpan { least, most }),
            _ => Err(format!("'{text}' is not a number of hosts; write 1 or 1..2")),
        }
    }
}

impl<'de> Deserialize<'de> for CountSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_drifts_have_a_sign() {
        for (text, ns) in [("5s", 5_000_000_000), ("-5s", -5_000_000_000), ("+1ms", 1_000_000)] {
            assert_eq!(text.parse::<StepChoice>().unwrap().ns, ns, "{text}");
        }
        for (text, ppb) in [("100ppm", 100_000), ("-50ppm", -50_000), ("1%", 10_000_000), ("7ppb", 7)] {
            assert_eq!(text.parse::<DriftChoice>().unwrap().ppb, ppb, "{text}");
        }
        for text in ["", "5", "x%", "200%", "nanppm"] {
            assert!(text.parse::<DriftChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_have_their_ends_in_order() {
        let span: Span = "2s..10s".parse().unwrap();
        assert_eq!((span.least, span.most), (Delay::from_secs(2), Delay::from_secs(10)));
        assert!("10s..2s".parse::<Span>().unwrap_err().contains("2s..10s"));
        assert_eq!("3".parse::<CountSpan>().unwrap(), CountSpan { least: 3, most: 3 });
        assert!("0..1".parse::<CountSpan>().is_err());
    }
}
