//! What a change makes of packets that are on their way, and of those that come after it.

use brownout_base::HostId;
use brownout_units::{BitRate, Delay};

use super::*;
use crate::{
    emulator::packet::buffers::Pool,
    impairment::{Distribution, QueueLimit, RateLimit},
};

const MS: u64 = 1_000_000;

fn limit(rate: &str, overhead_bytes: i32) -> Impairment {
    let queue = QueueLimit::Time(Delay::from_secs(3_600));
    Impairment {
        rate: Some(RateLimit { rate: rate.parse::<BitRate>().unwrap(), queue, overhead_bytes }),
        ..Impairment::NONE
    }
}

fn rate(rate: &str) -> Impairment {
    limit(rate, 0)
}

/// A link with packets of 1,000 bytes: 1 ms at 8 Mbit/s.
struct Road {
    link: LinkState,
    pool: Pool,
    came: u64,
}

impl Road {
    fn new(impairments: &[Impairment]) -> Road {
        let mut link = LinkState::new(1, Link { from: HostId(0), to: HostId(1) });
        (0..).zip(impairments).for_each(|(id, asked)| link.change(0, LinkChange::Add(id, *asked)));
        Road { link, pool: Pool::default(), came: 0 }
    }

    /// One packet comes; says when it will depart.
    fn send(&mut self, now_ns: u64) -> u64 {
        let mut fates = vec![Fate::new(0, 1_000, now_ns)];
        self.link.decide(&mut fates);
        assert!(fates[0].end != Some(End::QueueFull));
        let (departs_ns, release_ns) = (fates[0].departs_ns, fates[0].release_ns());
        // Its number, where the arrival would be.
        let times = Times { arrival_ns: self.came, departs_ns, release_ns };
        let buffer = self.pool.take(1_000);
        self.link.hold(times, Load { packets: 1, wire_bytes: 1_000, leaves_by: 0, buffer });
        self.came += 1;
        departs_ns
    }

    fn send_many(&mut self, packets: u32, now_ns: u64) {
        for _ in 0..packets {
            self.send(now_ns);
        }
    }

    fn change(&mut self, now_ns: u64, change: LinkChange) {
        self.link.change(now_ns, change);
    }

    /// (number, release) of all that is left, as it leaves.
    fn leave(&mut self) -> Vec<(u64, u64)> {
        let link = &mut self.link;
        std::iter::from_fn(|| link.pop_due(u64::MAX)).map(|h| (h.times.arrival_ns, h.times.release_ns)).collect()
    }

    fn assert_in_order(&mut self) {
        let left = self.leave();
        assert!(left.is_sorted(), "{left:?}");
    }
}

#[test]
fn of_several_rates_the_least_counts_and_what_waits_follows_it() {
    let mut road = Road::new(&[rate("8mbit"), rate("80mbit")]);
    road.send_many(100, 0);
    // 90 packets wait; at a tenth of the rate they take ten times as long.
    road.change(10 * MS, LinkChange::Add(7, rate("800kbit")));
    assert_eq!(road.send(10 * MS), (10 + 900 + 10) * MS);
    // It goes: 90 of them wait for the first one again.
    road.change(20 * MS, LinkChange::Remove(7));
    assert_eq!(road.send(20 * MS), (20 + 90 + 1) * MS);
    // A faster one beside it changes nothing, whether it comes, changes or goes.
    road.change(20 * MS, LinkChange::Amend(1, rate("9mbit")));
    road.change(20 * MS, LinkChange::Remove(1));
    assert_eq!(road.send(20 * MS), (20 + 91 + 1) * MS);
    road.assert_in_order();
}

#[test]
fn overhead_counts_in_what_waits_when_the_rate_changes() {
    // 2,000 bytes a packet: 2 ms.
    let mut road = Road::new(&[limit("8mbit", 1_000)]);
    assert_eq!(road.send(0), 2 * MS);
    road.send_many(49, 0);
    road.change(0, LinkChange::Amend(0, rate("8mbit")));
    assert_eq!(road.send(0), 51 * MS);
    road.assert_in_order();
}

#[test]
fn a_rate_that_comes_while_jitter_is_in_flight_lets_nothing_overtake_any_more() {
    let jitter = Impairment { delay: Delay::from_ms(20), jitter: Delay::from_ms(10), ..Impairment::NONE };
    let mut road = Road::new(&[jitter]);
    (0..50).for_each(|n| assert_eq!(road.send(n * MS / 10), n * MS / 10));
    road.change(5 * MS, LinkChange::Add(1, rate("80mbit")));
    (50..100).for_each(|n| assert!(road.send(n * MS / 10) > n * MS / 10));
    let left = road.leave();
    let first_new = left.iter().position(|(number, _)| *number >= 50).unwrap();
    assert_eq!(left[first_new..].iter().map(|(number, _)| *number).collect::<Vec<_>>(), (50..100).collect::<Vec<_>>());
    assert!(!left[..first_new].is_sorted(), "before, jitter did reorder");
}

#[test]
fn bottlenecks_that_come_and_go_in_any_order_reorder_nothing() {
    let mut road = Road::new(&[Impairment::delay(Delay::from_ms(3))]);
    let rates = ["1mbit", "8mbit", "30mbit", "4mbit", "100mbit"];
    for turn in 0..400 {
        let now = turn * MS;
        let asked = rate(rates[(turn * 7 % 5) as usize]);
        match turn % 8 {
            1 => road.change(now, LinkChange::Add(100, asked)),
            3 => road.change(now, LinkChange::Add(200, asked)),
            5 => road.change(now, LinkChange::Amend(100, asked)),
            6 => road.change(now, LinkChange::Remove(if turn % 16 < 8 { 100 } else { 200 })),
            7 => [100, 200].into_iter().for_each(|id| road.change(now, LinkChange::Remove(id))),
            _ => {}
        }
        road.send_many(3, now);
    }
    road.assert_in_order();
}

#[test]
fn all_gone_what_waits_leaves_at_once_and_what_comes_is_free() {
    let mut road = Road::new(&[rate("8mbit"), rate("4mbit")]);
    road.send_many(10, 0);
    [0, 1].into_iter().for_each(|id| road.change(MS, LinkChange::Remove(id)));
    assert_eq!(road.send(2 * MS), 2 * MS);
    for (id, asked) in [(2, rate("8mbit")), (3, rate("4mbit"))] {
        road.change(3 * MS, LinkChange::Add(id, asked));
    }
    assert_eq!(road.send(3 * MS), 3 * MS + 2 * MS);
    road.assert_in_order();
}

#[test]
fn a_faster_link_with_jitter_lets_nothing_overtake_but_what_jitter_lets() {
    const EVERY: u64 = 5 * MS;
    const CHANGE: u64 = 100 * EVERY;
    let far = |ms| {
        let jitter = Delay::from_ms(1);
        Impairment { delay: Delay::from_ms(ms), jitter, distribution: Distribution::Pareto, ..Impairment::NONE }
    };
    // Pareto goes as far as 113 deviations, so that all flights of 100 ms would be allowed to last.
    assert!(far(10).longest_flight_ns() > far(100).delay.ns());
    for (before, after) in [(far(100), Some(far(10))), (far(100), Some(far(50))), (far(100), None)] {
        let mut road = Road::new(&[before]);
        (0..100).for_each(|n| assert_eq!(road.send(n * EVERY), n * EVERY));
        road.change(CHANGE, after.map_or(LinkChange::Remove(0), |after| LinkChange::Amend(0, after)));
        (100..200).for_each(|n| assert_eq!(road.send(n * EVERY), n * EVERY));
        let left: Vec<_> = road.leave().into_iter().filter(|(_, release)| *release >= CHANGE).collect();
        let longest_ns = after.map_or(0, |after| after.longest_flight_ns());
        assert!(left.iter().all(|(number, release)| *release <= (number * EVERY + longest_ns).max(CHANGE)));
        let mut newest = 0;
        let overtaken = left.iter().filter(|(number, _)| {
            newest = newest.max(*number);
            *number < newest
        });
        // One in a thousand is 5 ms later than the next; left alone, 18 in flight would be overtaken, or 10.
        let overtaken = overtaken.count();
        assert!(overtaken <= 2, "{overtaken} were overtaken when {before} became {after:?}");
    }
}

#[test]
fn the_longest_hold_counts_the_queue_and_the_tail_of_the_jitter() {
    let limit = |queue| RateLimit { rate: "8mbit".parse().unwrap(), queue, overhead_bytes: 0 };
    let ms = |asked: &[Impairment]| Road::new(asked).link.longest_hold_ns() / MS;
    let delay = Impairment { delay: Delay::from_ms(10), jitter: Delay::from_ms(2), ..Impairment::NONE };
    assert_eq!(ms(&[delay]), 12);
    assert_eq!(ms(&[Impairment { distribution: Distribution::Normal, ..delay }]), 19);
    // A packet of 64 KiB takes 65 ms at 8 Mbit/s, beside the 50 ms that it may wait.
    let [of_time, of_bytes] =
        [QueueLimit::Time(Delay::from_ms(50)), QueueLimit::Bytes(brownout_units::Bytes(100_000))].map(limit);
    assert_eq!(ms(&[Impairment { rate: Some(of_time), ..delay }]), 12 + 50 + 65);
    assert_eq!(ms(&[delay, Impairment { rate: Some(of_bytes), ..Impairment::NONE }]), 12 + 100 + 65);
    // Of several rates the least counts, with its queue.
    assert_eq!(ms(&[delay, Impairment { rate: Some(of_bytes), ..Impairment::NONE }, rate("1gbit")]), 12 + 100 + 65);
}
