//! cassandra-stress's `FasterRandom`.

use super::Random;

/// A 64-bit xorshift* whose state is replaced by `java.util.Random` when seeded and before every 32nd draw.
///
/// The right shifts keep the sign, as Java's `>>` does; a generator of the book would not.
#[derive(Debug, Clone)]
pub struct FasterRandom {
    state: i64,
    drawn: u32,
}

impl FasterRandom {
    /// A generator that starts as `set_seed(seed)` leaves it.
    pub fn new(seed: i64) -> Self {
        FasterRandom { state: Random::new(seed).next_i64(), drawn: 0 }
    }

    /// Starts over.
    #[inline]
    pub fn set_seed(&mut self, seed: i64) {
        *self = FasterRandom::new(seed);
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_i64(&mut self) -> i64 {
        self.drawn += 1;
        if self.drawn == 32 {
            *self = FasterRandom::new(self.state);
        }
        let mut state = self.state;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.state = state;
        state.wrapping_mul(2_685_821_657_736_338_717)
    }
}
