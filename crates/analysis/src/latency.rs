//! Latencies of answered and timed-out operations together, without losing which is which.

use brownout_record::{Histogram, LatencyRow};
use serde::Serialize;

use crate::{AnalysisError, sums::Outcome};

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

/// The latencies of operations that were answered ok and of those that timed out.
///
/// Leaving the timed-out ones away would make a fault look milder the worse it is; they count at
/// the time-out, which is a lower bound of what they took.
#[derive(Debug, Clone)]
pub struct Latencies {
    all: Histogram,
    timed_out: Histogram,
}

impl Latencies {
    /// None yet.
    pub fn new() -> Result<Self, AnalysisError> {
        Ok(Latencies { all: empty()?, timed_out: empty()? })
    }

    /// Adds answered operations.
    pub fn add_answered(&mut self, histogram: &Histogram) -> Result<(), AnalysisError> {
        merge(&mut self.all, histogram, "latency")
    }

    /// Adds operations whose latency was cut off by the client's time-out.
    pub fn add_timed_out(&mut self, histogram: &Histogram) -> Result<(), AnalysisError> {
        merge(&mut self.all, histogram, "latency")?;
        merge(&mut self.timed_out, histogram, "latency")
    }

    /// Adds the response times of a row of the record, if they count.
    pub fn add_row(&mut self, row: &LatencyRow) -> Result<(), AnalysisError> {
        self.add_ended(Outcome::of(&row.outcome), &row.response)
    }

    /// Adds times of operations that ended so, if they count: those of failed operations do not, and an operation
    /// answered late is already there as timed out.
    pub(crate) fn add_ended(&mut self, outcome: Outcome<'_>, histogram: &Histogram) -> Result<(), AnalysisError> {
        match outcome {
            Outcome::Ok => self.add_answered(histogram),
            Outcome::TimedOut => self.add_timed_out(histogram),
            Outcome::Late | Outcome::Failed(_) => Ok(()),
        }
    }

    /// Adds all of another.
    pub fn add(&mut self, other: &Latencies) -> Result<(), AnalysisError> {
        merge(&mut self.all, &other.all, "latency")?;
        merge(&mut self.timed_out, &other.timed_out, "latency")
    }

    /// How many operations.
    pub fn count(&self) -> u64 {
        self.all.len()
    }

    /// Arithmetic mean, ns.
    pub fn mean_ns(&self) -> f64 {
        self.all.mean()
    }

    /// The latency that a share `q` (0 to 1) of the operations did not exceed; none without operations.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        if self.all.is_empty() {
            return None;
        }
        let value_ns = self.all.value_at_quantile(q);
        let at_least = !self.timed_out.is_empty() && value_ns >= self.timed_out.min();
        Some(Quantile { value_ns, at_least })
    }

    /// The share of the operations, 0 to 1, that took longer than this.
    pub(crate) fn share_above(&self, limit_ns: u64) -> f64 {
        let within = self.all.count_between(0, limit_ns);
        self.all.len().saturating_sub(within) as f64 / self.all.len().max(1) as f64
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

    /// p50 and p99; none without operations.
    pub fn short(&self) -> Option<Short> {
        Some(Short { p50: self.quantile(0.5)?, p99: self.quantile(0.99)? })
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
