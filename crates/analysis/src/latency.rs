//! Latencies of operations by their populations: one fold for all, that of the record.

use brownout_record::{EncodedTimes, Histogram, LatencyRow, Percentile, Population};
use serde::Serialize;

use crate::AnalysisError;

/// A percentile of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quantile {
    /// ns, to three significant digits (the histogram's resolution).
    pub value_ns: u64,
    /// The true value may be larger: this rank lies at or above operations that had not ended when
    /// the client gave up, and those are counted at the time-out.
    pub at_least: bool,
}

/// The response times of some operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Response {
    /// Operations counted: answered ok or timed out.
    pub count: u64,
    /// Arithmetic mean, ns (a lower bound when operations timed out).
    pub mean_ns: f64,
    /// 50th percentile.
    pub p50: Quantile,
    /// 95th percentile.
    pub p95: Quantile,
    /// 99th percentile.
    pub p99: Quantile,
    /// 99.9th percentile.
    pub p999: Quantile,
    /// The largest.
    pub max: Quantile,
}

/// A latency in two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Short {
    /// 50th percentile.
    pub p50: Quantile,
    /// 99th percentile.
    pub p99: Quantile,
}

/// Response times of all operations that were due, the failed and the never sent ones among them: they count as beyond
/// every limit. An objective is of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Due {
    /// Operations counted: all but those still open when the run was cut.
    pub count: u64,
    /// 50th percentile; none: it lies among operations that failed or were never sent.
    pub p50: Option<Quantile>,
    /// 95th percentile, likewise.
    pub p95: Option<Quantile>,
    /// 99th percentile, likewise.
    pub p99: Option<Quantile>,
    /// 99.9th percentile, likewise.
    pub p999: Option<Quantile>,
}

/// What a row of the record says became of its operations.
#[derive(Clone, Copy)]
pub(crate) enum OperationOutcome<'a> {
    Ok,
    TimedOut,
    Late,
    Failed(&'a str),
}

impl<'a> OperationOutcome<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        match text {
            "ok" => OperationOutcome::Ok,
            "timed-out" => OperationOutcome::TimedOut,
            "late" => OperationOutcome::Late,
            other => OperationOutcome::Failed(other.strip_prefix("failed:").unwrap_or(other)),
        }
    }
}

/// The latencies of operations by their populations ([`Population`]). What does not say otherwise is of those answered ok
/// and those that timed out.
///
/// Leaving the timed-out ones away would make a fault look milder the worse it is; they count at
/// the time-out, which is a lower bound of what they took.
#[derive(Debug, Clone, Default)]
pub struct Latencies(brownout_record::Latencies);

impl Latencies {
    /// None yet.
    pub fn new() -> Self {
        Latencies::default()
    }

    /// Adds answered operations.
    pub fn add_answered(&mut self, times: &EncodedTimes) {
        self.0.add_ok(times);
    }

    /// Adds operations that were never sent.
    pub fn add_never_sent(&mut self, count: u64) {
        self.0.add_never_sent(count);
    }

    /// Adds the response times of a row of the record, if they count.
    pub fn add_row(&mut self, row: &LatencyRow) {
        self.add_ended(OperationOutcome::of(&row.outcome), row.count, &row.response);
    }

    /// Adds times of so many operations that ended so: an operation answered late is already there as timed out.
    pub(crate) fn add_ended(&mut self, outcome: OperationOutcome<'_>, count: u64, times: &EncodedTimes) {
        match outcome {
            OperationOutcome::Ok => self.0.add_ok(times),
            OperationOutcome::TimedOut => self.0.add_timed_out(times),
            OperationOutcome::Failed(_) => self.0.add_failed(count),
            OperationOutcome::Late => {}
        }
    }

    /// Adds all of another.
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0);
    }

    /// How many operations were answered ok or timed out.
    pub fn count(&self) -> u64 {
        self.0.count(Population::OkAndTimedOut)
    }

    /// Arithmetic mean of these, ns.
    pub fn mean_ns(&self) -> f64 {
        self.0.times(Population::OkAndTimedOut).mean()
    }

    /// The latency that a share `q` (0 to 1) of these did not exceed; none without operations.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        self.0.percentile(Population::OkAndTimedOut, q * 100.0).and_then(quantile)
    }

    /// The share of these, 0 to 1, that took longer than this.
    pub(crate) fn share_above(&self, limit_ns: u64) -> f64 {
        if self.count() == 0 { 0.0 } else { 1.0 - self.0.share_within(Population::OkAndTimedOut, limit_ns) }
    }

    /// The usual five percentiles; none without operations.
    pub fn response(&self) -> Option<Response> {
        Some(Response {
            count: self.count(),
            mean_ns: self.mean_ns(),
            p50: self.quantile(0.5)?,
            p95: self.quantile(0.95)?,
            p99: self.quantile(0.99)?,
            p999: self.quantile(0.999)?,
            max: self.quantile(1.0)?,
        })
    }

    /// Percentiles of all that were due; none without operations.
    pub fn due(&self) -> Option<Due> {
        let count = self.0.count(Population::Due);
        let at = |percent| self.0.percentile(Population::Due, percent).and_then(quantile);
        (count > 0).then(|| Due { count, p50: at(50.0), p95: at(95.0), p99: at(99.0), p999: at(99.9) })
    }

    /// p50 and p99; none without operations.
    pub fn short(&self) -> Option<Short> {
        Some(Short { p50: self.quantile(0.5)?, p99: self.quantile(0.99)? })
    }
}

/// None of what is beyond every limit.
fn quantile(percentile: Percentile) -> Option<Quantile> {
    match percentile {
        Percentile::Is(value_ns) => Some(Quantile { value_ns, at_least: false }),
        Percentile::AtLeast(value_ns) => Some(Quantile { value_ns, at_least: true }),
        Percentile::Never => None,
    }
}

/// An empty histogram of three significant digits that grows as it needs.
pub(crate) fn empty() -> Result<Histogram, AnalysisError> {
    Histogram::new(3).map_err(|error| AnalysisError::Histogram { what: "new", why: error.to_string() })
}

/// Adds one histogram to another.
pub(crate) fn merge(into: &mut Histogram, from: &Histogram, what: &'static str) -> Result<(), AnalysisError> {
    into.add(from).map_err(|error| AnalysisError::Histogram { what, why: error.to_string() })
}
