//! What follows for a figure.

use serde::Serialize;

/// What follows for a figure with the faults beside the same without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It got worse.
    Worse,
    /// It got better.
    Better,
    /// If there is a difference, it is smaller than the margin.
    NoDifference,
    /// Something has changed; these trials cannot show by how much.
    Changed,
    /// These trials cannot show it.
    Inconclusive,
    /// Not asked of this run; `reason` says why.
    NotJudged,
}

impl Outcome {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Worse => "worse",
            Outcome::Better => "better",
            Outcome::NoDifference => "no difference",
            Outcome::Changed => "changed",
            Outcome::Inconclusive => "inconclusive",
            Outcome::NotJudged => "not judged",
        }
    }
}
