//! The trials of a search for the severities at which a loss passes thresholds: first one at each severity of the first look, with
//! those without a fault among them in random order; then where a trial tells most.

use brownout_analysis::{Lesson, search};
use brownout_base::random::{Random, derive};
use brownout_record::Arm;

use super::{Next, Which};
use crate::design::ORDER;

/// A search for a danger zone.
#[derive(Debug, Clone)]
pub struct DangerZone {
    zone: search::DangerZone,
    /// The first look, in its order; none: without a fault.
    first: Vec<Option<String>>,
}

impl DangerZone {
    /// Its first look is in an order that is drawn from the seed.
    pub fn new(zone: search::DangerZone, seed: u64) -> DangerZone {
        let without = std::iter::repeat_n(None, zone.without_fault());
        let mut first: Vec<Option<String>> = zone.scan().into_iter().map(Some).chain(without).collect();
        Random::new(derive(derive(seed, ORDER), 1)).shuffle(&mut first);
        DangerZone { zone, first }
    }

    /// What comes after these; none: nothing more.
    pub fn next(&self, lessons: &[Lesson]) -> Option<Next> {
        let (cell, arm) = match self.first.get(lessons.len()) {
            // Cells differ in nothing but their faults: those of the first one are left out.
            Some(None) => (Which::Known(0), Arm::None),
            Some(Some(severity)) => (Which::Of(severity.clone()), Arm::Fault),
            None => (Which::Of(self.zone.next(lessons)?), Arm::Fault),
        };
        Some(Next { number: lessons.len() as u32 + 1, block: 1, cell, arm })
    }

    /// How many there are at most.
    pub fn most_trials(&self) -> usize {
        self.zone.most_trials()
    }
}
