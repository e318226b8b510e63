//! Requests that wait: until when, and what ends their wait early.
//!
//! One thread looks at the clock; whoever takes a request out of here, by whatever way, is the only one to answer it.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use brownout_base::clock::monotonic_ns;

use crate::decision::Decision;

/// After this, nothing waits any more because of a fault that was healed.
pub(crate) const HEALED_WITHIN: Duration = Duration::from_secs(1);
/// How many interrupts are remembered of requests that are not here (yet).
const REMEMBERED: usize = 1024;
/// How often an interrupted caller is checked for having been killed.
const WATCH: Duration = Duration::from_millis(10);

/// A request that waits.
#[derive(Debug)]
pub(crate) struct DelayedRequest {
    /// Its number, by which it is answered.
    pub(crate) unique: u64,
    /// The thread that waits for the answer, as the kernel numbers it for this disk; 0 if there is none.
    pub(crate) caller: u32,
    /// When it came.
    pub(crate) received_ns: u64,
    /// The request, as it came.
    pub(crate) bytes: Vec<u8>,
    /// What was decided about it.
    pub(crate) decision: Decision,
}

/// The requests that wait.
#[derive(Default)]
pub(crate) struct DelayQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By their numbers.
    waiting: HashMap<u64, Waiting>,
    /// (due, unique), the next first.
    order: BTreeSet<(u64, u64)>,
    /// Requests whose callers got a signal that need not have killed them.
    watched: Vec<u64>,
    /// Interrupts that came before their request was put here.
    early: VecDeque<u64>,
    /// Faults that were healed, and when: a request may have been decided about before, and be put here after.
    healed: HashMap<u64, u64>,
    ended: bool,
}

struct Waiting {
    request: DelayedRequest,
    due_ns: u64,
}

/// A request whose wait has ended, and why.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Its time has come: carry it out.
    Due(DelayedRequest),
    /// Its caller was killed and will never look at the answer: give it up.
    Killed(DelayedRequest),
}

impl Waiting {
    /// It need not wait any more for the faults of which `healed_ns` knows when they were healed, or not for long after
    /// that. Returns whether that changed it.
    fn shorten(&mut self, healed_ns: impl Fn(u64) -> Option<u64>) -> bool {
        let mut last_ns: Option<u64> = None;
        self.request.decision.waits.retain(|(fault, _)| {
            let at_ns = healed_ns(*fault);
            last_ns = last_ns.max(at_ns);
            at_ns.is_none()
        });
        let Some(last_ns) = last_ns else { return false };
        let latest_ns = last_ns.saturating_add(HEALED_WITHIN.as_nanos() as u64);
        let by_others_ns = self.request.received_ns.saturating_add(self.request.decision.delay_ns());
        self.due_ns = self.due_ns.min(latest_ns.max(by_others_ns));
        true
    }
}

impl State {
    fn take(&mut self, unique: u64) -> Option<DelayedRequest> {
        let Waiting { request, due_ns } = self.waiting.remove(&unique)?;
        self.order.remove(&(due_ns, unique));
        Some(request)
    }

    /// Those that still wait of which the callers are watched, with the callers.
    fn watched_callers(&mut self) -> Vec<(u64, u32)> {
        let State { waiting, watched, .. } = self;
        watched.retain(|unique| waiting.contains_key(unique));
        watched.iter().filter_map(|unique| Some((*unique, waiting.get(unique)?.request.caller))).collect()
    }
}

impl DelayQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.state().waiting.len()
    }

    /// Lets `request` wait as was decided; gives it back when nobody would ever take it out.
    pub(crate) fn push(&self, request: DelayedRequest) -> Result<(), DelayedRequest> {
        let mut state = self.state();
        if state.ended {
            return Err(request);
        }
        let unique = request.unique;
        let due_ns = request.received_ns.saturating_add(request.decision.delay_ns());
        if let Some(at) = state.early.iter().position(|early| *early == unique) {
            state.early.remove(at);
            state.watched.push(unique);
        }
        let mut waiting = Waiting { request, due_ns };
        // Not from now: what comes long after a healing (a sync, for pages written before it) does not wait for it at all.
        waiting.shorten(|fault| state.healed.get(&fault).copied());
        state.order.insert((waiting.due_ns, unique));
        state.waiting.insert(unique, waiting);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// The caller of `unique` got a signal. Unless it was killed this changes nothing, as on a real disk, whose waits no
    /// signal but a fatal one cuts short; but the kernel says so only once, so the caller is watched from now on.
    pub(crate) fn interrupt(&self, unique: u64) {
        let mut state = self.state();
        if state.waiting.contains_key(&unique) {
            state.watched.push(unique);
        } else {
            // Another thread may be about to put it here. Numbers are never used again, so what stays here harms nobody.
            if state.early.len() == REMEMBERED {
                state.early.pop_front();
            }
            state.early.push_back(unique);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A fault was healed at `now_ns`: nothing waits for it longer than [`HEALED_WITHIN`].
    pub(crate) fn heal(&self, fault: u64, now_ns: u64) {
        let mut state = self.state();
        state.healed.insert(fault, now_ns);
        let State { waiting, order, .. } = &mut *state;
        for (unique, one) in waiting {
            let before_ns = one.due_ns;
            if one.shorten(|id| (id == fault).then_some(now_ns)) {
                order.remove(&(before_ns, *unique));
                order.insert((one.due_ns, *unique));
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Whether that fault was healed.
    pub(crate) fn is_healed(&self, fault: u64) -> bool {
        self.state().healed.contains_key(&fault)
    }

    /// No more requests are served.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.waiting.clear();
        state.order.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Takes out the next request whose wait ends, once it does; `None` once the disk has ended. `killed` tells whether a caller was; it may take its
    /// time, since nobody waits for it meanwhile.
    pub(crate) fn pop(&self, killed: impl Fn(u32) -> bool) -> Option<Ended> {
        let mut state = self.state();
        let mut look_ns = 0;
        loop {
            if state.ended {
                return None;
            }
            let now_ns = monotonic_ns();
            let first = state.order.first().copied();
            if let Some((due_ns, unique)) = first
                && due_ns <= now_ns
                && let Some(request) = state.take(unique)
            {
                return Some(Ended::Due(request));
            }
            let watched = state.watched_callers();
            if !watched.is_empty() && look_ns <= now_ns {
                drop(state);
                let dead: Vec<u64> = watched.into_iter().filter(|(_, caller)| killed(*caller)).map(|it| it.0).collect();
                state = self.state();
                // Meanwhile it may have become due and been taken out.
                if let Some(request) = dead.into_iter().find_map(|unique| state.take(unique)) {
                    return Some(Ended::Killed(request));
                }
                look_ns = monotonic_ns() + WATCH.as_nanos() as u64;
                // All else may have changed, too.
                continue;
            }
            let until_due = first.map_or(Duration::MAX, |(due_ns, _)| Duration::from_nanos(due_ns - now_ns));
            let until_look = match watched.is_empty() {
                true => Duration::MAX,
                false => Duration::from_nanos(look_ns.saturating_sub(now_ns)),
            };
            let pause = until_due.min(until_look);
            state = if pause == Duration::MAX {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(unique: u64, received_ns: u64, waits: &[(u64, u64)]) -> DelayedRequest {
        let decision = Decision { waits: waits.to_vec(), error: None };
        DelayedRequest { unique, caller: 1, received_ns, bytes: Vec::new(), decision }
    }

    #[test]
    fn what_is_due_comes_out_in_the_order_of_its_due_times() {
        let queue = DelayQueue::default();
        for (unique, delay) in [(1, 30), (2, 10), (3, 20)] {
            queue.push(request(unique, 0, &[(1, delay)])).unwrap();
        }
        let order: Vec<_> = (0..3)
            .map(|_| match queue.pop(|_| false) {
                Some(Ended::Due(request)) => request.unique,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(order, [2, 3, 1]);
    }

    #[test]
    fn healing_shortens_only_what_the_healed_fault_delays() {
        let queue = DelayQueue::default();
        let hour = 3_600_000_000_000;
        queue.push(request(1, 0, &[(7, hour)])).unwrap();
        queue.push(request(2, 0, &[(7, hour), (8, hour)])).unwrap();
        queue.push(request(3, 0, &[(8, hour)])).unwrap();
        queue.push(request(4, 0, &[(7, 500)])).unwrap();
        queue.heal(7, 1_000);
        let due = |unique| queue.state().waiting[&unique].due_ns;
        assert_eq!([due(1), due(2), due(3), due(4)], [1_000_001_000, hour, hour, 500]);
    }

    #[test]
    fn what_is_put_here_after_a_healing_waits_no_longer_than_a_second_after_the_healing() {
        let queue = DelayQueue::default();
        let (second, hour) = (1_000_000_000, 3_600_000_000_000);
        queue.heal(7, 10 * second);
        queue.heal(8, 20 * second);
        // It was decided about before both healings, and again 10 s after the later one, as a sync that is handed what
        // is left of an earlier write's wait: that does not wait at all.
        queue.push(request(1, 9 * second, &[(7, hour)])).unwrap();
        queue.push(request(2, 9 * second, &[(7, hour), (8, hour)])).unwrap();
        queue.push(request(3, 30 * second, &[(7, hour)])).unwrap();
        queue.push(request(4, 30 * second, &[(7, hour), (9, second)])).unwrap();
        let due = |unique| queue.state().waiting[&unique].due_ns / second;
        assert_eq!([due(1), due(2), due(3), due(4)], [11, 21, 30, 31]);
    }

    #[test]
    fn an_interrupt_that_overtakes_its_request_is_remembered() {
        let queue = DelayQueue::default();
        queue.interrupt(5);
        queue.push(request(5, monotonic_ns(), &[(1, 3_600_000_000_000)])).unwrap();
        assert!(matches!(queue.pop(|_| true), Some(Ended::Killed(request)) if request.unique == 5));
    }

    #[test]
    fn requests_come_and_end_while_callers_are_looked_at() {
        let queue = DelayQueue::default();
        let now_ns = monotonic_ns();
        queue.push(request(5, now_ns, &[(1, 3_600_000_000_000)])).unwrap();
        queue.interrupt(5);
        // With the lock held, this would never come back.
        let looked = queue.pop(|_| {
            if queue.len() == 1 {
                queue.push(request(6, now_ns, &[])).unwrap();
            }
            false
        });
        assert!(matches!(looked, Some(Ended::Due(request)) if request.unique == 6));
        let ended = queue.pop(|_| {
            queue.end();
            true
        });
        assert!(ended.is_none(), "nobody is left to be given up");
    }

    #[test]
    fn the_end_wakes_who_waits() {
        let queue = DelayQueue::default();
        queue.push(request(5, monotonic_ns(), &[(1, 3_600_000_000_000)])).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.pop(|_| false).is_none());
            queue.end();
            assert!(waiter.join().unwrap());
        });
        assert!(queue.push(request(6, 0, &[])).is_err());
    }
}
