//! The payload of a probe: a mark, its link, its number, and when it was sent. Big-endian, 28 bytes.

use brownout_base::{HostId, Link};

pub(super) const LENGTH: usize = 28;

/// Distinguishes our probes from anything else that is sent to the port.
const MARK: u64 = 0x6272_6f77_6e6f_7574;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) link: Link,
    pub(super) seq: u64,
    pub(super) sent_ns: u64,
}

impl Datagram {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&MARK.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.link.from.0.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.link.to.0.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.seq.to_be_bytes());
        bytes[20..].copy_from_slice(&self.sent_ns.to_be_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Datagram> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let u64_at = |at: usize| bytes[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let host_at = |at: usize| HostId(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
        let link = Link { from: host_at(8), to: host_at(10) };
        (u64_at(0) == MARK).then_some(Datagram { link, seq: u64_at(12), sent_ns: u64_at(20) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_reads_back_what_it_said() {
        let link = Link { from: HostId(1), to: HostId(0x0203) };
        let said = Datagram { link, seq: 4, sent_ns: 0x0506_0708_090a_0b0c };
        let bytes = said.encode();
        assert_eq!(&bytes[..8], b"brownout");
        assert_eq!(bytes[8..20], [0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4]);
        assert_eq!(bytes[20..], [5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(Datagram::decode(&bytes), Some(said));
    }

    #[test]
    fn what_is_no_probe_is_ignored() {
        assert_eq!(Datagram::decode(b""), None);
        assert_eq!(Datagram::decode(&[0; LENGTH]), None);
    }
}
