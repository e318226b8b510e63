//! The slicer against an independent segmenter: each wire packet is built from scratch by its own
//! plain code, checksums and all, and compared with what the slicer and a receiving kernel's
//! completion of checksum and segmentation make of the GSO packet.

use super::{
    super::frame::{NEEDS_CSUM, Shape},
    *,
};

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;

/// A GSO packet as a kernel hands it over, and how it is to be cut.
struct Super {
    version: u8,
    transport: Transport,
    flags: u8,
    payload: usize,
    size: usize,
}

/// A wire packet, complete with checksums, as it would travel on a cable.
type Wire = Vec<u8>;

const SEQUENCE: u32 = u32::MAX - 5_000; // wraps within the GSO packet
const IDENTIFICATION: u16 = u16::MAX - 1; // so does this
const TCP_OPTIONS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];

fn byte(at: usize) -> u8 {
    (at * 31 % 251) as u8
}

/// RFC 1071, the slow way: one byte at a time, carry added at once.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for (at, byte) in parts.concat().iter().enumerate() {
        sum += if at % 2 == 0 { u32::from(*byte) << 8 } else { u32::from(*byte) };
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

impl Super {
    fn protocol(&self) -> u8 {
        if self.transport == Transport::Tcp { 6 } else { 17 }
    }

    fn packets(&self) -> u32 {
        self.payload.div_ceil(self.size) as u32
    }

    fn pseudo_header(&self, length: usize) -> Vec<u8> {
        let length = length as u16;
        match self.version {
            4 => [&[10, 77, 0, 1, 10, 77, 0, 2, 0, self.protocol()][..], &length.to_be_bytes()].concat(),
            _ => [&[0xFD; 16][..], &[0xFE; 16], &[0, 0], &length.to_be_bytes(), &[0, 0, 0, self.protocol()]].concat(),
        }
    }

    /// An IP packet with this payload range; its transport checksum is the pseudo-header's sum alone
    /// if it is `partial`, and complete otherwise.
    fn packet(&self, from: usize, to: usize, first: u32, flags: u8, partial: bool) -> Wire {
        let payload: Vec<u8> = (from..to).map(byte).collect();
        let mut transport = match self.transport {
            Transport::Tcp => {
                let sequence = SEQUENCE.wrapping_add(from as u32).to_be_bytes();
                let head = [&[0x23, 0x52, 0x9C, 0x40][..], &sequence, &[0, 0, 0, 77, 0x80, flags, 1, 2, 0, 0, 0, 0]];
                [&head.concat()[..], &TCP_OPTIONS].concat()
            }
            Transport::Udp => {
                [&[0x23, 0x52, 0x9C, 0x40][..], &(8 + payload.len() as u16).to_be_bytes(), &[0, 0]].concat()
            }
        };
        let length = transport.len() + payload.len();
        let pseudo = self.pseudo_header(length);
        let sum = if partial { !checksum(&[&pseudo]) } else { checksum(&[&pseudo, &transport, &payload]) };
        let at = if self.transport == Transport::Tcp { 16 } else { 6 };
        transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());

        let mut ip = match self.version {
            4 => {
                let total = (20 + length) as u16;
                let id = IDENTIFICATION.wrapping_add(first as u16);
                let mut ip =
                    [&[0x45, 0][..], &total.to_be_bytes(), &id.to_be_bytes(), &[0x40, 0, 64, self.protocol(), 0, 0]]
                        .concat();
                ip.extend([10, 77, 0, 1, 10, 77, 0, 2]);
                let sum = checksum(&[&ip]);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
                ip
            }
            _ => {
                [&[0x60, 0, 0, 0][..], &(length as u16).to_be_bytes(), &[self.protocol(), 64], &[0xFD; 16], &[0xFE; 16]]
                    .concat()
            }
        };
        ip.extend(transport);
        ip.extend(payload);
        ip
    }

    /// What the sending kernel hands to the emulator.
    fn frame(&self) -> Vec<u8> {
        let packet = self.packet(0, self.payload, 0, self.flags, true);
        let gso_type = match (self.transport, self.version) {
            (Transport::Udp, _) => 5,
            (_, 4) => 1,
            _ => 4,
        };
        let start: u16 = if self.version == 4 { 20 } else { 40 };
        let offset: u16 = if self.transport == Transport::Tcp { 16 } else { 6 };
        let mut frame = vec![NEEDS_CSUM, gso_type];
        // The kernel's hdr_len is what lies in the linear part, and no promise.
        for field in [999, self.size as u16, start, offset] {
            frame.extend(field.to_ne_bytes());
        }
        frame.resize(VNET, 0);
        frame.extend(packet);
        frame
    }

    /// Every wire packet that the GSO packet stands for.
    fn wire(&self) -> Vec<Wire> {
        (0..self.packets())
            .map(|n| {
                let (from, to) = (n as usize * self.size, ((n + 1) as usize * self.size).min(self.payload));
                let mut flags = self.flags;
                if n > 0 {
                    flags &= !CWR;
                }
                if n + 1 < self.packets() {
                    flags &= !(FIN | PSH);
                }
                self.packet(from, to, n, flags, false)
            })
            .collect()
    }

    fn sliced(&self, run: Range<u32>) -> Vec<u8> {
        let frame = self.frame();
        let segments = Shape::of(&frame).segments.unwrap();
        let mut out = vec![0xEE; sliced_length(&segments, &run)];
        slice(&frame, &segments, &run, &mut out);
        out
    }
}

/// Completes the checksum of a plain packet as a receiving kernel does: from `csum_start` to the end.
fn complete(frame: &[u8]) -> Wire {
    assert_eq!((frame[0], frame[1]), (NEEDS_CSUM, 0), "a plain packet with its checksum still to do");
    let field = |at: usize| usize::from(u16::from_ne_bytes([frame[at], frame[at + 1]]));
    assert_eq!(field(4), 0, "gso_size");
    let (start, offset) = (field(6), field(8));
    let mut packet = frame[VNET..].to_vec();
    let sum = checksum(&[&packet[start..]]);
    packet[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn all() -> Vec<Super> {
    let mut all = Vec::new();
    for version in [4, 6] {
        for (transport, flags) in [(Transport::Tcp, ACK), (Transport::Tcp, ACK | FIN | PSH | CWR), (Transport::Udp, 0)]
        {
            for (payload, size) in [(10_000, 1_448), (2 * 1_448, 1_448), (1_449, 1_448), (60_000, 536), (999, 7)] {
                all.push(Super { version, transport, flags, payload, size });
            }
        }
    }
    all
}

#[test]
fn a_gso_packet_counts_as_the_packets_it_stands_for() {
    for whole in all() {
        let shape = Shape::of(&whole.frame());
        let wire = whole.wire();
        assert_eq!(shape.packets as usize, wire.len());
        assert_eq!(shape.wire_bytes as usize, wire.iter().map(Vec::len).sum::<usize>());
    }
}

#[test]
fn every_single_packet_is_the_one_that_the_kernel_would_have_sent() {
    for whole in all() {
        for (n, wire) in (0..).zip(whole.wire()) {
            let sliced = whole.sliced(n..n + 1);
            assert_eq!(complete(&sliced), wire, "packet {n} of {} over IPv{}", whole.payload, whole.version);
            assert_eq!(Shape::of(&sliced).packets, 1);
        }
    }
}

#[test]
fn a_run_cut_again_is_the_same_as_packets_cut_at_once() {
    for whole in all() {
        let packets = whole.packets();
        for run in [0..packets, 0..packets - 1, 1..packets, 1..packets.max(3) - 1] {
            if run.len() < 2 {
                continue;
            }
            let sliced = whole.sliced(run.clone());
            let segments = Shape::of(&sliced).segments.unwrap();
            assert_eq!(Shape::of(&sliced).packets as usize, run.len());
            for n in 0..run.len() as u32 {
                let mut again = vec![0; sliced_length(&segments, &(n..n + 1))];
                slice(&sliced, &segments, &(n..n + 1), &mut again);
                assert_eq!(complete(&again), whole.wire()[(run.start + n) as usize], "packet {n} of {run:?}");
            }
        }
    }
}

#[test]
fn the_whole_gso_packet_is_left_as_it_was() {
    for whole in all() {
        let (frame, mut sliced) = (whole.frame(), whole.sliced(0..whole.packets()));
        // All but hdr_len, which is now exact.
        assert_eq!(u16::from_ne_bytes([sliced[2], sliced[3]]) as usize, whole.frame().len() - VNET - whole.payload);
        sliced[2..4].copy_from_slice(&frame[2..4]);
        assert_eq!(sliced, frame);
    }
}

#[test]
fn a_datagram_cut_out_is_golden_byte_for_byte() {
    // 10.77.0.1:9042 → 10.77.0.2:40000, "0, 31" as payload, written out from RFC 791 and RFC 768.
    let whole = Super { version: 4, transport: Transport::Udp, flags: 0, payload: 4, size: 2 };
    let first = complete(&whole.sliced(0..1));
    let ip = [0x45, 0, 0, 30, 0xFF, 0xFE, 0x40, 0, 64, 17, 0x26, 0x34, 10, 77, 0, 1, 10, 77, 0, 2];
    let udp = [0x23, 0x52, 0x9C, 0x40, 0, 10, 0x2B, 0x8C, 0, 31];
    assert_eq!(first, [&ip[..], &udp].concat());
    // And as a receiver checks them: sums over what they cover are zero.
    assert_eq!(checksum(&[&first[..20]]), 0);
    assert_eq!(checksum(&[&whole.pseudo_header(10), &first[20..]]), 0);
}

#[test]
fn frames_that_lie_about_themselves_count_as_one_packet() {
    let good = Super { version: 4, transport: Transport::Tcp, flags: ACK, payload: 5_000, size: 1_448 }.frame();
    for (what, at, value) in
        [("gso_size 0", 4, 0u16), ("csum_start beyond the end", 6, 9_999), ("csum_start inside of the IP header", 6, 8)]
    {
        let mut frame = good.clone();
        frame[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        assert_eq!(Shape::of(&frame).segments, None, "{what}");
    }
    for (what, at, value) in [
        ("a TCP header of 16 bytes", VNET + 20 + 12, 0x40),
        ("an IP header of 16 bytes", VNET, 0x44),
        ("an IP header that reaches into TCP's", VNET, 0x46),
        ("TCP over IPv6 in an IPv4 packet", 1, 4),
        ("another length", VNET + 2, 1),
        ("no IP version", VNET, 0x75),
    ] {
        let mut frame = good.clone();
        frame[at] = value;
        assert_eq!(Shape::of(&frame).segments, None, "{what}");
    }
    for length in 0..good.len().min(80) {
        let _ = Shape::of(&good[..length]);
    }
    let mut no_checksum = good;
    no_checksum[0] = 0;
    assert_eq!(Shape::of(&no_checksum).packets, 1);
}

/// IP, UDP, VXLAN and Ethernet headers around an inner packet, as the kernel's VXLAN makes them. The UDP checksum is the
/// pseudo-header's sum alone if it is `partial`, complete otherwise, and zero if there is none.
fn in_vxlan(inner: &[u8], first: u32, partial: bool, has_checksum: bool) -> Wire {
    let length = (8 + 8 + 14 + inner.len()) as u16;
    let ethernet = [&[2, 0x62, 10, 78, 0, 2, 2, 0x62, 10, 78, 0, 1][..], &[8, 0]].concat();
    let vxlan = [8, 0, 0, 0, 0, 0, 42, 0];
    let mut udp =
        [&[0xC1, 0x23, 0x12, 0xB5][..], &length.to_be_bytes(), &[0, 0], &vxlan, &ethernet[..], inner].concat();
    let pseudo = [&[10, 77, 0, 1, 10, 77, 0, 2, 0, 17][..], &length.to_be_bytes()].concat();
    let sum = match (has_checksum, partial) {
        (false, _) => 0,
        (true, true) => !checksum(&[&pseudo]),
        (true, false) => checksum(&[&pseudo, &udp]),
    };
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    let (total, id) = (20 + length, 7u16.wrapping_add(first as u16));
    let mut ip = [&[0x45, 0][..], &total.to_be_bytes(), &id.to_be_bytes(), &[0, 0, 64, 17, 0, 0]].concat();
    ip.extend([10, 77, 0, 1, 10, 77, 0, 2]);
    let sum = checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    [ip, udp].concat()
}

const INNER_AT: usize = 20 + 8 + 8 + 14;

impl Super {
    /// What the sending kernel hands over of it through a VXLAN.
    fn vxlan_frame(&self, has_checksum: bool) -> Vec<u8> {
        let plain = self.frame();
        let mut frame = plain[..VNET].to_vec();
        frame[0] |= if has_checksum { TUNNEL_CSUM } else { 0 };
        frame[1] |= 0x20;
        let start = u16::from_ne_bytes([frame[6], frame[7]]) + INNER_AT as u16;
        frame[6..8].copy_from_slice(&start.to_ne_bytes());
        frame[20..24].copy_from_slice(&[20, 0, INNER_AT as u8, 0]);
        frame.extend(in_vxlan(&plain[VNET..], 0, true, has_checksum));
        frame
    }
}

#[test]
fn packets_cut_out_of_a_tunnel_are_those_that_the_kernel_would_have_sent() {
    for whole in all() {
        for has_checksum in [true, false] {
            let frame = whole.vxlan_frame(has_checksum);
            let shape = Shape::of(&frame);
            let segments = shape.segments.unwrap();
            let wire: Vec<Wire> =
                (0..).zip(whole.wire()).map(|(n, inner)| in_vxlan(&inner, n, false, has_checksum)).collect();
            assert_eq!(shape.packets as usize, wire.len());
            assert_eq!(shape.wire_bytes as usize, wire.iter().map(Vec::len).sum::<usize>());
            assert_eq!(segments.must_be_cut(), whole.transport == Transport::Udp);
            for (n, wire) in (0..).zip(&wire) {
                let mut one = vec![0xEE; sliced_length(&segments, &(n..n + 1))];
                slice(&frame, &segments, &(n..n + 1), &mut one);
                assert_eq!(one[10..VNET], [0; VNET - 10], "nothing of a tunnel is left to be done");
                assert_eq!(complete(&one), *wire, "packet {n} of {}, IPv{} inside", whole.payload, whole.version);
            }
        }
    }
}

#[test]
fn a_run_cut_out_of_a_tunnel_is_cut_again_to_the_same_packets() {
    for whole in all().into_iter().filter(|whole| whole.packets() > 2) {
        let frame = whole.vxlan_frame(true);
        let segments = Shape::of(&frame).segments.unwrap();
        let run = 1..whole.packets();
        let mut part = vec![0xEE; sliced_length(&segments, &run)];
        slice(&frame, &segments, &run, &mut part);
        let again = Shape::of(&part).segments.unwrap();
        assert_eq!(Shape::of(&part).packets as usize, run.len());
        for n in 0..run.len() as u32 {
            let mut one = vec![0; sliced_length(&again, &(n..n + 1))];
            slice(&part, &again, &(n..n + 1), &mut one);
            let inner = &whole.wire()[(run.start + n) as usize];
            assert_eq!(complete(&one), in_vxlan(inner, run.start + n, false, true), "packet {n} of {run:?}");
        }
    }
}

#[test]
fn a_tunnel_that_lies_about_itself_counts_as_one_packet() {
    let whole = Super { version: 4, transport: Transport::Tcp, flags: ACK, payload: 5_000, size: 1_448 };
    let good = whole.vxlan_frame(true);
    assert!(Shape::of(&good).segments.is_some());
    for (what, at, value) in [
        ("an inner header inside of the outer one", 22, 8),
        ("an inner header beyond the end", 23, 0xFF),
        ("a tunnel over IPv6", 1, 0x41),
        ("two tunnels", 1, 0x61),
        ("no UDP outside", VNET + 9, 6),
        ("another length outside", VNET + 3, 1),
        ("another length of UDP", VNET + 25, 1),
        ("an IP header of 16 bytes outside", VNET, 0x44),
    ] {
        let mut frame = good.clone();
        frame[at] = value;
        assert_eq!(Shape::of(&frame).segments, None, "{what}");
    }
    for length in 0..good.len().min(160) {
        let _ = Shape::of(&good[..length]);
    }
}
