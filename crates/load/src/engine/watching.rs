//! The account of watches: how long after a put each watcher was told of it.
//!
//! Every put that etcd acknowledges has to be told to every watcher. That is accounted as an operation is: in the
//! bucket of the put's intended start, in time until the put's own deadline, or timed out, and late if it comes after
//! all. What was never acknowledged may be told or not, so it is accounted only if it is, in time.

use std::collections::VecDeque;

use super::ledger::{Entry, Ledger};
use crate::{Outcome, WatchedRange, etcd::message, late_patience_ns};

/// One watch.
#[derive(Debug)]
pub(super) struct Watcher {
    /// The connection that it is on, and that connection's coordinator.
    pub(super) connection: usize,
    coordinator: u16,
    /// The first revision that it has not been told of; 0: not known yet.
    next_revision: i64,
    /// The server has begun it, and nothing is to be heard of its end.
    pub(super) begun: bool,
}

/// A put that watchers are to be told of.
#[derive(Debug)]
struct Put {
    version: u64,
    intended: u64,
    sent: u64,
    deadline: u64,
    acknowledged: bool,
    timed_out: bool,
    /// The watchers that were not told yet, a bit for each.
    untold: u64,
}

impl Put {
    fn sample(&self, at: u64) -> (u64, u64) {
        let sent = self.sent.max(self.intended).min(at);
        (sent.saturating_sub(self.intended), at - sent)
    }
}

/// The watches of a thread, and the puts that they are to tell.
#[derive(Debug)]
pub(super) struct Watching {
    watched: WatchedRange,
    pub(super) watchers: Vec<Watcher>,
    /// In the order of their versions, which is that in which they were sent.
    puts: VecDeque<Put>,
    /// The version of the newest one that there ever was.
    newest: u64,
    /// The first so many of them have timed out, or been told to all.
    settled: usize,
    /// Index of the account's name for events.
    name: u16,
    patience_ns: u64,
}

impl Watching {
    /// The watches of `watched`: on these connections and their coordinators, in turn.
    pub(super) fn new(watched: WatchedRange, connections: &[(usize, usize)], name: u16, timeout_ns: u64) -> Self {
        let places = connections.iter().cycle().take(watched.watchers as usize);
        let watcher = |(connection, coordinator): &(usize, usize)| Watcher {
            connection: *connection,
            coordinator: *coordinator as u16,
            next_revision: 0,
            begun: false,
        };
        let watchers = places.map(watcher).collect();
        let patience_ns = late_patience_ns(timeout_ns);
        Watching { watched, watchers, puts: VecDeque::new(), newest: 0, settled: 0, name, patience_ns }
    }

    /// Which watchers are on this connection.
    pub(super) fn on(&self, connection: usize) -> Vec<usize> {
        (0..self.watchers.len()).filter(|watcher| self.watchers[*watcher].connection == connection).collect()
    }

    /// Whether all watches on this connection have begun.
    pub(super) fn have_begun(&self, connection: usize) -> bool {
        self.watchers.iter().filter(|watcher| watcher.connection == connection).all(|watcher| watcher.begun)
    }

    /// What begins a watch where it has ended, or now if it is the first time.
    pub(super) fn request(&self, watcher: usize) -> message::WatchRequest {
        let WatchedRange { from, end, .. } = &self.watched;
        let create = message::WatchCreateRequest {
            key: from.clone().into(),
            end: end.clone().into(),
            start_revision: self.watchers[watcher].next_revision,
            fragment: true,
        };
        message::WatchRequest { create: Some(create) }
    }

    /// The server has begun it, when its store was at this revision.
    pub(super) fn begun(&mut self, watcher: usize, revision: i64) {
        let watcher = &mut self.watchers[watcher];
        watcher.begun = true;
        if watcher.next_revision == 0 {
            watcher.next_revision = revision + 1;
        }
    }

    /// It was told of everything below this revision, or cannot be told of it any more.
    pub(super) fn knows(&mut self, watcher: usize, revision: i64) {
        let watcher = &mut self.watchers[watcher];
        watcher.next_revision = watcher.next_revision.max(revision);
    }

    /// The watches on this connection have ended with it.
    pub(super) fn lost(&mut self, connection: usize) {
        self.watchers.iter_mut().filter(|watcher| watcher.connection == connection).for_each(|one| one.begun = false);
    }

    /// A put was given to a connection. Of several attempts the first one counts.
    pub(super) fn sent(&mut self, version: u64, intended: u64, deadline: u64, now: u64, ledger: &mut Ledger) {
        if version <= self.newest {
            return;
        }
        self.newest = version;
        let count = self.watchers.len() as u64;
        let untold = u64::MAX.checked_shr(64 - count as u32).unwrap_or(0);
        let (acknowledged, timed_out) = (false, false);
        self.puts.push_back(Put { version, intended, sent: now, deadline, acknowledged, timed_out, untold });
        ledger.expect_events(intended, count);
    }

    fn find(&mut self, version: u64) -> Option<usize> {
        self.puts.binary_search_by_key(&version, |put| put.version).ok()
    }

    /// The put was acknowledged, so all watchers have to be told.
    pub(super) fn acknowledged(&mut self, version: u64) {
        if let Some(place) = self.find(version)
            && !self.puts[place].timed_out
        {
            self.puts[place].acknowledged = true;
        }
    }

    /// A watcher was told at `at`.
    pub(super) fn told(&mut self, watcher: usize, version: u64, at: u64, ledger: &mut Ledger) {
        let Some(place) = self.find(version) else { return };
        let coordinator = self.watchers[watcher].coordinator;
        if at > self.puts[place].deadline {
            self.time_out(place, ledger);
        }
        let put = &mut self.puts[place];
        let bit = 1 << watcher;
        if put.untold & bit == 0 {
            return;
        }
        put.untold &= !bit;
        let entry = Entry { intended: put.intended, coordinator, name: self.name };
        if put.timed_out {
            ledger.late_event(entry, put.sample(at));
        } else {
            ledger.event(entry, Outcome::Ok, put.sample(at), false);
        }
    }

    /// The time of a put is up: who was not told by now will have been told late, if the put was acknowledged.
    fn time_out(&mut self, place: usize, ledger: &mut Ledger) {
        let put = &mut self.puts[place];
        if std::mem::replace(&mut put.timed_out, true) {
            return;
        }
        if !put.acknowledged {
            ledger.forget_events(put.intended, u64::from(put.untold.count_ones()), 0);
            put.untold = 0;
            return;
        }
        let sample = put.sample(put.deadline);
        for watcher in (0..self.watchers.len()).filter(|watcher| put.untold & (1 << watcher) != 0) {
            let coordinator = self.watchers[watcher].coordinator;
            let entry = Entry { intended: put.intended, coordinator, name: self.name };
            ledger.event(entry, Outcome::TimedOut, sample, true);
        }
    }

    /// Ends what is overdue at `now`.
    pub(super) fn expire(&mut self, now: u64, ledger: &mut Ledger) {
        while let Some(put) = self.puts.get(self.settled)
            && (put.timed_out || put.untold == 0 || put.deadline < now)
        {
            if put.untold != 0 {
                self.time_out(self.settled, ledger);
            }
            self.settled += 1;
        }
        while self.settled > 0
            && let Some(put) = self.puts.front()
            && (put.untold == 0 || put.deadline.saturating_add(self.patience_ns) < now)
        {
            ledger.forget_events(put.intended, 0, u64::from(put.untold.count_ones()));
            self.puts.pop_front();
            self.settled -= 1;
        }
    }

    /// When something is overdue next.
    pub(super) fn next_ns(&self) -> u64 {
        self.puts.get(self.settled).map_or(u64::MAX, |put| put.deadline.saturating_add(1))
    }

    /// Whether nobody has to be told of anything that is not overdue.
    pub(super) fn is_idle(&self) -> bool {
        self.puts.range(self.settled..).all(|put| put.untold == 0 || put.timed_out || !put.acknowledged)
    }

    /// The run ends: nothing more is waited for.
    pub(super) fn close(&mut self, ledger: &mut Ledger) {
        for put in self.puts.drain(..) {
            let untold = u64::from(put.untold.count_ones());
            let (open, awaited) = if put.timed_out { (0, untold) } else { (untold, 0) };
            ledger.forget_events(put.intended, open, awaited);
        }
        self.settled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{super::page::Shape, *};
    use crate::Balance;

    const SECOND: u64 = 1_000_000_000;

    fn watching(watchers: u32) -> (Watching, Ledger) {
        let watched = WatchedRange { from: b"a".to_vec(), end: b"b".to_vec(), watchers };
        let shape = Shape { coordinators: 2, names: 2, late_ns: 1_000_000 };
        (Watching::new(watched, &[(0, 0), (3, 1)], 1, SECOND), Ledger::new(0, SECOND, shape))
    }

    fn totals(ledger: &Ledger) -> (u64, u64, u64) {
        let Balance { watch_events, watch_timed_out, watch_late, .. } = ledger.balance(0, 0, 0);
        (watch_events, watch_timed_out, watch_late)
    }

    #[test]
    fn watchers_are_spread_over_the_connections_and_begin_where_they_have_ended() {
        let (mut watching, _) = watching(3);
        assert_eq!((watching.on(0), watching.on(3), watching.on(1)), (vec![0, 2], vec![1], vec![]));
        assert_eq!(watching.request(0).create.map(|create| create.start_revision), Some(0));
        watching.begun(0, 41);
        assert!(!watching.have_begun(0) && !watching.have_begun(3) && watching.have_begun(1));
        watching.begun(2, 41);
        assert!(watching.have_begun(0));
        watching.knows(0, 50);
        watching.knows(0, 45);
        watching.lost(0);
        assert!(!watching.have_begun(0));
        watching.begun(0, 60);
        let start = watching.request(0).create.map(|create| create.start_revision);
        assert_eq!(start, Some(50), "what came between is told");
    }

    #[test]
    fn each_watcher_is_told_once_however_the_acknowledgement_comes() {
        let (mut watching, mut ledger) = watching(2);
        watching.sent(7, 100, SECOND + 100, 300, &mut ledger);
        watching.sent(7, 100, SECOND + 100, 900, &mut ledger);
        watching.told(1, 7, 500, &mut ledger);
        watching.told(1, 7, 600, &mut ledger);
        watching.acknowledged(7);
        assert!(!watching.is_idle());
        watching.told(0, 7, 1_100, &mut ledger);
        watching.told(0, 8, 1_200, &mut ledger);
        assert!(watching.is_idle());
        watching.expire(SECOND, &mut ledger);
        assert!(watching.puts.is_empty());
        assert_eq!(totals(&ledger), (2, 0, 0));
        let parts = ledger.drain(2 * SECOND);
        assert!(parts[0].1.over, "the account is closed");
        let times: Vec<_> = parts[0].1.cells.iter().map(|cell| (cell.coordinator, cell.samples.count())).collect();
        assert_eq!(times, [(1, 1), (0, 1)]);
        assert_eq!(parts[0].1.counts.scheduled, 0, "events are no operations");
    }

    #[test]
    fn another_attempt_of_a_put_that_all_were_told_of_is_no_other_put() {
        let (mut watching, mut ledger) = watching(1);
        watching.sent(7, 100, SECOND + 100, 300, &mut ledger);
        watching.told(0, 7, 400, &mut ledger);
        watching.expire(500, &mut ledger);
        assert!(watching.puts.is_empty());
        watching.sent(7, 100, SECOND + 100, 600, &mut ledger);
        watching.acknowledged(7);
        assert!(watching.puts.is_empty() && watching.is_idle());
        watching.expire(SECOND + 200, &mut ledger);
        assert_eq!(totals(&ledger), (1, 0, 0));
        assert!(ledger.drain(2 * SECOND)[0].1.over);
    }

    #[test]
    fn who_is_not_told_in_time_has_timed_out_and_may_be_told_late() {
        let (mut watching, mut ledger) = watching(2);
        watching.sent(7, 100, SECOND, 300, &mut ledger);
        watching.sent(8, 200, SECOND + 100, 300, &mut ledger);
        watching.acknowledged(7);
        watching.told(0, 7, 400, &mut ledger);
        // It comes before the deadline was looked at, but after it.
        watching.told(1, 7, SECOND + 50, &mut ledger);
        assert_eq!(totals(&ledger), (1, 1, 1));
        watching.told(0, 8, SECOND + 60, &mut ledger);
        watching.expire(SECOND + 200, &mut ledger);
        assert_eq!(totals(&ledger), (2, 1, 1), "what was never acknowledged need not be told");
        assert!(watching.is_idle());
        assert!(ledger.drain(2 * SECOND)[0].1.over);
    }

    #[test]
    fn what_is_never_told_is_waited_for_as_long_as_a_late_answer() {
        let (mut watching, mut ledger) = watching(1);
        watching.sent(7, 100, SECOND, 300, &mut ledger);
        watching.acknowledged(7);
        assert_eq!(watching.next_ns(), SECOND + 1);
        watching.expire(SECOND + 1, &mut ledger);
        assert_eq!((totals(&ledger), watching.next_ns()), ((0, 1, 0), u64::MAX));
        let parts = ledger.drain(2 * SECOND);
        assert!(parts[0].1.settled && !parts[0].1.over);
        watching.expire(SECOND + late_patience_ns(SECOND) + 1, &mut ledger);
        assert!(ledger.drain(3 * SECOND)[0].1.over);
        assert!(watching.puts.is_empty());
    }

    #[test]
    fn the_end_of_a_run_closes_the_account_whatever_is_open() {
        let (mut watching, mut ledger) = watching(2);
        watching.sent(7, 100, SECOND, 300, &mut ledger);
        watching.sent(8, 200, 2 * SECOND, 300, &mut ledger);
        watching.acknowledged(7);
        watching.expire(SECOND + 1, &mut ledger);
        watching.close(&mut ledger);
        let parts = ledger.drain(u64::MAX);
        assert!(parts.iter().all(|(_, part)| part.over), "{parts:?}");
    }
}
