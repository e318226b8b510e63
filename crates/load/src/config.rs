use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use brownout_units::Rate;

use crate::LoadError;

/// A node that operations are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coordinator {
    /// The name it has in results: `n1`.
    pub name: String,
    /// Where it answers CQL.
    pub address: SocketAddr,
}

/// Called first by every thread that the load makes; the lab enters the load's host in it.
pub type ThreadStart = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// A hook that does nothing, for threads that stay where they are.
pub fn stay() -> ThreadStart {
    Arc::new(|| Ok(()))
}

/// Which coordinator an operation goes to.
///
/// A coordinator without a ready connection is passed over, as drivers do; [`crate::Balance::rerouted`] counts how
/// often. If none is connected, operations wait until one is or until they have timed out (never sent).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancing {
    /// One after the other.
    RoundRobin,
    /// One after the other among the replicas of the operation's key.
    TokenAware,
}

/// How the engine connects, and when it gives up.
#[derive(Clone)]
pub struct EngineConfig {
    /// The nodes to send to.
    pub coordinators: Vec<Coordinator>,
    /// How one is chosen for an operation.
    pub balancing: Balancing,
    /// Event-loop threads. One carries over 100,000 operations a second; keys and rate are split among them.
    pub threads: usize,
    /// Connections per coordinator and thread. Each carries up to 32,767 open operations.
    pub connections: usize,
    /// After which time from its intended start an operation counts as timed out.
    pub timeout: Duration,
    /// Seed of keys, statements and arrivals.
    pub seed: u64,
    /// Start of bucket 0 on CLOCK_MONOTONIC in ns; operations intended earlier count in bucket 0.
    pub epoch_ns: u64,
    /// Length of a bucket.
    pub bucket: Duration,
    /// Called first by every thread.
    pub thread_start: ThreadStart,
}

impl EngineConfig {
    /// One thread, one connection per coordinator, round robin, 10 s timeout, buckets of 1 s from now on, seed 0.
    pub fn new(coordinators: Vec<Coordinator>) -> Self {
        EngineConfig {
            coordinators,
            balancing: Balancing::RoundRobin,
            threads: 1,
            connections: 1,
            timeout: Duration::from_secs(10),
            seed: 0,
            epoch_ns: crate::now_ns(),
            bucket: Duration::from_secs(1),
            thread_start: stay(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: &str, remedy| Err(LoadError::Config { what: what.to_owned(), remedy });
        if self.coordinators.is_empty() || self.coordinators.len() > 1000 {
            return refuse("it needs 1 to 1000 coordinators", "name the nodes that take the operations");
        }
        let repeated = |(place, node): (usize, &Coordinator)| {
            self.coordinators[..place].iter().any(|other| other.name == node.name)
        };
        if self.coordinators.iter().enumerate().any(repeated) {
            return refuse("two coordinators have the same name", "give each a name of its own");
        }
        if self.threads == 0 || self.threads > 256 {
            return refuse("the number of load threads is out of range", "write 1 to 256 threads");
        }
        if self.connections == 0 || self.connections > 1024 {
            return refuse("the number of connections per coordinator is out of range", "write 1 to 1024");
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > Duration::from_secs(3600) {
            return refuse("the timeout of operations is out of range", "write 1ms to 1h");
        }
        if self.bucket < Duration::from_millis(1) || self.bucket > Duration::from_secs(3600) {
            return refuse("the length of a bucket is out of range", "write 1ms to 1h");
        }
        Ok(())
    }
}

/// How the starts of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// As independent users would arrive: exponential gaps.
    Poisson,
}

/// What makes the next operation start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// The clock: intended start *k* is `start + k ÷ rate`, whatever became of the operations before.
    Open {
        /// Operations per second.
        rate: Rate,
        /// Even or Poisson.
        arrivals: Arrivals,
    },
    /// The end of the one before: `threads` users with one operation each (Little's law then sets the rate).
    Closed {
        /// Number of users.
        threads: u32,
    },
    /// The same, but it writes every key once and then stops by itself. A user whose write failed or timed out rests
    /// for 100 ms, and the write is tried again after all others, until it is done. An error that is bound to come
    /// again ([`crate::ErrorClass::Invalid`]) ends it at once: [`Progress::refused`], [`crate::Engine::health`].
    Populate {
        /// How many writes are open at a time.
        in_flight: u32,
    },
    /// Nothing starts.
    Idle,
}

impl Pace {
    /// Refuses what would only fill the memory.
    pub(crate) fn check(&self, load_threads: usize) -> Result<(), LoadError> {
        let refuse = |what: String, remedy| Err(LoadError::Config { what, remedy });
        match *self {
            Pace::Open { rate, .. } if rate.get() > 1e7 => {
                refuse(format!("{rate} is beyond what any client can send"), "write at most 10_000_000/s")
            }
            Pace::Closed { threads: users } | Pace::Populate { in_flight: users }
                if (users as usize) < load_threads || users > 1_000_000 =>
            {
                let what = format!("{users} users cannot be shared by {load_threads} load threads");
                refuse(what, "use at least as many users as load threads, and at most 1_000_000")
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

/// A write that no second attempt can save: the server finds fault with it, not with its own state.
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
