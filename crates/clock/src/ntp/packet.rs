//! The packet header (RFC 5905, section 7.3).

use super::{Short, Timestamp};

/// Bytes of a header. What may follow, extensions and a signature, is not looked at.
pub const PACKET_LENGTH: usize = 48;

/// Who speaks in a packet (RFC 5905, figure 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Mode {
    /// 0
    Reserved = 0,
    /// 1
    SymmetricActive = 1,
    /// 2
    SymmetricPassive = 2,
    /// 3: asks.
    Client = 3,
    /// 4: answers.
    Server = 4,
    /// 5
    Broadcast = 5,
    /// 6
    Control = 6,
    /// 7
    Private = 7,
}

impl Mode {
    const ALL: [Mode; 8] = [
        Mode::Reserved,
        Mode::SymmetricActive,
        Mode::SymmetricPassive,
        Mode::Client,
        Mode::Server,
        Mode::Broadcast,
        Mode::Control,
        Mode::Private,
    ];
}

/// A header. On the wire all numbers have their most significant byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Leap indicator, 0 to 3: 0 none, 1 and 2 a leap second today, 3 "my clock is not synchronized".
    pub leap: u8,
    /// Version, 0 to 7; today's is 4.
    pub version: u8,
    /// Who speaks.
    pub mode: Mode,
    /// Hops from a reference clock: 1 to 15; 0 in a refusal, 16 for unsynchronized.
    pub stratum: u8,
    /// Longest interval between requests, as a power of two, in seconds.
    pub poll: i8,
    /// Resolution of the clock, as a power of two, in seconds: −20 is about 1 µs.
    pub precision: i8,
    /// Round trip to the reference clock.
    pub root_delay: Short,
    /// Largest error against the reference clock.
    pub root_dispersion: Short,
    /// Whom the server follows; four letters in stratum 1, and in stratum 0 the code of the refusal.
    pub reference_id: [u8; 4],
    /// When the clock was last set.
    pub reference: Timestamp,
    /// T1 in an answer: the `transmit` of the request.
    pub origin: Timestamp,
    /// T2 in an answer: when the request arrived.
    pub receive: Timestamp,
    /// When this packet was sent: T1 in a request, T3 in an answer.
    pub transmit: Timestamp,
}

impl Packet {
    /// A client's request that was sent at `transmit`.
    pub fn request(transmit: Timestamp) -> Self {
        Packet {
            leap: 0,
            version: 4,
            mode: Mode::Client,
            stratum: 0,
            poll: 0,
            precision: 0,
            root_delay: Short(0),
            root_dispersion: Short(0),
            reference_id: [0; 4],
            reference: Timestamp(0),
            origin: Timestamp(0),
            receive: Timestamp(0),
            transmit,
        }
    }

    /// The bytes of this header. Of `leap` and `version` the lowest 2 and 3 bits are used.
    pub fn encode(&self) -> [u8; PACKET_LENGTH] {
        let mut bytes = [0; PACKET_LENGTH];
        bytes[0] = (self.leap & 3) << 6 | (self.version & 7) << 3 | self.mode as u8;
        bytes[1] = self.stratum;
        bytes[2] = self.poll as u8;
        bytes[3] = self.precision as u8;
        bytes[4..8].copy_from_slice(&self.root_delay.0.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.root_dispersion.0.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.reference_id);
        let stamps = [self.reference, self.origin, self.receive, self.transmit];
        for (slot, stamp) in bytes[16..].chunks_exact_mut(8).zip(stamps) {
            slot.copy_from_slice(&stamp.0.to_be_bytes());
        }
        bytes
    }

    /// The header at the start of a datagram; `None` if it is too short. Says nothing about sense.
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let bytes = datagram.first_chunk::<PACKET_LENGTH>()?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let stamp = |at: usize| Timestamp(u64::from(word(at)) << 32 | u64::from(word(at + 4)));
        Some(Packet {
            leap: bytes[0] >> 6,
            version: bytes[0] >> 3 & 7,
            mode: Mode::ALL[usize::from(bytes[0] & 7)],
            stratum: bytes[1],
            poll: bytes[2] as i8,
            precision: bytes[3] as i8,
            root_delay: Short(word(4)),
            root_dispersion: Short(word(8)),
            reference_id: [bytes[12], bytes[13], bytes[14], bytes[15]],
            reference: stamp(16),
            origin: stamp(24),
            receive: stamp(32),
            transmit: stamp(40),
        })
    }

    /// The resolution that this packet claims, in nanoseconds, rounded up; at most one second.
    pub fn precision_ns(&self) -> u64 {
        match self.precision {
            0.. => 1_000_000_000,
            exponent => 1_000_000_000_u64.div_ceil(1 << u32::from(exponent.unsigned_abs()).min(62)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of a stratum 1 server: written by hand, field by field, from RFC 5905's figure 8.
    const GOLDEN: [u8; PACKET_LENGTH] = [
        0x24, 0x01, 0x06, 0xec, // no leap second, version 4, mode 4; stratum 1; poll 2^6 s; precision 2^-20 s
        0x00, 0x00, 0x80, 0x00, // root delay 0.5 s
        0x00, 0x01, 0x40, 0x00, // root dispersion 1.25 s
        b'G', b'P', b'S', 0x00, // reference
        0xe9, 0x3c, 0x7f, 0x00, 0x00, 0x00, 0x00, 0x00, // last set
        0xe9, 0x3c, 0x80, 0x00, 0x40, 0x00, 0x00, 0x00, // origin: a quarter of a second
        0xe9, 0x3c, 0x80, 0x00, 0x80, 0x00, 0x00, 0x00, // receive: half a second
        0xe9, 0x3c, 0x80, 0x00, 0xc0, 0x00, 0x00, 0x01, // transmit: three quarters and the smallest unit
    ];

    fn golden() -> Packet {
        Packet {
            leap: 0,
            version: 4,
            mode: Mode::Server,
            stratum: 1,
            poll: 6,
            precision: -20,
            root_delay: Short::from_ns(500_000_000),
            root_dispersion: Short::from_ns(1_250_000_000),
            reference_id: *b"GPS\0",
            reference: Timestamp(0xe93c_7f00 << 32),
            origin: Timestamp(0xe93c_8000 << 32 | 1 << 30),
            receive: Timestamp(0xe93c_8000 << 32 | 1 << 31),
            transmit: Timestamp(0xe93c_8000 << 32 | 3 << 30 | 1),
        }
    }

    #[test]
    fn the_golden_bytes_are_written_and_read() {
        assert_eq!(golden().encode(), GOLDEN);
        assert_eq!(Packet::decode(&GOLDEN), Some(golden()));
    }

    #[test]
    fn every_first_byte_comes_back() {
        for first in 0..=u8::MAX {
            let mut bytes = GOLDEN;
            bytes[0] = first;
            let packet = Packet::decode(&bytes).unwrap();
            assert_eq!(packet.encode(), bytes);
            assert_eq!((packet.leap, packet.version, packet.mode as u8), (first >> 6, first >> 3 & 7, first & 7));
        }
    }

    #[test]
    fn what_is_too_short_is_no_packet_and_what_follows_is_ignored() {
        for length in 0..PACKET_LENGTH {
            assert_eq!(Packet::decode(&GOLDEN[..length]), None);
        }
        let mut long = GOLDEN.to_vec();
        long.extend([0xff; 20]);
        assert_eq!(Packet::decode(&long), Some(golden()));
    }

    #[test]
    fn every_precision_is_a_span() {
        let of = |precision| Packet { precision, ..golden() }.precision_ns();
        assert_eq!(
            (of(0), of(127), of(-1), of(-20), of(-30), of(-128)),
            (1_000_000_000, 1_000_000_000, 500_000_000, 954, 1, 1)
        );
    }
}
