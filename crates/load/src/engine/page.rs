//! One bucket as one thread sees it, and the parts of it that are handed out.

use std::{collections::BTreeMap, ops::Range};

use super::samples::{Sample, Samples, Times};
use crate::Outcome;

/// How many series a page may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) coordinators: usize,
    /// Names of operations.
    pub(super) names: usize,
    /// Operations started later than this count as late, ns.
    pub(super) late_ns: u64,
}

impl Shape {
    fn series(self) -> usize {
        self.coordinators * self.names * Outcome::COUNT
    }

    fn place(self, coordinator: u16, name: u16, outcome: Outcome) -> usize {
        (usize::from(coordinator) * self.names + usize::from(name)) * Outcome::COUNT + outcome.index()
    }
}

/// Plain counters of a bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) scheduled: u64,
    pub(super) sent: u64,
    pub(super) never_sent: u64,
    pub(super) withheld: u64,
    pub(super) stale: u64,
    pub(super) empty: u64,
    pub(super) missing: u64,
    pub(super) mismatched: u64,
    pub(super) looked_for: u64,
    pub(super) lost: u64,
    pub(super) rerouted: u64,
    pub(super) late_starts: u64,
}

impl Counts {
    /// Adds all of `other`.
    pub(super) fn add(&mut self, other: &Counts) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.never_sent += other.never_sent;
        self.withheld += other.withheld;
        self.stale += other.stale;
        self.empty += other.empty;
        self.missing += other.missing;
        self.mismatched += other.mismatched;
        self.looked_for += other.looked_for;
        self.lost += other.lost;
        self.rerouted += other.rerouted;
        self.late_starts += other.late_starts;
    }
}

/// The operations of one name on one coordinator that had the same outcome.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) coordinator: u16,
    pub(super) name: u16,
    pub(super) outcome: Outcome,
    pub(super) samples: Samples,
}

/// Counts for the operations of one name.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) name: u16,
    pub(super) never_sent: u64,
    pub(super) requests: u64,
    pub(super) partitions: u64,
    pub(super) rows: u64,
    pub(super) not_applied: u64,
    pub(super) pages: Times,
    /// Service times of attempts at operations that may be retried.
    pub(super) attempts: BTreeMap<Outcome, Times>,
}

/// Which 64ths of a bucket something went on in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slices(u64);

impl Slices {
    /// Adds the slices of `bucket` that lie completely between two times.
    fn cover(&mut self, bucket: Range<u64>, from: u64, to: u64) {
        let length = bucket.end - bucket.start;
        let slice = |at: u64| (at.clamp(bucket.start, bucket.end) - bucket.start) as u128 * 64;
        let first = slice(from).div_ceil(u128::from(length)) as u32;
        let end = (slice(to) / u128::from(length)) as u32;
        if first < end {
            self.0 |= (u64::MAX >> (64 - (end - first))) << first;
        }
    }

    pub(super) fn add(&mut self, other: Slices) {
        self.0 |= other.0;
    }

    /// Their total length in a bucket of this length.
    pub(super) fn of_length(self, length_ns: u64) -> u64 {
        (u128::from(length_ns) * u128::from(self.0.count_ones()) / 64) as u64
    }
}

impl Work {
    /// Adds all of `other`, which has the same name.
    pub(super) fn add(&mut self, other: Work) {
        self.never_sent += other.never_sent;
        self.requests += other.requests;
        self.partitions += other.partitions;
        self.rows += other.rows;
        self.not_applied += other.not_applied;
        self.pages.append(other.pages);
        for (outcome, times) in other.attempts {
            self.attempts.entry(outcome).or_default().append(times);
        }
    }
}

/// What was added to a page since it was last taken.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) counts: Counts,
    pub(super) lateness: Times,
    pub(super) stood_still: Slices,
    pub(super) cells: Vec<Cell>,
    pub(super) work: Vec<Work>,
    /// No operation of it is open and none can be added.
    pub(super) settled: bool,
    /// No late answer can come either.
    pub(super) over: bool,
}

/// One bucket as one thread sees it.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) number: u64,
    /// The intended starts that belong to it.
    range: Range<u64>,
    shape: Shape,
    pub(super) counts: Counts,
    lateness: Times,
    stood_still: Slices,
    /// Index of each series in `cells` plus one; 0: none yet. Empty while there are no series, because it may be large
    /// and many pages may be waiting for late answers.
    index: Box<[u32]>,
    cells: Vec<Cell>,
    /// Index of each operation in `work` plus one; 0: none yet.
    work_index: Box<[u32]>,
    work: Vec<Work>,
    /// Scheduled and not ended.
    pub(super) open: u64,
    /// Timed out, but a late answer may still come.
    pub(super) awaited: u64,
    pub(super) changed: bool,
    /// As last handed out.
    pub(super) settled: bool,
}

impl Page {
    pub(super) fn new(number: u64, range: Range<u64>, shape: Shape) -> Self {
        Page {
            number,
            range,
            shape,
            counts: Counts::default(),
            lateness: Times::default(),
            stood_still: Slices::default(),
            index: Box::default(),
            cells: Vec::new(),
            work_index: vec![0; shape.names].into(),
            work: Vec::new(),
            open: 0,
            awaited: 0,
            changed: true,
            settled: false,
        }
    }

    pub(super) fn covers(&self, intended: u64) -> bool {
        self.range.contains(&intended)
    }

    pub(super) fn end_ns(&self) -> u64 {
        self.range.end
    }

    pub(super) fn lateness(&mut self, ns: u64) {
        self.lateness.push(ns);
        self.counts.late_starts += u64::from(ns > self.shape.late_ns);
    }

    /// The client stood still in this stretch of CLOCK_MONOTONIC, ns. The first page covers more than its `bucket`.
    pub(super) fn stood_still(&mut self, bucket: Range<u64>, from: u64, to: u64) {
        self.stood_still.cover(bucket, from, to);
        self.changed = true;
    }

    pub(super) fn record(&mut self, coordinator: u16, name: u16, outcome: Outcome, sample: Sample) {
        if self.index.is_empty() {
            self.index = vec![0; self.shape.series()].into();
        }
        let place = &mut self.index[self.shape.place(coordinator, name, outcome)];
        if *place == 0 {
            self.cells.push(Cell { coordinator, name, outcome, samples: Samples::default() });
            *place = self.cells.len() as u32;
        }
        self.cells[*place as usize - 1].samples.push(sample);
    }

    pub(super) fn work(&mut self, name: u16) -> &mut Work {
        let place = &mut self.work_index[usize::from(name)];
        if *place == 0 {
            self.work.push(Work { name, ..Work::default() });
            *place = self.work.len() as u32;
        }
        &mut self.work[*place as usize - 1]
    }

    /// Hands out what was added since the last call.
    pub(super) fn take(&mut self) -> Part {
        if self.settled {
            self.index = Box::default();
        } else {
            self.index.fill(0);
        }
        self.work_index.fill(0);
        Part {
            counts: std::mem::take(&mut self.counts),
            lateness: std::mem::take(&mut self.lateness),
            stood_still: std::mem::take(&mut self.stood_still),
            cells: std::mem::take(&mut self.cells),
            work: std::mem::take(&mut self.work),
            settled: self.settled,
            over: self.settled && self.awaited == 0,
        }
    }
}
