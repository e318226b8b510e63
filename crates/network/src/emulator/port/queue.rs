//! A queue in which packets that have come to a host wait in the kernel. What is read is a copy; what becomes of the packet, a
//! verdict says, of which there is one for each.

use std::io;

use crate::{
    emulator::packet::frame::{PLAIN_VNET as PLAIN, VNET},
    sys::{PacketQueue, RawSockets},
};

/// What the first byte of a frame says as long as the packet is as it came (`VIRTIO_NET_HDR_F_DATA_VALID`: nothing is to be
/// computed). Whatever changes a packet completes its checksum first, and thereby clears the header.
const AS_IT_CAME: u8 = 2;

/// Where a frame has the number of its packet: in the room of an Ethernet header, which stays with it all the way.
const NUMBER: std::ops::Range<usize> = PLAIN..PLAIN + 4;

/// What a queue takes.
pub(crate) struct Queue {
    /// Where packets wait.
    pub(crate) packets: PacketQueue,
    /// Tells a sender on this host that its packet does not pass, wherever it was found.
    pub(crate) messages: RawSockets,
}

impl Queue {
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        while let Some(waiting) = self.packets.read(buffer, VNET)? {
            if let Some(length) = waiting.length {
                put_head(buffer, waiting.number);
                return Ok(Some(VNET + length));
            }
            // There is no room for all of it, so that nothing can be done to it.
            self.packets.let_pass(waiting.number, None)?;
        }
        Ok(None)
    }

    pub(super) fn write(&self, frame: &[u8]) -> io::Result<()> {
        let Some(number) = number_of(frame) else { return Ok(()) };
        let changed = if frame[0] == AS_IT_CAME { None } else { frame.get(VNET..) };
        self.packets.let_pass(number, changed)
    }

    pub(super) fn discard(&self, frame: &[u8]) -> io::Result<()> {
        number_of(frame).map_or(Ok(()), |number| self.packets.throw_away(number))
    }
}

fn put_head(frame: &mut [u8], number: u32) {
    frame[..VNET].fill(0);
    frame[0] = AS_IT_CAME;
    frame[NUMBER].copy_from_slice(&number.to_ne_bytes());
}

fn number_of(frame: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(frame.get(NUMBER)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::packet::{damage, frame::Shape};

    #[test]
    fn a_frame_keeps_the_number_of_its_packet_and_tells_whether_it_was_changed() {
        let mut frame = vec![7; VNET];
        frame.extend([0x45, 0, 0, 48, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x23, 0x52, 0x9C, 0x40, 0, 28, 0, 0]);
        frame.resize(VNET + 48, 9);
        put_head(&mut frame, 77);
        assert_eq!((frame[0], number_of(&frame)), (AS_IT_CAME, Some(77)));
        let shape = Shape::of(&frame);
        assert_eq!((shape.packets, shape.bytes_of(0), shape.segments), (1, 48, None));
        assert!(damage::flip(&mut frame, 1 << 60));
        assert_eq!((frame[0], number_of(&frame)), (0, Some(77)));
        assert_eq!(number_of(&frame[..12]), None);
    }
}
