//! Values that may be written in more than one form.

use std::{fmt, path::PathBuf};

use brownout_units::{Rate, Share};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

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
