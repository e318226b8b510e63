//! An exit: an interface by which packets of a host leave, and where they are diverted.

use std::io;

use crate::{
    emulator::packet::frame::{NEEDS_CSUM, PLAIN_VNET as PLAIN, VNET},
    sys::{PacketSocket, RawSockets, Tap},
};

/// Bytes of an Ethernet header. With the ten bytes before it that TAPs and packet sockets know, it takes the room of the TUNs'
/// header: so a frame has its IP header at the same place wherever it was read, and an Ethernet header stays with its frame
/// all the way.
const ETHERNET: usize = VNET - PLAIN;
/// Set in the first byte of an Ethernet address of a group of receivers: such packets are never diverted.
const GROUP: u8 = 1;

/// The devices of an exit.
pub(crate) struct Exit {
    /// Gets what is diverted.
    pub(crate) tap: Tap,
    /// Sends by the interface that it was diverted from.
    pub(crate) packets: PacketSocket,
    /// Tells a sender that its packet does not pass: what is written to a TAP, the kernel would drop for its source
    /// (`rp_filter`).
    pub(crate) messages: RawSockets,
}

impl Exit {
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let Some(length) = self.tap.read(buffer)? else { return Ok(None) };
            let is_diverted = length > PLAIN && buffer[PLAIN] & GROUP == 0;
            if let (true, Some(header)) = (is_diverted, buffer.first_chunk_mut::<PLAIN>()) {
                forget_ethernet(header);
                return Ok(Some(length));
            }
            // Somebody has sent it by the TAP itself, as kernels and programs do by all interfaces: it goes nowhere.
        }
    }

    #[inline]
    pub(super) fn write(&self, frame: &[u8]) -> io::Result<()> {
        let Some((header, rest)) = frame.split_first_chunk::<PLAIN>() else { return Ok(()) };
        self.packets.send(&with_ethernet(*header), rest)
    }
}

/// Has offsets count from the IP header on, as in the frames of TUNs.
fn forget_ethernet(header: &mut [u8; PLAIN]) {
    shift(header, |offset| offset.saturating_sub(ETHERNET as u16));
}

/// Has them count from the Ethernet header on.
fn with_ethernet(mut header: [u8; PLAIN]) -> [u8; PLAIN] {
    shift(&mut header, |offset| offset.saturating_add(ETHERNET as u16));
    header
}

/// Of `hdr_len`, where it is stated, and of `csum_start`, where there is something to be computed.
fn shift(header: &mut [u8; PLAIN], by: impl Fn(u16) -> u16) {
    let length = u16::from_ne_bytes([header[2], header[3]]);
    if length > 0 {
        header[2..4].copy_from_slice(&by(length).to_ne_bytes());
    }
    if header[0] & NEEDS_CSUM != 0 {
        let start = u16::from_ne_bytes([header[6], header[7]]);
        header[6..8].copy_from_slice(&by(start).to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::packet::{damage, frame::Shape, slicer};

    /// flags, gso_type, hdr_len, gso_size, csum_start, csum_offset.
    fn header(flags: u8, kind: u8, numbers: [u16; 4]) -> [u8; PLAIN] {
        let mut header = [flags, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        for (at, number) in (2..).step_by(2).zip(numbers) {
            header[at..at + 2].copy_from_slice(&number.to_ne_bytes());
        }
        header
    }

    #[test]
    fn offsets_lose_the_ethernet_header_and_get_it_back() {
        for (read, kept) in [
            (header(1, 1, [66, 1_448, 34, 16]), header(1, 1, [52, 1_448, 20, 16])),
            (header(1, 0, [0, 0, 34, 6]), header(1, 0, [0, 0, 20, 6])),
            (header(0, 0, [0, 0, 0, 0]), header(0, 0, [0, 0, 0, 0])),
            // Checked already (VIRTIO_NET_HDR_F_DATA_VALID): nothing is to be computed.
            (header(2, 0, [0, 0, 0, 0]), header(2, 0, [0, 0, 0, 0])),
        ] {
            let mut header = read;
            forget_ethernet(&mut header);
            assert_eq!(header, kept);
            assert_eq!(with_ethernet(header), read);
        }
        assert_eq!(ETHERNET, 14);
    }

    #[test]
    fn an_ethernet_header_stays_with_all_packets_of_its_frame() {
        let ip = [0x45, 0, 0, 48, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let udp = [0x23, 0x52, 0x9C, 0x40, 0, 28, 0, 0];
        let frame = [&header(1, 5, [28, 8, 20, 6])[..], &[7; ETHERNET], &ip, &udp, &[9; 20]].concat();
        let shape = Shape::of(&frame);
        let segments = shape.segments.unwrap();
        assert_eq!(shape.packets, 3);
        for n in 0..3 {
            let mut packet = vec![0; slicer::sliced_length(&segments, &(n..n + 1))];
            slicer::slice(&frame, &segments, &(n..n + 1), &mut packet);
            assert_eq!((&packet[PLAIN..VNET], packet[1]), (&[7; ETHERNET][..], 0));
            assert!(damage::flip(&mut packet, u64::from(n) << 60));
            assert_eq!((&packet[..PLAIN], &packet[PLAIN..VNET]), (&[0; PLAIN][..], &[7; ETHERNET][..]));
        }
    }
}
