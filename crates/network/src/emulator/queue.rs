//! The packets that a link holds, in the order in which they leave.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, VecDeque},
};

use super::{buffers::Buffer, stages::stretched};

/// When a frame comes, departs and leaves, in monotonic nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// When it came.
    pub(super) arrival_ns: u64,
    /// When it leaves the last queue for a bottleneck; without one, when it came.
    pub(super) departs_ns: u64,
    /// When it is to leave the link.
    pub(super) release_ns: u64,
}

/// A frame on its way.
pub(super) struct Held {
    pub(super) times: Times,
    /// Frames that leave at the same time leave in the order in which they came.
    order: u64,
    /// Wire packets it stands for.
    pub(super) packets: u32,
    /// Their bytes.
    pub(super) wire_bytes: u32,
    /// The frame.
    pub(super) buffer: Buffer,
}

impl Held {
    fn key(&self) -> (u64, u64) {
        (self.times.release_ns, self.order)
    }
}

/// A link's queue: first in, first out as long as each frame leaves after the one before it, which
/// is so without jitter; the others, and only they, pay for a heap.
#[derive(Default)]
pub(super) struct Queue {
    in_order: VecDeque<Held>,
    out_of_order: BinaryHeap<Earliest>,
    came: u64,
    wire_bytes: u64,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.out_of_order.is_empty()
    }

    /// Bytes held, as the wire would count them.
    pub(super) fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    pub(super) fn push(&mut self, times: Times, packets: u32, wire_bytes: u32, buffer: Buffer) {
        let held = Held { times, order: self.came, packets, wire_bytes, buffer };
        self.came += 1;
        self.wire_bytes += u64::from(wire_bytes);
        match self.in_order.back() {
            Some(last) if times.release_ns < last.times.release_ns => self.out_of_order.push(Earliest(held)),
            _ => self.in_order.push_back(held),
        }
    }

    /// When the next frame is to leave.
    pub(super) fn next_release_ns(&self) -> Option<u64> {
        match (self.in_order.front(), self.out_of_order.peek()) {
            (Some(a), Some(b)) => Some(a.times.release_ns.min(b.0.times.release_ns)),
            (Some(a), None) => Some(a.times.release_ns),
            (None, Some(b)) => Some(b.0.times.release_ns),
            (None, None) => None,
        }
    }

    /// The next frame, if its time has come.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Held> {
        let heap_first = match (self.in_order.front(), self.out_of_order.peek()) {
            (Some(a), Some(b)) => b.0.key() < a.key(),
            (None, Some(_)) => true,
            _ => false,
        };
        if self.next_release_ns()? > now_ns {
            return None;
        }
        let held =
            if heap_first { self.out_of_order.pop().map(|Earliest(held)| held) } else { self.in_order.pop_front() }?;
        self.wire_bytes -= u64::from(held.wire_bytes);
        Some(held)
    }

    /// From `now_ns` on, what still waits for a bottleneck waits `factor` times as long, and nothing flies longer than
    /// `longest_ns` after that.
    ///
    /// When a link becomes faster, what is in flight must neither be overtaken by what comes after it nor hold that up:
    /// so it becomes faster too. From the change on, no packet is later than the new impairment makes it. (When flights
    /// become longer, what is in flight is ahead anyhow.) What is thereby overdue is intended for now, not for a time at
    /// which nobody intended it.
    pub(super) fn replan(&mut self, now_ns: u64, factor: f64, longest_ns: u64) {
        let mut all: Vec<Held> = self.in_order.drain(..).chain(self.out_of_order.drain().map(|e| e.0)).collect();
        for Held { times, .. } in &mut all {
            let flight_ns = times.release_ns.saturating_sub(times.departs_ns);
            times.departs_ns = stretched(now_ns, times.departs_ns, factor);
            let latest_ns = times.departs_ns.saturating_add(longest_ns).max(now_ns);
            times.release_ns = times.departs_ns.saturating_add(flight_ns).min(latest_ns);
        }
        all.sort_unstable_by_key(Held::key);
        self.in_order = all.into();
    }
}

/// Orders a max-heap so that the earliest comes out first.
struct Earliest(Held);

impl Ord for Earliest {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.key().cmp(&self.0.key())
    }
}

impl PartialOrd for Earliest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Earliest {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Earliest {}

#[cfg(test)]
mod tests {
    use super::{super::buffers::Pool, *};

    /// Without a bottleneck.
    fn flight(arrival_ns: u64, release_ns: u64) -> Times {
        Times { arrival_ns, departs_ns: arrival_ns, release_ns }
    }

    /// Pushes frames that come at 0, 1, 2 … and leave at the times given; says in which order they left.
    fn leaves(releases: &[u64], hurry: Option<u64>) -> Vec<u64> {
        let (mut queue, mut pool) = (Queue::default(), Pool::default());
        for (arrival, release) in (0..).zip(releases) {
            queue.push(flight(arrival, *release), 1, 100, pool.take(1));
        }
        assert_eq!(queue.wire_bytes(), 100 * releases.len() as u64);
        if let Some(longest) = hurry {
            queue.replan(0, 1.0, longest);
        }
        let mut left = Vec::new();
        while let Some(next) = queue.next_release_ns() {
            assert!(next == 0 || queue.pop_due(next - 1).is_none());
            left.push(queue.pop_due(next).unwrap().times.arrival_ns);
        }
        assert!(queue.is_empty());
        assert_eq!(queue.wire_bytes(), 0);
        left
    }

    #[test]
    fn frames_leave_by_their_time_and_then_in_the_order_they_came() {
        assert_eq!(leaves(&[10, 10, 11, 12], None), [0, 1, 2, 3]);
        assert_eq!(leaves(&[30, 10, 20, 10, 40], None), [1, 3, 2, 0, 4]);
        assert_eq!(leaves(&[30, 10, 30, 30, 10], None), [1, 4, 0, 2, 3]);
    }

    #[test]
    fn frames_in_flight_hurry_without_overtaking() {
        assert_eq!(leaves(&[100, 101, 102], Some(0)), [0, 1, 2]);
        assert_eq!(leaves(&[100, 101, 102], Some(50)), [0, 1, 2]);
        // What jitter had already put in another order stays in it, where it is not cut short.
        assert_eq!(leaves(&[40, 20, 30], Some(35)), [1, 2, 0]);
        let (mut queue, mut pool) = (Queue::default(), Pool::default());
        queue.push(flight(0, 100), 1, 1, pool.take(1));
        queue.push(flight(2, 5), 1, 1, pool.take(1));
        queue.replan(0, 1.0, 7);
        assert_eq!(queue.next_release_ns(), Some(5));
        queue.pop_due(5);
        assert_eq!(queue.next_release_ns(), Some(7));
    }

    #[test]
    fn hurried_frames_are_not_counted_as_late() {
        let (mut queue, mut pool) = (Queue::default(), Pool::default());
        queue.push(flight(0, 30), 1, 1, pool.take(1));
        queue.push(flight(10, 100), 1, 1, pool.take(1));
        queue.push(flight(55, 200), 1, 1, pool.take(1));
        queue.replan(60, 1.0, 20);
        // Late already before the change; due at once by it; due in a while.
        let releases: Vec<_> = std::iter::from_fn(|| queue.pop_due(1_000)).map(|held| held.times.release_ns).collect();
        assert_eq!(releases, [30, 60, 75]);
    }

    #[test]
    fn what_waits_for_a_bottleneck_waits_as_its_new_rate_says() {
        let releases = |factor, longest| {
            let (mut queue, mut pool) = (Queue::default(), Pool::default());
            for departs_ns in [40, 60, 80] {
                let times = Times { arrival_ns: 0, departs_ns, release_ns: departs_ns + 10 };
                queue.push(times, 1, 1, pool.take(1));
            }
            // The first has departed, and is not touched but by a shorter flight.
            queue.replan(50, factor, longest);
            std::iter::from_fn(|| queue.pop_due(1_000)).map(|held| held.times.release_ns).collect::<Vec<_>>()
        };
        assert_eq!(releases(1.0, 10), [50, 70, 90]);
        assert_eq!(releases(0.5, 10), [50, 65, 75]);
        assert_eq!(releases(3.0, 10), [50, 90, 150]);
        assert_eq!(releases(0.0, 10), [50, 60, 60]);
        assert_eq!(releases(0.0, 0), [50, 50, 50]);
        assert_eq!(releases(0.5, 2), [50, 57, 67]);
    }
}
