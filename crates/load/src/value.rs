//! What a row contains: a pure function of (key, version), so that every read can be checked byte for byte.
//!
//! Layout: key (8 bytes, big-endian) · version (8 bytes, big-endian) · random words of 8 bytes, the last one
//! cut to fit. The words are a SplitMix64 stream of (key, version): a byte lost, flipped, shifted or taken from
//! another row or version cannot pass, and nothing compresses.

use brownout_base::random::{GOLDEN, Random, scramble};

/// Bytes before the random words.
pub(crate) const HEADER: usize = 16;

fn stream(key: u64, version: u64) -> Random {
    Random::new(scramble(key) ^ scramble(version.wrapping_sub(GOLDEN)).rotate_left(17))
}

/// Appends the value of `size` bytes (at least [`HEADER`]) to `out`.
pub(crate) fn append(out: &mut Vec<u8>, key: u64, version: u64, size: usize) {
    out.extend_from_slice(&key.to_be_bytes());
    out.extend_from_slice(&version.to_be_bytes());
    let mut words = stream(key, version);
    let mut left = size.saturating_sub(HEADER);
    while left > 0 {
        let word = words.word().to_le_bytes();
        let take = left.min(8);
        out.extend_from_slice(&word[..take]);
        left -= take;
    }
}

/// The version that `value` was written with; `None` unless it is, byte for byte, a value of `key` and `size`.
pub(crate) fn verify(value: &[u8], key: u64, size: usize) -> Option<u64> {
    if value.len() != size {
        return None;
    }
    let (head, body) = value.split_at_checked(HEADER)?;
    if head[..8] != key.to_be_bytes() {
        return None;
    }
    let version = u64::from_be_bytes(head[8..].try_into().ok()?);
    let mut words = stream(key, version);
    let intact = body.chunks(8).all(|chunk| words.word().to_le_bytes()[..chunk.len()] == *chunk);
    intact.then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_verifies_at_every_size() {
        for size in [16, 17, 23, 24, 25, 100, 1000] {
            let mut value = Vec::new();
            append(&mut value, 42, 7, size);
            assert_eq!(value.len(), size);
            assert_eq!(verify(&value, 42, size), Some(7));
        }
    }

    #[test]
    fn any_flipped_bit_of_the_content_is_noticed() {
        let mut value = Vec::new();
        append(&mut value, 42, 7, 61);
        for byte in 0..value.len() {
            for bit in 0..8 {
                value[byte] ^= 1 << bit;
                assert_eq!(verify(&value, 42, 61), None, "byte {byte}, bit {bit}");
                value[byte] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn another_key_another_size_and_nothing_are_refused() {
        let mut value = Vec::new();
        append(&mut value, 42, 7, 64);
        assert_eq!(verify(&value, 43, 64), None);
        assert_eq!(verify(&value, 42, 65), None);
        assert_eq!(verify(&value[..63], 42, 63), Some(7), "a shorter value is a prefix");
        assert_eq!(verify(&[], 42, 64), None);
    }

    /// Golden: data written by one version of Brownout must verify with the next.
    #[test]
    fn the_content_of_a_row_does_not_change_between_versions_of_brownout() {
        let mut value = Vec::new();
        append(&mut value, 1, 2, 27);
        assert_eq!(value[..16], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(value[16..], [52, 144, 176, 162, 11, 167, 221, 29, 48, 55, 129]);
    }
}
