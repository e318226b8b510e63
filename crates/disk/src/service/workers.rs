//! The pool of threads that carry out requests which have waited.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::io::Errno;

use crate::delay_queue::DelayedRequest;

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
    requests: VecDeque<DelayedRequest>,
    /// Workers that wait for a request.
    idle: usize,
    workers: usize,
    ended: bool,
}

impl Workers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over a request; `start` starts a worker. Gives it back if there is no worker and none can be started.
    pub(crate) fn give(
        &self,
        request: DelayedRequest,
        start: impl FnOnce() -> Result<(), Errno>,
    ) -> Option<DelayedRequest> {
        let mut state = self.state();
        // An idle worker that was woken for an earlier request still counts as idle until it runs.
        if state.requests.len() >= state.idle && state.workers < MOST {
            match start() {
                Ok(()) => state.workers += 1,
                Err(_) if state.workers == 0 => return Some(request),
                Err(_) => {}
            }
        }
        state.requests.push_back(request);
        drop(state);
        self.changed.notify_one();
        None
    }

    /// For a worker: its next request; `None` when it is to end.
    pub(crate) fn next(&self) -> Option<DelayedRequest> {
        let mut state = self.state();
        loop {
            if let Some(request) = state.requests.pop_front() {
                return Some(request);
            }
            if state.ended {
                break;
            }
            state.idle += 1;
            let (woken, waited) = self.changed.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.requests.is_empty() {
                break;
            }
        }
        state.workers -= 1;
        None
    }

    /// No more requests come.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }
}
