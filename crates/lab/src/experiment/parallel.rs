//! `parallel:` — how many labs work at once.

use brownout_units::Count;
use serde::{Deserialize, Deserializer, de::Error};

/// `auto`, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParallelChoice {
    /// As many as the machine has room for.
    Auto,
    /// So many.
    Labs(Count),
}

impl Default for ParallelChoice {
    fn default() -> Self {
        ParallelChoice::Labs(Count(1))
    }
}

impl<'de> Deserialize<'de> for ParallelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "auto" {
            return Ok(ParallelChoice::Auto);
        }
        let labs = text.parse::<Count>().map_err(|error| {
            D::Error::custom(format!("{error}, or auto: as many labs as this machine has room for"))
        })?;
        Ok(ParallelChoice::Labs(labs))
    }
}
