//! What can be printed about a whole run: its intervals as one, how late the client was, how long it drained.

use std::collections::BTreeMap;

use brownout_load::{Balance, Bucket};

use super::{Interval, Measure, Uncertainty, per_second};

/// Standing still for less is what a machine with other work does to any program now and then.
const HICCUP_NS: u64 = 100_000_000;

/// A whole run, or one step of a run in steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Total {
    /// All intervals as one.
    pub interval: Interval,
    /// How many there were.
    pub intervals: u64,
    /// Buckets of intended starts in which the client itself was late or stood still, by their start (CLOCK_MONOTONIC,
    /// ns). Lateness is a matter of time: a client that stands still starts nothing, and prints no row.
    pub late: BTreeMap<u64, Late>,
    /// For how long operations were due, ns; `None`: all the time so far.
    pub due_ns: Option<u64>,
    /// The time after nothing was due any more, if it is kept apart.
    pub drain: Option<Drain>,
    /// The steadiness of its throughput.
    pub uncertainty: Uncertainty,
    /// The state of all operations, by the engine's own account; complete after the end.
    pub balance: Balance,
    /// What is known of how many reads reached the disk, where there is nothing to check.
    pub remarks: Vec<String>,
    /// Warnings: what to check before trusting the result.
    pub warnings: Vec<String>,
}

impl Total {
    /// Nothing yet.
    pub fn new(start_ns: u64, measure: Measure) -> Self {
        Total {
            interval: Interval::new(start_ns, 0, measure),
            intervals: 0,
            late: BTreeMap::new(),
            due_ns: None,
            drain: None,
            uncertainty: Uncertainty::default(),
            balance: Balance::default(),
            remarks: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        self.interval.add(interval);
        self.intervals += 1;
        self.uncertainty.update(interval);
    }

    /// Adds what ended when nothing was due any more. It says nothing about the throughput.
    pub fn add_drain(&mut self, interval: &Interval) {
        self.interval.add(interval);
        let drain = self.drain.get_or_insert_default();
        drain.length_ns += interval.length_ns;
        drain.ended += interval.ended();
    }

    /// How long operations were due, ns: rates refer to this time. Waiting for one operation makes no rate smaller.
    pub fn due_ns(&self) -> u64 {
        self.due_ns.unwrap_or(self.interval.length_ns)
    }

    /// Starts of the buckets in which the client itself was late ([`Bucket::late`]), ns.
    pub fn late_intervals(&self) -> impl Iterator<Item = u64> {
        self.late.iter().filter(|(_, late)| late.interval).map(|(start_ns, _)| *start_ns)
    }

    /// How much of that time the client itself was late in, ns.
    pub fn late_ns(&self) -> u64 {
        // A bucket may be longer than a run of a few operations.
        self.late.values().map(|late| late.late_ns).sum::<u64>().min(self.due_ns())
    }

    /// Whether that is too much for a valid result: more than a fifth.
    pub fn too_late(&self) -> bool {
        self.late_ns().saturating_mul(5) > self.due_ns()
    }

    /// The same of the time in which it stood still: all that is judged where nothing is due by the clock. A few
    /// operations, as those that fill a table, take no longer than a hiccup of the machine, and fail by none.
    pub fn stood_still_too_long(&self) -> bool {
        let still_ns: u64 = self.late.values().map(|late| late.still_ns).sum();
        still_ns > HICCUP_NS && still_ns.saturating_mul(5) > self.due_ns()
    }

    /// Operations per second over all of it.
    pub fn rate(&self) -> f64 {
        per_second(self.interval.ended(), self.due_ns())
    }
}

/// How much of a bucket of intended starts the client itself was late in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// As a whole it counts as late: [`Bucket::late`].
    pub interval: bool,
    /// How long it was late, ns: all of the bucket where too many starts were, else for as long as it stood still.
    pub late_ns: u64,
    /// How long it stood still, ns.
    pub still_ns: u64,
}

impl Late {
    /// Of a bucket of which so much belongs to the run; none if it was punctual.
    pub fn of(bucket: &Bucket, length_ns: u64) -> Option<Self> {
        let still_ns = bucket.stood_still_ns.min(length_ns);
        let starts = bucket.lateness.len();
        // Starts that were due in a pause are late by that alone; its ends are known to a 64th of the bucket each.
        let pause_ns = if still_ns == 0 { 0 } else { still_ns.saturating_add(bucket.length_ns / 32).min(length_ns) };
        let paused = (starts as f64 * pause_ns as f64 / length_ns.max(1) as f64).ceil() as u64;
        let others = bucket.late_starts.saturating_sub(paused);
        let late_ns = if others.saturating_mul(100) > starts { length_ns } else { still_ns };
        (late_ns > 0).then_some(Late { interval: bucket.late(), late_ns, still_ns })
    }
}

/// The end of a run: nothing is due any more, and what is open is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drain {
    /// How long it took, ns.
    pub length_ns: u64,
    /// How many operations ended in it.
    pub ended: u64,
}
