//! Waits of pages that are written back from mappings.
//!
//! When a program has written to a shared mapping, the kernel writes the pages back on its own account: at an `msync`, but
//! also when the mapping goes, for which an ending process waits, and no signal reaches it. On a real disk it would not
//! wait. So these writes are carried out at once, and what a fault makes them wait is owed by the file: its next sync,
//! which is what a program waits for to know that its pages are written, waits until the last of them would have been.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// A wait of so many nanoseconds because of a layer, as in [`crate::control::Verdict`].
type Waits = Vec<(u64, u64)>;

/// Up to this many, those that are over are left where they are.
const MANY: usize = 64;
/// The most files that owe something; what others would owe beyond is let off.
const MOST: usize = 65_536;

/// What is owed, by the number of the node.
#[derive(Debug, Default)]
pub(crate) struct Debts(Mutex<Ledger>);

#[derive(Debug, Default)]
struct Ledger {
    debts: HashMap<u64, Debt>,
    /// At so many, those that are over are looked for: twice what was left the last time, so that each debt is looked at
    /// a few times only.
    look_at: usize,
}

#[derive(Debug)]
struct Debt {
    received_ns: u64,
    waits: Waits,
}

impl Debt {
    fn due_ns(&self) -> u64 {
        self.received_ns.saturating_add(self.waits.iter().map(|(_, ns)| ns).sum())
    }
}

impl Debts {
    /// A write that came at `received_ns` should have waited like this.
    pub(crate) fn owe(&self, node: u64, received_ns: u64, waits: Waits) {
        let mut ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Ledger { debts, look_at } = &mut *ledger;
        if debts.len() >= (*look_at).max(MANY) {
            debts.retain(|_, debt| debt.due_ns() > received_ns);
            *look_at = debts.len() * 2;
        }
        if debts.len() >= MOST && !debts.contains_key(&node) {
            return;
        }
        let debt = Debt { received_ns, waits };
        // They wait side by side: the last one counts.
        if debts.get(&node).is_none_or(|there| there.due_ns() < debt.due_ns()) {
            debts.insert(node, debt);
        }
    }

    /// What of it is left for a sync that comes at `now_ns`. It is not owed again.
    pub(crate) fn settle(&self, node: u64, now_ns: u64) -> Waits {
        let debt = self.0.lock().unwrap_or_else(PoisonError::into_inner).debts.remove(&node);
        let Some(Debt { received_ns, mut waits }) = debt else { return Waits::new() };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_waits_for_what_is_left_of_the_last_write() {
        let debts = Debts::default();
        debts.owe(1, 1_000, vec![(7, 100), (8, 50)]);
        debts.owe(1, 1_020, vec![(7, 100)]);
        debts.owe(2, 1_000, vec![(7, 100)]);
        // The first one is due last, at 1,150; at 1,110 the first layer's part is over.
        assert_eq!(debts.settle(1, 1_110), [(8, 40)]);
        assert_eq!(debts.settle(1, 1_110), []);
        assert_eq!(debts.settle(2, 2_000), []);
    }

    #[test]
    fn what_is_over_is_not_kept_for_ever() {
        let debts = Debts::default();
        for node in 0..10_000 {
            debts.owe(node, node * 1_000, vec![(7, 10)]);
        }
        assert!(debts.0.lock().unwrap().debts.len() <= MANY + 1);
    }

    #[test]
    fn a_million_files_that_owe_for_an_hour_take_bounded_memory_and_time() {
        let (debts, hour) = (Debts::default(), 3_600_000_000_000);
        // Looking at all each time would be 10^10 looks.
        for node in 0..1_000_000 {
            debts.owe(node, 1_000, vec![(7, hour)]);
        }
        assert_eq!(debts.0.lock().unwrap().debts.len(), MOST);
        // Those that owe already are still held to the last of theirs.
        debts.owe(1, 2_000, vec![(7, hour)]);
        assert_eq!(debts.settle(1, 2_000), [(7, hour)]);
        // And when they are over, there is room.
        debts.owe(u64::MAX, 2 * hour, vec![(7, hour)]);
        assert_eq!(debts.settle(u64::MAX, 2 * hour), [(7, hour)]);
    }
}
