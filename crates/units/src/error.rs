use thiserror::Error;

/// A text that is not a value of the unit asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is not {expected}; write it as {example}")]
pub struct UnitError {
    /// What was written.
    pub text: String,
    /// What was expected there, with its article: "a duration".
    pub expected: &'static str,
    /// Texts that would be accepted.
    pub example: &'static str,
}
