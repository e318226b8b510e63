//! Cassandra's Murmur3 partitioner: the token of a partition key.

/// The token of a partition key: the first 64 bits of MurmurHash3_x64_128 with seed 0, in Cassandra's variant.
///
/// Cassandra's (`org.apache.cassandra.utils.MurmurHash`) differs from the original in the tail: bytes there are
/// sign-extended, as Java's are, so keys with bytes ≥ 0x80 in the last partial block hash differently.
/// `i64::MIN` is not a token; the partitioner maps it to `i64::MAX`.
pub fn murmur3_token(key: &[u8]) -> i64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let scramble1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let scramble2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (0u64, 0u64);

    let mut blocks = key.chunks_exact(16);
    for block in &mut blocks {
        h1 ^= scramble1(little_endian(&block[..8]));
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= scramble2(little_endian(&block[8..]));
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }

    let (mut k1, mut k2) = (0u64, 0u64);
    for (place, byte) in blocks.remainder().iter().enumerate() {
        let signed = i64::from(*byte as i8) as u64;
        if place < 8 {
            k1 ^= signed << (8 * place);
        } else {
            k2 ^= signed << (8 * (place - 8));
        }
    }
    // With an empty tail both words are zero, and scrambling zero changes nothing.
    h2 ^= scramble2(k2);
    h1 ^= scramble1(k1);

    let length = key.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    let token = finish(h1).wrapping_add(finish(h2)) as i64;
    if token == i64::MIN { i64::MAX } else { token }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn finish(mut word: u64) -> u64 {
    word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    /// Golden: a bigint key with and without high bytes, which are what Cassandra's variant treats differently, and
    /// texts within, at and beyond a block of 16 bytes.
    #[test]
    fn tokens_are_cassandras() {
        for (key, token) in [
            (0i64, 2_945_182_322_382_062_539),
            (1, 6_292_367_497_774_912_474),
            (-1, 7_071_048_584_287_372_947),
            (1_000_000, -7_750_191_165_207_352_691),
        ] {
            assert_eq!(murmur3_token(&key.to_be_bytes()), token, "{key}");
        }
        for (key, token) in [
            ("", 0),
            ("test", -6_017_608_668_500_074_083),
            ("0123456789abcdef", 5_467_490_433_528_156_583),
            ("kremówki über 16 Bytes", -5_485_926_232_535_622_511),
        ] {
            assert_eq!(murmur3_token(key.as_bytes()), token, "{key}");
        }
    }

    /// Tokens as the `scylla` crate's partitioner, an independent implementation, computes them.
    #[test]
    fn tokens_equal_those_of_an_independent_implementation() {
        use scylla::routing::partitioner::{Murmur3Partitioner, Partitioner, PartitionerHasher};
        let mut random = Random::new(3);
        for length in 0..200 {
            let key: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
            let mut hasher = Murmur3Partitioner.build_hasher();
            hasher.write(&key);
            assert_eq!(murmur3_token(&key), hasher.finish().value(), "{key:?}");
        }
    }
}
