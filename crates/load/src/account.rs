//! What the engine reports: buckets of latencies, the balance sheet, and live figures.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use hdrhistogram::Histogram;

/// An empty histogram of nanoseconds: three significant digits (0.1 %), growing as it needs to.
pub fn histogram() -> Histogram<u64> {
    // Three digits are within the 0 to 5 that the constructor takes.
    Histogram::new(3).unwrap_or_else(|_| unreachable!("three significant digits are always allowed"))
}

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The coordinator knew too few living replicas and did not try.
    Unavailable,
    /// The coordinator refused because it has too much to do.
    Overloaded,
    /// Too few replicas answered the read within the server's own timeout.
    ReadTimeout,
    /// Too few replicas acknowledged the write within the server's own timeout.
    WriteTimeout,
    /// A replica failed while reading.
    ReadFailure,
    /// A replica failed while writing.
    WriteFailure,
    /// The coordinator is still joining the cluster.
    Bootstrapping,
    /// Any other error on the server's side.
    ServerError,
    /// The server rejected the request: syntax, permissions, a table that no longer exists.
    Invalid,
    /// The server had forgotten the statement; it is prepared again in the background.
    Unprepared,
    /// The connection was lost while the operation was in flight.
    ConnectionLost,
    /// The row's content is not what any write of this key would have written.
    Mismatch,
    /// A row whose write had been acknowledged before the read was sent came back empty.
    Missing,
    /// An answer of a kind that does not belong to the request.
    Unexpected,
    /// The client could not write the request: it has too many values or statements, or is too long.
    Unwritable,
    /// The run ended before the operation was answered or had timed out.
    Abandoned,
}

const CLASS_NAMES: [(ErrorClass, &str); 16] = [
    (ErrorClass::Unavailable, "unavailable"),
    (ErrorClass::Overloaded, "overloaded"),
    (ErrorClass::ReadTimeout, "read-timeout"),
    (ErrorClass::WriteTimeout, "write-timeout"),
    (ErrorClass::ReadFailure, "read-failure"),
    (ErrorClass::WriteFailure, "write-failure"),
    (ErrorClass::Bootstrapping, "bootstrapping"),
    (ErrorClass::ServerError, "server-error"),
    (ErrorClass::Invalid, "invalid"),
    (ErrorClass::Unprepared, "unprepared"),
    (ErrorClass::ConnectionLost, "connection-lost"),
    (ErrorClass::Mismatch, "mismatch"),
    (ErrorClass::Missing, "missing"),
    (ErrorClass::Unexpected, "unexpected"),
    (ErrorClass::Unwritable, "unwritable"),
    (ErrorClass::Abandoned, "abandoned"),
];

impl ErrorClass {
    /// Every class.
    pub fn all() -> impl Iterator<Item = ErrorClass> {
        CLASS_NAMES.into_iter().map(|(class, _)| class)
    }

    /// The name used in records and reports: `read-timeout`.
    pub fn name(self) -> &'static str {
        CLASS_NAMES[self as usize].1
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Answered in time, and a read's content was right.
    Ok,
    /// No answer within the client's timeout, counted from the intended start: response = timeout. (In a limited loop
    /// the timeout counts from when a user became free: [`crate::Pace::Limited`].)
    TimedOut,
    /// Answered after it had timed out. Counted *in addition to* the `TimedOut` of the same operation, with the true
    /// latency, unless it came more than 60 s and more than two timeouts after the timeout.
    Late,
    /// Answered with an error or with wrong content, or its connection was lost.
    Failed(ErrorClass),
}

impl Outcome {
    /// How many outcomes there are.
    pub(crate) const COUNT: usize = 3 + CLASS_NAMES.len();

    /// The name used in records and reports: `ok`, `timed-out`, `late`, or that of the [`ErrorClass`].
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::TimedOut => "timed-out",
            Outcome::Late => "late",
            Outcome::Failed(class) => class.name(),
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Outcome::Ok => 0,
            Outcome::TimedOut => 1,
            Outcome::Late => 2,
            Outcome::Failed(class) => 3 + class as usize,
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Outcome> {
        let classes = CLASS_NAMES.iter().map(|(class, _)| Outcome::Failed(*class));
        [Outcome::Ok, Outcome::TimedOut, Outcome::Late].into_iter().chain(classes)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Outcome::all()
            .find(|known| known.name() == name)
            .ok_or_else(|| format!("'{name}' is no outcome of an operation"))
    }
}

/// The operations of one statement on one coordinator that had the same outcome. All times in nanoseconds.
#[derive(Debug, Clone)]
pub struct Series {
    /// Name of the operation: one of [`crate::Workload::operations`].
    pub statement: String,
    /// Name of the coordinator that the operations were sent to; if they had several requests, that of the last one.
    pub coordinator: String,
    /// How they ended.
    pub outcome: Outcome,
    /// How many.
    pub count: u64,
    /// Sent − intended: how long the client held the operation back. *Sent* is when the kernel took the bytes of the
    /// first request.
    pub wait: Histogram<u64>,
    /// Completed − sent. *Completed* is when the kernel received the answer. When an open loop reads several answers
    /// from one connection at once, all get the time of the last: at most 1.1 ms too late, and less than 0.1 ms on
    /// average unless a longer [`crate::EngineConfig::tick`] is configured.
    pub service: Histogram<u64>,
    /// Completed − intended: what the user of the database feels.
    pub response: Histogram<u64>,
}

impl Series {
    /// [`Series::statement`] of watches' events.
    pub const WATCH: &'static str = "watch";
}

/// Counts for the operations of one name, taken from answers that came in time, and how many were never sent.
#[derive(Debug, Clone)]
pub struct OperationCounts {
    /// One of [`crate::Workload::operations`].
    pub operation: String,
    /// Operations that found no connection or no free stream within the timeout or before the run ended.
    pub never_sent: u64,
    /// Requests given to a connection. Pages, steps and attempts each count.
    pub requests: u64,
    /// Partitions read or written.
    pub partitions: u64,
    /// Rows read or written.
    pub rows: u64,
    /// Conditional writes (LWT) that were not applied. They are among the successful operations.
    pub not_applied: u64,
    /// Service times of single pages that were answered in time, in ns. An operation of several pages has one response
    /// time.
    pub pages: Histogram<u64>,
    /// The attempts of these operations; none if each is tried only once.
    pub attempts: Attempts,
}

/// Requests of operations that may be retried: by outcome, the time of each in ns. Every request counts, including
/// pages.
///
/// [`Outcome::Ok`] and failures: from sending to the answer. [`Outcome::TimedOut`]: from sending until it was given up,
/// after [`crate::Retries::attempt_timeout`] or together with the operation. [`Outcome::Late`]: from sending to the
/// answer of one that had timed out, counted in addition.
#[derive(Debug, Clone, Default)]
pub struct Attempts(pub BTreeMap<Outcome, Histogram<u64>>);

impl Attempts {
    /// How many had this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.0.get(&outcome).map_or(0, Histogram::len)
    }

    /// How many have ended: answered, failed or timed out.
    pub fn ended(&self) -> u64 {
        self.0.iter().filter(|(outcome, _)| **outcome != Outcome::Late).map(|(_, times)| times.len()).sum()
    }
}

/// All operations whose intended start lies in one interval.
///
/// An interval without operations has no bucket: in a closed loop, a freeze of the database looks like that.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// Its start on CLOCK_MONOTONIC, in ns.
    pub start_ns: u64,
    /// Its length in ns.
    pub length_ns: u64,
    /// None of its operations is still open: only late answers may still be added.
    pub settled: bool,
    /// Nor can a late answer be added: it is not handed out again.
    pub over: bool,
    /// Operations whose intended start lies in it.
    pub scheduled: u64,
    /// Those given to a connection.
    pub sent: u64,
    /// Operations that found no connection or no free stream within the timeout or before the run ended.
    pub never_sent: u64,
    /// Operations that the schedule of a [`crate::Pace::Limited`] called for in it, and no user was free to ask for until
    /// the pace ended: [`Balance::withheld`], in operations of as many partitions as those before had in the mean. Nothing
    /// was made of them, so they are no part of `scheduled`; but a user waited for each of them in vain.
    pub withheld: u64,
    /// Latencies by statement, coordinator and outcome; only those that occurred.
    pub series: Vec<Series>,
    /// How long it took until watchers were told of the puts that were intended in it (etcd): by the coordinator that a
    /// watch is on, and outcome. Each put that was acknowledged has to be told to each watcher. [`Outcome::Ok`]: it was,
    /// before the put itself would have timed out. [`Outcome::TimedOut`]: it was not. [`Outcome::Late`]: it was after all,
    /// counted in addition. What was not acknowledged is counted if it was told in time. `wait` is that of the put, until
    /// it was given to a connection; `service` runs from there until its event arrived. Events are no operations: nothing
    /// else counts them.
    pub watches: Vec<Series>,
    /// What the operations did, by name; only names of which one was answered, sent or never sent.
    pub operations: Vec<OperationCounts>,
    /// The instrument's own error, in ns: from when an operation could have been sent (its intended start, or later,
    /// when a user, a stream, or what it was to begin with was there) until the kernel was given it. Not of those that
    /// waited for a connection; and what the kernel keeps because its peer does not read is not the instrument's doing.
    pub lateness: Histogram<u64>,
    /// How many of those were more than [`LATE_START_NS`] late, or more than two of the engine's ticks if that is
    /// longer.
    pub late_starts: u64,
    /// How long the client stood still within the interval, in ns, with a resolution of a 64th of its length: an
    /// operation was due and could have been sent, but was not. It is a time, however few operations show it: a client
    /// that stands still starts none, and in a closed loop only its users' operations can show it.
    pub stood_still_ns: u64,
    /// Reads answered with a version older than the newest write acknowledged before they were sent.
    pub stale: u64,
    /// Reads of keys for which no write was known, answered without a row. Not a failure, but a cheap read.
    pub empty: u64,
    /// Reads that came back empty although a write had been acknowledged, including late answers. Late ones are not
    /// failures in `series`, because they had already timed out.
    pub missing: u64,
    /// Reads with content that nobody wrote, including late answers.
    pub mismatched: u64,
    /// Acknowledged writes that a read of this bucket was the first to look for: reads sent after the acknowledgement, of
    /// writes that were sent when every earlier write of the same key had been answered, and answered before a newer one
    /// was acknowledged. Only of [`crate::KeyValue`].
    pub looked_for: u64,
    /// Those of `looked_for` that were not found: the read returned a write that had been answered before the lost one was
    /// sent. At a consistency whose reads and writes overlap such a write is lost for good; else it may be only late.
    pub lost: u64,
    /// Operations sent to a coordinator other than the policy's choice, which was not connected.
    pub rerouted: u64,
}

impl Bucket {
    /// Whether the client was late in this interval: more than 1 % of its operations were sent late
    /// ([`Bucket::late_starts`]), or it stood still for more than a tenth of it.
    pub fn late(&self) -> bool {
        self.late_starts.saturating_mul(100) > self.lateness.len()
            || self.stood_still_ns.saturating_mul(10) > self.length_ns
    }
}

/// How long after its timeout an operation's late answer is still waited for, both in ns. Later answers are read and
/// discarded, because an account that can still change has to be kept in memory.
pub const fn late_patience_ns(timeout_ns: u64) -> u64 {
    const LEAST: u64 = 60_000_000_000;
    let two = timeout_ns.saturating_mul(2);
    if two > LEAST { two } else { LEAST }
}

/// An operation sent this much after it could have been shows that the client itself was late: 1 ms.
pub const LATE_START_NS: u64 = 1_000_000;

/// The same for a given tick: a user who configures coarser starts is not told that they are late.
pub(crate) fn late_start_ns(tick: Duration) -> u64 {
    LATE_START_NS.max(2 * tick.as_nanos() as u64)
}

/// The state of all operations since the engine started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balance {
    /// Operations whose intended start has come.
    pub scheduled: u64,
    /// Given to a connection.
    pub sent: u64,
    /// Never given to a connection, within the timeout or before the run ended.
    pub never_sent: u64,
    /// Waiting for a connection with a free stream now (0 after the end).
    pub waiting: u64,
    /// Partitions that the schedule of a [`crate::Pace::Limited`] called for when no user was free. They never became
    /// operations, so they are not part of `scheduled`; but users would have waited for them.
    pub withheld: u64,
    /// Answered in time and right.
    pub answered_ok: u64,
    /// Answered with an error or wrong content, lost with a connection, or abandoned at the end.
    pub failed: u64,
    /// Not answered within the timeout.
    pub timed_out: u64,
    /// Sent, but neither finally answered nor timed out (0 after the end). Includes operations waiting for their next
    /// attempt.
    pub in_flight: u64,
    /// Those of `timed_out` that were answered after all.
    pub late: u64,
    /// Reads with content that nobody wrote (in `failed`, or in `late`).
    pub mismatched: u64,
    /// Reads that came back empty although a write had been acknowledged (in `failed`, or in `late`).
    pub missing: u64,
    /// Reads older than an acknowledged write. May be legitimate at ONE; at QUORUM it is a finding.
    pub stale: u64,
    /// Reads of never-written keys answered without a row.
    pub empty: u64,
    /// Acknowledged writes that a later read looked for; see [`Bucket::looked_for`].
    pub looked_for: u64,
    /// Those of `looked_for` that it did not find; see [`Bucket::lost`].
    pub lost: u64,
    /// Operations sent to a coordinator other than the policy's choice, which was not connected.
    pub rerouted: u64,
    /// Puts that watchers were told of in time, each counted for each watcher: [`Bucket::watches`].
    pub watch_events: u64,
    /// Those that a watcher was not told of in time, though they were acknowledged.
    pub watch_timed_out: u64,
    /// Those of `watch_timed_out` that it was told of after all.
    pub watch_late: u64,
    /// Connections lost since the start.
    pub connections_lost: u64,
    /// Those of them closed by the client because the server's bytes made no sense.
    pub garbage: u64,
    /// `failed`, by class.
    pub failures: BTreeMap<ErrorClass, u64>,
    /// Why load threads died, one message per thread. Their operations are missing above, so the sheet does not
    /// balance.
    pub lost_threads: Vec<String>,
}

impl Balance {
    /// `scheduled = sent + never sent + waiting` and `sent = answered + failed + timed out + in flight`, and every
    /// thread has delivered its account.
    pub fn balances(&self) -> bool {
        self.lost_threads.is_empty()
            && self.scheduled == self.sent + self.never_sent + self.waiting
            && self.sent == self.answered_ok + self.failed + self.timed_out + self.in_flight
            && self.failed == self.failures.values().sum::<u64>()
            && self.late <= self.timed_out
    }

    pub(crate) fn add(&mut self, other: &Balance) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.never_sent += other.never_sent;
        self.waiting += other.waiting;
        self.withheld += other.withheld;
        self.answered_ok += other.answered_ok;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.in_flight += other.in_flight;
        self.late += other.late;
        self.mismatched += other.mismatched;
        self.missing += other.missing;
        self.stale += other.stale;
        self.empty += other.empty;
        self.looked_for += other.looked_for;
        self.lost += other.lost;
        self.rerouted += other.rerouted;
        self.watch_events += other.watch_events;
        self.watch_timed_out += other.watch_timed_out;
        self.watch_late += other.watch_late;
        self.connections_lost += other.connections_lost;
        self.garbage += other.garbage;
        for (class, count) in &other.failures {
            *self.failures.entry(*class).or_default() += count;
        }
        self.lost_threads.extend_from_slice(&other.lost_threads);
    }
}

/// What happened since the last call, by time of completion: for a progress display, not for results.
#[derive(Debug, Clone)]
pub struct Live {
    /// Operations that fell due.
    pub offered: u64,
    /// Answered in time and right.
    pub delivered: u64,
    /// Failed.
    pub failed: u64,
    /// Timed out.
    pub timed_out: u64,
    /// Given up before they were sent.
    pub never_sent: u64,
    /// Response times (ns) of the delivered and the timed-out operations.
    pub response: Histogram<u64>,
    /// The same per coordinator, in the order of the configuration.
    pub coordinators: Vec<(String, Histogram<u64>)>,
    /// Sent and still open, now.
    pub in_flight: u64,
    /// Due but not yet sent, now.
    pub waiting: u64,
}

/// A connection was lost or re-established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// When, on CLOCK_MONOTONIC in ns.
    pub at_ns: u64,
    /// Name of the coordinator.
    pub coordinator: String,
    /// `None`: connected again. Otherwise why the connection was lost.
    pub lost: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_one_name_and_one_index() {
        for (index, outcome) in Outcome::all().enumerate() {
            assert_eq!(outcome.index(), index);
            assert_eq!(outcome.name().parse(), Ok(outcome));
        }
        assert_eq!(Outcome::all().count(), Outcome::COUNT);
        for (index, (class, _)) in CLASS_NAMES.iter().enumerate() {
            assert_eq!(*class as usize, index);
        }
    }
}
