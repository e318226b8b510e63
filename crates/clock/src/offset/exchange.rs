//! One question and its answer.

/// The four timestamps of one exchange, each in nanoseconds of the monotonic clock of whoever took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// T1: when the question was sent, by the asking machine.
    pub asked_ns: u64,
    /// T2: when it came, by the answering machine.
    pub came_ns: u64,
    /// T3: when the answer was sent, by the answering machine.
    pub answered_ns: u64,
    /// T4: when the answer came, by the asking machine.
    pub heard_ns: u64,
}

impl Exchange {
    /// δ: the round trip without the time at the server, ns; 0 if the resolution of the clocks makes it seem less.
    pub fn delay_ns(&self) -> u64 {
        self.heard_ns.saturating_sub(self.asked_ns).saturating_sub(self.answered_ns.saturating_sub(self.came_ns))
    }

    /// By how much the server's clock is ahead at T1, at the most, ns.
    pub(super) fn most_ns(&self) -> i128 {
        i128::from(self.came_ns) - i128::from(self.asked_ns)
    }

    /// By how much it is ahead at T4, at the least, ns.
    pub(super) fn least_ns(&self) -> i128 {
        i128::from(self.answered_ns) - i128::from(self.heard_ns)
    }

    /// In the middle of both, ns: the offset if both ways took equally long.
    pub(super) fn middle_ns(&self) -> i128 {
        (self.most_ns() + self.least_ns()) / 2
    }
}

/// A question or an answer: a mark, a number, T1, T2 and T3; big-endian. A question has zeros for what is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) number: u64,
    pub(super) asked_ns: u64,
    pub(super) came_ns: u64,
    pub(super) answered_ns: u64,
}

pub(super) const LENGTH: usize = 40;

/// Distinguishes ours from anything else that is sent to the port.
const MARK: u64 = 0x6272_6f77_6e63_6c6b;

impl Datagram {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let fields = [MARK, self.number, self.asked_ns, self.came_ns, self.answered_ns];
        bytes.chunks_exact_mut(8).zip(fields).for_each(|(to, field)| to.copy_from_slice(&field.to_be_bytes()));
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Datagram> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let field = |at: usize| bytes[at * 8..at * 8 + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let datagram = Datagram { number: field(1), asked_ns: field(2), came_ns: field(3), answered_ns: field(4) };
        (field(0) == MARK).then_some(datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_reads_back_what_it_said_and_what_is_none_is_ignored() {
        let said = Datagram { number: 1, asked_ns: 2, came_ns: 0x0102_0304_0506_0708, answered_ns: u64::MAX };
        let bytes = said.encode();
        assert_eq!(&bytes[..8], b"brownclk");
        assert_eq!(bytes[24..32], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Datagram::decode(&bytes), Some(said));
        assert_eq!(Datagram::decode(&bytes[1..]), None);
        assert_eq!(Datagram::decode(&[0; LENGTH]), None);
    }

    #[test]
    fn an_exchange_limits_the_offset_whichever_way_was_the_slow_one() {
        // The server is 1,000 ahead; 30 there, 10 back, 5 at the server.
        let exchange = Exchange { asked_ns: 100, came_ns: 1_130, answered_ns: 1_135, heard_ns: 145 };
        assert_eq!((exchange.least_ns(), exchange.middle_ns(), exchange.most_ns()), (990, 1_010, 1_030));
        assert_eq!(exchange.delay_ns(), 40);
        let behind = Exchange { asked_ns: 1_100, came_ns: 130, answered_ns: 135, heard_ns: 1_145 };
        assert_eq!((behind.least_ns(), behind.most_ns()), (-1_010, -970));
    }
}
