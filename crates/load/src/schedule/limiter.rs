//! The schedule of a closed loop with a limit on its rate.

use brownout_units::Rate;

/// One thread's part of a limited pace: a constant schedule that advances by partitions, not by operations.
#[derive(Debug)]
pub(crate) struct Limiter {
    start_ns: u64,
    rate: f64,
    /// The number of the next partition.
    number: u64,
    /// How many threads share the schedule, taking one partition each in turn.
    stride: u64,
    /// Operations that were taken, and their partitions.
    taken: (u64, u64),
}

impl Limiter {
    /// Part `thread` of `threads` of a schedule of `rate` partitions a second from `start_ns` on.
    pub(crate) fn new(start_ns: u64, rate: Rate, thread: usize, threads: usize) -> Self {
        Limiter { start_ns, rate: rate.get(), number: thread as u64, stride: threads as u64, taken: (0, 0) }
    }

    /// The intended start of the next operation.
    pub(crate) fn next_ns(&self) -> u64 {
        self.start_ns.saturating_add((self.number as f64 * 1e9 / self.rate) as u64)
    }

    /// Takes the next operation, which has this many partitions; returns its intended start. One without partitions
    /// counts as one, or the schedule would stand still.
    pub(crate) fn take(&mut self, partitions: u32) -> u64 {
        let at = self.next_ns();
        let partitions = u64::from(partitions.max(1));
        self.number += partitions * self.stride;
        self.taken = (self.taken.0 + 1, self.taken.1 + partitions);
        at
    }

    /// Partitions per second of the whole schedule.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// How many operations these partitions would be: they have as many as those before had in the mean.
    pub(crate) fn operations(&self, partitions: u64) -> u64 {
        let (operations, of) = self.taken;
        if of == 0 {
            partitions
        } else {
            (u128::from(partitions) * u128::from(operations)).div_ceil(u128::from(of)) as u64
        }
    }

    /// How many partitions of this part are due before `now_ns` and not taken.
    pub(crate) fn overdue(&self, now_ns: u64) -> u64 {
        let all = (now_ns.saturating_sub(self.start_ns) as f64 * self.rate / 1e9).ceil() as u64;
        all.saturating_sub(self.number).div_ceil(self.stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_advances_by_the_partitions_of_the_operations_before() {
        let mut limiter = Limiter::new(1_000, Rate::per_second(1_000.0).unwrap(), 0, 1);
        let starts: Vec<u64> = [1, 3, 0, 2].map(|partitions| limiter.take(partitions)).to_vec();
        assert_eq!(starts, [1_000, 1_001_000, 4_001_000, 5_001_000]);
        assert_eq!(limiter.next_ns(), 7_001_000);
    }

    #[test]
    fn threads_share_one_exact_schedule_of_single_partitions() {
        let mut starts: Vec<u64> = (0..3)
            .flat_map(|thread| {
                let mut limiter = Limiter::new(0, Rate::per_second(700.0).unwrap(), thread, 3);
                (0..100).map(move |_| limiter.take(1)).collect::<Vec<_>>()
            })
            .collect();
        starts.sort_unstable();
        for (number, at) in starts.iter().enumerate() {
            assert_eq!(*at, (number as f64 * 1e9 / 700.0) as u64);
        }
    }

    #[test]
    fn what_is_due_and_not_taken_is_overdue() {
        let mut limiter = Limiter::new(0, Rate::per_second(1_000.0).unwrap(), 1, 2);
        // Its partitions are due at 1, 3, 5 … ms.
        assert_eq!(limiter.overdue(1_000_000), 0);
        assert_eq!(limiter.overdue(1_000_001), 1);
        assert_eq!(limiter.overdue(6_000_000), 3);
        limiter.take(2);
        assert_eq!(limiter.overdue(6_000_000), 1);
    }
}
