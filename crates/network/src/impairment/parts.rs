//! The smaller parts of an impairment.

use std::fmt;

use brownout_units::{BitRate, Bytes, Delay, Share};

/// How often something happens to a packet, and how much that depends on the packet before.
///
/// A two-state Markov chain whose stationary share is exactly `share` and whose lag-1 autocorrelation is exactly
/// `correlation`: after a packet that was hit the next is with probability `share + correlation·(1 − share)`, after one
/// that was not with `share·(1 − correlation)`. (netem mixes the previous random number into the next instead, which
/// changes the share too: 1 % with a correlation of 25 % hits far fewer.)
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Chance {
    /// The share of packets it happens to.
    pub share: Share,
    /// Lag-1 autocorrelation of its happening; 0 %: each packet by itself.
    pub correlation: Share,
}

impl Chance {
    /// It happens to no packet.
    pub const NEVER: Chance = Chance::of(Share::ZERO);

    /// It happens to this share, independently.
    pub const fn of(share: Share) -> Chance {
        Chance { share, correlation: Share::ZERO }
    }

    /// The probability for a packet, after one that was hit, or was not.
    pub(crate) fn after(self, hit: bool) -> f64 {
        let (share, correlation) = (self.share.fraction(), self.correlation.fraction());
        if hit { share + correlation * (1.0 - share) } else { share * (1.0 - correlation) }
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.share)?;
        correlation(self.correlation, f)
    }
}

/// ` correlation 25%`, if there is one.
pub(super) fn correlation(share: Share, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if share == Share::ZERO { Ok(()) } else { write!(f, " correlation {share}") }
}

/// Which packets skip the delay, as netem's `reorder`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reorder {
    /// The share of candidates that skip it.
    pub share: Share,
    /// Lag-1 autocorrelation among the candidates; see [`Chance`].
    pub correlation: Share,
    /// A candidate is a packet that comes after at least `gap − 1` delayed ones since the last that skipped. With a
    /// share of 100 %, that is every `gap`-th packet. 1 (and 0): every packet is a candidate.
    pub gap: u32,
}

impl Reorder {
    /// No packet skips its delay.
    pub const NEVER: Reorder = Reorder { share: Share::ZERO, correlation: Share::ZERO, gap: 1 };

    /// The long-run share of all packets that skip the delay: with independent draws, each is followed by `gap − 1`
    /// packets that cannot, and then by 1/share on average until one does: `share ÷ (1 + (gap − 1)·share)`.
    /// With a correlation and a gap above 1 it lies elsewhere: `None`.
    pub fn mean(self) -> Option<Share> {
        let (share, gap) = (self.share.fraction(), f64::from(self.gap.max(1)));
        if self.correlation != Share::ZERO && gap > 1.0 && share < 1.0 {
            return None;
        }
        Share::new(share / (1.0 + (gap - 1.0) * share))
    }
}

impl Default for Reorder {
    fn default() -> Self {
        Reorder::NEVER
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.share)?;
        correlation(self.correlation, f)?;
        if self.gap > 1 { write!(f, " gap {}", self.gap) } else { Ok(()) }
    }
}

/// A bottleneck: packets leave one after another, each taking its length ÷ rate, and wait in one queue before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Bits per second, counting IP packets and `overhead_bytes` for each.
    pub rate: BitRate,
    /// What may wait; packets beyond are dropped (drop-tail) and counted.
    pub queue: QueueLimit,
    /// Bytes that each packet costs beside its own: 38 for Ethernet with preamble, check sum and gap; may be negative.
    pub overhead_bytes: i32,
}

/// The largest that a packet can be.
const LONGEST_PACKET: u64 = 65_535;

impl RateLimit {
    /// Bytes that a packet of `bytes` takes of the rate.
    pub(crate) fn charged_bytes(&self, bytes: u32) -> u64 {
        i64::from(bytes).saturating_add(i64::from(self.overhead_bytes)).max(0).unsigned_abs()
    }

    /// Time that these many bytes take, in nanoseconds; saturates.
    pub(crate) fn time_ns(&self, bytes: u64) -> u64 {
        let ns = u128::from(bytes) * 8_000_000_000 / u128::from(self.rate.bits_per_second());
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// The longest that a packet may take from coming to having left, in nanoseconds.
    pub(crate) fn longest_wait_ns(&self) -> u64 {
        let wait = match self.queue {
            QueueLimit::Bytes(bytes) => self.time_ns(bytes.0),
            QueueLimit::Time(time) => time.ns(),
        };
        wait.saturating_add(self.time_ns(LONGEST_PACKET))
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} queue {}", self.rate, self.queue)?;
        if self.overhead_bytes == 0 { Ok(()) } else { write!(f, " overhead {}", self.overhead_bytes) }
    }
}

/// How much may wait for a bottleneck, the packet that is just leaving included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// A packet is dropped if these bytes would be exceeded with it (overhead counts).
    Bytes(Bytes),
    /// A packet is dropped if it would wait longer than this before it begins to leave.
    Time(Delay),
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Bytes(bytes) => bytes.fmt(f),
            QueueLimit::Time(time) => time.fmt(f),
        }
    }
}

/// How a link is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Packets vanish: the sender learns nothing, as of a dead path.
    Drop,
    /// The sender is told by ICMP (IPv4 3/13, IPv6 1/1: administratively prohibited), as by a firewall.
    Reject,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Cut::Drop => "drop",
            Cut::Reject => "reject",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Share {
        text.parse().unwrap()
    }

    #[test]
    fn a_chain_has_the_share_and_the_correlation_asked_for() {
        for (p, rho) in [("1%", "25%"), ("30%", "0%"), ("50%", "90%"), ("100%", "50%"), ("0%", "50%")] {
            let chance = Chance { share: share(p), correlation: share(rho) };
            let (p, rho) = (share(p).fraction(), share(rho).fraction());
            let (hit, not) = (chance.after(true), chance.after(false));
            assert!((p * hit + (1.0 - p) * not - p).abs() < 1e-12, "stationary");
            // The second eigenvalue of a two-state chain is its lag-1 autocorrelation.
            assert!((hit - not - rho).abs() < 1e-12);
        }
    }

    #[test]
    fn the_reordered_share_follows_from_share_and_gap() {
        let mean = |text, gap, correlation| Reorder { share: share(text), correlation: share(correlation), gap }.mean();
        assert_eq!(mean("25%", 1, "50%"), Share::new(0.25));
        assert_eq!(mean("100%", 5, "0%"), Share::new(0.2));
        assert_eq!(mean("50%", 5, "0%"), Share::new(0.5 / 3.0));
        assert_eq!(mean("50%", 5, "10%"), None);
    }

    #[test]
    fn a_packet_costs_its_bytes_and_its_overhead() {
        let limit = |overhead_bytes| RateLimit {
            rate: "10mbit".parse().unwrap(),
            queue: QueueLimit::Bytes(Bytes(1)),
            overhead_bytes,
        };
        assert_eq!(limit(38).charged_bytes(1_500), 1_538);
        assert_eq!(limit(-20).charged_bytes(10), 0);
        assert_eq!(limit(i32::MAX).charged_bytes(u32::MAX), u64::from(u32::MAX) + i32::MAX as u64);
        assert_eq!(limit(0).time_ns(1_250), 1_000_000);
        assert_eq!(limit(0).time_ns(u64::MAX), u64::MAX);
    }
}
