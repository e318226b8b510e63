//! What is left to chance, drawn from a seed: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
//! Generators, 2014), which is the same on every machine for ever.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Any of `0 .. end`, all alike to within 2⁻⁶⁴ of the range; 0 for an empty one.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Any of `least ..= most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)))
    }

    /// Any order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The seed of one part of a whole that has the seed `of`.
pub fn part(of: u64, number: u64) -> u64 {
    mix(of.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let drawn: [u64; 3] = std::array::from_fn(|_| random.next());
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn parts_of_one_whole_differ() {
        let mut parts: Vec<u64> = (0..100).flat_map(|of| (1..=100).map(move |number| part(of, number))).collect();
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), 10_000);
    }

    #[test]
    fn draws_keep_to_their_bounds() {
        let mut random = Random::new(1);
        assert!((0..1_000).all(|_| (3..=5).contains(&random.between(3, 5))));
        assert_eq!(random.between(4, 4), 4);
        assert_eq!(random.below(0), 0);
        let mut list = [1, 2, 3, 4];
        random.shuffle(&mut list);
        list.sort_unstable();
        assert_eq!(list, [1, 2, 3, 4]);
    }
}
