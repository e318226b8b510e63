//! Merges the parts that the threads hand out into whole buckets.

use std::collections::BTreeMap;

use super::{
    page::{Cell, Counts, Part, Slices, Work},
    samples::{Latencies, Times},
};
use crate::{Attempts, Bucket, OperationCounts, Series};

/// Merges the parts of all threads. It lives with the engine's owner, so that the measuring threads do not spend time
/// on building histograms.
pub(super) struct Merge {
    epoch_ns: u64,
    length_ns: u64,
    coordinators: Vec<String>,
    operations: Vec<String>,
    /// The index of the name for watches' events behind those of operations, if something is watched.
    events: Option<u16>,
    threads: usize,
    /// By number, as long as something may still be added.
    open: BTreeMap<u64, Sum>,
}

/// All that is known of one bucket.
#[derive(Default)]
struct Sum {
    counts: Counts,
    lateness: Times,
    stood_still: Slices,
    cells: Vec<Cell>,
    work: Vec<Work>,
    /// By thread; a thread without an entry has contributed nothing.
    settled: BTreeMap<usize, bool>,
    over: BTreeMap<usize, bool>,
}

impl Merge {
    pub(super) fn new(
        epoch_ns: u64,
        length_ns: u64,
        coordinators: Vec<String>,
        mut operations: Vec<String>,
        watches: bool,
        threads: usize,
    ) -> Self {
        let events = watches.then_some(operations.len() as u16);
        operations.extend(events.map(|_| Series::WATCH.to_owned()));
        Merge { epoch_ns, length_ns, coordinators, operations, events, threads, open: BTreeMap::new() }
    }

    /// Takes what every thread handed out, in the order of the threads, and returns the buckets that changed. All
    /// threads must have been asked with the same horizon.
    pub(super) fn take(&mut self, changed: Vec<Vec<(u64, Part)>>) -> Vec<Bucket> {
        debug_assert!(changed.len() <= self.threads);
        let mut numbers = Vec::new();
        for (thread, parts) in changed.into_iter().enumerate() {
            for (number, part) in parts {
                self.open.entry(number).or_default().add(thread, part);
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().filter_map(|number| self.bucket(number)).collect()
    }

    fn bucket(&mut self, number: u64) -> Option<Bucket> {
        let sum = self.open.get(&number)?;
        let Counts {
            scheduled,
            sent,
            never_sent,
            withheld,
            stale,
            empty,
            missing,
            mismatched,
            looked_for,
            lost,
            rerouted,
            late_starts,
        } = sum.counts;
        let over = sum.over.values().all(|over| *over);
        let (watches, series): (Vec<&Cell>, Vec<&Cell>) =
            sum.cells.iter().partition(|cell| self.events == Some(cell.name));
        let mut bucket = Bucket {
            start_ns: self.epoch_ns.saturating_add(number.saturating_mul(self.length_ns)),
            length_ns: self.length_ns,
            settled: sum.settled.values().all(|settled| *settled),
            over,
            scheduled,
            sent,
            never_sent,
            withheld,
            series: series.into_iter().map(|cell| self.series(cell)).collect(),
            watches: watches.into_iter().map(|cell| self.series(cell)).collect(),
            operations: sum.work.iter().map(|work| self.counts(work)).collect(),
            lateness: sum.lateness.histogram(),
            late_starts,
            stood_still_ns: sum.stood_still.of_length(self.length_ns),
            stale,
            empty,
            missing,
            mismatched,
            looked_for,
            lost,
            rerouted,
        };
        let order = |series: &Series| (series.coordinator.clone(), series.statement.clone(), series.outcome);
        bucket.series.sort_by_cached_key(order);
        bucket.watches.sort_by_cached_key(order);
        bucket.operations.sort_by(|one, other| one.operation.cmp(&other.operation));
        if over {
            self.open.remove(&number);
        }
        Some(bucket)
    }

    fn series(&self, cell: &Cell) -> Series {
        let Latencies { wait, service, response } = cell.samples.latencies();
        Series {
            statement: name(&self.operations, cell.name),
            coordinator: name(&self.coordinators, cell.coordinator),
            outcome: cell.outcome,
            count: cell.samples.count(),
            wait,
            service,
            response,
        }
    }

    fn counts(&self, work: &Work) -> OperationCounts {
        let attempts = work.attempts.iter().map(|(outcome, times)| (*outcome, times.histogram()));
        OperationCounts {
            operation: name(&self.operations, work.name),
            never_sent: work.never_sent,
            requests: work.requests,
            partitions: work.partitions,
            rows: work.rows,
            not_applied: work.not_applied,
            pages: work.pages.histogram(),
            attempts: Attempts(attempts.collect()),
        }
    }
}

fn name(names: &[String], place: u16) -> String {
    names.get(usize::from(place)).cloned().unwrap_or_default()
}

impl Sum {
    fn add(&mut self, thread: usize, part: Part) {
        self.counts.add(&part.counts);
        self.lateness.append(part.lateness);
        // Every thread carries a part of the load: if one stands still, the client is late.
        self.stood_still.add(part.stood_still);
        for cell in part.cells {
            let same = |mine: &&mut Cell| {
                (mine.coordinator, mine.name, mine.outcome) == (cell.coordinator, cell.name, cell.outcome)
            };
            match self.cells.iter_mut().find(same) {
                Some(mine) => mine.samples.append(cell.samples),
                None => self.cells.push(cell),
            }
        }
        for work in part.work {
            match self.work.iter_mut().find(|mine| mine.name == work.name) {
                Some(mine) => mine.add(work),
                None => self.work.push(work),
            }
        }
        self.settled.insert(thread, part.settled);
        self.over.insert(thread, part.over);
    }
}
