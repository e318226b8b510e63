//! Something that happens to some packets, perhaps in runs.

use super::Random;
use crate::impairment::Chance;

/// A [`Chance`] with its memory.
#[derive(Default)]
pub(super) struct Draws {
    pub(super) chance: Chance,
    /// Whether it happened to the last packet.
    last: Option<bool>,
}

impl Draws {
    /// Whether it happens to the next packet.
    pub(super) fn next(&mut self, random: &mut Random) -> bool {
        let probability = match self.last {
            Some(last) if self.chance.correlation.fraction() > 0.0 => self.chance.after(last),
            // Begun in the stationary state.
            _ => self.chance.share.fraction(),
        };
        let hit = probability > 0.0 && random.chance(probability);
        self.last = Some(hit);
        hit
    }
}
