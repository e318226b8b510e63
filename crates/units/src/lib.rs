//! The units that people write and the machine computes with.
//!
//! A user writes `100ms`, `2000/s`, `1%`, `10mbit`, `64MiB`; each of these is a type of its own
//! here, so that a share can never be taken for a host and a delay never for a rate. Each type
//! parses with [`std::str::FromStr`], prints with [`std::fmt::Display`] in a form that parses back
//! to the same value, and (de)serializes as that text.

mod bytes;
mod count;
mod error;
mod number;
mod rate;
mod share;
mod spaced;
mod time;

pub use bytes::{BitRate, Bytes};
pub use count::Count;
pub use error::UnitError;
pub use rate::Rate;
pub use share::Share;
pub use spaced::Spaced;
pub use time::{Delay, format_ns};

/// Serialize and deserialize a type through its text form.
macro_rules! text_serde {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
use text_serde;
