//! The partitions that are written in part: a list in order of arrival, from which any index is taken and any member leaves.

use std::sync::atomic::Ordering;

use super::Seed;
use super::seed::NOWHERE;

/// Members lie in slots that stay where they are; a Fenwick tree (Fenwick 1994) counts the members up to each slot, so that
/// the k-th member is found and one removed in logarithmic time. Slots of members that left are cleared out when all are full.
#[derive(Debug, Default)]
pub(super) struct Revisit {
    slots: Vec<Option<Seed>>,
    /// At i (from 1): how many of the slots that i's lowest set bit spans, ending at i, are taken.
    counts: Vec<u32>,
    members: usize,
}

impl Revisit {
    pub fn len(&self) -> usize {
        self.members
    }

    /// The member at this index, by arrival.
    pub fn get(&self, index: usize) -> Option<&Seed> {
        if index >= self.members {
            return None;
        }
        let (mut at, mut left) = (0, index as u32 + 1);
        let mut step = self.capacity();
        while step > 0 {
            let next = at + step;
            if next < self.counts.len() && self.counts[next] < left {
                at = next;
                left -= self.counts[next];
            }
            step /= 2;
        }
        self.slots.get(at)?.as_ref()
    }

    /// Adds a seed (one whose clones share, see [`Seed::share`]) at the end.
    pub fn append(&mut self, seed: &Seed) {
        if self.slots.len() == self.capacity() {
            self.tidy();
        }
        let slot = self.slots.len();
        if let Some(shared) = seed.shared() {
            shared.slot.store(slot, Ordering::Release);
        }
        self.slots.push(Some(seed.clone()));
        self.members += 1;
        self.count(slot, true);
    }

    /// Takes a seed out, if it is in.
    pub fn remove(&mut self, seed: &Seed) {
        let slot = seed.shared().map_or(NOWHERE, |shared| shared.slot.swap(NOWHERE, Ordering::AcqRel));
        if let Some(taken) = self.slots.get_mut(slot).and_then(Option::take) {
            debug_assert_eq!(taken.value(), seed.value());
            self.members -= 1;
            self.count(slot, false);
        }
    }

    /// A power of two, or 0.
    fn capacity(&self) -> usize {
        self.counts.len().saturating_sub(1)
    }

    fn count(&mut self, slot: usize, more: bool) {
        let mut i = slot + 1;
        while i < self.counts.len() {
            self.counts[i] = if more { self.counts[i] + 1 } else { self.counts[i] - 1 };
            i += i & i.wrapping_neg();
        }
    }

    /// Closes the gaps, and makes room so that at least half of the slots are free.
    fn tidy(&mut self) {
        self.slots.retain(Option::is_some);
        for (slot, seed) in self.slots.iter().flatten().enumerate() {
            if let Some(shared) = seed.shared() {
                shared.slot.store(slot, Ordering::Release);
            }
        }
        let capacity = (2 * self.members).next_power_of_two().max(16);
        self.counts = vec![0; capacity + 1];
        for slot in 0..self.members {
            self.count(slot, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::java::Random;

    #[test]
    fn it_is_a_list_from_which_any_member_may_leave() {
        let (mut list, mut plain, mut random) = (Revisit::default(), Vec::<Seed>::new(), Random::new(1));
        for step in 0..20_000 {
            let grow = if step < 10_000 { 6 } else { 5 };
            if plain.is_empty() || random.next_below(10) < grow {
                let seed = Seed::new(step, 2).share();
                list.append(&seed);
                plain.push(seed);
            } else {
                let gone = plain.remove(random.next_below(plain.len() as i32) as usize);
                list.remove(&gone);
                list.remove(&gone);
            }
            assert_eq!(list.len(), plain.len());
            for _ in 0..3 {
                let index = random.next_below(plain.len() as i32 + 1) as usize;
                assert_eq!(list.get(index).map(Seed::value), plain.get(index).map(Seed::value));
            }
        }
        let values: Vec<i64> = (0..plain.len()).filter_map(|i| list.get(i).map(Seed::value)).collect();
        assert_eq!(values, plain.iter().map(Seed::value).collect::<Vec<_>>());
        assert!(values.len() > 500, "{}", values.len());
    }
}
