//! The payload of a packet of a train: a mark, its link, its train's number and its own. Big-endian; padded to its length.

use brownout_base::{HostId, Link};

/// The shortest payload that holds all of it.
pub(super) const SHORTEST: usize = 24;

/// Distinguishes our packets from anything else that is sent to the port.
const MARK: u64 = 0x6272_6f77_7472_6e73;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrainPacket {
    pub(super) link: Link,
    pub(super) train: u64,
    /// Its index in the train.
    pub(super) index: u32,
}

impl TrainPacket {
    /// Writes itself to the beginning of `payload`, which is long enough.
    pub(super) fn write(&self, payload: &mut [u8]) {
        let TrainPacket { link, train, index } = self;
        payload[..8].copy_from_slice(&MARK.to_be_bytes());
        payload[8..10].copy_from_slice(&link.from.0.to_be_bytes());
        payload[10..12].copy_from_slice(&link.to.0.to_be_bytes());
        payload[12..20].copy_from_slice(&train.to_be_bytes());
        payload[20..24].copy_from_slice(&index.to_be_bytes());
    }

    pub(super) fn read(payload: &[u8]) -> Option<TrainPacket> {
        let payload: &[u8; SHORTEST] = payload.get(..SHORTEST)?.try_into().ok()?;
        let number = |from: usize, to: usize| payload[from..to].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let host = |at: usize| HostId(number(at, at + 2) as u16);
        let link = Link { from: host(8), to: host(10) };
        (number(0, 8) == MARK).then(|| TrainPacket { link, train: number(12, 20), index: number(20, 24) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_reads_back_what_it_said() {
        let link = Link { from: HostId(1), to: HostId(0x0203) };
        let car = TrainPacket { link, train: 0x0405_0607_0809_0a0b, index: 0x0c0d_0e0f };
        let mut payload = [7; 30];
        car.write(&mut payload);
        assert_eq!(&payload[..8], b"browtrns");
        assert_eq!(payload[8..], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 7, 7, 7, 7, 7, 7]);
        assert_eq!(TrainPacket::read(&payload), Some(car));
        assert_eq!(TrainPacket::read(&payload[..SHORTEST - 1]), None);
        assert_eq!(TrainPacket::read(&[0; 30]), None);
    }
}
