//! An objective that was missed.

use serde::Serialize;

/// The objective was missed in a phase in which it must hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveMiss {
    /// The trial; see [`crate::TrialFindings::label`].
    pub trial: String,
    /// The phase.
    pub phase: String,
    /// Good ÷ due.
    pub share: f64,
    /// What it should have been.
    pub asked: f64,
}

impl ObjectiveMiss {
    /// Both shares in per cent, with as many digits as tell them apart: what was missed never reads as what was asked.
    pub fn percents(&self) -> (String, String) {
        let shown = |digits: usize| {
            let percent = |share: f64| format!("{:.digits$}%", share * 100.0);
            (percent(self.share), percent(self.asked))
        };
        (2..=12).map(shown).find(|(share, asked)| share != asked).unwrap_or_else(|| shown(12))
    }
}
