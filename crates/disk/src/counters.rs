//! What a disk did, per kind of operation.

use std::fmt;

use hdrhistogram::Histogram;

use crate::operation::Operation;

/// The shortest added time that a histogram distinguishes from none, in nanoseconds.
const SHORTEST_NS: u64 = 1_000;
/// The longest added time that a histogram can hold, in nanoseconds: two hours, twice the longest delay.
const LONGEST_NS: u64 = 7_200_000_000_000;

/// What one kind of operation did since the counters were last taken.
///
/// Over the life of a disk: received = answered + interrupted + in service (waiting or being carried out).
#[derive(Clone)]
pub struct OperationCounters {
    /// Requests that came.
    pub received: u64,
    /// Requests that were answered, well or with an error.
    pub answered: u64,
    /// Requests that a fault hit so that they have to wait; counted when that began. If a mapped page is written back, this
    /// is the write, although it is the next sync of its file that waits instead.
    pub delayed: u64,
    /// Requests answered with the error of a fault.
    pub failed: u64,
    /// Requests that the real directory itself answered with an error.
    pub refused: u64,
    /// Requests given up while they waited, because their caller was killed.
    pub interrupted: u64,
    /// Bytes read or written.
    pub bytes: u64,
    /// For each request answered: from its receipt until it was carried out or failed, in nanoseconds. For what no fault
    /// hits this is what the disk itself costs, without the real directory's time. Kept to three digits, or 1 µs.
    pub added_ns: Histogram<u64>,
}

impl OperationCounters {
    fn new() -> Self {
        #[allow(clippy::unwrap_used, reason = "constant bounds; a test makes one")]
        let added_ns = Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, 3).unwrap();
        OperationCounters {
            received: 0,
            answered: 0,
            delayed: 0,
            failed: 0,
            refused: 0,
            interrupted: 0,
            bytes: 0,
            added_ns,
        }
    }

    /// Adds what another interval counted.
    pub fn add(&mut self, other: &OperationCounters) {
        self.received += other.received;
        self.answered += other.answered;
        self.delayed += other.delayed;
        self.failed += other.failed;
        self.refused += other.refused;
        self.interrupted += other.interrupted;
        self.bytes += other.bytes;
        // All histograms are made above, with the same bounds: nothing can be out of them.
        let _ = self.added_ns.add(&other.added_ns);
    }
}

impl fmt::Debug for OperationCounters {
    /// Of the histogram, the median and the maximum only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationCounters")
            .field("received", &self.received)
            .field("answered", &self.answered)
            .field("delayed", &self.delayed)
            .field("failed", &self.failed)
            .field("refused", &self.refused)
            .field("interrupted", &self.interrupted)
            .field("bytes", &self.bytes)
            .field("added_ns_p50", &self.added_ns.value_at_quantile(0.5))
            .field("added_ns_max", &self.added_ns.max())
            .finish_non_exhaustive()
    }
}

/// What a disk did since its counters were last taken.
#[derive(Debug, Clone)]
pub struct DiskCounters([OperationCounters; 4]);

impl Default for DiskCounters {
    fn default() -> Self {
        DiskCounters(Operation::ALL.map(|_| OperationCounters::new()))
    }
}

impl DiskCounters {
    /// Those of one kind.
    pub fn of(&self, operation: Operation) -> &OperationCounters {
        &self.0[operation.index()]
    }

    pub(crate) fn of_mut(&mut self, operation: Operation) -> &mut OperationCounters {
        &mut self.0[operation.index()]
    }

    /// Each kind with its counters.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, &OperationCounters)> {
        Operation::ALL.into_iter().zip(&self.0)
    }

    /// Adds what another interval counted.
    pub fn add(&mut self, other: &DiskCounters) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.add(theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up() {
        let mut all = DiskCounters::default();
        for n in 1..=3_u64 {
            let mut interval = DiskCounters::default();
            let sync = interval.of_mut(Operation::Sync);
            (sync.received, sync.bytes) = (n, 10 * n);
            sync.added_ns.record(LONGEST_NS).unwrap();
            all.add(&interval);
        }
        let sync = all.of(Operation::Sync);
        assert_eq!((sync.received, sync.bytes, sync.added_ns.len()), (6, 60, 3));
        assert_eq!(all.of(Operation::Read).received, 0);
    }
}
