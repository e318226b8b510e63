//! Numbers that look random and are functions of their inputs: what `v2` makes values from.
//!
//! None of it is a stream that must be drawn in order: any value of any row can be made at once.

/// 2⁶⁴ divided by the golden ratio, odd: the step of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection of 64 bits in which every bit of the result depends on every bit of the input: the finalizer of
/// SplitMix64 (Steele, Lea, Flood 2014; the constants are Stafford's variant 13).
pub fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Two words to one. For a fixed `salt` a bijection of `seed`, so that distinct seeds never meet.
pub fn mix(seed: u64, salt: u64) -> u64 {
    scramble(seed ^ scramble(salt))
}

/// A number from 0 to below 1 with 53 random bits.
pub fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// A number from 0 to below `bound` (`bound` > 0), nearly uniform: the high half of a product (Lemire 2019, without its
/// rejection, whose bias at 64 bits nobody can measure).
pub fn below(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

/// A stream of random words for the bytes of one value: SplitMix64 started at `seed`.
#[derive(Debug, Clone)]
pub struct Stream(u64);

impl Stream {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Stream(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        let word = scramble(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        word
    }

    /// From 0 to below `bound`, above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        below(self.word(), bound)
    }

    /// From 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        unit(self.word())
    }
}

/// A random-looking permutation of 0 ..= `domain` − 1, chosen by `key`: where `index` goes.
///
/// A Feistel network of four rounds over the smallest even number of bits that holds the domain, walked until it lands
/// inside (Black and Rogaway 2002, "cycle walking"): at most four steps are expected, and no memory is needed.
pub fn permute(index: u64, domain: u64, key: u64) -> u64 {
    if domain < 2 {
        return 0;
    }
    let half = (64 - (domain - 1).leading_zeros()).div_ceil(2);
    let mask = (1u64 << half) - 1;
    let mut at = index % domain;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..4u64 {
            (left, right) = (right, left ^ (scramble(right ^ key.wrapping_add(round.wrapping_mul(GOLDEN))) & mask));
        }
        at = left << half | right;
        if at < domain {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64 started at 1234567: the first words that the algorithm's authors and many libraries publish for it.
    #[test]
    fn the_stream_is_splitmix64() {
        let mut stream = Stream::new(1_234_567);
        let words: Vec<u64> = (0..5).map(|_| stream.word()).collect();
        assert_eq!(
            words,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn a_permutation_hits_every_place_once_and_depends_on_its_key() {
        for domain in [1, 2, 3, 7, 64, 1000, 4097] {
            let mut seen = vec![false; domain as usize];
            for index in 0..domain {
                let place = &mut seen[permute(index, domain, 42) as usize];
                assert!(!*place, "{domain}");
                *place = true;
            }
        }
        let places = |key| (0..1000).map(|index| permute(index, 1 << 40, key)).collect::<Vec<_>>();
        assert_ne!(places(1), places(2));
        assert!(places(1).iter().all(|place| *place < 1 << 40));
        assert!(permute(u64::MAX, 1 << 62, 3) < 1 << 62);
    }

    #[test]
    fn units_and_bounds_stay_inside_and_spread() {
        let mut stream = Stream::new(5);
        let mean = (0..10_000).map(|_| stream.unit()).inspect(|u| assert!((0.0..1.0).contains(u))).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        let mut counts = [0; 7];
        (0..7000).for_each(|_| counts[stream.below(7) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
