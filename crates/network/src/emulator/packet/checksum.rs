//! The Internet checksum (RFC 1071), and completing what a sending kernel has left undone.

use super::frame::{NEEDS_CSUM, PLAIN_VNET, VNET};

/// The sum of 16-bit words, not folded; a last odd byte is the upper half of a word.
pub(in crate::emulator) fn sum(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let words: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    words + rest.first().map_or(0, |last| u64::from(*last) << 8)
}

/// The carries added in, until there are none.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// What a transport checksum covers beside the transport's own bytes: addresses, protocol and length of an IP packet.
pub(crate) fn pseudo_header(packet: &[u8], protocol: u8, length: usize) -> u64 {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    sum(addresses) + u64::from(protocol) + length as u64
}

/// Writes a number in network byte order.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Sets the checksum of an IPv4 header.
pub(crate) fn seal_ipv4(header: &mut [u8]) {
    put(header, 10, 0);
    let checksum = !fold(sum(header));
    put(header, 10, checksum);
}

/// Finishes a frame of one packet: what the sender has left to be computed later is computed, so that from now on every
/// bit counts, and the receiving kernel must look.
pub(crate) fn complete(frame: &mut [u8]) {
    let field = |at: usize| usize::from(u16::from_ne_bytes([frame[at], frame[at + 1]]));
    let (start, offset) = (VNET + field(6), field(8));
    if frame[0] & NEEDS_CSUM != 0 && start + offset + 2 <= frame.len() {
        // The field holds the pseudo-header's sum already.
        let checksum = match !fold(sum(&frame[start..])) {
            // For UDP zero means none (RFC 768); for TCP both are the same sum.
            0 => 0xFFFF,
            checksum => checksum,
        };
        put(frame, start + offset, checksum);
    }
    // What follows says nothing any more, or is an Ethernet header.
    frame[..PLAIN_VNET].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_rfc() {
        // RFC 1071, section 3.
        assert_eq!(fold(sum(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7])), 0xDDF2);
        assert_eq!(sum(&[0x12]), 0x1200);
        assert_eq!(sum(&[]), 0);
    }

    #[test]
    fn a_frame_that_lies_about_its_checksum_is_left_alone() {
        let mut frame = vec![7; VNET + 20];
        frame[..10].copy_from_slice(&[NEEDS_CSUM, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        complete(&mut frame);
        assert_eq!(frame[VNET..], [7; 20]);
    }
}
