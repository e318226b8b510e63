//! Waits of pages that are written back from mappings.
//!
//! When a program has written to a shared mapping, the kernel writes the pages back on its own account: at an `msync`, but
//! also when the mapping goes, for which an ending process waits, and no signal reaches it. On a real disk it would not
//! wait. So these writes are carried out at once, and what a fault makes them wait is deferred to the file's next sync:
//! that is what a program waits for to know that its pages are written, and it waits until the last of them would have been.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Because of which faults to wait how many nanoseconds, as in [`crate::decision::Decision`].
type Waits = Vec<(u64, u64)>;

/// Up to this many files, waits that are over are not looked for.
const MANY: usize = 64;
/// The most files with deferred waits; those of others are left out.
const MOST: usize = 65_536;

/// The waits that files still have to make, by the number of the node.
#[derive(Debug, Default)]
pub(crate) struct DeferredWaits(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    /// Of writes that waited for different faults, each the last one: of two, one may be healed before the sync.
    deferred: HashMap<u64, Vec<Deferred>>,
    /// At so many, those that are over are looked for: twice what was left the last time, so that each is looked at
    /// a few times only.
    look_at: usize,
}

#[derive(Debug)]
struct Deferred {
    received_ns: u64,
    waits: Waits,
}

impl Deferred {
    fn due_ns(&self) -> u64 {
        self.received_ns.saturating_add(self.waits.iter().map(|(_, ns)| ns).sum())
    }

    fn has_faults_of(&self, other: &Deferred) -> bool {
        self.waits.iter().map(|(fault, _)| fault).eq(other.waits.iter().map(|(fault, _)| fault))
    }

    /// What of it is left at a time.
    ///
    /// Faults that were healed come last: what they leave is cut, and what others leave must not be more for it.
    fn left(self, now_ns: u64, is_healed: impl Fn(u64) -> bool) -> Waits {
        let Deferred { received_ns, mut waits } = self;
        waits.sort_by_key(|(fault, _)| is_healed(*fault));
        let mut over_ns = now_ns.saturating_sub(received_ns);
        for (_, ns) in &mut waits {
            let part_ns = over_ns.min(*ns);
            *ns -= part_ns;
            over_ns -= part_ns;
        }
        waits.retain(|(_, ns)| *ns > 0);
        waits
    }
}

impl DeferredWaits {
    /// A write that came at `received_ns` should have waited like this.
    pub(crate) fn defer(&self, node: u64, received_ns: u64, waits: Waits) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Files { deferred, look_at } = &mut *files;
        if deferred.len() >= (*look_at).max(MANY) {
            deferred.retain(|_, of_file| of_file.iter().any(|one| one.due_ns() > received_ns));
            *look_at = deferred.len() * 2;
        }
        if deferred.len() >= MOST && !deferred.contains_key(&node) {
            return;
        }
        let latest = Deferred { received_ns, waits };
        let of_file = deferred.entry(node).or_default();
        of_file.retain(|one| one.due_ns() > received_ns);
        // They wait side by side: of those with the same faults the last one counts.
        match of_file.iter_mut().find(|one| one.has_faults_of(&latest)) {
            Some(one) if one.due_ns() < latest.due_ns() => *one = latest,
            Some(_) => {}
            None => of_file.push(latest),
        }
    }

    /// What is left for a sync that comes at `now_ns`: of the write that keeps it waiting longest. No later sync has to
    /// wait for any.
    pub(crate) fn take(&self, node: u64, now_ns: u64, is_healed: impl Fn(u64) -> bool) -> Waits {
        let of_file = self.0.lock().unwrap_or_else(PoisonError::into_inner).deferred.remove(&node).unwrap_or_default();
        let left = of_file.into_iter().map(|one| one.left(now_ns, &is_healed));
        let lasting =
            |waits: &Waits| -> u64 { waits.iter().filter(|(fault, _)| !is_healed(*fault)).map(|(_, ns)| ns).sum() };
        left.max_by_key(|waits| (lasting(waits), waits.len())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_waits_for_what_is_left_of_the_last_write() {
        let waits = DeferredWaits::default();
        waits.defer(1, 1_000, vec![(7, 100), (8, 50)]);
        waits.defer(1, 1_020, vec![(7, 100)]);
        waits.defer(2, 1_000, vec![(7, 100)]);
        // The first one is due last, at 1,150; at 1,110 the first fault's part is over.
        assert_eq!(waits.take(1, 1_110, |_| false), [(8, 40)]);
        assert_eq!(waits.take(1, 1_110, |_| false), []);
        assert_eq!(waits.take(2, 2_000, |_| false), []);
    }

    #[test]
    fn a_healed_fault_makes_nobody_wait_longer_for_another() {
        let waits = DeferredWaits::default();
        waits.defer(1, 1_000, vec![(7, 100), (8, 50)]);
        // Without the healed one the write would have been due at 1,050.
        assert_eq!(waits.take(1, 1_030, |fault| fault == 7), [(8, 20), (7, 100)]);
    }

    #[test]
    fn a_healed_fault_of_one_write_hides_no_other_write() {
        let waits = DeferredWaits::default();
        waits.defer(1, 1_000, vec![(7, 100)]);
        waits.defer(1, 1_010, vec![(8, 50)]);
        assert_eq!(waits.take(1, 1_020, |fault| fault == 7), [(8, 40)]);
        // And of two that last, the one that lasts longer.
        waits.defer(1, 1_000, vec![(7, 100)]);
        waits.defer(1, 1_010, vec![(8, 50)]);
        assert_eq!(waits.take(1, 1_020, |_| false), [(7, 80)]);
    }

    #[test]
    fn what_is_over_is_not_kept_for_ever() {
        let waits = DeferredWaits::default();
        for node in 0..10_000 {
            waits.defer(node, node * 1_000, vec![(7, 10)]);
        }
        assert!(waits.0.lock().unwrap().deferred.len() <= MANY + 1);
    }

    #[test]
    fn a_million_files_that_defer_an_hour_take_bounded_memory_and_time() {
        let (waits, hour) = (DeferredWaits::default(), 3_600_000_000_000);
        // Looking at all each time would be 10^10 looks.
        for node in 0..1_000_000 {
            waits.defer(node, 1_000, vec![(7, hour)]);
        }
        assert_eq!(waits.0.lock().unwrap().deferred.len(), MOST);
        // Those that are there already still wait for the last of theirs.
        waits.defer(1, 2_000, vec![(7, hour)]);
        assert_eq!(waits.take(1, 2_000, |_| false), [(7, hour)]);
        // And when they are over, there is room.
        waits.defer(u64::MAX, 2 * hour, vec![(7, hour)]);
        assert_eq!(waits.take(u64::MAX, 2 * hour, |_| false), [(7, hour)]);
    }
}
