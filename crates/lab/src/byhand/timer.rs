//! Jobs that are due later: the healing of faults with `--for 30s`.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, PoisonError},
    time::Instant,
};

type Job<T> = Box<dyn FnOnce(&T) + Send>;

/// Jobs, each with its moment. One thread of the lab does them.
pub(super) struct Timer<T> {
    jobs: Mutex<BTreeMap<(Instant, u64), Job<T>>>,
    changed: Condvar,
}

impl<T> Default for Timer<T> {
    fn default() -> Self {
        Timer { jobs: Mutex::default(), changed: Condvar::new() }
    }
}

impl<T> Timer<T> {
    /// To be done at that moment.
    pub(super) fn at(&self, moment: Instant, job: impl FnOnce(&T) + Send + 'static) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let number = jobs.last_key_value().map_or(0, |((_, number), _)| *number) + jobs.len() as u64 + 1;
        jobs.insert((moment, number), Box::new(job));
        self.changed.notify_all();
    }

    /// Does the jobs as they come due, for ever.
    pub(super) fn run(&self, on: &T) -> ! {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            let next = jobs.first_key_value().map(|((moment, _), _)| *moment);
            jobs = match next {
                None => self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                Some(moment) if moment > now => {
                    let left = moment - now;
                    self.changed.wait_timeout(jobs, left).unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let due = jobs.pop_first();
                    drop(jobs);
                    if let Some((_, job)) = due {
                        job(on);
                    }
                    self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}
