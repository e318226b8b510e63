//! Coarse timeouts, without a timer per operation.

use std::collections::VecDeque;

use super::operations::Handle;

/// Width of a tick. A timeout may be noticed this much later; the recorded response time is the timeout all the same,
/// and an answer that comes in between is judged by its own time.
pub(super) const TICK_NS: u64 = 10_000_000;

/// When it is over, an operation is checked, which has usually ended long before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeout {
    pub(super) handle: Handle,
    /// The request that times out; 0 for the whole operation.
    pub(super) request: u32,
}

/// A list of operations per tick, from the earliest deadline on.
#[derive(Debug, Default)]
pub(super) struct Wheel {
    ticks: VecDeque<Vec<Timeout>>,
    /// The tick number of `ticks[0]`.
    first: u64,
    /// Ticks below this have been taken.
    passed: u64,
    spare: Vec<Vec<Timeout>>,
}

impl Wheel {
    /// Schedules a check of an operation at the end of the tick in which its deadline lies.
    pub(super) fn watch(&mut self, deadline_ns: u64, timeout: Timeout) {
        // A deadline in a tick that was already taken is due at the next check.
        let tick = (deadline_ns / TICK_NS).max(self.passed);
        if self.ticks.is_empty() {
            self.first = tick;
        }
        // Deadlines mostly come in order; an operation that waited in a queue comes late.
        while tick < self.first {
            self.ticks.push_front(Vec::new());
            self.first -= 1;
        }
        let place = (tick - self.first) as usize;
        while self.ticks.len() <= place {
            self.ticks.push_back(self.spare.pop().unwrap_or_default());
        }
        self.ticks[place].push(timeout);
    }

    /// When to check next; `u64::MAX` for never.
    pub(super) fn next_ns(&self) -> u64 {
        if self.ticks.is_empty() { u64::MAX } else { (self.first + 1) * TICK_NS }
    }

    /// Takes the operations of the earliest tick if all of it lies in the past. Give the list back to
    /// [`Wheel::recycle`].
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<Vec<Timeout>> {
        if self.next_ns() > now_ns {
            return None;
        }
        self.first += 1;
        self.passed = self.first;
        self.ticks.pop_front()
    }

    pub(super) fn recycle(&mut self, mut list: Vec<Timeout>) {
        // Do not keep the memory of a burst.
        if self.spare.len() < 16 && list.capacity() < 4096 {
            list.clear();
            self.spare.push(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    #[test]
    fn everything_watched_is_due_once_within_a_tick_after_its_deadline() {
        let mut wheel = Wheel::default();
        let mut random = Random::new(1);
        let mut waiting = std::collections::HashMap::new();
        let mut now = 5 * TICK_NS;
        for id in 0..10_000 {
            let deadline = now + random.below(30 * TICK_NS);
            wheel.watch(deadline, Timeout { handle: Handle::of(id), request: 0 });
            waiting.insert(id, deadline);
            now += random.below(TICK_NS / 4);
            while let Some(list) = wheel.take_due(now) {
                for timeout in &list {
                    let deadline = waiting.remove(&timeout.handle.place()).expect("due once");
                    assert!(deadline <= now, "not before its deadline");
                }
                wheel.recycle(list);
            }
            // Nothing still waits more than a tick after its deadline.
            assert!(waiting.values().all(|deadline| *deadline + TICK_NS >= now));
        }
        now += 100 * TICK_NS;
        let rest: usize = std::iter::from_fn(|| wheel.take_due(now)).map(|list| list.len()).sum();
        assert_eq!(rest, waiting.len());
        assert_eq!(wheel.next_ns(), u64::MAX);
    }
}
