//! Puts segments of one TCP connection that come one after the other together to a GSO packet, as a network card does
//! (the kernel's `tcp_gro_receive`): the host takes it in at once.

use crate::emulator::gso::{GSO_TCP4, LONGEST, NEEDS_CSUM, VNET, fold, pseudo_header, put, seal_ipv4};

const TCP: u8 = 6;
const IP_HEADER: usize = 20;
const FLAGS: usize = IP_HEADER + 13;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// A frame under construction.
#[derive(Default)]
pub(super) struct Coalescer {
    /// A virtio-net header and a packet; empty if there is none.
    frame: Vec<u8>,
    /// Bytes of its IP and TCP headers; 0 if nothing can be added.
    headers: usize,
    /// Bytes that each segment but the last carries.
    size: usize,
    /// The sequence number that the next segment has to have.
    next: u32,
}

impl Coalescer {
    /// Adds a packet. What it does not go together with is given to `deliver` before, and so are frames that end with it.
    pub(super) fn add(&mut self, packet: &[u8], mut deliver: impl FnMut(&[u8])) {
        let Some(headers) = headers(packet) else {
            self.flush(&mut deliver);
            self.begin(packet, 0);
            self.flush(&mut deliver);
            return;
        };
        let payload = packet.len() - headers;
        let ends = packet[FLAGS] & PSH != 0;
        if self.continues(packet, headers) {
            self.frame.extend_from_slice(&packet[headers..]);
            self.frame[VNET + FLAGS] |= packet[FLAGS];
            self.next = self.next.wrapping_add(payload as u32);
            if ends || payload < self.size {
                self.flush(&mut deliver);
            }
            return;
        }
        self.flush(&mut deliver);
        self.begin(packet, headers);
        if ends {
            self.flush(&mut deliver);
        }
    }

    /// Gives what there is to `deliver`.
    pub(super) fn flush(&mut self, mut deliver: impl FnMut(&[u8])) {
        if self.frame.is_empty() {
            return;
        }
        if self.headers > 0 && self.frame.len() - VNET > self.headers + self.size {
            self.finish();
        }
        deliver(&self.frame);
        self.frame.clear();
    }

    fn begin(&mut self, packet: &[u8], headers: usize) {
        self.frame.resize(VNET, 0);
        self.frame.extend_from_slice(packet);
        (self.headers, self.size) = (headers, packet.len() - headers);
        self.next = if headers > 0 { sequence(packet).wrapping_add(self.size as u32) } else { 0 };
    }

    /// Whether a segment is the next of those here: the same connection, the same headers but for what counts up.
    fn continues(&self, packet: &[u8], headers: usize) -> bool {
        let Some(first) = self.frame.get(VNET..).filter(|first| !first.is_empty()) else { return false };
        let payload = packet.len() - headers;
        let same = |range: std::ops::Range<usize>| first[range.clone()] == packet[range];
        self.headers == headers
            && self.next == sequence(packet)
            && payload <= self.size
            && self.frame.len() + payload <= LONGEST
            // Type of service; flags, time to live, protocol; addresses and ports; acknowledgement and data offset; window;
            // options.
            && same(1..2)
            && same(6..10)
            && same(12..24)
            && same(28..33)
            && same(34..36)
            && same(40..headers)
    }

    /// Makes a GSO packet of several segments.
    fn finish(&mut self) {
        let (header, packet) = self.frame.split_at_mut(VNET);
        (header[0], header[1]) = (NEEDS_CSUM, GSO_TCP4);
        for (at, value) in [(2, self.headers), (4, self.size), (6, IP_HEADER), (8, 16)] {
            header[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
        }
        let length = packet.len();
        put(packet, 2, length as u16);
        seal_ipv4(&mut packet[..IP_HEADER]);
        // The rest of the checksum is the receiving kernel's to add, or to leave out.
        let partial = fold(pseudo_header(packet, TCP, length - IP_HEADER));
        put(packet, IP_HEADER + 16, partial);
    }
}

/// Bytes of the headers of a TCP segment over IPv4 that others can be added to: without IP options, not a fragment, with
/// data, and with no flags but ACK and PSH.
fn headers(packet: &[u8]) -> Option<usize> {
    let begins_well =
        *packet.first()? == 0x45 && *packet.get(9)? == TCP && packet.get(6)? & 0x3F == 0 && packet[7] == 0;
    let headers = IP_HEADER + usize::from(packet.get(IP_HEADER + 12)? >> 4) * 4;
    let is_data = packet.get(FLAGS)? & !PSH == ACK;
    (begins_well && is_data && headers >= IP_HEADER + 20 && packet.len() > headers).then_some(headers)
}

fn sequence(packet: &[u8]) -> u32 {
    u32::from_be_bytes([packet[24], packet[25], packet[26], packet[27]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::gso::{Shape, complete, slice, sliced_length};

    /// A segment of `payload` bytes that begins at `sequence`, checksums and all.
    fn segment(sequence: u32, payload: usize, flags: u8, port: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, TCP, 0, 0, 10, 78, 0, 1, 10, 78, 0, 2];
        packet.extend([0x23, 0x52, 0x9C, port]);
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 9, 0x80, flags, 1, 2, 0, 0, 0, 0]);
        packet.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]);
        packet.extend((0..payload).map(|at| (sequence as usize + at) as u8));
        let length = packet.len();
        put(&mut packet, 2, length as u16);
        seal_ipv4(&mut packet[..IP_HEADER]);
        let partial = fold(pseudo_header(&packet, TCP, length - IP_HEADER));
        put(&mut packet, IP_HEADER + 16, partial);
        let mut frame = [&[0; VNET][..], &packet].concat();
        frame[0] = NEEDS_CSUM;
        frame[6..8].copy_from_slice(&(IP_HEADER as u16).to_ne_bytes());
        frame[8..10].copy_from_slice(&16u16.to_ne_bytes());
        complete(&mut frame);
        frame.split_off(VNET)
    }

    fn coalesced(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (mut coalescer, mut frames) = (Coalescer::default(), Vec::new());
        packets.iter().for_each(|packet| coalescer.add(packet, |frame| frames.push(frame.to_vec())));
        coalescer.flush(|frame| frames.push(frame.to_vec()));
        frames
    }

    #[test]
    fn segments_that_follow_each_other_become_one_packet_that_falls_apart_into_the_same() {
        let begin = u32::MAX - 2_000;
        let sent: Vec<Vec<u8>> =
            (0..5).map(|n| segment(begin.wrapping_add(n * 1_000), if n == 4 { 300 } else { 1_000 }, ACK, 1)).collect();
        let frames = coalesced(&sent);
        assert_eq!(frames.len(), 1);
        let shape = Shape::of(&frames[0]);
        let segments = shape.segments.unwrap();
        assert_eq!(shape.packets, 5);
        for (n, sent) in (0..).zip(&sent) {
            let mut one = vec![0; sliced_length(&segments, &(n..n + 1))];
            slice(&frames[0], &segments, &(n..n + 1), &mut one);
            complete(&mut one);
            let mut packet = one.split_off(VNET);
            // All began with the same identification here; a sender counts up.
            put(&mut packet, 4, 7);
            seal_ipv4(&mut packet[..IP_HEADER]);
            assert_eq!(packet, *sent, "segment {n}");
        }
    }

    #[test]
    fn what_does_not_go_together_stays_apart_and_in_order() {
        let a = |sequence| segment(sequence, 1_000, ACK, 1);
        let b = |sequence| segment(sequence, 1_000, ACK, 2);
        let udp = {
            let mut packet = a(0);
            packet[9] = 17;
            packet
        };
        for (what, packets, frames) in [
            ("two connections", vec![a(0), b(0), a(1_000)], 3),
            ("a gap", vec![a(0), a(2_000)], 2),
            ("a longer one", vec![segment(0, 500, ACK, 1), a(500)], 2),
            ("after a shorter one", vec![a(0), segment(1_000, 500, ACK, 1), segment(1_500, 500, ACK, 1)], 2),
            ("no TCP", vec![a(0), udp, a(1_000)], 3),
            ("an end", vec![a(0), segment(1_000, 1_000, ACK | PSH, 1), a(2_000)], 2),
            ("another flag", vec![a(0), segment(1_000, 1_000, ACK | 1, 1)], 2),
            ("rubbish", vec![a(0), vec![0x45; 3], Vec::from([0x45; 40])], 3),
        ] {
            let got = coalesced(&packets);
            assert_eq!(got.len(), frames, "{what}");
            let payload = |frame: &Vec<u8>| frame.len() - VNET;
            assert!(payload(&got[0]) >= packets[0].len(), "{what}");
        }
    }

    #[test]
    fn a_packet_alone_is_left_as_it_is() {
        let packet = segment(5, 100, ACK | PSH, 1);
        assert_eq!(coalesced(std::slice::from_ref(&packet)), [[&[0; VNET][..], &packet].concat()]);
    }

    #[test]
    fn no_frame_is_longer_than_a_packet_can_be() {
        let packets: Vec<Vec<u8>> = (0..200).map(|n| segment(n * 1_368, 1_368, ACK, 1)).collect();
        let frames = coalesced(&packets);
        assert!(frames.iter().all(|frame| frame.len() <= LONGEST) && frames.len() == 5, "{}", frames.len());
    }
}
