//! The result of one check of the machine.

use serde::{Deserialize, Serialize};

/// One thing the machine has, lacks, or has only half.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it stands.
    pub state: CheckState,
    /// What was found, with numbers.
    pub found: String,
    /// What to do about it; none if it is good.
    pub remedy: Option<String>,
}

/// How a check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// As it should be.
    Good,
    /// A lab works, with a limit that the remedy lifts.
    Limited,
    /// A lab cannot be built.
    Lacking,
}

impl Check {
    pub(super) fn good(name: &str, found: impl Into<String>) -> Self {
        Check { name: name.to_owned(), state: CheckState::Good, found: found.into(), remedy: None }
    }

    pub(super) fn not(state: CheckState, name: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check { name: name.to_owned(), state, found: found.into(), remedy: Some(remedy.into()) }
    }
}
