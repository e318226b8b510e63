//! Latencies of operations, and of which operations: the one fold that every output of a load takes its figures from.
//!
//! A latency without its population means nothing: leaving failures away makes a fault look milder the worse it is.
//! There are three ([`Population`]), and none can be made of another, so [`Latencies`] keeps what all of them need.

use std::fmt;

use crate::{AddTo, Histogram, times::empty};

/// Which operations a percentile is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Population {
    /// Answered in time and right.
    Ok,
    /// These, and those that timed out, which count with their time-out: it is the least that they took.
    OkAndTimedOut,
    /// All that were due: those that failed and those that were never sent, too. They count as beyond every limit.
    Due,
}

impl Population {
    /// All of them, from the narrowest.
    pub const ALL: [Population; 3] = [Population::Ok, Population::OkAndTimedOut, Population::Due];

    /// Its name in reports and files: `ok`, `ok+timed-out`, `due`.
    pub fn name(self) -> &'static str {
        match self {
            Population::Ok => "ok",
            Population::OkAndTimedOut => "ok+timed-out",
            Population::Due => "due",
        }
    }
}

impl fmt::Display for Population {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percentile {
    /// So many ns, to the histogram's 0.1 %.
    Is(u64),
    /// At least so many: the rank lies at or above operations that had not ended when their client gave up.
    AtLeast(u64),
    /// Beyond every limit: the rank lies among operations that failed or were never sent.
    Never,
}

impl Percentile {
    /// The ns, if there are any.
    pub fn ns(self) -> Option<u64> {
        match self {
            Percentile::Is(ns) | Percentile::AtLeast(ns) => Some(ns),
            Percentile::Never => None,
        }
    }
}

/// One latency (wait, service or response) of some operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies {
    ok: Histogram,
    timed_out: Histogram,
    failed: u64,
    never_sent: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { ok: empty(), timed_out: empty(), failed: 0, never_sent: 0 }
    }
}

impl Latencies {
    /// None yet.
    pub fn new() -> Self {
        Latencies::default()
    }

    /// Adds operations that were answered in time and right.
    pub fn add_ok(&mut self, times: &impl AddTo) {
        times.add_to(&mut self.ok);
    }

    /// Adds operations that timed out; the times are what is known of them.
    pub fn add_timed_out(&mut self, times: &impl AddTo) {
        times.add_to(&mut self.timed_out);
    }

    /// Adds operations that failed.
    pub fn add_failed(&mut self, count: u64) {
        self.failed += count;
    }

    /// Adds operations that were never sent.
    pub fn add_never_sent(&mut self, count: u64) {
        self.never_sent += count;
    }

    /// Adds all of another.
    pub fn add(&mut self, other: &Latencies) {
        self.add_ok(&other.ok);
        self.add_timed_out(&other.timed_out);
        self.failed += other.failed;
        self.never_sent += other.never_sent;
    }

    /// How many operations a population has.
    pub fn count(&self, of: Population) -> u64 {
        match of {
            Population::Ok => self.ok.len(),
            Population::OkAndTimedOut => self.ok.len() + self.timed_out.len(),
            Population::Due => self.ok.len() + self.timed_out.len() + self.failed + self.never_sent,
        }
    }

    /// The times of a population that are known. Of all that were due those of failed and never sent ones are missing:
    /// they have none.
    pub fn times(&self, of: Population) -> Histogram {
        let mut times = self.ok.clone();
        if of != Population::Ok {
            let _ = times.add(&self.timed_out);
        }
        times
    }

    /// The latency that a share (0 to 100 %) of a population did not exceed; none without operations.
    pub fn percentile(&self, of: Population, percent: f64) -> Option<Percentile> {
        let count = self.count(of);
        if count == 0 {
            return None;
        }
        let rank = rank(percent, count);
        let times = self.times(of);
        if rank > times.len() as f64 {
            return Some(Percentile::Never);
        }
        let ns = at_rank(&times, rank);
        let cut_off = of != Population::Ok && !self.timed_out.is_empty() && ns >= self.timed_out.min();
        Some(if cut_off { Percentile::AtLeast(ns) } else { Percentile::Is(ns) })
    }

    /// The share of a population, 0 to 1, that was answered in time and right within so many ns: [`Population::Due`] is
    /// what an objective is of.
    pub fn share_within(&self, of: Population, limit_ns: u64) -> f64 {
        let count = self.count(of);
        if count == 0 { 0.0 } else { self.ok.count_between(0, limit_ns) as f64 / count as f64 }
    }
}

/// The value at a percentile (0 to 100) of times that all are known; 0 of no values.
pub fn percentile(times: &Histogram, percent: f64) -> u64 {
    if times.is_empty() { 0 } else { at_rank(times, rank(percent, times.len())) }
}

/// The rank of a percentile among so many, from 1 on. It is that of the Java HdrHistogram: the percentile is taken a bit
/// (of a double) smaller, so that 99.9 % of 30,000 values is the 29,970th. The crate's own arithmetic says
/// 29,970.000000000004, and takes the next.
fn rank(percent: f64, count: u64) -> f64 {
    (percent.next_down() * count as f64 / 100.0).ceil().max(1.0)
}

fn at_rank(times: &Histogram, rank: f64) -> u64 {
    times.value_at_quantile((rank - 0.5) / times.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(all: &[u64]) -> Histogram {
        let mut times = empty();
        all.iter().for_each(|ns| times.record(*ns).unwrap());
        times
    }

    #[test]
    fn each_population_counts_who_belongs_to_it_and_no_one_else() {
        let mut latencies = Latencies::new();
        latencies.add_ok(&times(&[1, 2, 3, 4]));
        latencies.add_timed_out(&times(&[100, 100]));
        latencies.add_failed(1);
        latencies.add_never_sent(1);
        let counts = Population::ALL.map(|of| latencies.count(of));
        assert_eq!(counts, [4, 6, 8]);
        let at = |percent| Population::ALL.map(|of| latencies.percentile(of, percent));
        use Percentile::{AtLeast, Is, Never};
        assert_eq!(at(50.0), [Some(Is(2)), Some(Is(3)), Some(Is(4))]);
        assert_eq!(at(75.0), [Some(Is(3)), Some(AtLeast(100)), Some(AtLeast(100))]);
        assert_eq!(at(100.0), [Some(Is(4)), Some(AtLeast(100)), Some(Never)]);
        let within = |limit| Population::ALL.map(|of| latencies.share_within(of, limit));
        assert_eq!(within(200), [1.0, 4.0 / 6.0, 0.5], "who timed out was not served");
        assert!(Latencies::new().percentile(Population::Due, 50.0).is_none());
    }

    #[test]
    fn a_percentile_has_the_rank_of_its_share() {
        let mut latencies = Latencies::new();
        latencies.add_ok(&times(&(1..=1000).collect::<Vec<_>>()));
        for (asked, expected) in [(0.0, 1), (50.0, 500), (99.0, 990), (99.9, 999), (99.91, 1000), (100.0, 1000)] {
            assert_eq!(latencies.percentile(Population::Ok, asked), Some(Percentile::Is(expected)), "{asked}");
            assert_eq!(percentile(&latencies.ok, asked), expected, "{asked}");
        }
        assert_eq!(percentile(&empty(), 50.0), 0);
    }
}
