//! A train on its way, and the rate at which it arrives.
//!
//! Packets sent back to back leave the narrowest link one serialisation time apart, so that the bytes after the first,
//! over the time from the first arrival to the last, are its rate: the dispersion of a packet train (C. Dovrolis,
//! P. Ramanathan, D. Moore: What do packet dispersion techniques measure?, INFOCOM 2001). With other traffic on the link
//! at the same time it is less, by what the others take.

use brownout_base::Link;

/// What one train showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainSample {
    /// Which way it went.
    pub link: Link,
    /// When its first packet was sent, on the monotonic clock.
    pub sent_ns: u64,
    /// Bits of IP packets that came after the first arrival, damaged ones included, per second from the first arrival
    /// to the last. `None` if fewer than half of the packets came, or all at one instant.
    pub rate_bps: Option<f64>,
    /// Packets that arrived, neither copies nor damaged ones counted.
    pub arrived: u32,
    /// Packets sent.
    pub packets: u32,
}

/// A train of which packets may still come.
pub(super) struct Open {
    link: Link,
    sent_ns: u64,
    /// Of one packet, IP header included.
    packet_bytes: u32,
    /// Per packet, whether it has arrived.
    seen: Vec<bool>,
    arrived: u32,
    /// With copies: the link had to carry them, too.
    arrivals: u32,
    /// Packets between the first and the last arrival that came with a wrong checksum: the link had to carry them, too.
    damaged: u32,
    /// The highest place in the train that has arrived.
    newest: u32,
    first_ns: u64,
    last_ns: u64,
    void: bool,
}

impl Open {
    pub(super) fn new(link: Link, sent_ns: u64, packets: u32, packet_bytes: u32) -> Self {
        let seen = vec![false; packets as usize];
        Open {
            link,
            sent_ns,
            packet_bytes,
            seen,
            arrived: 0,
            arrivals: 0,
            damaged: 0,
            newest: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            void: false,
        }
    }

    pub(super) fn link(&self) -> Link {
        self.link
    }

    /// Notes that a packet arrived, at a time that may be unknown: then there is nothing to be learned from the train.
    /// Just before it came `damaged` packets of whatever train.
    pub(super) fn arrived(&mut self, index: u32, arrived_ns: Option<u64>, damaged: u32) {
        let Some(seen) = self.seen.get_mut(index as usize) else { return };
        // Its own are at most those that are missing here. What came before the first is not in the time measured.
        if self.arrivals > 0 {
            self.damaged += damaged.min(index.saturating_sub(self.newest + 1));
        }
        self.newest = self.newest.max(index);
        self.arrived += u32::from(!std::mem::replace(seen, true));
        self.arrivals += 1;
        match arrived_ns {
            Some(at) => (self.first_ns, self.last_ns) = (self.first_ns.min(at), self.last_ns.max(at)),
            None => self.void = true,
        }
    }

    /// Whether all of it had arrived by that moment.
    pub(super) fn is_complete_before(&self, ns: u64) -> bool {
        self.arrived as usize == self.seen.len() && self.last_ns < ns
    }

    /// Packets of it arrived, but nobody knows which or when.
    pub(super) fn make_void(&mut self) {
        self.void = true;
    }

    pub(super) fn is_void(&self) -> bool {
        self.void
    }

    /// Whether nothing more is to be expected: `grace_ns` after the last of all, `lost_after_ns` after the last sign of
    /// it.
    pub(super) fn is_over(&self, now_ns: u64, grace_ns: u64, lost_after_ns: u64) -> bool {
        let complete = self.arrived as usize == self.seen.len();
        now_ns.saturating_sub(self.last_ns.max(self.sent_ns)) >= if complete { grace_ns } else { lost_after_ns }
    }

    pub(super) fn sample(&self) -> TrainSample {
        let packets = self.seen.len() as u32;
        let took_ns = self.last_ns.saturating_sub(self.first_ns);
        let carried = self.arrivals.saturating_sub(1) + self.damaged;
        let bits = f64::from(carried) * f64::from(self.packet_bytes) * 8.0;
        let measured = (self.arrived + self.damaged) * 2 >= packets && took_ns > 0;
        TrainSample {
            link: self.link,
            sent_ns: self.sent_ns,
            rate_bps: measured.then(|| bits / (took_ns as f64 / 1e9)),
            arrived: self.arrived,
            packets,
        }
    }
}

#[cfg(test)]
mod tests {
    use brownout_base::HostId;

    use super::*;

    /// Of 1,000-byte packets.
    fn train(packets: u32, arrivals: &[(u32, u64)]) -> Open {
        let mut train = Open::new(Link { from: HostId(0), to: HostId(1) }, 5, packets, 1_000);
        arrivals.iter().for_each(|(index, at_ns)| train.arrived(*index, Some(*at_ns), 0));
        train
    }

    #[test]
    fn the_rate_is_what_came_after_the_first_arrival_over_the_time_it_took() {
        let sample = train(3, &[(0, 1_000_000), (1, 2_000_000), (2, 3_000_000)]).sample();
        assert_eq!((sample.rate_bps, sample.arrived, sample.packets, sample.sent_ns), (Some(8e6), 3, 3, 5));
        let reordered = train(3, &[(2, 3_000_000), (0, 1_000_000), (1, 2_000_000)]).sample();
        assert_eq!(reordered.rate_bps, Some(8e6));
    }

    #[test]
    fn copies_take_their_time_on_the_link_and_are_no_packets_more() {
        let sample = train(2, &[(0, 1_000_000), (0, 2_000_000), (1, 3_000_000), (7, 9)]).sample();
        assert_eq!((sample.rate_bps, sample.arrived), (Some(8e6), 2));
    }

    #[test]
    fn damaged_packets_take_their_time_on_the_link_and_lost_ones_do_not() {
        let train = |damaged: [u32; 3]| {
            let mut train = train(6, &[]);
            for ((index, at_ns), damaged) in [(1, 1_000_000), (3, 3_000_000), (5, 5_000_000)].into_iter().zip(damaged) {
                train.arrived(index, Some(at_ns), damaged);
            }
            train.sample()
        };
        let sample = train([1, 1, 1]);
        assert_eq!(
            (sample.rate_bps, sample.arrived),
            (Some(8e6), 3),
            "and the first of all came before the time began"
        );
        assert_eq!(train([0, 0, 0]).rate_bps, Some(4e6), "what was lost was not carried");
        assert_eq!(train([0, 0, 7]).rate_bps, Some(6e6), "no more than are missing; the others are of other trains");
    }

    #[test]
    fn no_rate_is_told_from_less_than_half_of_a_train_or_from_no_time() {
        assert_eq!(train(4, &[(0, 1_000_000), (3, 2_000_000)]).sample().rate_bps, Some(8e6));
        assert_eq!(train(5, &[(0, 1_000_000), (3, 2_000_000)]).sample().rate_bps, None);
        assert_eq!(train(2, &[(0, 1_000_000)]).sample().rate_bps, None);
        assert_eq!(train(2, &[(0, 1_000_000), (1, 1_000_000)]).sample().rate_bps, None);
        assert_eq!(train(2, &[]).sample(), TrainSample { arrived: 0, ..train(2, &[(0, 1)]).sample() });
    }

    #[test]
    fn a_train_is_over_when_it_is_complete_or_silent_for_long() {
        let complete = train(1, &[(0, 100)]);
        assert!(!complete.is_over(149, 50, 1_000) && complete.is_over(150, 50, 1_000));
        assert!(complete.is_complete_before(101) && !complete.is_complete_before(100));
        let partly = train(2, &[(0, 100)]);
        assert!(!partly.is_complete_before(101));
        assert!(!partly.is_over(1_099, 50, 1_000) && partly.is_over(1_100, 50, 1_000));
        assert!(train(2, &[]).is_over(1_005, 50, 1_000));
    }

    #[test]
    fn a_train_that_arrived_nobody_knows_when_is_void() {
        let mut train = train(2, &[(0, 100)]);
        assert!(!train.is_void());
        train.arrived(1, None, 0);
        assert!(train.is_void());
    }
}
