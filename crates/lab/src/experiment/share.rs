//! How much of an operation there is: in proportion to the others, or as a load of its own.

use std::{fmt, str::FromStr};

use brownout_units::{Count, Rate};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// How much there is of an operation that is a load of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// By its own clock: `500/s`.
    Rate(Rate),
    /// By its own users, each with one operation at a time: `{ threads: 4 }`.
    Threads(Count),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Rate(rate) => rate.fmt(f),
            Amount::Threads(Count(1)) => f.write_str("1 thread"),
            Amount::Threads(threads) => write!(f, "{threads} threads"),
        }
    }
}

/// How much of a profile's operation there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OpShare {
    /// In proportion to the others: `2`.
    Weight(f64),
    /// A load of its own.
    Own(Amount),
}

/// How many of the short form's reads, or writes, there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MixShare {
    /// In proportion to the others: `2`.
    Weight(Count),
    /// A load of its own.
    Own(Amount),
}

impl MixShare {
    /// Whether there is any of it.
    pub fn is_some(self) -> bool {
        self != MixShare::default()
    }

    /// How much, if it is a load of its own.
    pub fn own(self) -> Option<Amount> {
        match self {
            MixShare::Weight(_) => None,
            MixShare::Own(amount) => Some(amount),
        }
    }
}

impl Default for MixShare {
    fn default() -> Self {
        MixShare::Weight(Count(0))
    }
}

impl FromStr for OpShare {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.trim().replace('_', "");
        if let Ok(weight) = plain.parse::<f64>() {
            return match weight {
                weight if weight > 0.0 && weight <= 1e6 => Ok(OpShare::Weight(weight)),
                _ => Err(format!(
                    "a weight of {} is not possible; write a number above 0 and up to 1_000_000",
                    text.trim()
                )),
            };
        }
        rate(text).map(OpShare::Own)
    }
}

impl FromStr for MixShare {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(weight) => Ok(MixShare::Weight(weight)),
            Err(_) => rate(text).map(MixShare::Own),
        }
    }
}

fn rate(text: &str) -> Result<Amount, String> {
    text.parse().map(Amount::Rate).map_err(|_| {
        format!("'{}' is neither a weight such as 2, nor a rate such as 500/s, nor {{ threads: 4 }}", text.trim())
    })
}

impl From<Amount> for OpShare {
    fn from(amount: Amount) -> Self {
        OpShare::Own(amount)
    }
}

impl From<Amount> for MixShare {
    fn from(amount: Amount) -> Self {
        MixShare::Own(amount)
    }
}

impl<'de> Deserialize<'de> for OpShare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        share(deserializer)
    }
}

impl<'de> Deserialize<'de> for MixShare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        share(deserializer)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Users {
    threads: Count,
}

/// A text, or a mapping that says how many users there are.
fn share<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = String> + From<Amount>,
{
    struct Choice<T>(std::marker::PhantomData<T>);

    impl<'de, T: FromStr<Err = String> + From<Amount>> Visitor<'de> for Choice<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a weight such as 2, a rate such as 500/s, or { threads: 4 }")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }

        // Numbers without quotes: some readers hand them over as what they look like.
        fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            Users::deserialize(MapAccessDeserializer::new(map)).map(|users| Amount::Threads(users.threads).into())
        }
    }

    deserializer.deserialize_any(Choice(std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_second(rate: f64) -> Amount {
        Amount::Rate(Rate::per_second(rate).unwrap())
    }

    #[test]
    fn a_share_is_a_weight_a_rate_or_users_and_nothing_else() {
        assert_eq!("2".parse(), Ok(OpShare::Weight(2.0)));
        assert_eq!(" 0.5 ".parse(), Ok(OpShare::Weight(0.5)));
        assert_eq!("1_000".parse(), Ok(OpShare::Weight(1000.0)));
        assert_eq!("500/s".parse(), Ok(OpShare::Own(per_second(500.0))));
        for text in ["0", "-1", "nan", "inf", "", "fast", "5/h", "50%", "2e6"] {
            assert!(text.parse::<OpShare>().is_err(), "{text}");
        }
        assert_eq!("1_000".parse(), Ok(MixShare::Weight(Count(1000))));
        assert_eq!("500/s".parse(), Ok(MixShare::Own(per_second(500.0))));
        for text in ["0.5", "-1", "nan", "", "fast", "5/h", "50%"] {
            assert!(text.parse::<MixShare>().is_err(), "{text}");
        }
    }

    #[test]
    fn users_are_a_mapping_with_threads_alone() {
        let read = |text: &str| serde_json::from_str::<MixShare>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"threads": "1_000"}"#), Ok(MixShare::Own(Amount::Threads(Count(1000)))));
        assert_eq!(read("3"), Ok(MixShare::Weight(Count(3))));
        assert!(read(r#"{"thread": "4"}"#).unwrap_err().contains("threads"));
        assert!(read("{}").unwrap_err().contains("threads"));
        assert!(read("[1]").unwrap_err().contains("{ threads: 4 }"));
    }

    #[test]
    fn amounts_are_told_as_people_say_them() {
        let told = [per_second(300.0), Amount::Threads(Count(4)), Amount::Threads(Count(1))].map(|one| one.to_string());
        assert_eq!(told, ["300/s", "4 threads", "1 thread"]);
    }
}
