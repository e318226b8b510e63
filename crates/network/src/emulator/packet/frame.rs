//! What a TUN hands over: a virtio-net header and an IP packet, which may stand for many.
//!
//! The header is `struct virtio_net_hdr_v1_hash_tunnel` of `linux/virtio_net.h`, 24 bytes. The first ten, in host byte
//! order: flags u8, gso_type u8, hdr_len u16, gso_size u16, csum_start u16, csum_offset u16. The last four, little-endian,
//! are of GSO packets inside of a UDP tunnel (VXLAN) alone, from kernels that know such (Linux 6.17): where the tunnel's
//! UDP header begins, and where the IP header inside. Offsets count from the IP header on.
//!
//! Frames of exits (`port/exit.rs`) have the first ten bytes, and their Ethernet header in the place of the other fourteen:
//! no kernel is asked there for packets in tunnels, and so nothing here looks at those.

use std::net::IpAddr;

/// Bytes of the virtio-net header.
pub(crate) const VNET: usize = 24;
/// Those of them that say nothing of tunnels.
pub(in crate::emulator) const PLAIN_VNET: usize = 10;
/// The longest frame: a header and the largest IPv4 packet.
pub(crate) const LONGEST: usize = VNET + 65_535;

/// The checksum at `csum_offset` holds only the pseudo-header's sum; the rest is yet to be added.
pub(crate) const NEEDS_CSUM: u8 = 1;
/// The same of the UDP header of a tunnel whose packets are a GSO packet.
pub(in crate::emulator) const TUNNEL_CSUM: u8 = 8;

pub(crate) const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
/// Set beside the type on GSO packets inside of a UDP tunnel over IPv4.
const GSO_TUNNEL4: u8 = 0x20;
/// The same over IPv6.
const GSO_TUNNEL6: u8 = 0x40;
/// Set beside the type on TCP GSO packets that carry CWR.
const GSO_ECN: u8 = 0x80;

/// Where the header says that a tunnel's UDP header begins.
const OUTER_UDP: usize = 20;
/// Where it says that the IP header inside of the tunnel begins.
const INNER_IP: usize = 22;
/// Kernels refuse a tunnel's UDP header nearer to the beginning than this, since they count on an Ethernet header before
/// the IP header (`virtio_net_hdr_tnl_to_skb` of Linux 6.17); a TUN has none. They find it by the IP header anyway.
const LEAST_OUTER_UDP: u16 = 14 + 20;

/// The protocol of a GSO packet's segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// IP's numbers of the protocols that are known here.
pub(in crate::emulator) const TCP: u8 = 6;
pub(in crate::emulator) const UDP: u8 = 17;
pub(in crate::emulator) const ICMP: u8 = 1;
pub(in crate::emulator) const ICMPV6: u8 = 58;

impl Transport {
    /// IP's number of it.
    pub(in crate::emulator) fn protocol(self) -> u8 {
        match self {
            Transport::Tcp => TCP,
            Transport::Udp => UDP,
        }
    }
}

/// What a GSO packet travels in, if that is a UDP tunnel over IPv4. Offsets are from the outer IP header on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tunnel {
    /// Where the tunnel's UDP header begins.
    pub(in crate::emulator) udp_at: usize,
    /// Where the IP header inside begins.
    pub(in crate::emulator) inner_at: usize,
}

/// How a GSO packet falls into wire packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segments {
    pub(in crate::emulator) transport: Transport,
    /// Where the TCP or UDP header begins, from the IP header on; in a tunnel the inner one, from the outer IP header on.
    pub(in crate::emulator) transport_at: usize,
    /// Bytes of all headers, which each wire packet repeats.
    pub(in crate::emulator) headers: usize,
    /// Payload bytes of each wire packet but the last.
    pub(in crate::emulator) size: usize,
    /// Payload bytes of all.
    pub(in crate::emulator) payload: usize,
    /// `None` if the packets are in no tunnel.
    pub(in crate::emulator) tunnel: Option<Tunnel>,
}

/// A frame, measured in what would be on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Wire packets.
    pub(crate) packets: u32,
    /// Bytes of these packets, IP headers included.
    pub(in crate::emulator) wire_bytes: u32,
    /// `None` if the frame is one packet.
    pub(crate) segments: Option<Segments>,
}

/// Where a frame goes; `None` if it is no IP packet.
pub(in crate::emulator) fn destination(frame: &[u8]) -> Option<IpAddr> {
    let packet = frame.get(VNET..)?;
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?)),
        6 => Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?)),
        _ => None,
    }
}

/// Where a frame comes from; `None` if it is no IP packet.
pub(in crate::emulator) fn source(frame: &[u8]) -> Option<IpAddr> {
    let packet = frame.get(VNET..)?;
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(12..16)?).ok()?)),
        6 => Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(8..24)?).ok()?)),
        _ => None,
    }
}

/// What an IP packet carries, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::emulator) struct Carried {
    /// IP's number of the protocol.
    pub(in crate::emulator) protocol: u8,
    /// Where it begins, from the IP header on.
    pub(in crate::emulator) at: usize,
    /// False in all fragments but the first, which have no transport header.
    pub(in crate::emulator) has_header: bool,
}

impl Carried {
    /// Reads the headers of an IP packet; `None` if they go beyond its end.
    pub(in crate::emulator) fn by(packet: &[u8]) -> Option<Carried> {
        let carried = match packet.first()? >> 4 {
            4 => Carried {
                protocol: *packet.get(9)?,
                at: usize::from(packet[0] & 0xF) * 4,
                has_header: u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1FFF == 0,
            },
            6 => Carried::behind_extensions(packet)?,
            _ => return None,
        };
        (carried.at >= 20 && carried.at <= packet.len()).then_some(carried)
    }

    /// Skips IPv6's extension headers (RFC 8200, section 4): hop-by-hop 0, routing 43, fragment 44, destination 60.
    fn behind_extensions(packet: &[u8]) -> Option<Carried> {
        let mut carried = Carried { protocol: *packet.get(6)?, at: 40, has_header: true };
        loop {
            let header = packet.get(carried.at..);
            let length = match carried.protocol {
                0 | 43 | 60 => usize::from(*header?.get(1)?) * 8 + 8,
                44 => {
                    let offset = u16::from_be_bytes([*header?.get(2)?, *header?.get(3)?]) & 0xFFF8;
                    carried.has_header = offset == 0;
                    8
                }
                _ => return Some(carried),
            };
            carried.protocol = header?[0];
            carried.at += length;
            if !carried.has_header {
                return Some(carried);
            }
        }
    }
}

impl Shape {
    /// Measures a frame. What is not a well-formed GSO packet counts as one packet: then it is the
    /// receiving kernel that judges it.
    pub(crate) fn of(frame: &[u8]) -> Shape {
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

impl Shape {
    /// Bytes of its `n`-th wire packet, IP header included.
    pub(in crate::emulator) fn bytes_of(&self, n: u32) -> u32 {
        match &self.segments {
            Some(segments) => {
                let before = n as usize * segments.size;
                (segments.headers + segments.size.min(segments.payload.saturating_sub(before))) as u32
            }
            None => self.wire_bytes,
        }
    }
}

impl Segments {
    /// Whether a receiving kernel has to get the packets one by one: it takes no GSO packet of datagrams out of a tunnel.
    pub(in crate::emulator) fn must_be_cut(&self) -> bool {
        self.tunnel.is_some() && self.transport == Transport::Udp
    }

    /// `None` unless headers and lengths all agree: whoever makes a frame by hand may write what it likes into it, and
    /// what is cut by these numbers must not go beyond it.
    fn of(frame: &[u8]) -> Option<Segments> {
        let kind = *frame.get(1)?;
        let packet = frame.get(VNET..)?;
        let tunnel = match kind & (GSO_TUNNEL4 | GSO_TUNNEL6) {
            0 => None,
            GSO_TUNNEL4 => Some(Tunnel::of(frame, packet)?),
            _ => return None,
        };
        let ip_at = tunnel.map_or(0, |tunnel| tunnel.inner_at);
        let ip = packet.get(ip_at..)?;
        let (transport, version) = match kind & !(GSO_ECN | GSO_TUNNEL4 | GSO_TUNNEL6) {
            GSO_TCP4 => (Transport::Tcp, 4),
            GSO_TCP6 => (Transport::Tcp, 6),
            GSO_UDP => (Transport::Udp, ip.first()? >> 4),
            _ => return None,
        };
        // Segmentation is only ever left undone together with the checksum, whose start is the
        // transport header's, whatever IP options or extension headers come before.
        if frame[0] & NEEDS_CSUM == 0 {
            return None;
        }
        let size = usize::from(host_u16(frame, 4)?);
        let transport_at = usize::from(host_u16(frame, 6)?);
        let (least_header, ip_header, length) = match (ip.first()? >> 4, version) {
            (4, 4) => (20, usize::from(ip[0] & 0xF) * 4, network_u16(ip, 2)?),
            (6, 6) => (40, 40, 40 + network_u16(ip, 4)?),
            _ => return None,
        };
        let transport_header = match transport {
            Transport::Tcp => usize::from(packet.get(transport_at + 12)? >> 4) * 4,
            Transport::Udp => 8,
        };
        let least_transport = if transport == Transport::Tcp { 20 } else { 8 };
        let headers = transport_at + transport_header;
        let payload = packet.len().checked_sub(headers)?;
        let agrees = ip_header >= least_header
            && transport_at >= ip_at + ip_header
            && transport_header >= least_transport
            && length == ip.len()
            // Sums of 16-bit words are only continued at even distances.
            && tunnel.is_none_or(|tunnel| (transport_at - tunnel.udp_at) % 2 == 0);
        (size > 0 && agrees).then_some(Segments { transport, transport_at, headers, size, payload, tunnel })
    }
}

impl Tunnel {
    /// `None` unless the outer headers and lengths agree.
    fn of(frame: &[u8], packet: &[u8]) -> Option<Tunnel> {
        let udp_at = usize::from(packet.first()? & 0xF) * 4;
        let inner_at = usize::from(u16::from_le_bytes(frame.get(INNER_IP..INNER_IP + 2)?.try_into().ok()?));
        let agrees = packet[0] >> 4 == 4
            && udp_at >= 20
            && *packet.get(9)? == UDP
            && inner_at >= udp_at + 8
            && network_u16(packet, 2)? == packet.len()
            && network_u16(packet, udp_at + 4)? == packet.len() - udp_at;
        agrees.then_some(Tunnel { udp_at, inner_at })
    }
}

/// Makes the header of a GSO packet in a tunnel, as a kernel gave it, one that kernels take.
pub(in crate::emulator) fn offer_tunnel(frame: &mut [u8]) {
    let said = u16::from_le_bytes([frame[OUTER_UDP], frame[OUTER_UDP + 1]]);
    frame[OUTER_UDP..OUTER_UDP + 2].copy_from_slice(&said.max(LEAST_OUTER_UDP).to_le_bytes());
}

fn network_u16(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn host_u16(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_packet_carries_is_found_behind_options_and_extensions() {
        let carried = |protocol, at, has_header| Some(Carried { protocol, at, has_header });
        let v4 = |head: &[u8]| [head, &[0; 60]].concat();
        assert_eq!(Carried::by(&v4(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP])), carried(UDP, 20, true));
        assert_eq!(Carried::by(&v4(&[0x47, 0, 0, 0, 0, 0, 0x20, 0, 64, TCP])), carried(TCP, 28, true));
        assert_eq!(Carried::by(&v4(&[0x45, 0, 0, 0, 0, 0, 0x20, 1, 64, UDP])), carried(UDP, 20, false));
        assert_eq!(Carried::by(&v4(&[0x42, 0, 0, 0, 0, 0, 0, 0, 64, UDP])), None);
        let v6 = |next, rest: &[u8]| [&[0x60, 0, 0, 0, 0, 0, next, 64], &[0; 32][..], rest].concat();
        assert_eq!(Carried::by(&v6(TCP, &[0; 20])), carried(TCP, 40, true));
        let hop_by_hop = [44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let first = [UDP, 0, 0, 1, 0, 0, 0, 9];
        let second = [UDP, 0, 0, 9, 0, 0, 0, 9];
        assert_eq!(Carried::by(&v6(0, &[&hop_by_hop[..], &first, &[0; 8]].concat())), carried(UDP, 64, true));
        assert_eq!(Carried::by(&v6(0, &[&hop_by_hop[..], &second, &[0; 8]].concat())), carried(UDP, 64, false));
        for length in 0..64 {
            let _ = Carried::by(&v6(0, &hop_by_hop)[..length.min(56)]);
        }
        assert_eq!(Carried::by(&v6(0, &hop_by_hop[..4])), None);
        assert_eq!(Carried::by(&[]), None);
    }
}
