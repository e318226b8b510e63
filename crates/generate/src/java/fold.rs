//! Folds in the manner of `String.hashCode`, by which cassandra-stress turns a key or a clustering value, and the seed
//! above it, into the seed below it: `seed = 31 · seed + part`, with wrap-around.

/// Folds bytes, each with its sign.
pub fn fold_bytes(seed: i64, bytes: &[u8]) -> i64 {
    bytes.iter().fold(seed, |seed, byte| fold_number(seed, i64::from(*byte as i8)))
}

/// Folds text by its UTF-16 units.
pub fn fold_text(seed: i64, text: &str) -> i64 {
    text.encode_utf16().fold(seed, |seed, unit| fold_number(seed, i64::from(unit)))
}

/// Folds a number (Java's `longValue`, so a fraction is cut off and what is too large saturates before).
#[inline]
pub fn fold_number(seed: i64, number: i64) -> i64 {
    seed.wrapping_mul(31).wrapping_add(number)
}

/// Folds a UUID given by its two halves.
pub fn fold_uuid(seed: i64, most: i64, least: i64) -> i64 {
    fold_number(seed, most ^ least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_folds_to_its_java_hash_code() {
        // Well known: "Aa" and "BB" share the hash code 2112.
        assert_eq!((fold_text(0, "Aa"), fold_text(0, "BB")), (2112, 2112));
        assert_eq!(fold_text(0, "\u{1F600}"), 31 * 0xD83D + 0xDE00);
    }

    #[test]
    fn bytes_count_with_their_sign() {
        assert_eq!(fold_bytes(1, &[0xff, 2]), 31 * (31 - 1) + 2);
    }

    #[test]
    fn a_uuid_of_two_equal_halves_leaves_nothing_but_the_seed() {
        assert_eq!(fold_uuid(7, 0x1234, 0x1234), 7 * 31);
    }
}
