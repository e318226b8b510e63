//! The account of one thread: the outcome of every operation, by the bucket of its intended start.

use std::ops::Range;

use hdrhistogram::Histogram;

use super::{
    page::{Page, Part, Shape},
    samples::Sample,
};
use crate::{Balance, ErrorClass, Finding, Meaning, Outcome, histogram, schedule::Limiter};

/// Counters since the last call, by time of completion.
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

/// What an entry is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) intended: u64,
    pub(super) coordinator: u16,
    /// Index of the operation's name.
    pub(super) name: u16,
}

pub(super) struct Ledger {
    epoch_ns: u64,
    length_ns: u64,
    shape: Shape,
    /// In order of their numbers.
    pages: Vec<Page>,
    /// The page used last, because entries for the same page come in bursts.
    last: usize,
    /// Totals, except operations that are waiting or in flight: those are counted where they are kept.
    totals: Balance,
    recent: Recent,
    /// The last period in which the client stood still, ns; the pages have recorded it.
    stood_still: Range<u64>,
    /// Pages that end before this are no longer created.
    drained_ns: u64,
}

impl Ledger {
    pub(super) fn new(epoch_ns: u64, length_ns: u64, shape: Shape) -> Self {
        let recent = Recent::new(shape.coordinators);
        Ledger {
            epoch_ns,
            length_ns,
            shape,
            pages: Vec::new(),
            last: 0,
            totals: Balance::default(),
            recent,
            stood_still: 0..0,
            drained_ns: 0,
        }
    }

    #[inline]
    fn page(&mut self, intended: u64) -> &mut Page {
        if !self.pages.get(self.last).is_some_and(|page| page.covers(intended)) {
            self.turn_to(intended);
        }
        let page = &mut self.pages[self.last];
        page.changed = true;
        page
    }

    /// Finds the page of an intended start, or creates it.
    #[cold]
    fn turn_to(&mut self, intended: u64) {
        let number = intended.saturating_sub(self.epoch_ns) / self.length_ns;
        self.last = self.pages.binary_search_by_key(&number, |page| page.number).unwrap_or_else(|place| {
            // Operations intended before the epoch count in the first bucket.
            let start = if number == 0 { 0 } else { self.epoch_ns + number * self.length_ns };
            let end = self.epoch_ns.saturating_add((number + 1).saturating_mul(self.length_ns));
            self.pages.insert(place, Page::new(number, start..end, self.shape));
            place
        });
    }

    /// Whether the page of an intended start still exists. A page that was handed out for the last time must not be
    /// created anew, or its next part would replace the complete one.
    fn keeps(&self, intended: u64) -> bool {
        self.pages.iter().any(|page| page.covers(intended))
    }

    /// An operation's intended start has come.
    pub(super) fn scheduled(&mut self, intended: u64) {
        self.totals.scheduled += 1;
        self.recent.offered += 1;
        let page = self.page(intended);
        page.counts.scheduled += 1;
        page.open += 1;
    }

    /// It was given to a connection.
    pub(super) fn sent(&mut self, intended: u64) {
        self.totals.sent += 1;
        self.page(intended).counts.sent += 1;
    }

    /// A request of it was given to a connection.
    pub(super) fn request(&mut self, intended: u64, name: u16) {
        self.page(intended).work(name).requests += 1;
    }

    /// It was given to the kernel that long after it could have been, with nothing but this program in between.
    pub(super) fn lateness(&mut self, intended: u64, owed: Range<u64>) {
        self.page(intended).lateness(owed.end - owed.start);
        self.idled(owed);
    }

    /// All that time the client had something to do and did not do it. If that is long, not only an operation was late
    /// but the client itself, also in buckets in which nothing was due that it could have sent.
    pub(super) fn idled(&mut self, owing: Range<u64>) {
        if owing.end.saturating_sub(owing.start) > self.shape.late_ns {
            self.stood_still(owing.start, owing.end);
        }
    }

    fn stood_still(&mut self, from: u64, to: u64) {
        let known = self.stood_still.clone();
        if from >= known.start && to <= known.end {
            return;
        }
        let touches = from <= known.end && to >= known.start;
        self.stood_still = if touches { from.min(known.start)..to.max(known.end) } else { from..to };
        // Only what is new on either side: thousands of operations may report the same pause.
        let news = if touches { [from..known.start, known.end..to] } else { [from..to, 0..0] };
        for Range { start, end } in news {
            let mut at = start.max(self.epoch_ns);
            while at < end {
                let page_start = at - (at - self.epoch_ns) % self.length_ns;
                let page_end = page_start + self.length_ns;
                if page_end > self.drained_ns || self.keeps(at) {
                    self.page(at).stood_still(page_start..page_end, start, end);
                }
                at = page_end;
            }
        }
    }

    /// It was given up before it found a connection.
    pub(super) fn never_sent(&mut self, intended: u64, name: u16) {
        self.totals.never_sent += 1;
        self.recent.never_sent += 1;
        let page = self.page(intended);
        page.counts.never_sent += 1;
        page.work(name).never_sent += 1;
        page.open -= 1;
    }

    /// It ended. If it has timed out and is `awaited`, [`Ledger::late`] or [`Ledger::never_answered`] follows.
    pub(super) fn ended(&mut self, entry: Entry, outcome: Outcome, sample: Sample, awaited: bool) {
        let response = sample.0 + sample.1;
        match outcome {
            Outcome::Ok => {
                self.totals.answered_ok += 1;
                self.recent.delivered += 1;
                let _ = self.recent.response[usize::from(entry.coordinator)].record(response);
            }
            Outcome::TimedOut => {
                self.totals.timed_out += 1;
                self.recent.timed_out += 1;
                let _ = self.recent.response[usize::from(entry.coordinator)].record(response);
            }
            Outcome::Failed(class) => self.failed(class),
            Outcome::Late => {}
        }
        let page = self.page(entry.intended);
        page.open -= 1;
        page.awaited += u64::from(awaited);
        page.record(entry.coordinator, entry.name, outcome, sample);
    }

    fn failed(&mut self, class: ErrorClass) {
        self.totals.failed += 1;
        self.recent.failed += 1;
        *self.totals.failures.entry(class).or_default() += 1;
    }

    /// A timed-out operation was answered after all.
    pub(super) fn late(&mut self, entry: Entry, sample: Sample) {
        self.totals.late += 1;
        let page = self.page(entry.intended);
        page.awaited -= 1;
        page.record(entry.coordinator, entry.name, Outcome::Late, sample);
    }

    /// The connection of a timed-out operation is gone: its answer cannot come any more.
    pub(super) fn never_answered(&mut self, intended: u64) {
        self.page(intended).awaited -= 1;
    }

    /// A put was sent that `count` watchers are to be told of. The account of its bucket stays open for that.
    pub(super) fn expect_events(&mut self, intended: u64, count: u64) {
        self.page(intended).open += count;
    }

    /// A watcher was told in time ([`Outcome::Ok`]), or was not. If it is `awaited`, [`Ledger::late_event`] or
    /// [`Ledger::forget_events`] follows.
    pub(super) fn event(&mut self, entry: Entry, outcome: Outcome, sample: Sample, awaited: bool) {
        *match outcome {
            Outcome::Ok => &mut self.totals.watch_events,
            _ => &mut self.totals.watch_timed_out,
        } += 1;
        let page = self.page(entry.intended);
        page.open -= 1;
        page.awaited += u64::from(awaited);
        page.record(entry.coordinator, entry.name, outcome, sample);
    }

    /// A watcher was told after all.
    pub(super) fn late_event(&mut self, entry: Entry, sample: Sample) {
        self.totals.watch_late += 1;
        let page = self.page(entry.intended);
        page.awaited -= 1;
        page.record(entry.coordinator, entry.name, Outcome::Late, sample);
    }

    /// So many watchers need not be told any more, and so many will not be told late any more.
    pub(super) fn forget_events(&mut self, intended: u64, open: u64, awaited: u64) {
        // The bucket of a put that all were told of may be gone.
        if open + awaited > 0 {
            let page = self.page(intended);
            page.open -= open;
            page.awaited -= awaited;
        }
    }

    /// Records a finding of an answer, whatever became of its operation, unless the account of its bucket is closed.
    pub(super) fn found(&mut self, intended: u64, finding: Finding) {
        if !self.keeps(intended) {
            return;
        }
        let total = &mut self.totals;
        match finding {
            Finding::Stale => total.stale += 1,
            Finding::Empty => total.empty += 1,
            Finding::Missing => total.missing += 1,
            Finding::Mismatch => total.mismatched += 1,
            Finding::Seen => total.looked_for += 1,
            Finding::Lost => {
                total.stale += 1;
                total.looked_for += 1;
                total.lost += 1;
            }
        }
        let counts = &mut self.page(intended).counts;
        match finding {
            Finding::Stale => counts.stale += 1,
            Finding::Empty => counts.empty += 1,
            Finding::Missing => counts.missing += 1,
            Finding::Mismatch => counts.mismatched += 1,
            Finding::Seen => counts.looked_for += 1,
            Finding::Lost => {
                counts.stale += 1;
                counts.looked_for += 1;
                counts.lost += 1;
            }
        }
    }

    /// Counts what an answer in time has read or written, `service` after the request was sent.
    pub(super) fn answered(&mut self, intended: u64, name: u16, meaning: &Meaning, service: u64) {
        let work = self.page(intended).work(name);
        work.rows += u64::from(meaning.rows);
        work.partitions += u64::from(meaning.partitions);
        work.not_applied += u64::from(meaning.not_applied);
        if meaning.page {
            work.pages.push(service);
        }
    }

    /// An attempt has ended, or was given up, `service` after it was sent.
    pub(super) fn attempt(&mut self, intended: u64, name: u16, outcome: Outcome, service: u64) {
        if outcome == Outcome::Late && !self.keeps(intended) {
            return;
        }
        self.page(intended).work(name).attempts.entry(outcome).or_default().push(service);
    }

    /// An operation was sent to another coordinator than its policy chose.
    pub(super) fn rerouted(&mut self, intended: u64) {
        self.totals.rerouted += 1;
        self.page(intended).counts.rerouted += 1;
    }

    /// What was due in a limited loop when its pace ended at `until`, and had found no user.
    pub(super) fn withheld(&mut self, limiter: &Limiter, until: u64) {
        let partitions = limiter.overdue(until);
        self.totals.withheld += partitions;
        let (mut at, mut counted) = (limiter.next_ns(), 0);
        while counted < limiter.operations(partitions) && at < until {
            let page_end = self.epoch_ns + (at.saturating_sub(self.epoch_ns) / self.length_ns + 1) * self.length_ns;
            let end = page_end.min(until);
            let due = limiter.operations(limiter.overdue(end));
            if due > counted {
                self.page(at).counts.withheld += due - counted;
                counted = due;
            }
            at = end;
        }
    }

    /// A connection was lost.
    pub(super) fn connection_lost(&mut self, garbage: bool) {
        self.totals.connections_lost += 1;
        self.totals.garbage += u64::from(garbage);
    }

    /// The totals, with what the caller has counted elsewhere.
    pub(super) fn balance(&self, waiting: u64, in_flight: u64, withheld: u64) -> Balance {
        let totals = self.totals.clone();
        Balance { waiting, in_flight, withheld: totals.withheld + withheld, ..totals }
    }

    /// What happened since the last call.
    pub(super) fn recent(&mut self) -> Recent {
        std::mem::replace(&mut self.recent, Recent::new(self.shape.coordinators))
    }

    /// What was added to every page since the last call, by page number. No operation intended before `horizon_ns` will
    /// be scheduled any more. Pages to which nothing more can be added are dropped.
    pub(super) fn drain(&mut self, horizon_ns: u64) -> Vec<(u64, Part)> {
        let mut parts = Vec::new();
        self.drained_ns = self.drained_ns.max(horizon_ns);
        self.last = usize::MAX;
        self.pages.retain_mut(|page| {
            let settled = page.open == 0 && page.end_ns() <= horizon_ns;
            // Becoming settled is a change too.
            if page.changed || settled != page.settled {
                page.changed = false;
                page.settled = settled;
                parts.push((page.number, page.take()));
            }
            !(settled && page.awaited == 0)
        });
        parts
    }
}

#[cfg(test)]
mod tests {
    use brownout_units::Rate;

    use super::*;

    #[test]
    fn what_found_no_user_is_in_the_buckets_in_which_it_was_due() {
        let mut ledger = Ledger::new(1_000, 100, Shape { coordinators: 1, names: 1, late_ns: 1 });
        // One partition each 10 ns from 1,000 on; the first operation has 5, and so would the others.
        let mut limiter = Limiter::new(1_000, Rate::per_second(1e8).unwrap(), 0, 1);
        limiter.take(5);
        ledger.withheld(&limiter, 1_250);
        assert_eq!(ledger.balance(0, 0, 0).withheld, 20);
        let parts = ledger.drain(2_000);
        let withheld: Vec<(u64, u64)> = parts.iter().map(|(number, part)| (*number, part.counts.withheld)).collect();
        assert_eq!(withheld, [(0, 1), (1, 2), (2, 1)]);
    }

    #[test]
    fn what_is_heard_after_a_page_was_handed_out_for_the_last_time_does_not_begin_it_anew() {
        let mut ledger = Ledger::new(1_000, 100, Shape { coordinators: 1, names: 1, late_ns: 1 });
        let entry = |intended| Entry { intended, coordinator: 0, name: 0 };
        for intended in [1_010, 1_020] {
            ledger.scheduled(intended);
            ledger.sent(intended);
        }
        ledger.ended(entry(1_010), Outcome::Ok, (1, 2), false);
        ledger.ended(entry(1_020), Outcome::TimedOut, (1, 49), true);
        let parts = ledger.drain(1_100);
        assert_eq!(parts.len(), 1);
        assert!(parts[0].1.settled && !parts[0].1.over, "a late answer may come");
        assert!(ledger.drain(1_100).is_empty(), "nothing has changed");

        ledger.found(1_020, Finding::Stale);
        ledger.late(entry(1_020), (1, 90));
        let parts = ledger.drain(1_200);
        assert!(parts[0].1.over && parts[0].1.counts.stale == 1 && parts[0].1.cells.len() == 1);

        ledger.found(1_010, Finding::Mismatch);
        ledger.attempt(1_010, 0, Outcome::Late, 7);
        assert!(ledger.drain(u64::MAX).is_empty());
        assert_eq!((ledger.balance(0, 0, 0).mismatched, ledger.balance(0, 0, 0).stale), (0, 1));
    }

    #[test]
    fn a_lost_write_was_looked_for_and_its_read_is_stale() {
        let mut ledger = Ledger::new(1_000, 100, Shape { coordinators: 1, names: 1, late_ns: 1 });
        ledger.scheduled(1_010);
        ledger.found(1_010, Finding::Seen);
        ledger.found(1_010, Finding::Lost);
        let balance = ledger.balance(0, 0, 0);
        assert_eq!((balance.looked_for, balance.lost, balance.stale), (2, 1, 1));
        let parts = ledger.drain(1_200);
        let counts = &parts[0].1.counts;
        assert_eq!((counts.looked_for, counts.lost, counts.stale), (2, 1, 1));
    }

    #[test]
    fn one_operation_shows_how_long_the_client_stood_still_whoever_else_was_due() {
        const SECOND: u64 = 1_000_000_000;
        let shape = Shape { coordinators: 1, names: 1, late_ns: 1_000_000 };
        let mut ledger = Ledger::new(SECOND, SECOND, shape);
        // The operations that show the pause come in no order, and their delays do not add up.
        for intended in [4 * SECOND, 3 * SECOND + SECOND / 2, 7 * SECOND] {
            ledger.scheduled(intended);
            ledger.lateness(intended, intended..9 * SECOND);
        }
        let still = |parts: Vec<(u64, Part)>| -> Vec<(u64, u64)> {
            parts.iter().map(|(number, part)| (*number, part.stood_still.of_length(SECOND))).collect()
        };
        let half = SECOND / 2;
        let expected = vec![(2, half), (3, SECOND), (4, SECOND), (5, SECOND), (6, SECOND), (7, SECOND)];
        assert_eq!(still(ledger.drain(5 * SECOND)), expected);
        // What was handed out for the last time does not begin anew: nobody knows of bucket 1.
        ledger.lateness(7 * SECOND, 7 * SECOND..11 * SECOND);
        ledger.stood_still(2 * SECOND, 5 * SECOND);
        let later = still(ledger.drain(5 * SECOND));
        assert_eq!(later.iter().map(|(number, _)| *number).collect::<Vec<_>>(), vec![2, 6, 8, 9]);
    }

    #[test]
    fn in_the_first_bucket_too_a_client_stands_still_for_as_long_as_it_does() {
        const SECOND: u64 = 1_000_000_000;
        // A machine that is up for a day, and one bucket of 30 s for all of the run.
        let (epoch, length) = (86_400 * SECOND, 30 * SECOND);
        let mut ledger = Ledger::new(epoch, length, Shape { coordinators: 1, names: 1, late_ns: 1_000_000 });
        let intended = epoch + 7 * SECOND + SECOND / 2;
        ledger.scheduled(intended);
        ledger.lateness(intended, intended..intended + 15 * SECOND);
        let parts = ledger.drain(u64::MAX);
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].0, parts[0].1.stood_still.of_length(length)), (0, 15 * SECOND));
    }

    #[test]
    fn a_start_is_late_beyond_a_millisecond_and_beyond_two_ticks() {
        for (tick_ms, late) in [(0, 2), (1, 1), (10, 0)] {
            let late_ns = crate::account::late_start_ns(std::time::Duration::from_millis(tick_ms));
            let mut ledger = Ledger::new(0, 1_000_000_000, Shape { coordinators: 1, names: 1, late_ns });
            for lateness in [900_000, 1_500_000, 2_500_000] {
                ledger.scheduled(5);
                ledger.lateness(5, 5..5 + lateness);
            }
            let parts = ledger.drain(1_000);
            assert_eq!(parts[0].1.counts.late_starts, late, "with a tick of {tick_ms} ms");
        }
    }
}
