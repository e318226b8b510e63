//! The values of one clustering column in a walk of compat.

use std::{cmp::Ordering, collections::HashSet};

use super::{java_value::order, roll::Rolls, settings::Order};
use crate::types::CqlType;

/// Up to so many values are compared with each other; more are hashed.
const FEW: usize = 24;

/// The values of one clustering column, of which those from `head` on are still to come.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    bytes: Vec<u8>,
    items: Vec<(u32, u32)>,
    head: usize,
}

impl Level {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.head = 0;
    }

    pub(super) fn left(&self) -> usize {
        self.items.len() - self.head
    }

    pub(super) fn poll(&mut self) {
        self.head = (self.head + 1).min(self.items.len());
    }

    pub(super) fn item(&self, index: usize) -> &[u8] {
        self.items.get(index).map_or(&[], |(start, end)| &self.bytes[*start as usize..*end as usize])
    }

    /// How many values there are, those gone by too.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The position of the next value to come.
    pub(super) fn head(&self) -> usize {
        self.head
    }

    /// Add a value whose bytes `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        write(&mut self.bytes);
        self.items.push((start, self.bytes.len() as u32));
    }

    /// Drop duplicates and bring the values into this order. What Java cannot compare is left as it was generated.
    pub(super) fn arrange(&mut self, cql_type: &CqlType, wanted: Order, rolls: &mut Rolls) {
        let Level { bytes, items, .. } = self;
        let item = |(start, end): (u32, u32)| &bytes[start as usize..end as usize];
        let comparable = items.first().is_some_and(|one| order(item(*one), item(*one), cql_type).is_some());
        if wanted == Order::Sorted && comparable {
            items.sort_by(|left, right| order(item(*left), item(*right), cql_type).unwrap_or(Ordering::Equal));
            items.dedup_by(|right, left| item(*left) == item(*right));
            return;
        }
        if items.len() <= FEW {
            let mut kept = 0;
            for place in 0..items.len() {
                let one = items[place];
                if !items[..kept].iter().any(|other| item(*other) == item(one)) {
                    items[kept] = one;
                    kept += 1;
                }
            }
            items.truncate(kept);
        } else {
            let mut seen = HashSet::with_capacity(items.len());
            items.retain(|one| seen.insert(item(*one)));
        }
        if wanted == Order::Shuffled {
            for place in 0..items.len() {
                let other = place + rolls.below(items.len() - place);
                items.swap(place, other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_values_stays_however_many_there_are() {
        for count in [FEW as u8, 3 * FEW as u8] {
            let mut level = Level::default();
            (0..count).for_each(|value| level.push(|out| out.push(value % 10 * 7 % 10)));
            level.arrange(&CqlType::TinyInt, Order::Arbitrary, &mut Rolls::new(1));
            let kept: Vec<u8> = (0..level.len()).map(|place| level.item(place)[0]).collect();
            assert_eq!(kept, [0, 7, 4, 1, 8, 5, 2, 9, 6, 3]);
        }
    }
}
