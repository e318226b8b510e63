//! The keys of one thread, and what is known about their rows.

use brownout_base::random::Random;

/// Every `threads`-th key belongs to one thread alone: it orders their writes and knows their newest acknowledged
/// version without sharing anything.
#[derive(Debug)]
pub(super) struct Keys {
    thread: u64,
    threads: u64,
    /// Newest acknowledged version per key of this thread; 0 = none. A version is the write's timestamp in µs, so
    /// versions of one engine are newer than those of the engines before it on the same table.
    acknowledged: Vec<u64>,
    last_version: u64,
}

impl Keys {
    /// The keys of thread number `thread`; memory is only touched where keys are written.
    pub(super) fn new(thread: usize, threads: usize, population: u64) -> Self {
        let (thread, threads) = (thread as u64, threads as u64);
        let count = population.saturating_sub(thread).div_ceil(threads);
        Keys { thread, threads, acknowledged: vec![0; count as usize], last_version: 0 }
    }

    /// How many keys belong to this thread.
    pub(super) fn count(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// The key at an index in 0 .. count.
    pub(super) fn at(&self, place: u64) -> u64 {
        place * self.threads + self.thread
    }

    /// A uniformly drawn key.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        self.at(random.below(self.count()))
    }

    /// A version for the next write: the time, made strictly increasing.
    pub(super) fn next_version(&mut self, unix_us: u64) -> u64 {
        self.last_version = unix_us.max(self.last_version + 1);
        self.last_version
    }

    /// The newest acknowledged version of `key`; 0 = none.
    pub(super) fn acknowledged(&self, key: u64) -> u64 {
        self.acknowledged[(key / self.threads) as usize]
    }

    /// Records an acknowledged write.
    pub(super) fn acknowledge(&mut self, key: u64, version: u64) {
        let newest = &mut self.acknowledged[(key / self.threads) as usize];
        *newest = version.max(*newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_belongs_to_exactly_one_thread() {
        for (population, threads) in [(10, 1), (10, 3), (3, 3), (100, 7)] {
            let mut all: Vec<u64> = (0..threads)
                .flat_map(|thread| {
                    let keys = Keys::new(thread, threads, population);
                    (0..keys.count()).map(move |place| keys.at(place)).collect::<Vec<_>>()
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..population).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_newest_acknowledged_version_stands_whatever_the_order_of_answers() {
        let mut keys = Keys::new(1, 2, 10);
        let (first, second) = (keys.next_version(50), keys.next_version(50));
        assert!(second > first, "two writes in the same microsecond differ");
        keys.acknowledge(3, second);
        keys.acknowledge(3, first);
        assert_eq!(keys.acknowledged(3), second);
        assert_eq!(keys.acknowledged(5), 0);
    }
}
