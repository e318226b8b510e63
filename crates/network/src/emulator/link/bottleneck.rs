//! The bottleneck of a link, and its queue.

use super::stages::{End, Fate};
use crate::impairment::{QueueLimit, RateLimit};

const NS_PER_S: u128 = 1_000_000_000;

/// Packets leave one after another. When each will have left is known as soon as it comes, so the queue itself needs no
/// place here: that its last packet leaves at `busy_until_ns` says all.
///
/// A link has one: of several rates that are asked of it the least counts, with its queue, since that is the one at which
/// packets wait.
#[derive(Default)]
pub(in crate::emulator) struct Bottleneck {
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

impl Bottleneck {
    /// Changes it from `now_ns` on. What waits has waited without a pause, so that its remaining wait changes as the rate
    /// does: says how many times as long it is. `mean_bytes` of the packets that wait decide what their overhead counts.
    pub(in crate::emulator) fn change(
        &mut self,
        now_ns: u64,
        limit: Option<RateLimit>,
        mean_bytes: Option<u32>,
    ) -> f64 {
        let bytes = mean_bytes.unwrap_or(1_500);
        let factor = match (self.limit, limit) {
            (before, after) if before == after => return 1.0,
            (Some(before), Some(after)) => time_of(&after, bytes) / time_of(&before, bytes),
            (Some(_), None) => 0.0,
            (None, _) => 1.0,
        };
        // Packets that cost nothing never waited.
        let factor = if factor.is_finite() { factor } else { 1.0 };
        self.limit = limit;
        self.rest = 0;
        self.busy_until_ns = stretched(now_ns, self.busy_until_ns, factor);
        factor
    }

    /// Decides when packets that enter together depart, and which find the queue full.
    pub(in crate::emulator) fn decide(&mut self, fates: &mut [Fate]) {
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

    /// Keeps packets in their order, however their flights scatter, behind one that leaves the link at `last_ns`: a link
    /// with a rate is one wire, and netem, too, lets none leave before the one before it has left and its own bits are
    /// through. Those that were told to overtake do.
    ///
    /// With a constant delay this changes nothing, since departures are as far apart.
    pub(in crate::emulator) fn keep_order(&self, mut last_ns: u64, fates: &mut [Fate]) {
        let Some(limit) = self.limit else { return };
        for fate in fates.iter_mut().filter(|fate| fate.end.is_none()) {
            if !fate.overtakes {
                let takes_ns = limit.time_ns(limit.charged_bytes(fate.bytes));
                let release_ns = fate.release_ns().max(last_ns.saturating_add(takes_ns));
                fate.flight_ns = release_ns - fate.departs_ns;
            }
            last_ns = last_ns.max(fate.release_ns());
        }
    }
}

/// Nanoseconds that a packet of so many bytes takes.
fn time_of(limit: &RateLimit, bytes: u32) -> f64 {
    limit.charged_bytes(bytes) as f64 * 8e9 / limit.rate.bits_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use brownout_units::{Bytes, Delay};

    const MS: u64 = 1_000_000;

    fn limit(rate: &str, queue: QueueLimit, overhead_bytes: i32) -> RateLimit {
        RateLimit { rate: rate.parse().unwrap(), queue, overhead_bytes }
    }

    fn with(limit: RateLimit) -> Bottleneck {
        let mut bottleneck = Bottleneck::default();
        assert_eq!(bottleneck.change(0, Some(limit), None), 1.0);
        bottleneck
    }

    fn long(rate: &str) -> Bottleneck {
        with(limit(rate, QueueLimit::Time(Delay::from_secs(3_600)), 0))
    }

    /// What it makes of packets of 1,000 bytes that come together at time 0.
    fn decide(bottleneck: &mut Bottleneck, packets: u32) -> Vec<Fate> {
        let mut fates: Vec<_> = (0..packets).map(|n| Fate::new(n, 1_000, 0)).collect();
        bottleneck.decide(&mut fates);
        fates
    }

    #[test]
    fn packets_leave_one_after_another() {
        // 1,000 bytes take 1 ms at 8 Mbit/s.
        let fates = decide(&mut long("8mbit"), 5);
        assert_eq!(fates.iter().map(|fate| fate.departs_ns).collect::<Vec<_>>(), [1, 2, 3, 4, 5].map(|n| n * MS));
        // And after a pause, from when they come.
        let mut bottleneck = long("8mbit");
        decide(&mut bottleneck, 1);
        let mut later = vec![Fate::new(0, 500, 10 * MS), Fate::new(1, 500, 10 * MS)];
        bottleneck.decide(&mut later);
        assert_eq!([later[0].departs_ns, later[1].departs_ns], [10 * MS + MS / 2, 11 * MS]);
    }

    #[test]
    fn a_rate_is_exact_where_a_packet_takes_parts_of_a_nanosecond() {
        // 1,000 bytes take 2,666.67 ns at 3 Gbit/s.
        let fates = decide(&mut long("3gbit"), 3_000_000);
        assert_eq!(fates[2_999_999].departs_ns, 8_000_000_000);
        let fates = decide(&mut with(limit("1gbit", QueueLimit::Time(Delay::from_secs(1)), -958)), 3);
        assert_eq!(fates[2].departs_ns, 3 * 42 * 8);
    }

    #[test]
    fn a_queue_of_bytes_holds_these_bytes_and_drops_the_rest() {
        let queue = |bytes, overhead| limit("8mbit", QueueLimit::Bytes(Bytes(bytes)), overhead);
        let taken = |limit| decide(&mut with(limit), 20).iter().filter(|f| f.end.is_none()).count();
        assert_eq!(taken(queue(10_000, 0)), 10);
        assert_eq!(taken(queue(10_999, 0)), 10);
        assert_eq!(taken(queue(10_000, 100)), 9);
        assert_eq!(taken(queue(999, 0)), 0);
        // What has left has made room.
        let mut bottleneck = with(queue(10_000, 0));
        decide(&mut bottleneck, 20);
        let mut later: Vec<_> = (0..20).map(|n| Fate::new(n, 1_000, 4 * MS)).collect();
        bottleneck.decide(&mut later);
        assert_eq!(later.iter().filter(|fate| fate.end.is_none()).count(), 4);
        assert_eq!(later[3].departs_ns, 14 * MS);
        assert!(later[4..].iter().all(|fate| fate.end == Some(End::QueueFull)));
    }

    #[test]
    fn a_queue_of_time_lets_nothing_wait_longer() {
        let queue = |ms| limit("8mbit", QueueLimit::Time(Delay::from_ms(ms)), 0);
        let taken = |ms| decide(&mut with(queue(ms)), 20).iter().filter(|f| f.end.is_none()).count();
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
    fn what_waits_is_stretched_with_the_rate() {
        let mut bottleneck = long("8mbit");
        decide(&mut bottleneck, 10);
        let faster = limit("16mbit", QueueLimit::Time(Delay::from_secs(3_600)), 0);
        assert_eq!(bottleneck.change(4 * MS, Some(faster), Some(1_000)), 0.5);
        // 6 ms were left, now 3; and 1,000 bytes take half a millisecond.
        let mut next = vec![Fate::new(0, 1_000, 4 * MS)];
        bottleneck.decide(&mut next);
        assert_eq!(next[0].departs_ns, 7 * MS + MS / 2);
        // The same again changes nothing; gone, nothing waits.
        assert_eq!(bottleneck.change(4 * MS, Some(faster), Some(1_000)), 1.0);
        assert_eq!(bottleneck.change(4 * MS, None, Some(1_000)), 0.0);
        assert_eq!(bottleneck.busy_until_ns, 4 * MS);
        assert_eq!([stretched(10, 5, 9.0), stretched(10, 10, 9.0), stretched(10, 12, 9.0)], [5, 10, 28]);
        assert_eq!(stretched(10, 1_000, 0.0), 10);
    }

    #[test]
    fn flights_that_scatter_keep_their_order_and_the_rate() {
        let bottleneck = long("8mbit");
        let flights = [5, 90, 0, 3, 200, 0].map(|ms| ms * MS);
        let fates = |departures: [u64; 6]| -> Vec<Fate> {
            let both = departures.into_iter().zip(flights);
            both.map(|(at, flight_ns)| Fate { departs_ns: at * MS, flight_ns, ..Fate::new(0, 1_000, 0) }).collect()
        };
        let mut close = fates([1, 2, 3, 4, 5, 6]);
        bottleneck.keep_order(0, &mut close);
        let releases = |fates: &[Fate]| fates.iter().map(|fate| fate.release_ns() / MS).collect::<Vec<_>>();
        assert_eq!(releases(&close), [6, 92, 93, 94, 205, 206]);
        // Behind one that is under way, which what was told to overtake passes.
        let mut behind = fates([1, 2, 3, 4, 5, 6]);
        (behind[4].overtakes, behind[4].flight_ns) = (true, 0);
        behind[1].end = Some(End::Lost);
        bottleneck.keep_order(100 * MS, &mut behind);
        assert_eq!(releases(&behind), [101, 92, 102, 103, 5, 104]);
        // Far enough apart, flights are as drawn.
        let mut far = fates([0, 10, 200, 300, 400, 1_000]);
        bottleneck.keep_order(0, &mut far);
        assert_eq!(far.iter().map(|fate| fate.flight_ns).collect::<Vec<_>>(), flights);
    }

    #[test]
    fn a_constant_delay_behind_a_rate_stays_as_it_is() {
        let mut bottleneck = long("3gbit");
        let mut fates = decide(&mut bottleneck, 1_000);
        fates.iter_mut().for_each(|fate| fate.flight_ns = 7 * MS);
        let before = fates.clone();
        bottleneck.keep_order(0, &mut fates);
        assert_eq!(fates, before);
    }
}
