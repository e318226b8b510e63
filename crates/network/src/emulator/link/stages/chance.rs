//! Something that happens to some packets, perhaps in runs.

use super::Random;
use crate::impairment::Chance;

/// The memory of a [`Chance`].
#[derive(Default)]
pub(super) struct Draws {
    /// Whether it happened to the last packet.
    last: Option<bool>,
}

impl Draws {
    /// Whether it happens to the next packet.
    pub(super) fn next(&mut self, chance: Chance, random: &mut Random) -> bool {
        let probability = match self.last {
            Some(last) if chance.correlation.fraction() > 0.0 => chance.after(last),
            // Begun in the stationary state.
            _ => chance.share.fraction(),
        };
        let hit = probability > 0.0 && random.chance(probability);
        self.last = Some(hit);
        hit
    }
}
