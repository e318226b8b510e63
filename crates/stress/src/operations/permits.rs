//! How many partitions may still be visited: `n=`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Permits to visit partitions, shared by all load threads. Exactly this many are handed out.
///
/// Each operation takes one with a single atomic step; with a handful of threads that costs less than drawing a key.
#[derive(Debug)]
pub struct Permits {
    total: Option<u64>,
    left: Option<AtomicU64>,
    stopped: AtomicBool,
}

impl Permits {
    /// Permits for this many partitions; `None`: unlimited.
    pub fn new(partitions: Option<u64>) -> Self {
        Permits { total: partitions, left: partitions.map(AtomicU64::new), stopped: AtomicBool::new(false) }
    }

    /// Takes up to `wanted` permits; `None`: there are no more.
    pub fn take(&self, wanted: u32) -> Option<u32> {
        if self.stopped.load(Ordering::Relaxed) || wanted == 0 {
            return None;
        }
        let Some(left) = &self.left else { return Some(wanted) };
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left.saturating_sub(u64::from(wanted)))
        });
        taken.ok().map(|before| u32::try_from(before).unwrap_or(u32::MAX).min(wanted))
    }

    /// Returns permits for which no partition was found.
    pub fn give_back(&self, unused: u32) {
        if let Some(left) = &self.left {
            left.fetch_add(u64::from(unused), Ordering::Relaxed);
        }
    }

    /// Hands out no more.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// How many there were at the beginning; `None`: unlimited.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// How many are left; `None`: unlimited.
    pub fn left(&self) -> Option<u64> {
        self.left.as_ref().map(|left| left.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_as_many_are_given_out_as_there_are_whoever_asks() {
        let permits = Permits::new(Some(100_003));
        let given: u64 = std::thread::scope(|scope| {
            let ask = |wanted: u32| {
                let permits = &permits;
                scope.spawn(move || std::iter::from_fn(|| permits.take(wanted)).map(u64::from).sum::<u64>())
            };
            let askers = [ask(1), ask(7), ask(3)];
            askers.into_iter().map(|asker| asker.join().unwrap()).sum()
        });
        assert_eq!(given, 100_003);
        assert_eq!(permits.take(1), None);
        permits.give_back(2);
        assert_eq!(permits.take(5), Some(2));
    }

    #[test]
    fn without_an_end_there_is_always_one_until_it_is_stopped() {
        let permits = Permits::new(None);
        assert_eq!(permits.take(9), Some(9));
        permits.stop();
        assert_eq!(permits.take(1), None);
    }
}
