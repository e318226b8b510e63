//! What starts operations: the schedule of an open loop, or the end of the operation before.

use super::{
    Operation, Statement,
    worker::{Source, Worker},
};
use crate::{Pace, Progress, Refusal, schedule::Schedule};

/// Operations started per turn of the loop. After a stall the schedule is caught up in several turns, so that
/// answers are read in between.
const MOST_STARTS: usize = 1024;
/// How long a user of the population rests whose write has failed: a server in trouble is not helped by more of it.
const REST_NS: u64 = 100_000_000;

impl Worker {
    /// Puts a pace in force at `at_ns`, or as early as possible after it; returns when.
    pub(super) fn change_pace(&mut self, at_ns: u64, pace: Pace) -> u64 {
        // What was handed out as settled must stay so.
        let at_ns = at_ns.max(self.horizon_ns);
        self.progress.refused = None;
        if let Pace::Populate { .. } = pace {
            // Asked for between now and the change, it must not tell of the population before.
            self.progress = Progress { total: self.keys.count(), ..Progress::default() };
        }
        self.pending = Some((at_ns, pace));
        at_ns
    }

    /// Starts what is due. `true` if there is more to start at once.
    pub(super) fn start_operations(&mut self, now: u64) -> bool {
        let mut left = MOST_STARTS;
        loop {
            let end = self.pending.map_or(u64::MAX, |(at, _)| at);
            self.wake_users(now);
            self.restart_users(end, now);
            if self.start_scheduled(end, now, &mut left) {
                return true;
            }
            match self.pending {
                Some((at, pace)) if at <= now => {
                    self.pending = None;
                    self.begin(at, pace);
                }
                _ => break,
            }
        }
        self.horizon_ns = match &self.source {
            // What is due may be held back to be sent together.
            Source::Open(schedule) => now.min(schedule.next_ns()),
            _ => now,
        };
        false
    }

    /// Starts what the schedule of an open loop says, up to `left` operations that are due before `end`. `true` if
    /// more is due.
    fn start_scheduled(&mut self, end: u64, now: u64, left: &mut usize) -> bool {
        let Source::Open(schedule) = &mut self.source else { return false };
        // The old schedule ends just before the new pace begins, and then at once.
        let until = now.min(end.saturating_sub(1));
        if now < end && now < self.last_start_ns + self.coalesce_ns {
            return false;
        }
        let mut due = std::mem::take(&mut self.due);
        while due.len() < *left
            && let Some(intended) = schedule.take_due(until)
        {
            due.push(intended);
        }
        let next_ns = schedule.next_ns();
        *left -= due.len();
        if !due.is_empty() {
            self.last_start_ns = now;
        }
        for intended in due.drain(..) {
            self.start_drawn(intended, now);
        }
        self.due = due;
        self.horizon_ns = next_ns.min(now);
        next_ns <= until
    }

    fn begin(&mut self, at_ns: u64, pace: Pace) {
        self.pace += 1;
        self.restarts.clear();
        self.resting.clear();
        let config = &self.setup.config;
        let threads = config.threads;
        // The first threads take what does not divide.
        let share = |users: u32| (users as usize + threads - 1 - self.index) / threads;
        self.source = match pace {
            Pace::Idle => Source::Idle,
            Pace::Open { rate, arrivals } => {
                // Every pace has arrivals of its own, also when it is the same again.
                let seed = config.seed.wrapping_add(u64::from(self.pace));
                Source::Open(Schedule::new(at_ns, rate, arrivals, self.index, threads, seed))
            }
            Pace::Closed { threads: users } => {
                self.restarts.resize(share(users), at_ns);
                Source::Closed
            }
            Pace::Populate { in_flight } => {
                self.restarts.resize(share(in_flight), at_ns);
                Source::Populate { next: 0, failed: Vec::new() }
            }
        };
    }

    /// Frees the users who have rested enough.
    fn wake_users(&mut self, now: u64) {
        while let Some(at) = self.resting.front().copied().filter(|at| *at <= now) {
            self.resting.pop_front();
            self.restarts.push(at);
        }
    }

    /// Starts the next operation of every user who is free.
    fn restart_users(&mut self, end: u64, now: u64) {
        // Starting cannot free users, so this ends.
        for intended in std::mem::take(&mut self.restarts) {
            if intended >= end {
                continue;
            }
            match &mut self.source {
                Source::Closed => self.start_drawn(intended, now),
                Source::Populate { next, failed } => {
                    let key = if *next < self.keys.count() {
                        *next += 1;
                        self.keys.at(*next - 1)
                    } else if let Some(key) = failed.pop() {
                        key
                    } else {
                        continue;
                    };
                    self.start(intended, key, Statement::Write, now);
                }
                Source::Idle | Source::Open(_) => {}
            }
        }
    }

    /// Starts an operation of the mix on a drawn key.
    fn start_drawn(&mut self, intended: u64, now: u64) {
        let workload = &self.setup.workload;
        let (read, write) = (u64::from(workload.read), u64::from(workload.write));
        let statement = if self.random.below(read + write) < read { Statement::Read } else { Statement::Write };
        let key = self.keys.draw(&mut self.random);
        self.start(intended, key, statement, now);
    }

    fn start(&mut self, intended: u64, key: u64, statement: Statement, now: u64) {
        self.ledger.scheduled(intended);
        self.place(Operation { intended, key, statement, queued: false, pace: self.pace }, now);
    }

    /// An operation has ended (for its user: a late answer helps nobody); its user starts the next one.
    pub(super) fn succeed(&mut self, operation: Operation, acknowledged: bool, now: u64) {
        if operation.pace != self.pace {
            return;
        }
        // An answer came before it was read, but what was handed out as settled must stay so.
        let now = now.max(self.horizon_ns);
        match &mut self.source {
            Source::Closed => self.restarts.push(now),
            Source::Populate { failed, .. } => {
                if acknowledged {
                    self.progress.done += 1;
                    self.restarts.push(now);
                } else {
                    self.progress.retried += 1;
                    failed.push(operation.key);
                    self.resting.push_back(now + REST_NS);
                }
            }
            Source::Idle | Source::Open(_) => {}
        }
    }

    /// Whether the operation is a write of the population that is being made.
    pub(super) fn populates(source: &Source, pace: u32, operation: &Operation) -> bool {
        matches!(source, Source::Populate { .. }) && operation.pace == pace
    }

    /// A write of the population can never succeed: no more of them are started.
    pub(super) fn refuse(&mut self, coordinator: usize, reason: String) {
        let coordinator = self.setup.config.coordinators[coordinator].name.clone();
        self.progress.refused = Some(Refusal { coordinator, reason });
        self.source = Source::Idle;
        self.restarts.clear();
        self.resting.clear();
    }
}
