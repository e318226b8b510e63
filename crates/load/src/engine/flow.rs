//! What starts operations: the schedule of an open loop, or the end of the previous operation. Each flow has its own.

use std::collections::VecDeque;

use crate::{
    EngineConfig, Pace,
    schedule::{Limiter, RateProfile, Schedule},
};

/// How long a user of the population rests after a failed write: more load does not help a server in trouble.
const REST_NS: u64 = 100_000_000;
/// Offset between the arrival seeds of one flow and the next.
const SEEDS_PER_FLOW: u64 = 1 << 32;

/// What currently starts the operations of a flow.
pub(super) enum Source {
    /// Nothing, or nothing any longer.
    Idle,
    Open(Schedule),
    /// Users who have not been told that there are no more operations; those whose operation failed may rest first.
    Closed {
        users: usize,
        rest: bool,
    },
    Limited {
        limiter: Limiter,
        /// Users without an operation.
        free: usize,
        /// Since when at least one has been free.
        since: u64,
    },
}

/// One thread's part of a flow.
pub(super) struct Flow {
    pub(super) source: Source,
    /// Number of the pace in force.
    pub(super) pace: u32,
    /// For every free user of a closed loop, since when it has been free.
    pub(super) restarts: Vec<u64>,
    /// When each user resting after a failed operation is ready again, in order.
    pub(super) resting: VecDeque<u64>,
    /// Nothing can start until one of the open operations is over.
    pub(super) parked: bool,
    /// Until when it was so last: what was due before could not be started.
    pub(super) unparked_ns: u64,
}

impl Flow {
    pub(super) fn new() -> Self {
        Flow {
            source: Source::Idle,
            pace: 0,
            restarts: Vec::new(),
            resting: VecDeque::new(),
            parked: false,
            unparked_ns: 0,
        }
    }

    /// An operation is over since `at`: there may be something to start again.
    pub(super) fn unpark(&mut self, at: u64) {
        if std::mem::take(&mut self.parked) {
            self.unparked_ns = at;
        }
    }

    /// No operation intended before this will be scheduled any more.
    pub(super) fn horizon_ns(&self, now: u64) -> u64 {
        match &self.source {
            // Operations that are due may be held back, to be sent together or because no user is free.
            Source::Open(schedule) => now.min(schedule.next_ns()),
            Source::Limited { limiter, .. } => now.min(limiter.next_ns()),
            Source::Idle | Source::Closed { .. } => now,
        }
    }

    /// When the clock next starts something: by the schedule, which may be held back to be sent together, and for users
    /// who rest.
    pub(super) fn next_ns(&self) -> (u64, u64) {
        let rested = self.resting.front().copied().unwrap_or(u64::MAX);
        if self.parked {
            return (u64::MAX, rested);
        }
        match &self.source {
            Source::Open(schedule) => (schedule.next_ns(), rested),
            Source::Limited { limiter, free, .. } if *free > 0 => (limiter.next_ns(), rested),
            Source::Idle | Source::Closed { .. } | Source::Limited { .. } => (u64::MAX, rested),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.source, Source::Idle)
    }

    /// Whether an answer could start nothing within `ns`.
    pub(super) fn needs_no_answer_for(&self, ns: u64) -> bool {
        match &self.source {
            Source::Idle | Source::Open(_) => true,
            Source::Closed { .. } => false,
            Source::Limited { limiter, free, .. } => (limiter.rate() * ns as f64 / 1e9) < *free as f64,
        }
    }

    /// Whether the next operation starts when one ends.
    pub(super) fn waits_for_users(&self) -> bool {
        matches!(self.source, Source::Closed { .. } | Source::Limited { free: 0, .. })
    }

    /// The schedule of a limited loop.
    pub(super) fn limiter(&self) -> Option<&Limiter> {
        match &self.source {
            Source::Limited { limiter, .. } => Some(limiter),
            Source::Idle | Source::Open(_) | Source::Closed { .. } => None,
        }
    }

    /// Partitions that are due before `at` and have found no user.
    pub(super) fn withheld(&self, at: u64) -> u64 {
        self.limiter().map_or(0, |limiter| limiter.overdue(at))
    }

    pub(super) fn begin(&mut self, at_ns: u64, pace: Pace, flow: usize, index: usize, config: &EngineConfig) {
        self.pace += 1;
        self.restarts.clear();
        self.resting.clear();
        self.parked = false;
        self.unparked_ns = 0;
        // The first threads take the remainder.
        let share = |users: u32| config.share_of(index, users.into()) as usize;
        let (index, threads) = (config.number_of(index), config.threads_of_all());
        // Every pace of every flow has its own arrivals, even if the same pace is set again.
        let seed = config.seed.wrapping_add(u64::from(self.pace)).wrapping_add(flow as u64 * SEEDS_PER_FLOW);
        self.source = match pace {
            Pace::Idle => Source::Idle,
            Pace::Open { rate, arrivals } => {
                let profile = RateProfile::constant(rate);
                Source::Open(Schedule::new(at_ns, profile, arrivals, index, threads, seed))
            }
            Pace::Varying { profile, arrivals } => {
                Source::Open(Schedule::new(at_ns, profile, arrivals, index, threads, seed))
            }
            Pace::Closed { threads: users } => self.closed(share(users), at_ns, false),
            Pace::Populate { in_flight } => self.closed(share(in_flight), at_ns, true),
            Pace::Limited { threads: users, rate } => match share(users) {
                0 => Source::Idle,
                free => {
                    // Threads without users take no part in the schedule.
                    let threads = threads.min(users as usize);
                    Source::Limited { limiter: Limiter::new(at_ns, rate, index, threads), free, since: at_ns }
                }
            },
        };
    }

    fn closed(&mut self, users: usize, at_ns: u64, rest: bool) -> Source {
        self.restarts.resize(users, at_ns);
        if users == 0 { Source::Idle } else { Source::Closed { users, rest } }
    }

    /// An operation of the pace in force has ended.
    pub(super) fn succeed(&mut self, well: bool, now: u64) {
        match &mut self.source {
            Source::Closed { rest: true, .. } if !well => self.resting.push_back(now + REST_NS),
            Source::Closed { .. } => self.restarts.push(now),
            Source::Limited { free, since, .. } => {
                if *free == 0 {
                    *since = now;
                }
                *free += 1;
            }
            Source::Idle | Source::Open(_) => {}
        }
    }

    /// A user was told that there are no more operations.
    pub(super) fn retire(&mut self) {
        if let Source::Closed { users, .. } = &mut self.source {
            *users -= 1;
            if *users > 0 {
                return;
            }
        }
        self.source = Source::Idle;
    }
}
