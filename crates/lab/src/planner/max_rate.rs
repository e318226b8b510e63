//! The trials of a search for the largest rate that keeps an objective.

use brownout_analysis::{Lesson, search};
use brownout_record::Arm;

use super::{Next, Which};

/// A search for the largest rate.
#[derive(Debug, Clone)]
pub struct MaxRate {
    rate: search::MaxRate,
    arm: Arm,
}

impl MaxRate {
    /// All of its trials are with the faults of the file, or of a file without any.
    pub fn new(rate: search::MaxRate, arm: Arm) -> MaxRate {
        MaxRate { rate, arm }
    }

    /// What comes after these; none: nothing more.
    pub fn next(&self, lessons: &[Lesson]) -> Option<Next> {
        let cell = Which::Of(self.rate.next(lessons)?);
        Some(Next { number: lessons.len() as u32 + 1, block: 1, cell, arm: self.arm })
    }

    /// How many there are at most.
    pub fn most_trials(&self) -> usize {
        self.rate.most_trials()
    }
}
