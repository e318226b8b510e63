//! The account of one thread: what became of every operation, by the bucket of its intended start.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::Statement;
use crate::{Balance, ErrorClass, Outcome, histogram};

/// A latency as it was measured: (wait, service) in ns. Histograms are made of these when somebody asks: a raw
/// sample is 16 bytes, a histogram some 100 kB, and a bucket has three per series.
pub(super) type Sample = (u64, u64);

/// What one thread knows of one bucket.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) scheduled: u64,
    pub(super) sent: u64,
    pub(super) never_sent: u64,
    pub(super) stale: u64,
    pub(super) empty: u64,
    pub(super) missing: u64,
    pub(super) mismatched: u64,
    pub(super) rerouted: u64,
    pub(super) lateness: Vec<u64>,
    /// By coordinator, statement and outcome; see [`series_index`].
    pub(super) series: Vec<Vec<Sample>>,
    /// Scheduled and not ended.
    open: u64,
    /// Timed out, but a late answer may still come.
    pub(super) awaited: u64,
    changed: bool,
    /// No operation of it is open and none can be added. Set when the page is handed out.
    pub(super) settled: bool,
}

/// The place of a series in [`Page::series`].
pub(super) fn series_index(coordinator: usize, statement: Statement, outcome: Outcome) -> usize {
    (coordinator * 2 + statement as usize) * Outcome::COUNT + outcome.index()
}

/// Counters since the last look, by time of completion.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    pub(super) offered: u64,
    pub(super) delivered: u64,
    pub(super) failed: u64,
    pub(super) timed_out: u64,
    pub(super) never_sent: u64,
    /// Per coordinator.
    pub(super) response: Vec<Histogram<u64>>,
}

impl Recent {
    fn new(coordinators: usize) -> Self {
        let response = vec![histogram(); coordinators];
        Recent { offered: 0, delivered: 0, failed: 0, timed_out: 0, never_sent: 0, response }
    }
}

/// Something about a read's content that is worth counting whatever the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    Stale,
    Empty,
    Missing,
    Mismatch,
}

pub(super) struct Ledger {
    epoch_ns: u64,
    length_ns: u64,
    coordinators: usize,
    pages: BTreeMap<u64, Page>,
    /// Totals, without what is waiting and in flight: those are counted where they are.
    totals: Balance,
    recent: Recent,
}

impl Ledger {
    pub(super) fn new(epoch_ns: u64, length_ns: u64, coordinators: usize) -> Self {
        let recent = Recent::new(coordinators);
        Ledger { epoch_ns, length_ns, coordinators, pages: BTreeMap::new(), totals: Balance::default(), recent }
    }

    fn page(&mut self, intended: u64) -> &mut Page {
        let number = intended.saturating_sub(self.epoch_ns) / self.length_ns;
        let series = self.coordinators * 2 * Outcome::COUNT;
        let page = self.pages.entry(number).or_insert_with(|| Page {
            scheduled: 0,
            sent: 0,
            never_sent: 0,
            stale: 0,
            empty: 0,
            missing: 0,
            mismatched: 0,
            rerouted: 0,
            lateness: Vec::new(),
            series: vec![Vec::new(); series],
            open: 0,
            awaited: 0,
            changed: true,
            settled: false,
        });
        page.changed = true;
        page
    }

    /// An operation's intended start has come.
    pub(super) fn scheduled(&mut self, intended: u64) {
        self.totals.scheduled += 1;
        self.recent.offered += 1;
        let page = self.page(intended);
        page.scheduled += 1;
        page.open += 1;
    }

    /// It was given to a connection.
    pub(super) fn sent(&mut self, intended: u64) {
        self.totals.sent += 1;
        self.page(intended).sent += 1;
    }

    /// The kernel took it, so much after its intended start, with nothing but this program in between.
    pub(super) fn lateness(&mut self, intended: u64, ns: u64) {
        self.page(intended).lateness.push(ns);
    }

    /// It was given up before it found a connection.
    pub(super) fn never_sent(&mut self, intended: u64) {
        self.totals.never_sent += 1;
        self.recent.never_sent += 1;
        let page = self.page(intended);
        page.never_sent += 1;
        page.open -= 1;
    }

    /// It ended. A timed-out one may be followed by [`Ledger::late`] or [`Ledger::never_answered`].
    pub(super) fn ended(
        &mut self,
        intended: u64,
        coordinator: usize,
        statement: Statement,
        outcome: Outcome,
        sample: Sample,
    ) {
        let response = sample.0 + sample.1;
        match outcome {
            Outcome::Ok => {
                self.totals.answered_ok += 1;
                self.recent.delivered += 1;
                let _ = self.recent.response[coordinator].record(response);
            }
            Outcome::TimedOut => {
                self.totals.timed_out += 1;
                self.recent.timed_out += 1;
                let _ = self.recent.response[coordinator].record(response);
            }
            Outcome::Failed(class) => self.failed(class),
            Outcome::Late => {}
        }
        let page = self.page(intended);
        page.open -= 1;
        if outcome == Outcome::TimedOut {
            page.awaited += 1;
        }
        page.series[series_index(coordinator, statement, outcome)].push(sample);
    }

    fn failed(&mut self, class: ErrorClass) {
        self.totals.failed += 1;
        self.recent.failed += 1;
        *self.totals.failures.entry(class).or_default() += 1;
    }

    /// A timed-out operation was answered after all.
    pub(super) fn late(&mut self, intended: u64, coordinator: usize, statement: Statement, sample: Sample) {
        self.totals.late += 1;
        let page = self.page(intended);
        page.awaited -= 1;
        page.series[series_index(coordinator, statement, Outcome::Late)].push(sample);
    }

    /// The connection of a timed-out operation is gone: its answer cannot come any more.
    pub(super) fn never_answered(&mut self, intended: u64) {
        self.page(intended).awaited -= 1;
    }

    /// Takes note of what a read found.
    pub(super) fn found(&mut self, intended: u64, finding: Finding) {
        match finding {
            Finding::Stale => {
                self.totals.stale += 1;
                self.page(intended).stale += 1;
            }
            Finding::Empty => {
                self.totals.empty += 1;
                self.page(intended).empty += 1;
            }
            Finding::Missing => {
                self.totals.missing += 1;
                self.page(intended).missing += 1;
            }
            Finding::Mismatch => {
                self.totals.mismatched += 1;
                self.page(intended).mismatched += 1;
            }
        }
    }

    /// An operation went elsewhere than its policy wanted.
    pub(super) fn rerouted(&mut self, intended: u64) {
        self.totals.rerouted += 1;
        self.page(intended).rerouted += 1;
    }

    /// A connection was lost.
    pub(super) fn connection_lost(&mut self, garbage: bool) {
        self.totals.connections_lost += 1;
        self.totals.garbage += u64::from(garbage);
    }

    /// The totals, with what the caller counted where it is.
    pub(super) fn balance(&self, waiting: u64, in_flight: u64) -> Balance {
        Balance { waiting, in_flight, ..self.totals.clone() }
    }

    /// What happened since the last call.
    pub(super) fn recent(&mut self) -> Recent {
        std::mem::replace(&mut self.recent, Recent::new(self.coordinators))
    }

    /// A copy of every page that changed since the last call, by its number. No operation intended before
    /// `horizon_ns` will be scheduled any more. Pages to which nothing can be added are forgotten.
    pub(super) fn drain(&mut self, horizon_ns: u64) -> Vec<(u64, Page)> {
        let mut changed = Vec::new();
        let (epoch_ns, length_ns) = (self.epoch_ns, self.length_ns);
        self.pages.retain(|number, page| {
            let end_ns = epoch_ns.saturating_add((number + 1).saturating_mul(length_ns));
            let settled = page.open == 0 && end_ns <= horizon_ns;
            // Becoming settled is a change too.
            if page.changed || settled != page.settled {
                page.changed = false;
                page.settled = settled;
                changed.push((*number, page.clone()));
            }
            !(settled && page.awaited == 0)
        });
        changed
    }
}
