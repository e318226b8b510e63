//! Cuts a run of wire packets out of a GSO packet.
//!
//! What leaves is again a GSO packet, or a plain packet if the run is one: the same bytes that the
//! sending kernel would have made of the same segments (`tcp_gso_segment`, `udp_gso_segment`, in a
//! tunnel within `skb_udp_tunnel_segment`), with the transport checksum still left to the receiver,
//! as in the frame it came from.

use std::ops::Range;

use super::{
    checksum::{fold, pseudo_header, put, seal_ipv4, sum},
    frame::{PLAIN_VNET, Segments, TUNNEL_CSUM, Transport, Tunnel, UDP, VNET},
};

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// Bytes of the frame that [`slice`] makes.
pub(crate) fn sliced_length(segments: &Segments, run: &Range<u32>) -> usize {
    VNET + segments.headers + payload(segments, run).len()
}

/// Writes the wire packets `run` of the GSO packet `frame` into `out`, which has
/// [`sliced_length`] bytes.
pub(crate) fn slice(frame: &[u8], segments: &Segments, run: &Range<u32>, out: &mut [u8]) {
    let headers_end = VNET + segments.headers;
    let payload = payload(segments, run);
    out[..headers_end].copy_from_slice(&frame[..headers_end]);
    out[headers_end..].copy_from_slice(&frame[headers_end..][payload.clone()]);

    // hdr_len; and no segmentation left to do if it is one packet.
    put_host(out, 2, segments.headers as u16);
    let is_single = run.len() == 1;
    let has_tunnel_checksum = out[0] & TUNNEL_CSUM != 0;
    if is_single {
        out[0] &= !TUNNEL_CSUM;
        out[1] = 0;
        put_host(out, 4, 0);
        // Of tunnels and hashes; else it may be an Ethernet header.
        if segments.tunnel.is_some() {
            out[PLAIN_VNET..VNET].fill(0);
        }
    }

    let packet = &mut out[VNET..];
    if segments.tunnel.is_some() {
        fix_ip(packet, run.start);
    }
    let inner = &mut packet[segments.tunnel.map_or(0, |tunnel| tunnel.inner_at)..];
    fix_ip(inner, run.start);
    let transport_at = segments.transport_at - segments.tunnel.map_or(0, |tunnel| tunnel.inner_at);
    let transport_length = inner.len() - transport_at;
    // What a checksum field holds while the checksum is yet to be completed (`CHECKSUM_PARTIAL`): the folded sum, not
    // inverted.
    let partial = fold(pseudo_header(inner, segments.transport.protocol(), transport_length));
    let transport = &mut inner[transport_at..];
    match segments.transport {
        Transport::Tcp => {
            let sequence = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            let sequence = sequence.wrapping_add(payload.start as u32);
            transport[4..8].copy_from_slice(&sequence.to_be_bytes());
            if payload.end < segments.payload {
                transport[13] &= !(TCP_FIN | TCP_PSH);
            }
            if run.start > 0 {
                transport[13] &= !TCP_CWR;
            }
            put(transport, 16, partial);
        }
        Transport::Udp => {
            put(transport, 4, transport_length as u16);
            put(transport, 6, partial);
        }
    }
    if let Some(Tunnel { udp_at, .. }) = segments.tunnel {
        let length = packet.len() - udp_at;
        put(packet, udp_at + 4, length as u16);
        let outer = pseudo_header(packet, UDP, length);
        put(packet, udp_at + 6, 0);
        let checksum = match (has_tunnel_checksum, is_single) {
            (false, _) => 0,
            (true, false) => fold(outer),
            // One packet has the tunnel's checksum in full (`lco_csum`): once the inner one is completed, all that it covers
            // sums up to the inverse of what its field holds now.
            (true, true) => {
                match !fold(outer + sum(&packet[udp_at..segments.transport_at]) + u64::from(!partial)) {
                    // Zero means none (RFC 768).
                    0 => 0xFFFF,
                    checksum => checksum,
                }
            }
        };
        put(packet, udp_at + 6, checksum);
    }
}

/// Which payload bytes the run carries.
fn payload(segments: &Segments, run: &Range<u32>) -> Range<usize> {
    let at = |packet: u32| (packet as usize * segments.size).min(segments.payload);
    at(run.start)..at(run.end)
}

/// Length and, of IPv4, identification (which counts up per segment) and header checksum.
fn fix_ip(packet: &mut [u8], first: u32) {
    if packet[0] >> 4 != 4 {
        put(packet, 4, (packet.len() - 40) as u16);
        return;
    }
    let length = packet.len() as u16;
    put(packet, 2, length);
    let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(first as u16);
    put(packet, 4, identification);
    let header = usize::from(packet[0] & 0xF) * 4;
    seal_ipv4(&mut packet[..header]);
}

fn put_host(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
#[path = "slicer_tests.rs"]
mod tests;
