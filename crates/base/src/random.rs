//! Random numbers that follow from a seed, the same on every machine for ever.
//!
//! All of them are SplitMix64's (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014),
//! either drawn in order ([`Random`]) or each a function of its inputs ([`scramble`], [`derive`]).

use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng, SeedableRng},
};

/// 2⁶⁴ divided by the golden ratio, odd: the step of SplitMix64, and of sequences whose multiples spread evenly.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A bijection of 64-bit words in which every bit of the result depends on every bit of `word`: the first word of the
/// stream of this seed.
#[inline]
pub fn scramble(word: u64) -> u64 {
    SplitMix64::seed_from_u64(word).next_u64()
}

/// The seed of one part of a whole: for a fixed `part` a bijection of `seed`, so that distinct seeds never meet, and
/// part 1 of seed 2 is not part 2 of seed 1.
#[inline]
pub fn derive(seed: u64, part: u64) -> u64 {
    scramble(seed ^ scramble(part))
}

/// From a random word one of `0 .. end`; 0 for an empty range. The high half of a product (Lemire, "Fast random integer
/// generation in an interval", 2019): without its rejection the bias is below `end` ÷ 2⁶⁴.
#[inline]
pub fn below(word: u64, end: u64) -> u64 {
    ((u128::from(word) * u128::from(end)) >> 64) as u64
}

/// From a random word a number in [0, 1), a multiple of 2⁻⁵³.
#[inline]
pub fn fraction(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// A stream of random numbers: one addition and one multiplication chain per number, period 2⁶⁴.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::seed_from_u64(seed))
    }

    /// The next 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Any of `0 .. end`, all alike (see [`below`]); 0 for an empty range.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        below(self.word(), end)
    }

    /// Any of `least ..= most`, all alike; `least` if `most` is less.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        let values = u128::from(most.saturating_sub(least)) + 1;
        least + ((u128::from(self.word()) * values) >> 64) as u64
    }

    /// Evenly from [0, 1), in steps of 2⁻⁵³.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        fraction(self.word())
    }

    /// Evenly from (0, 1): never 0 and never 1, so that any quantile of it is finite.
    #[inline]
    pub fn open_fraction(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// True with this probability, from 0 (never) to 1 (always).
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.open_fraction().ln()
    }

    /// Any order, all alike (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words from the seed 1234567, as the authors' C program (<https://prng.di.unimi.it/splitmix64.c>) prints
    /// them.
    const PUBLISHED: [u64; 5] = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];

    #[test]
    fn the_stream_is_splitmix64() {
        let mut random = Random::new(1_234_567);
        assert_eq!(std::array::from_fn(|_| random.word()), PUBLISHED);
    }

    #[test]
    fn scrambled_words_are_those_of_the_stream() {
        let place = |number: u64| 1_234_567_u64.wrapping_add(number.wrapping_mul(GOLDEN));
        assert_eq!(std::array::from_fn(|number| scramble(place(number as u64))), PUBLISHED);
    }

    /// Golden, computed from the formula by a program of its own: recorded seeds must lead to the same parts for ever.
    #[test]
    fn derived_seeds_do_not_change_between_versions() {
        for (seed, part, derived) in [
            (0, 0, 12_035_550_249_420_947_055),
            (1, 2, 16_171_810_823_986_729_605),
            (2, 1, 13_608_149_317_741_381_227),
            (u64::MAX, 7, 12_225_420_764_836_534_112),
        ] {
            assert_eq!(derive(seed, part), derived, "{seed} {part}");
        }
    }

    #[test]
    fn parts_of_seeds_all_differ() {
        let mut parts: Vec<u64> = (0..100).flat_map(|seed| (0..100).map(move |part| derive(seed, part))).collect();
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), 10_000);
    }

    #[test]
    fn ranges_keep_to_their_bounds_and_reach_every_value_alike() {
        let mut random = Random::new(7);
        let (mut below, mut between) = ([0u32; 10], [0u32; 10]);
        for _ in 0..100_000 {
            below[random.below(10) as usize] += 1;
            between[random.between(20, 29) as usize - 20] += 1;
        }
        for counts in [below, between] {
            assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        }
        assert_eq!((random.below(0), random.between(4, 4), random.between(4, 3)), (0, 4, 4));
        assert_eq!(super::below(u64::MAX, u64::MAX), u64::MAX - 1);
        assert!((0..1_000).map(|_| random.between(0, u64::MAX)).max() > Some(u64::MAX / 2));
        assert!((0..1_000).all(|_| random.between(u64::MAX - 1, u64::MAX) >= u64::MAX - 1));
    }

    #[test]
    fn fractions_keep_to_their_intervals() {
        assert_eq!((fraction(0), fraction(u64::MAX)), (0.0, 1.0 - f64::EPSILON / 2.0));
        let mut random = Random::new(1);
        let drawn: Vec<f64> = (0..100_000).map(|_| random.open_fraction()).collect();
        assert!(drawn.iter().all(|value| *value > 0.0 && *value < 1.0));
        assert!(((u64::MAX >> 12) as f64 + 0.5) / ((1u64 << 52) as f64) < 1.0);
        let mean = drawn.iter().sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert!((0..10_000).all(|_| !random.chance(0.0)));
        assert!((0..10_000).all(|_| random.chance(1.0)));
        let hits = (0..100_000).filter(|_| random.chance(0.01)).count();
        assert!((900..1_100).contains(&hits), "{hits}");
    }

    #[test]
    fn exponential_numbers_have_mean_and_variance_one() {
        let mut random = Random::new(7);
        let samples: Vec<f64> = (0..200_000).map(|_| random.exponential()).collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / samples.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn a_shuffled_list_has_every_order_alike() {
        let mut random = Random::new(3);
        let mut orders = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for _ in 0..60_000 {
            let mut list = [1, 2, 3];
            random.shuffle(&mut list);
            *orders.entry(list).or_default() += 1;
        }
        assert_eq!(orders.len(), 6);
        assert!(orders.values().all(|count| (9_600..10_400).contains(count)), "{orders:?}");
    }
}
