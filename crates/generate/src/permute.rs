//! An order that looks random and is a function of its inputs.

use brownout_base::random::{GOLDEN, scramble};

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
}
