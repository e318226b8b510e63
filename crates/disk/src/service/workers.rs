//! The pool that carries out what has waited.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::io::Errno;

use crate::held::Job;

/// The most workers at a time; what is more waits for one of them.
const MOST: usize = 64;
/// A worker without work ends after this.
const IDLE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Workers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Workers that wait for a job.
    idle: usize,
    workers: usize,
    ended: bool,
}

impl Workers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over a job; `start` starts a worker. Gives the job back if there is no worker and none can be started.
    pub(crate) fn give(&self, job: Job, start: impl FnOnce() -> Result<(), Errno>) -> Option<Job> {
        let mut state = self.state();
        // An idle worker that was woken for an earlier job still counts as idle until it runs.
        if state.jobs.len() >= state.idle && state.workers < MOST {
            match start() {
                Ok(()) => state.workers += 1,
                Err(_) if state.workers == 0 => return Some(job),
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        drop(state);
        self.changed.notify_one();
        None
    }

    /// For a worker: its next job; `None` when it is to end.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.ended {
                break;
            }
            state.idle += 1;
            let (woken, waited) = self.changed.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.workers -= 1;
        None
    }

    /// No more jobs come.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }
}
