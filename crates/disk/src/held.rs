//! Requests that wait: until when, and what ends their wait early.
//!
//! One thread looks at the clock; whoever takes a request out of here, by whatever way, is the only one to answer it.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use brownout_base::clock::monotonic_ns;

use crate::{control::DiskGuard, control::Verdict};

/// Interrupts remembered of requests that were not here (yet).
const REMEMBERED: usize = 1024;
/// How often it is looked whether an interrupted caller has been killed.
const WATCH: Duration = Duration::from_millis(10);

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its number, by which it is answered.
    pub(crate) unique: u64,
    /// The thread that waits for the answer, as the kernel numbers it for this disk; 0 if there is none.
    pub(crate) caller: u32,
    /// When it came.
    pub(crate) received_ns: u64,
    /// The request, as it came.
    pub(crate) bytes: Vec<u8>,
    /// What was decided about it.
    pub(crate) verdict: Verdict,
}

/// The requests that wait.
#[derive(Default)]
pub(crate) struct Held {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: HashMap<u64, Waiting>,
    /// (due, unique), the next first.
    order: BTreeSet<(u64, u64)>,
    /// Requests whose callers got a signal that need not have killed them.
    watched: Vec<u64>,
    /// Interrupts that came before their request was put here.
    early: VecDeque<u64>,
    /// Layers that were healed: a request may have been decided about before, and be put here after.
    healed: HashSet<u64>,
    ended: bool,
}

struct Waiting {
    job: Job,
    due_ns: u64,
}

/// Why a wait ended.
#[derive(Debug)]
pub(crate) enum Over {
    /// Its time has come: carry it out.
    Due(Job),
    /// Its caller was killed and will never look at the answer: give it up.
    Killed(Job),
}

impl Waiting {
    /// It need not wait any more for the layers that `healed` knows, or not for long. Returns whether that changed it.
    fn shorten(&mut self, healed: impl Fn(u64) -> bool, now_ns: u64) -> bool {
        let before = self.job.verdict.waits.len();
        self.job.verdict.waits.retain(|(layer, _)| !healed(*layer));
        let latest_ns = now_ns + DiskGuard::HEALED_WITHIN.as_nanos() as u64;
        let by_others_ns = self.job.received_ns.saturating_add(self.job.verdict.delay_ns());
        let changed = self.job.verdict.waits.len() < before;
        if changed {
            self.due_ns = self.due_ns.min(latest_ns.max(by_others_ns));
        }
        changed
    }
}

impl State {
    fn take(&mut self, unique: u64) -> Option<Job> {
        let Waiting { job, due_ns } = self.jobs.remove(&unique)?;
        self.order.remove(&(due_ns, unique));
        Some(job)
    }

    /// Those that still wait of which the callers are watched, with the callers.
    fn watched_callers(&mut self) -> Vec<(u64, u32)> {
        let State { jobs, watched, .. } = self;
        watched.retain(|unique| jobs.contains_key(unique));
        watched.iter().filter_map(|unique| Some((*unique, jobs.get(unique)?.job.caller))).collect()
    }
}

impl Held {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.state().jobs.len()
    }

    /// Lets `job` wait as its verdict says; gives it back when nobody would ever take it out.
    pub(crate) fn hold(&self, job: Job) -> Result<(), Job> {
        let mut state = self.state();
        if state.ended {
            return Err(job);
        }
        let unique = job.unique;
        let due_ns = job.received_ns.saturating_add(job.verdict.delay_ns());
        if let Some(at) = state.early.iter().position(|early| *early == unique) {
            state.early.remove(at);
            state.watched.push(unique);
        }
        let mut waiting = Waiting { job, due_ns };
        waiting.shorten(|layer| state.healed.contains(&layer), monotonic_ns());
        state.order.insert((waiting.due_ns, unique));
        state.jobs.insert(unique, waiting);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// The caller of `unique` got a signal. Unless it was killed this changes nothing, as on a real disk, whose waits no
    /// signal but a fatal one cuts short; but the kernel says so only once, so the caller is watched from now on.
    pub(crate) fn interrupt(&self, unique: u64) {
        let mut state = self.state();
        if state.jobs.contains_key(&unique) {
            state.watched.push(unique);
        } else {
            // Another thread may be about to hold it. Numbers are never used again, so what stays here harms nobody.
            if state.early.len() == REMEMBERED {
                state.early.pop_front();
            }
            state.early.push_back(unique);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A layer was healed at `now_ns`: nothing waits for it longer than [`DiskGuard::HEALED_WITHIN`].
    pub(crate) fn release(&self, layer: u64, now_ns: u64) {
        let mut state = self.state();
        state.healed.insert(layer);
        let State { jobs, order, .. } = &mut *state;
        for (unique, waiting) in jobs {
            let before_ns = waiting.due_ns;
            if waiting.shorten(|id| id == layer, now_ns) {
                order.remove(&(before_ns, *unique));
                order.insert((waiting.due_ns, *unique));
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// No more requests are served.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.jobs.clear();
        state.order.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until a wait is over; `None` once the disk has ended. `killed` tells whether a caller was; it may take its
    /// time, since nobody is held up by it.
    pub(crate) fn next(&self, killed: impl Fn(u32) -> bool) -> Option<Over> {
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
                && let Some(job) = state.take(unique)
            {
                return Some(Over::Due(job));
            }
            let watched = state.watched_callers();
            if !watched.is_empty() && look_ns <= now_ns {
                drop(state);
                let dead: Vec<u64> = watched.into_iter().filter(|(_, caller)| killed(*caller)).map(|it| it.0).collect();
                state = self.state();
                // Meanwhile it may have been due, and somebody else's.
                if let Some(job) = dead.into_iter().find_map(|unique| state.take(unique)) {
                    return Some(Over::Killed(job));
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

    fn job(unique: u64, received_ns: u64, waits: &[(u64, u64)]) -> Job {
        let verdict = Verdict { waits: waits.to_vec(), error: None };
        Job { unique, caller: 1, received_ns, bytes: Vec::new(), verdict }
    }

    #[test]
    fn what_is_due_comes_out_in_the_order_of_its_due_times() {
        let held = Held::default();
        for (unique, delay) in [(1, 30), (2, 10), (3, 20)] {
            held.hold(job(unique, 0, &[(1, delay)])).unwrap();
        }
        let order: Vec<_> = (0..3)
            .map(|_| match held.next(|_| false) {
                Some(Over::Due(job)) => job.unique,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(order, [2, 3, 1]);
    }

    #[test]
    fn healing_shortens_only_what_the_healed_layer_holds() {
        let held = Held::default();
        let hour = 3_600_000_000_000;
        held.hold(job(1, 0, &[(7, hour)])).unwrap();
        held.hold(job(2, 0, &[(7, hour), (8, hour)])).unwrap();
        held.hold(job(3, 0, &[(8, hour)])).unwrap();
        held.hold(job(4, 0, &[(7, 500)])).unwrap();
        held.release(7, 1_000);
        let due = |unique| held.state().jobs[&unique].due_ns;
        assert_eq!([due(1), due(2), due(3), due(4)], [1_000_001_000, hour, hour, 500]);
    }

    #[test]
    fn what_was_decided_before_a_healing_and_held_after_it_is_shortened_too() {
        let held = Held::default();
        held.release(7, 0);
        let now_ns = monotonic_ns();
        held.hold(job(1, now_ns, &[(7, 3_600_000_000_000)])).unwrap();
        assert!(held.state().jobs[&1].due_ns < now_ns + 100_000_000_000);
    }

    #[test]
    fn an_interrupt_that_overtakes_its_request_is_remembered() {
        let held = Held::default();
        held.interrupt(5);
        held.hold(job(5, monotonic_ns(), &[(1, 3_600_000_000_000)])).unwrap();
        assert!(matches!(held.next(|_| true), Some(Over::Killed(job)) if job.unique == 5));
    }

    #[test]
    fn requests_come_and_end_while_callers_are_looked_at() {
        let held = Held::default();
        let now_ns = monotonic_ns();
        held.hold(job(5, now_ns, &[(1, 3_600_000_000_000)])).unwrap();
        held.interrupt(5);
        // With the lock held, this would never come back.
        let looked = held.next(|_| {
            if held.len() == 1 {
                held.hold(job(6, now_ns, &[])).unwrap();
            }
            false
        });
        assert!(matches!(looked, Some(Over::Due(job)) if job.unique == 6));
        let ended = held.next(|_| {
            held.end();
            true
        });
        assert!(ended.is_none(), "nobody is left to be given up");
    }

    #[test]
    fn the_end_wakes_who_waits() {
        let held = Held::default();
        held.hold(job(5, monotonic_ns(), &[(1, 3_600_000_000_000)])).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| held.next(|_| false).is_none());
            held.end();
            assert!(waiter.join().unwrap());
        });
        assert!(held.hold(job(6, 0, &[])).is_err());
    }
}
