//! Murmur3 (x64, 128 bits) as Cassandra computes it: the trailing bytes count with their sign, which the original's do not.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Both words of the hash of `bytes`.
pub fn hash3_x64_128(bytes: &[u8], seed: i64) -> (i64, i64) {
    let (mut h1, mut h2) = (seed as u64, seed as u64);
    let mut blocks = bytes.chunks_exact(16);
    for block in &mut blocks {
        h1 ^= spread(word(&block[..8]), C1, 31, C2);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= spread(word(&block[8..]), C2, 33, C1);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (mut low, mut high) = (0, 0);
    for (i, byte) in blocks.remainder().iter().enumerate() {
        let signed = i64::from(*byte as i8) as u64;
        if i < 8 {
            low ^= signed << (8 * i);
        } else {
            high ^= signed << (8 * (i - 8));
        }
    }
    h1 ^= spread(low, C1, 31, C2);
    h2 ^= spread(high, C2, 33, C1);

    let length = bytes.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1 as i64, h2 as i64)
}

/// The salt of a column: what its values are made from besides the seed of its row. `text` is, in cassandra-stress,
/// `randomstr` and the name for predefined columns, `seed for stress` and the name as spelled in a profile.
pub fn salt(text: &str) -> i64 {
    hash3_x64_128(text.as_bytes(), 0).0
}

/// The token of a serialized partition key under `Murmur3Partitioner`, which has no use for the smallest number.
pub fn token(key: &[u8]) -> i64 {
    match hash3_x64_128(key, 0).0 {
        i64::MIN => i64::MAX,
        token => token,
    }
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[inline]
fn spread(word: u64, first: u64, turn: u32, second: u64) -> u64 {
    word.wrapping_mul(first).rotate_left(turn).wrapping_mul(second)
}

#[inline]
fn finish(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}
