//! What can be printed about a period: an interval, or all of a run.

use std::collections::BTreeMap;

use brownout_load::{Histogram, Outcome, histogram};
use brownout_record::{Latencies, Population};

/// Which latency the columns and the `Results:` block show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// Ended − sent: of runs without a schedule, and of `throttle=`, as cassandra-stress does.
    #[default]
    Service,
    /// Ended − intended start: of `fixed=`, `open=` and all that has a schedule.
    Response,
}

/// The operations of one name on one coordinator that had the same outcome. All times in ns.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Name of the coordinator.
    pub coordinator: String,
    /// How they ended. A late answer belongs to an operation that was counted as timed out before.
    pub outcome: Outcome,
    /// How many.
    pub count: u64,
    /// Sent − intended.
    pub wait: Histogram<u64>,
    /// Ended − sent.
    pub service: Histogram<u64>,
    /// Ended − intended.
    pub response: Histogram<u64>,
}

impl Cell {
    /// The latencies of this measure.
    pub fn latency(&self, measure: Measure) -> &Histogram<u64> {
        match measure {
            Measure::Service => &self.service,
            Measure::Response => &self.response,
        }
    }

    /// Adds the same of another period.
    pub fn add(&mut self, other: &Cell) {
        self.count += other.count;
        let _ = self.wait.add(&other.wait);
        let _ = self.service.add(&other.service);
        let _ = self.response.add(&other.response);
    }
}

/// The operations of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Its name, as it is printed: `WRITE`, `READ`, `insert`, `spec.query`.
    pub name: String,
    /// Partitions touched by operations that ended.
    pub partitions: u64,
    /// Rows written or returned.
    pub rows: u64,
    /// Given up before they could be sent.
    pub never_sent: u64,
    /// Called for by the schedule of users who were not free ([`Bucket::withheld`]), where they can only have been of this
    /// name, or of all names together. Nothing was made of them: they are no errors, but were due.
    pub withheld: u64,
    /// Requests that were given to connections: pages, steps and attempts, each by itself.
    pub requests: u64,
    /// Conditional statements (LWT) that were answered; they are among the successful operations.
    pub conditional: u64,
    /// Those of them that were not applied.
    pub not_applied: u64,
    /// Service times of requests of operations that may be retried, ns, by outcome; empty where each is tried only once.
    /// An operation with a failed attempt may still have succeeded.
    pub attempts: BTreeMap<Outcome, Histogram<u64>>,
    /// Service times of pages that were answered in time, ns; empty where no operation has pages.
    pub pages: Histogram<u64>,
    /// By coordinator and outcome.
    pub cells: Vec<Cell>,
}

impl Operation {
    /// No data yet for an operation.
    pub fn new(name: &str) -> Self {
        Operation {
            name: name.to_owned(),
            partitions: 0,
            rows: 0,
            never_sent: 0,
            withheld: 0,
            requests: 0,
            conditional: 0,
            not_applied: 0,
            attempts: BTreeMap::new(),
            pages: histogram(),
            cells: Vec::new(),
        }
    }

    /// How many have ended: answered, failed, or timed out. Those never sent are not included.
    pub fn ended(&self) -> u64 {
        self.cells.iter().filter(|cell| cell.outcome != Outcome::Late).map(|cell| cell.count).sum()
    }

    /// How many ended in this way.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.cells.iter().filter(|cell| cell.outcome == outcome).map(|cell| cell.count).sum()
    }

    /// Operations that gave their user nothing: failed, timed out, or never sent.
    pub fn errors(&self) -> u64 {
        self.ended() - self.count(Outcome::Ok) + self.never_sent
    }

    /// Conditional statements whose condition held.
    pub fn applied(&self) -> u64 {
        self.conditional.saturating_sub(self.not_applied)
    }

    /// One of its latencies with all populations it can be of; everything that prints one takes it from here. A late
    /// answer counts with its time-out.
    pub fn latencies(&self, of: impl Fn(&Cell) -> &Histogram<u64>) -> Latencies {
        let mut all = Latencies::new();
        for cell in &self.cells {
            add_ended(&mut all, cell.outcome, cell.count, of(cell));
        }
        all.add_never_sent(self.never_sent + self.withheld);
        all
    }

    /// Requests of operations that may be retried, which have ended.
    pub fn attempts_ended(&self) -> u64 {
        self.attempts.iter().filter(|(outcome, _)| **outcome != Outcome::Late).map(|(_, times)| times.len()).sum()
    }

    /// Service times of attempts, with all populations they can be of.
    pub fn attempt_latencies(&self) -> Latencies {
        let mut all = Latencies::new();
        for (outcome, times) in &self.attempts {
            add_ended(&mut all, *outcome, times.len(), times);
        }
        all
    }

    /// What the columns of rows show: latencies of operations answered right or timed out ([`SHOWN`]).
    pub fn latency(&self, measure: Measure) -> Histogram<u64> {
        self.latencies(|cell| cell.latency(measure)).times(SHOWN)
    }

    /// The largest of [`Operation::latency`], ns.
    pub fn largest_ns(&self, measure: Measure) -> u64 {
        self.latency(measure).max()
    }

    /// Requests per operation sent; none if none was sent.
    pub fn requests_each(&self) -> Option<f64> {
        let ended = self.ended();
        (ended > 0).then(|| self.requests as f64 / ended as f64)
    }

    /// The cell of a coordinator and an outcome, created if there is none.
    pub fn cell(&mut self, coordinator: &str, outcome: Outcome) -> &mut Cell {
        let place = self.cells.iter().position(|cell| cell.outcome == outcome && cell.coordinator == coordinator);
        let place = place.unwrap_or_else(|| {
            let empty = Cell {
                coordinator: coordinator.to_owned(),
                outcome,
                count: 0,
                wait: histogram(),
                service: histogram(),
                response: histogram(),
            };
            self.cells.push(empty);
            self.cells.len() - 1
        });
        &mut self.cells[place]
    }

    /// Adds another period of the same operation.
    pub fn add(&mut self, other: &Operation) {
        self.partitions += other.partitions;
        self.rows += other.rows;
        self.never_sent += other.never_sent;
        self.withheld += other.withheld;
        self.requests += other.requests;
        self.conditional += other.conditional;
        self.not_applied += other.not_applied;
        for (outcome, times) in &other.attempts {
            let _ = self.attempts.entry(*outcome).or_insert_with(histogram).add(times);
        }
        let _ = self.pages.add(&other.pages);
        for cell in &other.cells {
            self.cell(&cell.coordinator, cell.outcome).add(cell);
        }
    }
}

/// Findings about the content of answers, and operations that were rerouted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Findings {
    /// Reads older than a write acknowledged before they were sent.
    pub stale: u64,
    /// Reads of what nobody wrote, answered without a row: cheap reads.
    pub empty: u64,
    /// Reads without a row where one had been written.
    pub missing: u64,
    /// Reads with content that nobody wrote.
    pub mismatched: u64,
    /// Operations sent to a coordinator other than the policy's choice.
    pub rerouted: u64,
}

impl Findings {
    pub(super) fn add(&mut self, other: &Findings) {
        self.stale += other.stale;
        self.empty += other.empty;
        self.missing += other.missing;
        self.mismatched += other.mismatched;
        self.rerouted += other.rerouted;
    }
}

/// A period, and what ended in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Its start on CLOCK_MONOTONIC, ns.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// Which latency the columns show.
    pub measure: Measure,
    /// Operations that fell due.
    pub scheduled: u64,
    /// Operations sent.
    pub sent: u64,
    /// Operations given up before they could be sent.
    pub never_sent: u64,
    /// Operations that no user was free for.
    pub withheld: u64,
    /// By name, sorted; one without operations in this interval is there all the same once it is known.
    pub operations: Vec<Operation>,
    /// Sent − intended where a connection was free: the client's own error, ns.
    pub lateness: Histogram<u64>,
    /// Those of them that were late: by more than 1 ms, and by more than two ticks.
    pub late_starts: u64,
    /// Findings.
    pub findings: Findings,
}

impl Interval {
    /// An empty stretch.
    pub fn new(start_ns: u64, length_ns: u64, measure: Measure) -> Self {
        Interval {
            start_ns,
            length_ns,
            measure,
            scheduled: 0,
            sent: 0,
            never_sent: 0,
            withheld: 0,
            operations: Vec::new(),
            lateness: histogram(),
            late_starts: 0,
            findings: Findings::default(),
        }
    }

    /// The end, ns.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }

    /// Operations that ended.
    pub fn ended(&self) -> u64 {
        self.operations.iter().map(Operation::ended).sum()
    }

    /// Operations that gave their user nothing.
    pub fn errors(&self) -> u64 {
        self.operations.iter().map(Operation::errors).sum()
    }

    /// Nothing ended, nothing was given up.
    pub fn is_empty(&self) -> bool {
        self.ended() == 0 && self.errors() == 0
    }

    /// All operations as one, under the name `total`.
    pub fn all(&self) -> Operation {
        let mut total = Operation::new("total");
        for operation in &self.operations {
            total.add(operation);
        }
        total.withheld = self.withheld;
        total
    }

    /// The operation of this name, inserted in order if there is none.
    pub fn operation(&mut self, name: &str) -> &mut Operation {
        let place = match self.operations.binary_search_by(|known| known.name.as_str().cmp(name)) {
            Ok(place) => place,
            Err(place) => {
                self.operations.insert(place, Operation::new(name));
                place
            }
        };
        &mut self.operations[place]
    }

    /// Adds a later interval: this one then extends to its end.
    pub fn add(&mut self, later: &Interval) {
        let end = self.end_ns().max(later.end_ns());
        self.length_ns = end.saturating_sub(self.start_ns);
        self.scheduled += later.scheduled;
        self.sent += later.sent;
        self.never_sent += later.never_sent;
        self.withheld += later.withheld;
        let _ = self.lateness.add(&later.lateness);
        self.late_starts += later.late_starts;
        self.findings.add(&later.findings);
        for operation in &later.operations {
            self.operation(&operation.name).add(operation);
        }
    }
}

/// The population of rows, `Results:` and all columns that do not say otherwise. It is that of cassandra-stress, except
/// for failures, which cassandra-stress includes with the time at which they came back.
pub const SHOWN: Population = Population::OkAndTimedOut;

/// Adds operations that ended in this way to the populations that they belong to. A late answer is in its time-out.
pub fn add_ended(to: &mut Latencies, outcome: Outcome, count: u64, times: &Histogram<u64>) {
    match outcome {
        Outcome::Ok => to.add_ok(times),
        Outcome::TimedOut => to.add_timed_out(times),
        Outcome::Failed(_) => to.add_failed(count),
        Outcome::Late => {}
    }
}

/// A count per second; 0 of a stretch without length.
pub fn per_second(count: u64, length_ns: u64) -> f64 {
    if length_ns == 0 { 0.0 } else { count as f64 * 1e9 / length_ns as f64 }
}

/// Nanoseconds as milliseconds.
pub fn ms(ns: f64) -> f64 {
    ns * 1e-6
}
