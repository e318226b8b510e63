//! A bottleneck and its queue.

use super::{End, Fate, Impairment, Kind, Stage};
use crate::impairment::{QueueLimit, RateLimit};

pub(super) const KIND: Kind = Kind {
    is_asked: |impairment| impairment.rate.is_some(),
    make: |_| Box::new(Rate { limit: None, busy_until_ns: 0, rest: 0 }),
};

const NS_PER_S: u128 = 1_000_000_000;

/// Packets leave one after another. When each will have left is known as soon as it comes, so the queue itself needs no
/// place here: that its last packet leaves at `busy_until_ns` says all.
struct Rate {
    limit: Option<RateLimit>,
    /// When the last packet taken will have left.
    busy_until_ns: u64,
    /// The part of a nanosecond that is not in that: in bits × 10⁹, below one nanosecond's worth.
    rest: u128,
}

/// When something planned for `at_ns` takes place if what lies between it and `now_ns` takes `factor` times as long.
pub(in crate::emulator) fn stretched(now_ns: u64, at_ns: u64, factor: f64) -> u64 {
    match at_ns.checked_sub(now_ns) {
        Some(remaining) => now_ns.saturating_add((remaining as f64 * factor) as u64),
        None => at_ns,
    }
}

impl Stage for Rate {
    fn configure(&mut self, impairment: &Impairment) {
        self.limit = impairment.rate;
        if self.limit.is_none() {
            (self.busy_until_ns, self.rest) = (0, 0);
        }
    }

    fn report(&self, into: &mut Impairment) {
        into.rate = self.limit;
    }

    fn decide(&mut self, fates: &mut Vec<Fate>) {
        let Some(limit) = self.limit else { return };
        let bits_per_second = u128::from(limit.rate.bits_per_second());
        for fate in fates.iter_mut().filter(|fate| fate.end.is_none()) {
            let came_ns = fate.departs_ns;
            let begins_ns = came_ns.max(self.busy_until_ns);
            let wait_ns = begins_ns - came_ns;
            let bytes = limit.charged_bytes(fate.bytes);
            let has_room = match limit.queue {
                QueueLimit::Time(longest) => wait_ns <= longest.ns(),
                QueueLimit::Bytes(most) => {
                    let waiting = u128::from(wait_ns) * bits_per_second / (8 * NS_PER_S);
                    waiting + u128::from(bytes) <= u128::from(most.0)
                }
            };
            if !has_room {
                fate.end = Some(End::QueueFull);
                continue;
            }
            if wait_ns == 0 {
                self.rest = 0;
            }
            // The rest is carried on, so that rates are exact however short a packet's time is.
            let work = u128::from(bytes) * 8 * NS_PER_S + self.rest;
            self.rest = work % bits_per_second;
            let takes_ns = u64::try_from(work / bits_per_second).unwrap_or(u64::MAX);
            self.busy_until_ns = begins_ns.saturating_add(takes_ns);
            fate.departs_ns = self.busy_until_ns;
        }
    }

    fn busy_until_ns(&mut self) -> Option<&mut u64> {
        self.limit.map(|_| &mut self.busy_until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{decide, stage},
        *,
    };
    use brownout_units::{Bytes, Delay};

    const MS: u64 = 1_000_000;

    fn limit(rate: &str, queue: QueueLimit, overhead_bytes: i32) -> Impairment {
        Impairment::rate(RateLimit { rate: rate.parse().unwrap(), queue, overhead_bytes })
    }

    fn long(rate: &str) -> Box<dyn Stage> {
        stage(&KIND, limit(rate, QueueLimit::Time(Delay::from_secs(3_600)), 0))
    }

    #[test]
    fn packets_leave_one_after_another() {
        // 1,000 bytes take 1 ms at 8 Mbit/s.
        let fates = decide(&mut *long("8mbit"), 5);
        assert_eq!(fates.iter().map(|fate| fate.departs_ns).collect::<Vec<_>>(), [1, 2, 3, 4, 5].map(|n| n * MS));
        // And after a pause, from when they come.
        let mut stage = long("8mbit");
        decide(&mut *stage, 1);
        let mut later = vec![Fate::new(0, 500, 10 * MS), Fate::new(1, 500, 10 * MS)];
        stage.decide(&mut later);
        assert_eq!([later[0].departs_ns, later[1].departs_ns], [10 * MS + MS / 2, 11 * MS]);
    }

    #[test]
    fn a_rate_is_exact_where_a_packet_takes_parts_of_a_nanosecond() {
        // 1,000 bytes take 2,666.67 ns at 3 Gbit/s.
        let fates = decide(&mut *long("3gbit"), 3_000_000);
        assert_eq!(fates[2_999_999].departs_ns, 8_000_000_000);
        let fates = decide(&mut *stage(&KIND, limit("1gbit", QueueLimit::Time(Delay::from_secs(1)), -958)), 3);
        assert_eq!(fates[2].departs_ns, 3 * 42 * 8);
    }

    #[test]
    fn a_queue_of_bytes_holds_these_bytes_and_drops_the_rest() {
        let queue = |bytes, overhead| limit("8mbit", QueueLimit::Bytes(Bytes(bytes)), overhead);
        let taken = |impairment| decide(&mut *stage(&KIND, impairment), 20).iter().filter(|f| f.end.is_none()).count();
        assert_eq!(taken(queue(10_000, 0)), 10);
        assert_eq!(taken(queue(10_999, 0)), 10);
        assert_eq!(taken(queue(10_000, 100)), 9);
        assert_eq!(taken(queue(999, 0)), 0);
        // What has left has made room.
        let mut stage = stage(&KIND, queue(10_000, 0));
        decide(&mut *stage, 20);
        let mut later: Vec<_> = (0..20).map(|n| Fate::new(n, 1_000, 4 * MS)).collect();
        stage.decide(&mut later);
        assert_eq!(later.iter().filter(|fate| fate.end.is_none()).count(), 4);
        assert_eq!(later[3].departs_ns, 14 * MS);
        assert!(later[4..].iter().all(|fate| fate.end == Some(End::QueueFull)));
    }

    #[test]
    fn a_queue_of_time_lets_nothing_wait_longer() {
        let queue = |ms| limit("8mbit", QueueLimit::Time(Delay::from_ms(ms)), 0);
        let taken = |ms| decide(&mut *stage(&KIND, queue(ms)), 20).iter().filter(|f| f.end.is_none()).count();
        // The first does not wait, the others 1, 2, 3 … ms.
        assert_eq!([0, 1, 5].map(taken), [1, 2, 6]);
    }

    #[test]
    fn lost_packets_take_no_time() {
        let mut fates = vec![Fate { end: Some(End::Lost), ..Fate::new(0, 1_000, 0) }, Fate::new(1, 1_000, 0)];
        long("8mbit").decide(&mut fates);
        assert_eq!((fates[0].end, fates[1].departs_ns), (Some(End::Lost), MS));
    }

    #[test]
    fn two_bottlenecks_are_as_fast_as_the_slower_one() {
        for rates in [["8mbit", "16mbit"], ["16mbit", "8mbit"]] {
            let mut fates: Vec<_> = (0..100).map(|n| Fate::new(n, 1_000, 0)).collect();
            for rate in rates {
                long(rate).decide(&mut fates);
            }
            // 100 of them take 1 ms each, and one the faster link's half a millisecond.
            assert_eq!(fates[99].departs_ns, 100 * MS + MS / 2, "{rates:?}");
        }
    }

    #[test]
    fn what_waits_is_stretched_with_the_rate() {
        let mut stage = long("8mbit");
        decide(&mut *stage, 10);
        stage.configure(&limit("16mbit", QueueLimit::Time(Delay::from_secs(3_600)), 0));
        let busy_until = stage.busy_until_ns().unwrap();
        *busy_until = stretched(4 * MS, *busy_until, 0.5);
        // 6 ms were left, now 3; and 1,000 bytes take half a millisecond.
        let mut next = vec![Fate::new(0, 1_000, 4 * MS)];
        stage.decide(&mut next);
        assert_eq!(next[0].departs_ns, 7 * MS + MS / 2);
        assert_eq!([stretched(10, 5, 9.0), stretched(10, 10, 9.0), stretched(10, 12, 9.0)], [5, 10, 28]);
        assert_eq!(stretched(10, 1_000, 0.0), 10);
    }
}
