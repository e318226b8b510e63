//! What makes operations start.

use brownout_units::Rate;

use crate::{Arrivals, LoadError, RateProfile};

/// What makes the next operation start.
#[derive(Debug, Clone, PartialEq)]
pub enum Pace {
    /// The clock: intended start *k* is `start + k ÷ rate`, whatever became of the operations before.
    Open {
        /// Operations per second.
        rate: Rate,
        /// Even or Poisson.
        arrivals: Arrivals,
    },
    /// The clock, at a rate that changes: intended start *k* is when the integral of the rate reaches *k*.
    Varying {
        /// The rate by the time since the pace came into force.
        profile: RateProfile,
        /// Even or Poisson.
        arrivals: Arrivals,
    },
    /// The end of the previous operation: `threads` users with one operation each (Little's law then sets the rate).
    Closed {
        /// Number of users.
        threads: u32,
    },
    /// The clock and the users: an operation starts when it is due *and* a user is free, so at most `threads` are open.
    /// Intended start = `start + p ÷ rate`, where *p* counts the partitions of all earlier operations. An operation
    /// that is due while no user is free waits for one; the wait is part of its response time, but the timeout counts
    /// from when a user became free. Partitions that are due when the pace ends and have found no user are counted in
    /// [`crate::Balance::withheld`].
    ///
    /// This is `fixed=` and `throttle=` of cassandra-stress. With several load threads each has its share of the users
    /// and of the partitions.
    Limited {
        /// Number of users.
        threads: u32,
        /// Partitions per second.
        rate: Rate,
    },
    /// The closed loop that fills the table of a [`crate::KeyValue`], or an etcd with the keys of an
    /// [`crate::EtcdLoad`]: it writes every key once and then stops by itself. After a failed or timed-out write its
    /// user rests for 100 ms, and the write is retried after all others until it succeeds. An error that a retry cannot
    /// change ([`crate::ErrorClass::Invalid`]) ends the loop at once: [`Progress::refused`], [`crate::Engine::health`].
    Populate {
        /// How many writes are in flight at a time.
        in_flight: u32,
    },
    /// Nothing starts.
    Idle,
}

impl Pace {
    /// Refuses what would only fill the memory.
    ///
    /// # Errors
    /// More than any client can send, or too many users.
    pub fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: String, remedy| Err(LoadError::Config { what, remedy });
        let highest = match self {
            Pace::Open { rate, .. } | Pace::Limited { rate, .. } => rate.get(),
            Pace::Varying { profile, .. } => profile.highest(),
            Pace::Closed { .. } | Pace::Populate { .. } | Pace::Idle => 0.0,
        };
        if highest > 1e7 {
            return refuse(format!("{highest}/s is beyond what any client can send"), "write at most 10_000_000/s");
        }
        match *self {
            Pace::Closed { threads: users }
            | Pace::Populate { in_flight: users }
            | Pace::Limited { threads: users, .. }
                if !(1..=1_000_000).contains(&users) =>
            {
                refuse(format!("a load of {users} users is out of range"), "write 1 to 1_000_000")
            }
            _ => Ok(()),
        }
    }
}

/// When a pace came into force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceChange {
    /// On CLOCK_MONOTONIC in ns: the first intended start under the new pace is not earlier.
    pub at_ns: u64,
    /// On CLOCK_MONOTONIC in ns: no intended start under the pace before is later. That is `at_ns`, unless a load thread
    /// had no processor when it was told, and had by then scheduled beyond it.
    pub by_ns: u64,
}

/// How far [`Pace::Populate`] has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Keys whose write has been acknowledged.
    pub done: u64,
    /// Keys in all.
    pub total: u64,
    /// Writes that failed or timed out and were, or will be, tried again.
    pub retried: u64,
    /// Why no more is written, if a coordinator refused a write for good.
    pub refused: Option<Refusal>,
}

/// A write that retrying cannot help: the server rejects the write itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the coordinator.
    pub coordinator: String,
    /// The server's words.
    pub reason: String,
}

impl Progress {
    /// Every key is written.
    pub fn complete(&self) -> bool {
        self.total > 0 && self.done == self.total
    }
}
