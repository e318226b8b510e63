//! The engine's random numbers: seeded, so that a run can be made again with the same operations.

/// SplitMix64's output function (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
/// OOPSLA 2014): a bijection of 64-bit words whose outputs for successive inputs look independent.
pub(crate) const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64: one addition and [`mix`] per number, full period 2^64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// One of many independent streams of the same seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Random(mix(seed.wrapping_add(GOLDEN)) ^ mix(stream.wrapping_mul(GOLDEN)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in 0 .. `below` (which is above zero), by multiplication: the bias is below `below` ÷ 2^64.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }

    /// Exponentially distributed with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // 53 random bits, shifted into (0, 1]: the logarithm never sees a zero.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -uniform.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator's published outputs for the seed 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random(1_234_567);
        for word in [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423_u64] {
            assert_eq!(random.next(), word);
        }
    }

    #[test]
    fn uniform_numbers_stay_below_their_bound_and_reach_every_value() {
        let mut random = Random::new(7, 0);
        let mut seen = [0u32; 10];
        for _ in 0..100_000 {
            seen[random.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (9_500..10_500).contains(count)), "{seen:?}");
    }

    #[test]
    fn exponential_numbers_have_mean_and_variance_one() {
        let mut random = Random::new(7, 1);
        let samples: Vec<f64> = (0..200_000).map(|_| random.exponential()).collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / samples.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
