//! `-tokenrange`

use super::{
    SettingsError,
    grammar::{Alternative, Pattern, select, value},
    number,
};

/// How `token_range_queries` read the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRange {
    /// Start over when all ranges have been read, instead of ending the run.
    pub wrap: bool,
    /// Number of parts into which each range is split.
    pub split_factor: u32,
}

pub(super) fn alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        value("wrap", Pattern::Nothing, "begin again when all token ranges are read"),
        value("split-factor=", Pattern::Count, "split every token range into so many").or("1"),
    ])]
}

impl TokenRange {
    pub(super) fn parse(words: Option<&[String]>) -> Result<Self, SettingsError> {
        let (_, taken) = select("-tokenrange", words.unwrap_or_default(), alternatives())?;
        let split = number::count("-tokenrange split-factor=", taken.text("split-factor="))?;
        let split_factor = u32::try_from(split).ok().filter(|split| *split > 0).ok_or_else(|| {
            SettingsError::senseless(format!("-tokenrange split-factor={split}"), "write a whole number from 1 to 4b")
        })?;
        Ok(TokenRange { wrap: taken.flag("wrap"), split_factor })
    }

    pub(super) fn block(&self) -> String {
        format!("  Wrap: {}\n  Split Factor: {}\n", self.wrap, self.split_factor)
    }
}
