//! From the pages of all threads to the buckets that are handed out.

use std::collections::BTreeMap;

use super::{
    Statement,
    ledger::{Page, Sample, series_index},
};
use crate::{Bucket, LATE_START_NS, Outcome, Series, histogram};

/// Puts the newest pages of all threads together. It lives with the engine's owner, so the work of making
/// histograms is not done by the threads that measure.
pub(super) struct Merge {
    epoch_ns: u64,
    length_ns: u64,
    coordinators: Vec<String>,
    threads: usize,
    /// The newest page of every thread, by bucket number, as long as anything may be added.
    pages: BTreeMap<u64, Vec<Option<Page>>>,
}

impl Merge {
    pub(super) fn new(epoch_ns: u64, length_ns: u64, coordinators: Vec<String>, threads: usize) -> Self {
        Merge { epoch_ns, length_ns, coordinators, threads, pages: BTreeMap::new() }
    }

    /// Takes what every thread handed out, in the order of the threads, and makes the buckets that changed. All
    /// threads must have been asked with the same horizon.
    pub(super) fn take(&mut self, changed: Vec<Vec<(u64, Page)>>) -> Vec<Bucket> {
        let mut numbers = Vec::new();
        for (thread, pages) in changed.into_iter().enumerate() {
            for (number, page) in pages {
                self.pages.entry(number).or_insert_with(|| vec![None; self.threads])[thread] = Some(page);
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().filter_map(|number| self.bucket(number)).collect()
    }

    fn bucket(&mut self, number: u64) -> Option<Bucket> {
        let pages: Vec<&Page> = self.pages.get(&number)?.iter().flatten().collect();
        let start_ns = self.epoch_ns.saturating_add(number.saturating_mul(self.length_ns));
        let total = |count: fn(&Page) -> u64| pages.iter().map(|page| count(page)).sum::<u64>();
        let mut bucket = Bucket {
            start_ns,
            length_ns: self.length_ns,
            settled: pages.iter().all(|page| page.settled),
            scheduled: total(|page| page.scheduled),
            sent: total(|page| page.sent),
            never_sent: total(|page| page.never_sent),
            series: Vec::new(),
            lateness: histogram(),
            late_starts: 0,
            stale: total(|page| page.stale),
            empty: total(|page| page.empty),
            missing: total(|page| page.missing),
            mismatched: total(|page| page.mismatched),
            rerouted: total(|page| page.rerouted),
        };
        for late in pages.iter().flat_map(|page| &page.lateness) {
            let _ = bucket.lateness.record(*late);
            bucket.late_starts += u64::from(*late > LATE_START_NS);
        }
        for (index, name) in self.coordinators.iter().enumerate() {
            for statement in [Statement::Read, Statement::Write] {
                for outcome in Outcome::all() {
                    let place = series_index(index, statement, outcome);
                    let samples = pages.iter().flat_map(|page| &page.series[place]);
                    bucket.series.extend(series(statement, name, outcome, samples));
                }
            }
        }
        let over = bucket.settled && pages.iter().all(|page| page.awaited == 0);
        if over {
            self.pages.remove(&number);
        }
        Some(bucket)
    }
}

fn series<'a>(
    statement: Statement,
    coordinator: &str,
    outcome: Outcome,
    samples: impl Iterator<Item = &'a Sample>,
) -> Option<Series> {
    let mut samples = samples.peekable();
    samples.peek()?;
    let mut series = Series {
        statement: statement.name().to_owned(),
        coordinator: coordinator.to_owned(),
        outcome,
        count: 0,
        wait: histogram(),
        service: histogram(),
        response: histogram(),
    };
    for (wait, service) in samples {
        series.count += 1;
        let _ = series.wait.record(*wait);
        let _ = series.service.record(*service);
        let _ = series.response.record(wait + service);
    }
    Some(series)
}
