//! What a change makes of packets that are on their way, and of those that come after it.

use brownout_units::{BitRate, Delay};

use super::{
    super::{
        buffers::Pool,
        queue::Times,
        stages::{End, Fate},
    },
    *,
};
use crate::{
    impairment::{Distribution, Impairment, QueueLimit},
    link::HostId,
};

const MS: u64 = 1_000_000;

fn limit(rate: &str, overhead_bytes: i32) -> Impairment {
    let queue = QueueLimit::Time(Delay::from_secs(3_600));
    Impairment::rate(RateLimit { rate: rate.parse::<BitRate>().unwrap(), queue, overhead_bytes })
}

fn rate(rate: &str) -> Impairment {
    limit(rate, 0)
}

/// A link with packets of 1,000 bytes: 1 ms at 8 Mbit/s.
struct Road {
    line: Line,
    pool: Pool,
    came: u64,
}

impl Road {
    fn new(impairments: &[Impairment]) -> Road {
        let mut line = Line::new(1, Link { from: HostId(0), to: HostId(1) });
        (0..).zip(impairments).for_each(|(name, asked)| line.change(0, |layers| layers.add(name, *asked)));
        Road { line, pool: Pool::default(), came: 0 }
    }

    /// One packet comes; says when it will depart.
    fn send(&mut self, now_ns: u64) -> u64 {
        let mut fates = vec![Fate::new(0, 1_000, now_ns)];
        self.line.layers.decide(&mut fates);
        assert!(fates[0].end != Some(End::QueueFull));
        let (departs_ns, release_ns) = (fates[0].departs_ns, fates[0].release_ns());
        // Its number, where the arrival would be.
        let times = Times { arrival_ns: self.came, departs_ns, release_ns };
        self.line.queue.push(times, 1, 1_000, self.pool.take(1_000));
        self.came += 1;
        departs_ns
    }

    fn send_many(&mut self, packets: u32, now_ns: u64) {
        for _ in 0..packets {
            self.send(now_ns);
        }
    }

    fn change(&mut self, now_ns: u64, change: impl FnOnce(&mut Layers)) {
        self.line.change(now_ns, change);
    }

    /// (number, release) of all that is left, as it leaves.
    fn leave(&mut self) -> Vec<(u64, u64)> {
        let queue = &mut self.line.queue;
        std::iter::from_fn(|| queue.pop_due(u64::MAX)).map(|h| (h.times.arrival_ns, h.times.release_ns)).collect()
    }

    fn assert_in_order(&mut self) {
        let left = self.leave();
        assert!(left.is_sorted(), "{left:?}");
    }
}

#[test]
fn a_slower_bottleneck_behind_another_does_not_hold_up_that_one() {
    let mut road = Road::new(&[rate("8mbit")]);
    road.send_many(100, 0);
    // 90 packets wait, and pass the new one in 10 ms each.
    road.change(10 * MS, |layers| layers.add(7, rate("800kbit")));
    assert_eq!(road.send(10 * MS), (10 + 900 + 10) * MS);
    // It goes: what waited for it waits for the first one only, which was never slower.
    road.change(20 * MS, |layers| layers.remove(7));
    assert_eq!(road.send(20 * MS), (20 + 90 + 1) * MS);
    assert_eq!(road.line.layers.busy_until_ns().map(|(_, busy)| *busy).collect::<Vec<_>>(), [111 * MS]);
    road.assert_in_order();
}

#[test]
fn a_bottleneck_that_goes_leaves_the_backlog_of_the_one_before_it() {
    // 2,000 bytes a packet in the first: 2 ms, as slow as it looks fast.
    let mut road = Road::new(&[limit("8mbit", 1_000), rate("4mbit")]);
    road.send_many(50, 0);
    road.change(0, |layers| layers.remove(1));
    let departs = road.send(0);
    assert!((102 * MS..=104 * MS).contains(&departs), "{departs}");
    let left = road.leave();
    assert!(left.is_sorted() && left[49].1 >= 100 * MS, "{left:?}");
}

#[test]
fn a_bottleneck_that_becomes_faster_frees_those_behind_it() {
    let mut road = Road::new(&[rate("800kbit"), rate("8mbit")]);
    road.send_many(10, 0);
    // 100 ms and the last packet's passage through the second one were left.
    road.change(0, |layers| layers.amend(0, rate("80mbit")));
    let departs = road.send(0);
    assert!((11 * MS..=12 * MS).contains(&departs), "{departs}");
    road.assert_in_order();
}

#[test]
fn bottlenecks_that_come_and_go_in_any_order_reorder_nothing() {
    let mut road = Road::new(&[Impairment::delay(Delay::from_ms(3))]);
    let rates = ["1mbit", "8mbit", "30mbit", "4mbit", "100mbit"];
    for turn in 0..400 {
        let now = turn * MS;
        let asked = rate(rates[(turn * 7 % 5) as usize]);
        match turn % 8 {
            1 => road.change(now, |layers| layers.add(100, asked)),
            3 => road.change(now, |layers| layers.add(200, asked)),
            5 => road.change(now, |layers| layers.amend(100, asked)),
            6 => road.change(now, |layers| layers.remove(if turn % 16 < 8 { 100 } else { 200 })),
            7 => road.change(now, |layers| [100, 200].into_iter().for_each(|name| layers.remove(name))),
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
    road.change(MS, |layers| [0, 1].into_iter().for_each(|name| layers.remove(name)));
    assert_eq!(road.send(2 * MS), 2 * MS);
    road.change(3 * MS, |layers| {
        [(2, "8mbit"), (3, "4mbit")].into_iter().for_each(|(name, of)| layers.add(name, rate(of)))
    });
    assert_eq!(road.send(3 * MS), 3 * MS + 3 * MS);
    road.assert_in_order();
}

#[test]
fn a_faster_link_with_jitter_lets_nothing_overtake_but_what_jitter_lets() {
    const EVERY: u64 = 5 * MS;
    const CHANGE: u64 = 100 * EVERY;
    let far = |ms| {
        let jitter = Delay::from_ms(1);
        Impairment::delay(Delay::from_ms(ms)).with_jitter(jitter).with_distribution(Distribution::Pareto)
    };
    // Pareto goes as far as 113 deviations, so that all flights of 100 ms would be allowed to last.
    assert!(far(10).longest_flight_ns() > far(100).delay.ns());
    for (before, after) in [(far(100), Some(far(10))), (far(100), Some(far(50))), (far(100), None)] {
        let mut road = Road::new(&[before]);
        (0..100).for_each(|n| assert_eq!(road.send(n * EVERY), n * EVERY));
        road.change(CHANGE, |layers| match after {
            Some(after) => layers.amend(0, after),
            None => layers.remove(0),
        });
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
