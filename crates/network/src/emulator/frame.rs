//! What a TUN hands over: a virtio-net header and an IP packet, which may stand for many.
//!
//! The header is `struct virtio_net_hdr` of `linux/virtio_net.h`, 10 bytes in host byte order:
//! flags u8, gso_type u8, hdr_len u16, gso_size u16, csum_start u16, csum_offset u16. Offsets count
//! from the IP header on.

use std::net::Ipv4Addr;

/// Bytes of the virtio-net header.
pub(super) const VNET: usize = 10;
/// The longest frame: a header and the largest IPv4 packet.
pub(super) const LONGEST: usize = VNET + 65_535;

/// The checksum at `csum_offset` holds only the pseudo-header's sum; the rest is yet to be added.
pub(super) const NEEDS_CSUM: u8 = 1;

const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
/// Set beside the type on TCP superframes that carry CWR.
const GSO_ECN: u8 = 0x80;

/// The protocol of a superframe's segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

/// How a superframe falls into wire packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segments {
    pub(super) transport: Transport,
    /// Where the TCP or UDP header begins, from the IP header on.
    pub(super) transport_at: usize,
    /// Bytes of IP and transport headers, which each wire packet repeats.
    pub(super) headers: usize,
    /// Payload bytes of each wire packet but the last.
    pub(super) size: usize,
    /// Payload bytes of all.
    pub(super) payload: usize,
}

/// A frame, measured in what would be on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Wire packets.
    pub(super) packets: u32,
    /// Bytes of these packets, IP headers included.
    pub(super) wire_bytes: u32,
    /// `None` if the frame is one packet.
    pub(super) segments: Option<Segments>,
}

/// Where a frame goes; `None` if it is no IPv4 packet.
pub(super) fn destination(frame: &[u8]) -> Option<Ipv4Addr> {
    let packet = frame.get(VNET..)?;
    if packet.first()? >> 4 != 4 {
        return None;
    }
    let octets: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
    Some(Ipv4Addr::from(octets))
}

impl Shape {
    /// Measures a frame. What is not a well-formed superframe counts as one packet: then it is the
    /// receiving kernel that judges it.
    pub(super) fn of(frame: &[u8]) -> Shape {
        let bytes = frame.len().saturating_sub(VNET) as u32;
        let single = Shape { packets: 1, wire_bytes: bytes, segments: None };
        let Some(segments) = Segments::of(frame) else { return single };
        let packets = segments.payload.div_ceil(segments.size).max(1) as u32;
        if packets == 1 {
            return single;
        }
        Shape { packets, wire_bytes: bytes + (packets - 1) * segments.headers as u32, segments: Some(segments) }
    }
}

impl Segments {
    fn of(frame: &[u8]) -> Option<Segments> {
        let transport = match frame.get(1)? & !GSO_ECN {
            GSO_TCP4 | GSO_TCP6 => Transport::Tcp,
            GSO_UDP => Transport::Udp,
            _ => return None,
        };
        // Segmentation is only ever left undone together with the checksum, whose start is the
        // transport header's, whatever IP options or extension headers come before.
        if frame[0] & NEEDS_CSUM == 0 {
            return None;
        }
        let size = usize::from(host_u16(frame, 4)?);
        let transport_at = usize::from(host_u16(frame, 6)?);
        let packet = frame.get(VNET..)?;
        let headers = transport_at
            + match transport {
                Transport::Tcp => usize::from(packet.get(transport_at + 12)? >> 4) * 4,
                Transport::Udp => 8,
            };
        let payload = packet.len().checked_sub(headers)?;
        (size > 0 && transport_at >= 20).then_some(Segments { transport, transport_at, headers, size, payload })
    }
}

fn host_u16(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}
