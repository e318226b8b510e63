//! Chance that is no part of the data: which rows a visit picks.

use brownout_base::random::{Random, derive};

/// Where rolls come from.
#[derive(Debug, Clone)]
pub(super) enum Rolls {
    /// From the visit's [`super::Visit::chance`].
    Seeded { chance: u64, stream: Random },
    /// As recorded.
    #[cfg(test)]
    Script(std::collections::VecDeque<f64>),
}

impl Rolls {
    pub(super) fn new(chance: u64) -> Self {
        Rolls::Seeded { chance, stream: Random::new(chance) }
    }

    /// A visit begins.
    pub(super) fn begin(&mut self, visit: u64) {
        match self {
            Rolls::Seeded { chance, stream } => (*chance, *stream) = (visit, Random::new(visit)),
            #[cfg(test)]
            Rolls::Script(_) => {}
        }
    }

    /// The visit tries this part of the partition: what was rolled for the parts before does not matter to it.
    pub(super) fn begin_part(&mut self, position: u64) {
        match self {
            Rolls::Seeded { chance, stream } => *stream = Random::new(derive(*chance, position)),
            #[cfg(test)]
            Rolls::Script(_) => {}
        }
    }

    /// From 0 to below 1.
    pub(super) fn roll(&mut self) -> f64 {
        match self {
            Rolls::Seeded { stream, .. } => stream.fraction(),
            #[cfg(test)]
            Rolls::Script(rolls) => rolls.pop_front().expect("a roll more than recorded"),
        }
    }

    /// From 0 to below `bound`; 0 for a bound of 0.
    pub(super) fn number(&mut self, bound: u64) -> u64 {
        ((self.roll() * bound as f64) as u64).min(bound.saturating_sub(1))
    }

    /// The same for places in a list.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.number(bound as u64) as usize
    }
}
