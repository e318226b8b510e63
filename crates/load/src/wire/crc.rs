//! The checksums of version 5's framing (`native_protocol_v5.spec`, sections 2.1 and 2.2).

/// CRC-24 with the initial value and the polynomial that the specification names, most significant bit first.
const INITIAL: u32 = 0x0087_5060;
const POLYNOMIAL: u32 = 0x0197_4F0B;

/// Contribution of each value of the highest byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = (byte as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            rest <<= 1;
            if rest & 0x0100_0000 != 0 {
                rest ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
};

/// Of a segment's header.
pub(super) fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(INITIAL, |crc, byte| {
        let highest = (crc >> 16) as u8 ^ byte;
        (crc << 8) & 0x00FF_FFFF ^ TABLE[usize::from(highest)]
    })
}

/// Of a segment's payload: the CRC-32 of Ethernet, begun with four bytes that are not sent (Cassandra's
/// `org.apache.cassandra.net.Crc`; the specification does not tell them).
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    const UNSENT: [u8; 4] = [0xFA, 0x2D, 0x55, 0xCA];
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&UNSENT);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Computed by polynomial division with Python's integers, and with its zlib.crc32.

    #[test]
    fn crc24_is_the_remainder_of_the_specified_polynomial() {
        assert_eq!(crc24(b""), 0x0087_5060);
        assert_eq!(crc24(&[0, 0, 0]), 0x007D_E777);
        assert_eq!(crc24(&[0x05, 0, 2]), 0x009A_9919);
        assert_eq!(crc24(&[0x32, 0, 2]), 0x00EE_FFA5);
        assert_eq!(crc24(&[0xFF, 0xFF, 3]), 0x0047_4025);
        assert_eq!(crc24(b"123456789"), 0x004B_3F02);
    }

    #[test]
    fn crc32_begins_with_the_unsent_bytes() {
        assert_eq!(crc32(b""), 0x4477_7ED3);
        assert_eq!(crc32(b"abc"), 0xC536_7A08);
        assert_eq!(crc32(b"123456789"), 0xE2A2_61A7);
    }
}
