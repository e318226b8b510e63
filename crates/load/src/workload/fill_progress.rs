//! Progress of writing every key of a key-value workload, reported by its threads to the engine's owner.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by the threads of one workload. Only writes of the population touch it.
#[derive(Debug, Default)]
pub(crate) struct FillProgress(Mutex<Tally>);

/// The progress at one time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Number of the filling; writes of an earlier one are ignored.
    pub(crate) number: u64,
    pub(crate) done: u64,
    pub(crate) total: u64,
    pub(crate) retried: u64,
    /// Index of the coordinator that permanently refused a write, and its message.
    pub(crate) refused: Option<(u16, String)>,
}

impl FillProgress {
    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another pace is set: one that writes `total` keys, or (with none) one that writes no population.
    pub(crate) fn set(&self, total: Option<u64>) {
        let mut tally = self.lock();
        let number = tally.number + 1;
        *tally = match total {
            Some(total) => Tally { number, total, ..Tally::default() },
            // The progress of the last one can still be queried.
            None => Tally { number, refused: None, ..tally.clone() },
        };
    }

    pub(crate) fn tally(&self) -> Tally {
        self.lock().clone()
    }

    /// A write of filling `number` has ended.
    pub(crate) fn written(&self, number: u64, acknowledged: bool) {
        let mut tally = self.lock();
        if tally.number == number {
            tally.done += u64::from(acknowledged);
            tally.retried += u64::from(!acknowledged);
        }
    }

    /// A coordinator rejects a write of filling `number`.
    pub(crate) fn refuse(&self, number: u64, coordinator: u16, reason: String) {
        let mut tally = self.lock();
        if tally.number == number {
            tally.refused = Some((coordinator, reason));
        }
    }
}
