//! A visit to a partition, small enough to be kept until its rows are needed.

use crate::seeds::Seed;

/// All that the rows of a visit follow from, besides the table: a few numbers, however large the rows are. A generator
/// makes the same rows from it as often as it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Visit {
    value: i64,
    visits: i32,
    /// How far writers had come in the partition when the visit began.
    pub(super) position: i32,
    /// The partition is written in several visits, so that readers see no more than that.
    partial: bool,
    /// Where all chance starts that is no part of the data.
    pub(super) chance: u64,
}

impl Visit {
    pub(super) fn new(seed: &Seed, chance: u64) -> Self {
        Visit {
            value: seed.value(),
            visits: seed.visits(),
            position: seed.position(),
            partial: seed.taken().is_some(),
            chance,
        }
    }

    /// The number that the partition's key is made from.
    pub fn value(&self) -> i64 {
        self.value
    }

    /// The partition's seed as it was when the visit began.
    pub(super) fn seed(&self) -> Seed {
        let mut seed = Seed::new(self.value, self.visits);
        seed.move_forwards(self.position);
        if self.partial { seed.share() } else { seed }
    }
}
