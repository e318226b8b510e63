//! Flips one bit of a packet, such that a checksum must notice.

use std::ops::Range;

use super::{
    checksum,
    frame::{Carried, TCP, UDP, VNET},
};

/// Flips the bit that `draw` says, any behind the IP header alike, in a frame of one packet. False if there is none.
///
/// A few are spared, which a receiver looks at before it comes to the checksum, so that it would drop the packet
/// without counting a checksum error: the length of UDP and the data offset of TCP. UDP's checksum itself is spared
/// because it might become zero, which means that there is none.
pub(in crate::emulator) fn flip(frame: &mut [u8], draw: u64) -> bool {
    // While the checksum is yet to be computed, the damage would be computed in.
    checksum::complete(frame);
    let packet = &mut frame[VNET..];
    let Some(Carried { protocol, at, has_header }) = Carried::by(packet) else { return false };
    let spared: Range<usize> = match (protocol, has_header) {
        (UDP, true) => 4..8,
        (TCP, true) => 12..13,
        _ => 0..0,
    };
    let carried = &mut packet[at..];
    let spared = spared.start.min(carried.len())..spared.end.min(carried.len());
    let bits = (carried.len() - spared.len()) as u128 * 8;
    if bits == 0 {
        return false;
    }
    let bit = ((u128::from(draw) * bits) >> 64) as usize;
    let (mut byte, bit) = (bit / 8, bit % 8);
    if byte >= spared.start {
        byte += spared.len();
    }
    carried[byte] ^= 1 << bit;
    true
}

#[cfg(test)]
mod tests {
    use super::{super::frame::NEEDS_CSUM, *};

    const PAYLOAD: usize = 30;

    /// A frame whose transport checksum is still to be completed.
    fn frame(version: u8, protocol: u8) -> Vec<u8> {
        let header = if protocol == TCP { 20 } else { 8 };
        let offset: u16 = if protocol == TCP { 16 } else { 6 };
        let length = header + PAYLOAD;
        let mut packet = match version {
            4 => [&[0x45, 0, 0, 20 + length as u8, 1, 2, 0x40, 0, 64, protocol, 0, 0][..], &[10, 0, 0, 1, 10, 0, 0, 2]]
                .concat(),
            _ => [&[0x60, 0, 0, 0, 0, length as u8, protocol, 64][..], &[0xFD; 32]].concat(),
        };
        let start = packet.len();
        packet.extend((0..length).map(|n| (n as u8).wrapping_mul(7)));
        if protocol == UDP {
            checksum::put(&mut packet, start + 4, length as u16);
        }
        let partial = checksum::fold(checksum::pseudo_header(&packet, protocol, length));
        checksum::put(&mut packet, start + usize::from(offset), partial);
        let mut frame = vec![NEEDS_CSUM, 0, 0, 0, 0, 0];
        frame.extend((start as u16).to_ne_bytes());
        frame.extend(offset.to_ne_bytes());
        frame.resize(VNET, 0);
        frame.extend(packet);
        frame
    }

    /// As a receiver checks it.
    fn is_intact(frame: &[u8], start: usize, protocol: u8) -> bool {
        let packet = &frame[VNET..];
        let covered = checksum::pseudo_header(packet, protocol, packet.len() - start);
        checksum::fold(covered + checksum::sum(&packet[start..])) == 0xFFFF
    }

    #[test]
    fn every_flipped_bit_is_noticed_and_lies_behind_the_ip_header() {
        for (version, start) in [(4, 20), (6, 40)] {
            for protocol in [TCP, UDP] {
                let whole = {
                    let mut frame = frame(version, protocol);
                    checksum::complete(&mut frame);
                    assert!(is_intact(&frame, start, protocol));
                    frame
                };
                let bits = (whole.len() - VNET - start) * 8;
                let mut hit = vec![0; whole.len()];
                for n in 0..bits as u64 {
                    let mut damaged = frame(version, protocol);
                    assert!(flip(&mut damaged, (u64::MAX / bits as u64) * n + 1));
                    assert!(!is_intact(&damaged, start, protocol), "IPv{version} {protocol}: {n}");
                    let differing: Vec<_> = (0..whole.len()).filter(|at| whole[*at] != damaged[*at]).collect();
                    assert_eq!(differing.len(), 1);
                    assert_eq!((whole[differing[0]] ^ damaged[differing[0]]).count_ones(), 1);
                    assert_eq!(damaged[..VNET], [0; VNET], "nothing is left to be computed");
                    hit[differing[0] - VNET] += 1;
                }
                assert!(hit[..start].iter().all(|hits| *hits == 0));
                let spared = if protocol == TCP { start + 12..start + 13 } else { start + 4..start + 8 };
                for (at, hits) in hit.iter().enumerate().take(whole.len() - VNET).skip(start) {
                    assert_eq!(*hits == 0, spared.contains(&at), "byte {at} of IPv{version} {protocol}");
                }
            }
        }
    }

    #[test]
    fn a_packet_without_anything_to_flip_is_not_damaged() {
        let mut empty = [&[0; VNET][..], &[0x45, 0, 0, 20, 0, 0, 0, 0, 64, UDP], &[0; 10]].concat();
        assert!(!flip(&mut empty, 7));
        let mut no_packet = vec![0; VNET + 3];
        assert!(!flip(&mut no_packet, 7));
    }
}
