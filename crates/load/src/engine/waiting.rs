//! How a thread waits for what is next: no longer than until it is due, and no more often than necessary.

use std::cmp::Reverse;

use brownout_base::clock::monotonic_ns;
use brownout_machine::OwnWaits;

use super::{connection::Connection, worker::Worker};
use crate::{LoadError, sys};

/// How long answers may stay unread, see [`Worker::wait`]: half a millisecond, or longer if few come per connection or
/// if operations are held back that long.
const DEAF_NS: std::ops::RangeInclusive<u64> = 500_000..=1_100_000;
/// How long answers may stay unread if one comes per connection.
const DEAF_PER_CONNECTION_NS: u64 = 150_000;

/// An answer has the time at which it is taken from the driver, so its time does not tell that nobody was there to take
/// it. The thread looks this often, and says when it could not.
const LOOK_NS: u64 = 10_000_000;

/// When a wait was longer than this, it is asked when it was really over. Of a shorter one the error is less than that.
const LONG_WAIT_NS: u64 = 1_000_000;

/// When a thread that waited for something to read was woken.
///
/// The kernel's stamps do not always tell it. Of a byte stream they are those of the segments: one that arrived while another before
/// it was missing could not be read then, and its stamp is earlier than that by as long as it took to send the missing one again. But a
/// thread that waits is woken as soon as there is something to read, and goes on as soon as it has a processor; for how long it had
/// to wait for that, it knows. It does not know for how long it was stopped, so where no segment has ever come out of order, their stamps count.
#[derive(Debug, Default)]
pub(super) struct Roused {
    waits: Option<OwnWaits>,
    /// What it had waited at which time, both ns.
    known: Option<(u64, u64)>,
}

impl Roused {
    /// Of the calling thread.
    pub(super) fn of_this_thread() -> Roused {
        Roused { waits: OwnWaits::of_this_thread(), known: None }
    }

    /// Before a wait that begins now.
    fn before(&mut self, now_ns: u64) {
        if self.known.is_none_or(|(at_ns, _)| now_ns.saturating_sub(at_ns) >= LONG_WAIT_NS) {
            self.known = self.waits.as_ref().and_then(OwnWaits::ns).map(|waited_ns| (now_ns, waited_ns));
        }
    }

    /// After it, if it was long: when it was over at the earliest.
    fn after(&self, began_ns: u64, now_ns: u64) -> Option<u64> {
        let is_long = now_ns.saturating_sub(began_ns) >= LONG_WAIT_NS;
        let waited_ns = is_long.then(|| Some(self.waits.as_ref()?.ns()?.saturating_sub(self.known?.1))).flatten()?;
        Some(now_ns.saturating_sub(waited_ns).max(began_ns))
    }
}

impl Worker {
    /// Waits for events until `until`; returns a time by which everything that had arrived was reported.
    ///
    /// If the next operations of an open loop are due soon, the thread is not woken before: answers are read when it is
    /// awake anyway, which halves the wake-ups and saves a third of the CPU or more. The kernel has stamped them with
    /// their arrival times; where it was waited for them, see [`Roused`].
    ///
    /// The price: if several answers have arrived on one connection, all get the time of the last, so some times are
    /// too late by less than the wait. The mean error is λW²/6 for λ answers a second per connection, read every W
    /// seconds. W is chosen so that this is at most 25 µs, unless W is half a millisecond or operations are held back
    /// that long because their owner configured it.
    pub(super) fn wait(&mut self, until: u64) -> Result<u64, LoadError> {
        let now = monotonic_ns();
        if let Some(driven) = &mut self.driven {
            let until = until.min(now + LOOK_NS);
            driven.driver.wait(&mut self.epoll, until).map_err(LoadError::system("waiting for the driver"))?;
            let now = monotonic_ns();
            if self.unread_ns > 0 {
                self.ledger.idled(self.unread_ns + LOOK_NS..now);
            }
            return Ok(now);
        }
        let mut limit_ns = until.saturating_sub(now);
        let mut looked_ns = now;
        if limit_ns > 0 && limit_ns <= self.longest_deaf_ns() && self.may_be_deaf() {
            sys::sleep_until(until);
            (limit_ns, looked_ns) = (0, monotonic_ns());
        }
        let limit = (until < u64::MAX).then_some(limit_ns);
        let waits = limit != Some(0);
        if waits {
            self.roused.before(now);
        }
        self.epoll.wait(limit).map_err(LoadError::system("waiting for events"))?;
        let may_tell = waits && self.epoll.count() > 0 && !self.epoll.was_interrupted();
        self.roused_ns = if may_tell { self.roused.after(now, monotonic_ns()) } else { None };
        Ok(looked_ns)
    }

    /// As many answers come as operations are started: with k of them every W seconds on n connections, λ is k/nW, so
    /// λW²/6 ≤ 25 µs where W ≤ 150 µs × n/k.
    fn longest_deaf_ns(&self) -> u64 {
        let sparse_ns = DEAF_PER_CONNECTION_NS * self.connections.len() as u64 / self.last_starts.max(1) as u64;
        sparse_ns.max(self.coalesce_ns).clamp(*DEAF_NS.start(), *DEAF_NS.end())
    }

    /// Whether nothing waits for a connection or for room on one, and no answer could start anything for a while.
    fn may_be_deaf(&self) -> bool {
        self.driven.is_none()
            && !self.sequential
            && self.stopping.is_none()
            && self.flows.iter().any(|flow| !flow.is_idle())
            && self.flows.iter().all(|flow| flow.needs_no_answer_for(*DEAF_NS.end()))
            && self.unplaced.is_empty()
            && self.targets.iter().all(|target| target.queue.is_empty())
            && self.connections.iter().all(Connection::is_idle)
    }

    /// When something is due next.
    pub(super) fn next_ns(&self) -> u64 {
        let mut next = self.wheel.next_ns().min(self.stopping.unwrap_or(u64::MAX)).min(self.attention_ns);
        if let Some((at, _)) = self.pending.front() {
            next = next.min(*at);
        }
        if let Some(Reverse((at, _))) = self.rests.peek() {
            next = next.min(*at);
        }
        if let Some(watching) = &self.watching {
            next = next.min(watching.next_ns());
        }
        for flow in &self.flows {
            let (scheduled, rested) = flow.next_ns();
            next = next.min(scheduled.max(self.last_start_ns + self.coalesce_ns)).min(rested);
        }
        next
    }
}
