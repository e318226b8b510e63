//! The packets that a link holds, in the order in which they leave.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, VecDeque},
};

use super::bottleneck::stretched;
use crate::emulator::packet::buffers::Buffer;

/// When a frame comes, departs and leaves, in monotonic nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(in crate::emulator) struct Times {
    /// When it came.
    pub(in crate::emulator) arrival_ns: u64,
    /// When it leaves the queue for the bottleneck; without one, when it came.
    pub(in crate::emulator) departs_ns: u64,
    /// When it is to leave the link.
    pub(in crate::emulator) release_ns: u64,
}

/// A frame on its way.
pub(in crate::emulator) struct QueuedFrame {
    pub(in crate::emulator) times: Times,
    /// Frames that leave at the same time leave in the order in which they came.
    order: u64,
    pub(in crate::emulator) load: Load,
}

/// A frame, and where it goes.
pub(in crate::emulator) struct Load {
    /// Wire packets it stands for.
    pub(in crate::emulator) packets: u32,
    /// Their bytes.
    pub(in crate::emulator) wire_bytes: u32,
    /// The number of the port that it leaves by.
    pub(in crate::emulator) leaves_by: usize,
    /// The frame.
    pub(in crate::emulator) buffer: Buffer,
}

impl QueuedFrame {
    fn key(&self) -> (u64, u64) {
        (self.times.release_ns, self.order)
    }

    /// Memory that it takes, in bytes: its buffer, which is larger than the frame, and its place in the queue.
    pub(in crate::emulator) fn memory(&self) -> u64 {
        memory_of(self.load.buffer.capacity())
    }
}

/// Memory that a frame in a buffer of this capacity takes while it is held, in bytes.
pub(in crate::emulator) fn memory_of(capacity: usize) -> u64 {
    (capacity + size_of::<QueuedFrame>()) as u64
}

/// A link's queue: first in, first out as long as each frame leaves after the one before it, which
/// is so without jitter; the others, and only they, pay for a heap.
#[derive(Default)]
pub(in crate::emulator) struct Queue {
    in_order: VecDeque<QueuedFrame>,
    out_of_order: BinaryHeap<Earliest>,
    came: u64,
    packets: u64,
    wire_bytes: u64,
    memory: u64,
}

/// How what a link holds is to be changed; see [`Queue::replan`].
#[derive(Debug, Clone, Copy)]
pub(in crate::emulator) struct Replan {
    /// From when on.
    pub(in crate::emulator) now_ns: u64,
    /// What still waits for the bottleneck waits this many times as long.
    pub(in crate::emulator) factor: f64,
    /// Each flight becomes so much shorter.
    pub(in crate::emulator) shorter_ns: u64,
    /// And is no longer than this.
    pub(in crate::emulator) longest_ns: u64,
}

impl Replan {
    fn apply(&self, times: &mut Times) {
        let flight_ns = times.release_ns.saturating_sub(times.departs_ns);
        times.departs_ns = stretched(self.now_ns, times.departs_ns, self.factor);
        let flight_ns = flight_ns.saturating_sub(self.shorter_ns).min(self.longest_ns);
        let planned_ns = times.departs_ns.saturating_add(flight_ns);
        // What is thereby overdue is intended for now, not for a time at which nobody intended it; what was overdue
        // before stays so.
        times.release_ns = planned_ns.max(self.now_ns.min(times.release_ns));
    }
}

impl Queue {
    pub(in crate::emulator) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.out_of_order.is_empty()
    }

    /// Memory that what it holds takes, in bytes.
    pub(in crate::emulator) fn memory(&self) -> u64 {
        self.memory
    }

    /// Mean bytes of the packets held, as the wire would count them; `None` without any.
    pub(in crate::emulator) fn mean_bytes(&self) -> Option<u32> {
        self.wire_bytes.checked_div(self.packets).map(|mean| u32::try_from(mean).unwrap_or(u32::MAX))
    }

    /// When the last of what it holds leaves.
    pub(in crate::emulator) fn last_release_ns(&self) -> Option<u64> {
        // What is out of order leaves before something that came earlier.
        self.in_order.back().map(|held| held.times.release_ns)
    }

    pub(in crate::emulator) fn push(&mut self, times: Times, load: Load) {
        self.packets += u64::from(load.packets);
        self.wire_bytes += u64::from(load.wire_bytes);
        let held = QueuedFrame { times, order: self.came, load };
        self.came += 1;
        self.memory += held.memory();
        match self.in_order.back() {
            Some(last) if times.release_ns < last.times.release_ns => self.out_of_order.push(Earliest(held)),
            _ => self.in_order.push_back(held),
        }
    }

    /// When the next frame is to leave.
    pub(in crate::emulator) fn next_release_ns(&self) -> Option<u64> {
        match (self.in_order.front(), self.out_of_order.peek()) {
            (Some(a), Some(b)) => Some(a.times.release_ns.min(b.0.times.release_ns)),
            (Some(a), None) => Some(a.times.release_ns),
            (None, Some(b)) => Some(b.0.times.release_ns),
            (None, None) => None,
        }
    }

    /// The next frame, if its time has come.
    pub(in crate::emulator) fn pop_due(&mut self, now_ns: u64) -> Option<QueuedFrame> {
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
        self.packets -= u64::from(held.load.packets);
        self.wire_bytes -= u64::from(held.load.wire_bytes);
        self.memory -= held.memory();
        Some(held)
    }

    /// Changes when what it holds departs and leaves.
    ///
    /// When a link becomes faster, what is in flight must neither be overtaken by what comes after it nor hold that up:
    /// so it becomes faster too, by as much. What jitter has added or taken away stays, as far as the new impairment
    /// could have done so: from the change on, no packet is later than that makes it. (When flights become longer, what
    /// is in flight is ahead anyhow.)
    ///
    /// All stay where they are, so this allocates nothing. Only frames that jitter has already put before others may come
    /// before still others, when a bottleneck becomes faster.
    pub(in crate::emulator) fn replan(&mut self, plan: Replan) {
        let mut earlier_ns = 0;
        for held in &mut self.in_order {
            plan.apply(&mut held.times);
            // A bottleneck that becomes faster brings frames closer together than their jitter was: those that were in
            // order stay so. Thereby none is later than the plan lets any that departs with it be.
            held.times.release_ns = held.times.release_ns.max(earlier_ns);
            earlier_ns = held.times.release_ns;
        }
        if !self.out_of_order.is_empty() {
            let mut others = std::mem::take(&mut self.out_of_order).into_vec();
            others.iter_mut().for_each(|Earliest(held)| plan.apply(&mut held.times));
            self.out_of_order = others.into();
        }
    }
}

/// Orders a max-heap so that the earliest comes out first.
struct Earliest(QueuedFrame);

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
    use brownout_base::random::Random;

    use super::*;
    use crate::emulator::packet::buffers::Pool;

    /// Without a bottleneck.
    fn flight(arrival_ns: u64, release_ns: u64) -> Times {
        Times { arrival_ns, departs_ns: arrival_ns, release_ns }
    }

    /// One packet of so many bytes.
    fn load(wire_bytes: u32, pool: &mut Pool) -> Load {
        Load { packets: 1, wire_bytes, leaves_by: 0, buffer: pool.take(1) }
    }

    /// A plan that changes nothing.
    fn nothing(now_ns: u64) -> Replan {
        Replan { now_ns, factor: 1.0, shorter_ns: 0, longest_ns: u64::MAX }
    }

    /// Pushes frames that come at 0, 1, 2 … and leave at the times given; says in which order they left.
    fn leaves(releases: &[u64], hurry: Option<u64>) -> Vec<u64> {
        let (mut queue, mut pool) = (Queue::default(), Pool::default());
        for (arrival, release) in (0..).zip(releases) {
            queue.push(flight(arrival, *release), load(100, &mut pool));
        }
        assert_eq!(queue.mean_bytes(), Some(100));
        assert!(queue.memory() >= (128 + 40) * releases.len() as u64);
        if let Some(longest_ns) = hurry {
            queue.replan(Replan { longest_ns, ..nothing(0) });
        }
        let mut left = Vec::new();
        while let Some(next) = queue.next_release_ns() {
            assert!(next == 0 || queue.pop_due(next - 1).is_none());
            left.push(queue.pop_due(next).unwrap().times.arrival_ns);
        }
        assert!(queue.is_empty());
        assert_eq!((queue.memory(), queue.mean_bytes(), queue.last_release_ns()), (0, None, None));
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
        queue.push(flight(0, 100), load(1, &mut pool));
        queue.push(flight(2, 5), load(1, &mut pool));
        queue.replan(Replan { longest_ns: 7, ..nothing(0) });
        assert_eq!(queue.next_release_ns(), Some(5));
        queue.pop_due(5);
        assert_eq!(queue.next_release_ns(), Some(7));
    }

    #[test]
    fn hurried_frames_are_not_counted_as_late() {
        let (mut queue, mut pool) = (Queue::default(), Pool::default());
        queue.push(flight(0, 30), load(1, &mut pool));
        queue.push(flight(10, 100), load(1, &mut pool));
        queue.push(flight(55, 200), load(1, &mut pool));
        queue.replan(Replan { longest_ns: 20, ..nothing(60) });
        // Late already before the change; due at once by it; due in a while.
        let releases: Vec<_> = std::iter::from_fn(|| queue.pop_due(1_000)).map(|held| held.times.release_ns).collect();
        assert_eq!(releases, [30, 60, 75]);
    }

    #[test]
    fn what_waits_for_a_bottleneck_waits_as_its_new_rate_says() {
        let releases = |factor, longest_ns| {
            let (mut queue, mut pool) = (Queue::default(), Pool::default());
            for departs_ns in [40, 60, 80] {
                let times = Times { arrival_ns: 0, departs_ns, release_ns: departs_ns + 10 };
                queue.push(times, load(1, &mut pool));
            }
            // The first has departed, and is not touched but by a shorter flight.
            queue.replan(Replan { factor, longest_ns, ..nothing(50) });
            std::iter::from_fn(|| queue.pop_due(1_000)).map(|held| held.times.release_ns).collect::<Vec<_>>()
        };
        assert_eq!(releases(1.0, 10), [50, 70, 90]);
        assert_eq!(releases(0.5, 10), [50, 65, 75]);
        assert_eq!(releases(3.0, 10), [50, 90, 150]);
        assert_eq!(releases(0.0, 10), [50, 60, 60]);
        assert_eq!(releases(0.0, 0), [50, 50, 50]);
        assert_eq!(releases(0.5, 2), [50, 57, 67]);
    }

    #[test]
    fn flights_that_become_shorter_all_become_so_by_as_much_and_keep_their_jitter() {
        let (mut queue, mut pool) = (Queue::default(), Pool::default());
        for (arrival, release) in [(0, 100), (1, 99), (2, 160), (50, 130), (60, 170)] {
            queue.push(flight(arrival, release), load(1, &mut pool));
        }
        queue.replan(Replan { shorter_ns: 60, longest_ns: 90, ..nothing(60) });
        let left: Vec<_> =
            std::iter::from_fn(|| queue.pop_due(1_000)).map(|h| (h.times.arrival_ns, h.times.release_ns)).collect();
        // The first two are overdue; the third would fly for 98 and may for 90.
        assert_eq!(left, [(0, 60), (1, 60), (50, 70), (2, 92), (60, 110)]);
    }

    #[test]
    fn frames_that_were_in_order_are_after_any_change() {
        let mut random = Random::new(7);
        let mut next = |below| random.below(below);
        for turn in 0..1_000 {
            let jitter = [5, 100][turn % 2];
            let (mut queue, mut pool) = (Queue::default(), Pool::default());
            let (mut came, mut all) = (0, Vec::new());
            for _ in 0..20 {
                came += 5 + next(10);
                let times = Times { arrival_ns: came, departs_ns: came + 30, release_ns: came + 30 + next(jitter) };
                all.push(times);
                queue.push(times, load(1, &mut pool));
            }
            // With little jitter, all are in order.
            let plan = Replan {
                now_ns: next(200),
                factor: if jitter == 5 { next(30) as f64 / 10.0 } else { 1.0 },
                shorter_ns: next(100),
                longest_ns: next(100),
            };
            queue.replan(plan);
            let left: Vec<_> = std::iter::from_fn(|| queue.pop_due(u64::MAX)).collect();
            assert_eq!(left.len(), all.len());
            for (n, one) in left.iter().enumerate() {
                for next in &left[n + 1..] {
                    let was_overtaken = all[next.order as usize].release_ns > all[one.order as usize].release_ns;
                    assert!(next.order > one.order || was_overtaken, "{plan:?}: overtaken by the change");
                }
            }
        }
    }
}
