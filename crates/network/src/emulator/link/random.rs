//! Randomness that belongs to one stage of one impairment on one link.
//!
//! xoshiro256++ 1.0, seeded by splitmix64 (David Blackman and Sebastiano Vigna,
//! <https://prng.di.unimi.it/>): small, fast, and the same on every machine for ever, which a
//! library's "default generator" does not promise.

use crate::link::Link;

pub(in crate::emulator) struct Random([u64; 4]);

impl Random {
    /// The stream of one stage of the `layer`-th impairment that this link has had: it depends on nothing else, so that
    /// neither traffic on other links nor another stage nor another impairment changes what is drawn.
    pub(in crate::emulator) fn of(seed: u64, link: Link, layer: u32, stage: u8) -> Random {
        let pair = u64::from(link.from.0) << 32 | u64::from(link.to.0);
        // Mixed before each is joined, so that seed 1 of stream 2 is not seed 2 of stream 1.
        let words = [pair, u64::from(layer), u64::from(stage)];
        let mut state = words.into_iter().fold(seed, |mut state, word| split_mix(&mut state) ^ word);
        Random(std::array::from_fn(|_| split_mix(&mut state)))
    }

    pub(in crate::emulator) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// True with this probability, from 0 (never) to 1 (always).
    pub(in crate::emulator) fn chance(&mut self, probability: f64) -> bool {
        // The 53 upper bits: every multiple of 2⁻⁵³ below 1.
        ((self.next() >> 11) as f64 / (1u64 << 53) as f64) < probability
    }

    /// Any number between 0 and 1, never these themselves.
    pub(in crate::emulator) fn between(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Any of `0 ..= most`, all alike (to within 2⁻⁶⁴ of the range).
    pub(in crate::emulator) fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.next()) * (u128::from(most) + 1)) >> 64) as u64
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::HostId;

    fn link(from: u16, to: u16) -> Link {
        Link { from: HostId(from), to: HostId(to) }
    }

    fn first(seed: u64, link: Link, layer: u32, stage: u8) -> [u64; 4] {
        let mut random = Random::of(seed, link, layer, stage);
        std::array::from_fn(|_| random.next())
    }

    #[test]
    fn generators_give_their_published_vectors() {
        // splitmix64 from 1234567, and xoshiro256++ from the state 1, 2, 3, 4 (both as the authors'
        // C programs print them).
        let mut seed = 1_234_567;
        let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(std::array::from_fn(|_| split_mix(&mut seed)), published);
        let mut random = Random([1, 2, 3, 4]);
        let published = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(std::array::from_fn(|_| random.next()), published);
    }

    #[test]
    fn a_stream_depends_on_seed_link_layer_and_stage_and_on_nothing_else() {
        let stream = first(7, link(0, 1), 0, 0);
        assert_eq!(stream, first(7, link(0, 1), 0, 0));
        for other in [
            first(8, link(0, 1), 0, 0),
            first(7, link(1, 0), 0, 0),
            first(7, link(0, 2), 0, 0),
            first(7, link(0, 1), 1, 0),
            first(7, link(0, 1), 0, 1),
        ] {
            assert_ne!(stream, other);
        }
    }

    #[test]
    fn chances_and_ranges_keep_to_their_bounds() {
        let mut random = Random::of(1, link(0, 1), 0, 0);
        assert!((0..10_000).all(|_| !random.chance(0.0)));
        assert!((0..10_000).all(|_| random.chance(1.0)));
        let drawn: Vec<u64> = (0..10_000).map(|_| random.up_to(3)).collect();
        for value in 0..=3 {
            let count = drawn.iter().filter(|drawn| **drawn == value).count();
            assert!((2_200..2_800).contains(&count), "{value} came {count} times");
        }
        assert!(drawn.iter().all(|value| *value <= 3));
        random.up_to(u64::MAX);
        assert!((0..10_000).map(|_| random.between()).all(|value| value > 0.0 && value < 1.0));
        assert!(((u64::MAX >> 12) as f64 + 0.5) / ((1u64 << 52) as f64) < 1.0);
    }
}
