//! What a router tells a sender whose packet it does not pass on (RFC 792 and 1191, RFC 4443).

use super::{
    checksum::{fold, pseudo_header, put, seal_ipv4, sum},
    frame::{Carried, ICMP, ICMPV6, VNET},
};

/// Why a packet does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::emulator) enum Refusal {
    /// It is larger than this.
    TooBig { mtu: u16 },
    /// It is administratively prohibited.
    Prohibited,
}

/// The longest message: IPv4 routers send at most 576 bytes (RFC 1812, 4.3.2.3), IPv6 ones 1,280 (RFC 4443, 2.4c).
const LONGEST_V4: usize = 576;
const LONGEST_V6: usize = 1_280;
/// IP and ICMP header.
const HEADERS_V4: usize = 20 + 8;
const HEADERS_V6: usize = 40 + 8;

/// Bytes of the longest frame that [`write`] makes.
pub(in crate::emulator) const LONGEST: usize = VNET + LONGEST_V6;

/// Writes a frame for the sender of `packet` into `out`, which has [`LONGEST`] bytes, in the name of the packet's
/// destination. Says how long it is; `None` if there is nothing to say to such a packet: an error itself, not the first
/// fragment, or malformed.
pub(in crate::emulator) fn write(refusal: Refusal, packet: &[u8], out: &mut [u8]) -> Option<usize> {
    let carried = Carried::by(packet)?;
    let is_error = match (carried.protocol, packet.get(carried.at)) {
        // Unreachable, source quench, redirect, time exceeded, parameter problem.
        (ICMP, Some(kind)) => matches!(kind, 3 | 4 | 5 | 11 | 12),
        // All below are errors; redirects are not, and get no answer either.
        (ICMPV6, Some(kind)) => *kind < 128 || *kind == 137,
        _ => false,
    };
    if is_error || !carried.has_header {
        return None;
    }
    out[..VNET].fill(0);
    let out = out.get_mut(VNET..)?;
    let length = if packet[0] >> 4 == 4 { write_v4(refusal, packet, out) } else { write_v6(refusal, packet, out) };
    Some(VNET + length)
}

fn write_v4(refusal: Refusal, packet: &[u8], out: &mut [u8]) -> usize {
    let quoted = packet.len().min(LONGEST_V4 - HEADERS_V4);
    let length = HEADERS_V4 + quoted;
    out[..20].copy_from_slice(&[0x45, 0xC0, 0, 0, 0, 0, 0x40, 0, 64, ICMP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    put(out, 2, length as u16);
    out[12..16].copy_from_slice(&packet[16..20]);
    out[16..20].copy_from_slice(&packet[12..16]);
    seal_ipv4(&mut out[..20]);
    // Destination unreachable: fragmentation needed and DF set; communication administratively prohibited.
    let (code, mtu) = match refusal {
        Refusal::TooBig { mtu } => (4, mtu),
        Refusal::Prohibited => (13, 0),
    };
    out[20..28].copy_from_slice(&[3, code, 0, 0, 0, 0, 0, 0]);
    put(out, 26, mtu);
    out[28..length].copy_from_slice(&packet[..quoted]);
    let checksum = !fold(sum(&out[20..length]));
    put(out, 22, checksum);
    length
}

fn write_v6(refusal: Refusal, packet: &[u8], out: &mut [u8]) -> usize {
    let quoted = packet.len().min(LONGEST_V6 - HEADERS_V6);
    let length = HEADERS_V6 + quoted;
    out[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, ICMPV6, 64]);
    put(out, 4, (8 + quoted) as u16);
    out[8..24].copy_from_slice(&packet[24..40]);
    out[24..40].copy_from_slice(&packet[8..24]);
    // Packet too big; destination unreachable: communication administratively prohibited.
    let (kind, code, mtu) = match refusal {
        Refusal::TooBig { mtu } => (2, 0, mtu),
        Refusal::Prohibited => (1, 1, 0),
    };
    out[40..48].copy_from_slice(&[kind, code, 0, 0, 0, 0, 0, 0]);
    put(out, 46, mtu);
    out[48..length].copy_from_slice(&packet[..quoted]);
    let checksum = !fold(pseudo_header(out, ICMPV6, 8 + quoted) + sum(&out[40..length]));
    put(out, 42, checksum);
    length
}

/// How often a sender may be told: a thousand times a second, and a hundred at once. It is told of the first packet of a
/// GSO packet only, so this keeps within what a kernel would read.
#[derive(Default)]
pub(in crate::emulator) struct Allowance {
    /// When what has been used will be given back.
    full_ns: u64,
}

const EACH_NS: u64 = 1_000_000;
const AT_ONCE_NS: u64 = 100 * EACH_NS;

impl Allowance {
    /// Takes one, if there is one.
    pub(in crate::emulator) fn take(&mut self, now_ns: u64) -> bool {
        let full_ns = self.full_ns.max(now_ns) + EACH_NS;
        let allowed = full_ns - now_ns <= AT_ONCE_NS;
        if allowed {
            self.full_ns = full_ns;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::packet::frame::{TCP, UDP};

    fn v4(protocol: u8, kind: u8, length: usize) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, kind];
        packet.resize(length, 9);
        packet
    }

    fn v6(protocol: u8, kind: u8, length: usize) -> Vec<u8> {
        let mut packet = [&[0x60, 0, 0, 0, 0, 0, protocol, 64][..], &[1; 16], &[2; 16], &[kind]].concat();
        packet.resize(length, 9);
        packet
    }

    fn message(refusal: Refusal, packet: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0xEE; LONGEST];
        let length = write(refusal, packet, &mut out)?;
        assert_eq!(out[..VNET], [0; VNET]);
        Some(out[VNET..length].to_vec())
    }

    #[test]
    fn an_ipv4_sender_learns_the_next_mtu_or_that_it_is_prohibited() {
        let packet = v4(TCP, 1, 1_500);
        let told = message(Refusal::TooBig { mtu: 1_400 }, &packet).unwrap();
        assert_eq!(told.len(), 576);
        assert_eq!(u16::from_be_bytes([told[2], told[3]]), 576);
        assert_eq!((fold(sum(&told[..20])), fold(sum(&told[20..]))), (0xFFFF, 0xFFFF));
        assert_eq!(told[12..22], [10, 0, 0, 2, 10, 0, 0, 1, 3, 4]);
        assert_eq!(told[24..28], [0, 0, 0x05, 0x78]);
        assert_eq!(told[28..], packet[..548]);
        let told = message(Refusal::Prohibited, &v4(UDP, 1, 60)).unwrap();
        assert_eq!((told.len(), &told[20..22]), (88, &[3, 13][..]));
    }

    #[test]
    fn an_ipv6_sender_learns_the_same() {
        let packet = v6(TCP, 1, 1_500);
        let told = message(Refusal::TooBig { mtu: 1_300 }, &packet).unwrap();
        assert_eq!(told.len(), 1_280);
        assert_eq!(usize::from(u16::from_be_bytes([told[4], told[5]])), 1_240);
        assert_eq!((&told[8..24], &told[24..40]), (&[2; 16][..], &[1; 16][..]));
        assert_eq!(fold(pseudo_header(&told, ICMPV6, 1_240) + sum(&told[40..])), 0xFFFF);
        assert_eq!((&told[40..42], &told[44..48]), (&[2, 0][..], &[0, 0, 0x05, 0x14][..]));
        let told = message(Refusal::Prohibited, &v6(UDP, 1, 60)).unwrap();
        assert_eq!((told.len(), &told[40..42]), (108, &[1, 1][..]));
    }

    #[test]
    fn nothing_is_said_to_errors_to_later_fragments_and_to_rubbish() {
        for (packet, answered) in [
            (v4(ICMP, 8, 60), true),
            (v4(ICMP, 3, 60), false),
            (v4(ICMP, 11, 60), false),
            (v6(ICMPV6, 128, 60), true),
            (v6(ICMPV6, 2, 60), false),
        ] {
            assert_eq!(message(Refusal::Prohibited, &packet).is_some(), answered, "{:?}", &packet[..21]);
        }
        let mut fragment = v4(UDP, 0, 60);
        fragment[7] = 5;
        assert_eq!(message(Refusal::Prohibited, &fragment), None);
        assert_eq!(message(Refusal::Prohibited, &[]), None);
        for length in 1..48 {
            let _ = message(Refusal::Prohibited, &v4(UDP, 0, length));
            let _ = message(Refusal::Prohibited, &v6(UDP, 0, length));
        }
    }

    #[test]
    fn a_sender_is_told_a_hundred_times_at_once_and_then_a_thousand_times_a_second() {
        let mut allowance = Allowance::default();
        let now = 5_000_000_000;
        assert_eq!((0..1_000).filter(|_| allowance.take(now)).count(), 100);
        assert_eq!((0..1_000).filter(|_| allowance.take(now + 10_000_000)).count(), 10);
        assert_eq!((0..1_000).filter(|_| allowance.take(now + 1_000_000_000)).count(), 100);
    }
}
