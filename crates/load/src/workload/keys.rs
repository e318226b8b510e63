//! The keys of one thread, and what is known about their rows.

use brownout_base::random::Random;

/// Every `threads`-th key belongs to one thread alone: it orders their writes and knows their newest acknowledged
/// version without sharing anything.
#[derive(Debug)]
pub(crate) struct Keys {
    thread: u64,
    threads: u64,
    /// Newest acknowledged version per key of this thread; 0 = none. A version is the write's timestamp in µs, so
    /// versions of one engine are newer than those of the engines before it on the same table.
    acknowledged: Vec<u64>,
    /// Requests to write each key that nobody has answered. One whose answer never comes stays for ever: when it takes
    /// effect, if ever, nobody knows. [`MANY`] means as many or more, for ever.
    unanswered: Vec<u8>,
    /// What may be said of the newest acknowledged version of each key: [`UNCERTAIN`], [`AWAITED`] or [`LOOKED_FOR`].
    newest: Vec<u8>,
    last_version: u64,
}

/// More are not counted.
const MANY: u8 = u8::MAX;
/// It was sent while another write of its key was under way: which of the two is the later one is the database's to say.
const UNCERTAIN: u8 = 0;
/// It was sent when all writes of its key before it had been answered, and no read has looked for it yet.
const AWAITED: u8 = 1;
/// A read has looked for it.
const LOOKED_FOR: u8 = 2;

impl Keys {
    /// The keys of thread number `thread`; memory is only touched where keys are written.
    pub(crate) fn new(thread: usize, threads: usize, population: u64) -> Self {
        let (thread, threads) = (thread as u64, threads as u64);
        let count = population.saturating_sub(thread).div_ceil(threads);
        let count = count as usize;
        let (acknowledged, unanswered, newest) = (vec![0; count], vec![0; count], vec![UNCERTAIN; count]);
        Keys { thread, threads, acknowledged, unanswered, newest, last_version: 0 }
    }

    /// How many keys belong to this thread.
    pub(crate) fn count(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// The key at an index in 0 .. count.
    pub(crate) fn at(&self, place: u64) -> u64 {
        place * self.threads + self.thread
    }

    /// A uniformly drawn key.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        self.at(random.below(self.count()))
    }

    /// A version for the next write: the time, made strictly increasing.
    pub(crate) fn next_version(&mut self, unix_us: u64) -> u64 {
        self.last_version = unix_us.max(self.last_version + 1);
        self.last_version
    }

    /// The newest acknowledged version of `key`; 0 = none.
    pub(crate) fn acknowledged(&self, key: u64) -> u64 {
        self.acknowledged[self.place(key)]
    }

    fn place(&self, key: u64) -> usize {
        (key / self.threads) as usize
    }

    /// A request to write `key` is sent. Returns whether all before it have been answered, so that it surely comes after them.
    pub(crate) fn asked(&mut self, key: u64) -> bool {
        let place = self.place(key);
        let unanswered = &mut self.unanswered[place];
        let alone = *unanswered == 0;
        *unanswered = unanswered.saturating_add(1);
        alone
    }

    /// A request to write `key` was answered, with whatever.
    pub(crate) fn answered(&mut self, key: u64) {
        let place = self.place(key);
        let unanswered = &mut self.unanswered[place];
        if *unanswered != MANY {
            *unanswered = unanswered.saturating_sub(1);
        }
    }

    /// Records an acknowledged write; `certain` if it surely came after all that were acknowledged before.
    pub(crate) fn acknowledge(&mut self, key: u64, version: u64, certain: bool) {
        let place = self.place(key);
        if version > self.acknowledged[place] {
            self.acknowledged[place] = version;
            self.newest[place] = if certain { AWAITED } else { UNCERTAIN };
        }
    }

    /// Whether a read that is sent now is to find the newest acknowledged version of `key`, and is the first to look for it.
    pub(crate) fn is_awaited(&self, key: u64) -> bool {
        self.newest[self.place(key)] == AWAITED
    }

    /// A read that was to find `version` is back. Returns whether it was the first, and `version` still is the newest
    /// acknowledged one; then no other is.
    pub(crate) fn look(&mut self, key: u64, version: u64) -> bool {
        let place = self.place(key);
        let first = self.acknowledged[place] == version && self.newest[place] == AWAITED;
        if first {
            self.newest[place] = LOOKED_FOR;
        }
        first
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
        keys.acknowledge(3, second, false);
        keys.acknowledge(3, first, false);
        assert_eq!(keys.acknowledged(3), second);
        assert_eq!(keys.acknowledged(5), 0);
    }

    #[test]
    fn a_write_is_looked_for_once_and_only_if_it_surely_is_the_last_one() {
        let mut keys = Keys::new(0, 1, 2);
        assert!(keys.asked(0), "nothing is under way");
        assert!(!keys.asked(0), "two at once: nobody knows which is the later one");
        keys.answered(0);
        keys.acknowledge(0, 10, true);
        keys.answered(0);
        keys.acknowledge(0, 11, false);
        assert!(!keys.is_awaited(0) && !keys.look(0, 11));
        assert!(keys.asked(0));
        keys.answered(0);
        keys.acknowledge(0, 12, true);
        assert!(keys.is_awaited(0) && keys.look(0, 12));
        assert!(!keys.is_awaited(0) && !keys.look(0, 12), "each write once");
        keys.acknowledge(0, 13, true);
        assert!(!keys.look(0, 12), "a newer one was acknowledged before the read came back");
        assert!(keys.look(0, 13));
    }

    #[test]
    fn a_write_that_nobody_answers_leaves_its_key_uncertain_for_ever() {
        let mut keys = Keys::new(0, 1, 2);
        assert!(keys.asked(1));
        assert!(!keys.asked(1));
        keys.answered(1);
        assert!(!keys.asked(1), "the first one may still come into effect");
        (0..300).for_each(|_| {
            keys.asked(1);
        });
        (0..300).for_each(|_| keys.answered(1));
        assert!(!keys.asked(1), "more than can be counted");
        assert!(keys.asked(0), "another key is another matter");
    }
}
