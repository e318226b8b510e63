//! `java.util.Random`.

use super::logarithm::strict_log;

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

/// Java's linear congruential generator of 48 bits, as the documentation of `java.util.Random` defines it.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
    spare: Option<f64>,
}

impl Random {
    /// `new Random(seed)`.
    #[inline]
    pub fn new(seed: i64) -> Self {
        Random { state: scrambled(seed), spare: None }
    }

    /// Starts over, as a new generator of this seed would.
    #[inline]
    pub fn set_seed(&mut self, seed: i64) {
        self.state = scrambled(seed);
        self.spare = None;
    }

    /// The upper `bits` (1 to 32) of the next state, as a signed number of 32 bits.
    #[inline]
    pub fn next(&mut self, bits: u32) -> i32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        (self.state >> (48 - bits)) as i32
    }

    /// `nextInt(bound)`: from 0 to below `bound`, which Java wants above 0; 0 for any other.
    pub fn next_below(&mut self, bound: i32) -> i32 {
        if bound <= 0 {
            return 0;
        }
        let mut bits = self.next(31);
        if bound & (bound - 1) == 0 {
            return ((i64::from(bound) * i64::from(bits)) >> 31) as i32;
        }
        // The last, incomplete run of `bound` numbers is drawn again: there, bits - value + bound - 1 overflows.
        loop {
            let value = bits % bound;
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return value;
            }
            bits = self.next(31);
        }
    }

    /// `nextLong()`: two draws of 32 bits, the lower one added with its sign.
    #[inline]
    pub fn next_i64(&mut self) -> i64 {
        let high = i64::from(self.next(32)) << 32;
        high.wrapping_add(i64::from(self.next(32)))
    }

    /// `nextDouble()`: 53 bits, from 0 to below 1.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        let high = i64::from(self.next(26)) << 27;
        (high + i64::from(self.next(27))) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// `nextGaussian()`: Marsaglia's polar method, which makes two at a time and keeps the second for the next call.
    #[inline]
    pub fn next_gaussian(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * self.next_f64() - 1.0;
            let y = 2.0 * self.next_f64() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let stretch = (-2.0 * strict_log(square) / square).sqrt();
                self.spare = Some(y * stretch);
                return x * stretch;
            }
        }
    }
}

#[inline]
fn scrambled(seed: i64) -> u64 {
    (seed as u64 ^ MULTIPLIER) & MASK
}
