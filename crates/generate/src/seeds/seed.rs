//! The seed of a partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// One partition, as handed out for one operation.
///
/// Clones of a seed that takes several visits share the position; that of any other is the seed's own.
#[derive(Debug, Clone)]
pub struct Seed {
    value: i64,
    visits: i32,
    ordinal: i64,
    position: i32,
    shared: Option<Arc<Shared>>,
}

/// What the visits of one partition share.
#[derive(Debug)]
pub(super) struct Shared {
    position: AtomicI32,
    /// Where it is in the list of partitions to be revisited.
    pub slot: AtomicUsize,
}

/// Not in the list.
pub(super) const NOWHERE: usize = usize::MAX;

impl Seed {
    /// A seed by itself, at the beginning of its partition. `visits` is in how many parts it is meant to be written (1 and
    /// below: at once).
    pub fn new(value: i64, visits: i32) -> Self {
        Seed { value, visits, ordinal: 0, position: 0, shared: None }
    }

    pub(super) fn at(value: i64, visits: i32, ordinal: i64) -> Self {
        Seed { value, visits, ordinal, position: 0, shared: None }
    }

    /// The same, but its clones share one position.
    pub(crate) fn share(mut self) -> Self {
        self.shared =
            Some(Arc::new(Shared { position: AtomicI32::new(self.position), slot: AtomicUsize::new(NOWHERE) }));
        self
    }

    pub(super) fn shared(&self) -> Option<&Shared> {
        self.shared.as_deref()
    }

    /// The number that the partition's key is made from.
    #[inline]
    pub fn value(&self) -> i64 {
        self.value
    }

    /// In how many visits the partition is meant to be written; −1 for a reader.
    #[inline]
    pub fn visits(&self) -> i32 {
        self.visits
    }

    /// How many seeds of the sequence came before it, over all rounds; 0 where seeds are drawn.
    pub(super) fn ordinal(&self) -> i64 {
        self.ordinal
    }

    /// How far writers came in this partition, in rows.
    #[inline]
    pub fn position(&self) -> i32 {
        match &self.shared {
            Some(shared) => shared.position.load(Ordering::Acquire),
            None => self.position,
        }
    }

    /// For a reader: how many rows of a partition that is being written in parts writers have taken so far (some may be on
    /// their way still); none where all of the partition is there to be read.
    pub fn taken(&self) -> Option<i32> {
        self.shared.as_ref().map(|shared| shared.position.load(Ordering::Acquire))
    }

    /// Takes the next `rows` rows of the partition. Returns the position of the first of them.
    #[inline]
    pub fn move_forwards(&mut self, rows: i32) -> i32 {
        match &self.shared {
            Some(shared) => shared.position.fetch_add(rows, Ordering::AcqRel),
            None => {
                let from = self.position;
                self.position = from.wrapping_add(rows);
                from
            }
        }
    }
}
