use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use crate::{LoadError, Retries, WireOptions};

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
    /// Whether and when requests that failed are sent again.
    pub retries: Retries,
    /// After which time without any sign of life of its peer a connection counts as lost, although nobody has closed
    /// it. `None`: when the kernel says so, which on Linux takes a quarter of an hour.
    ///
    /// A connection counts as dead when what was sent on it has not been acknowledged by the peer's *kernel* for this
    /// long (TCP_USER_TIMEOUT, tcp(7)); on an idle one, the kernel asks by keep-alives. A database that freezes is not
    /// dead by this rule: its kernel still acknowledges. A cut cable is. Operations on their way fail as
    /// [`crate::ErrorClass::ConnectionLost`], and the connection is made anew.
    pub dead_peer: Option<Duration>,
    /// Protocol, compression, encryption, credentials.
    pub wire: WireOptions,
    /// Called first by every thread.
    pub thread_start: ThreadStart,
}

impl EngineConfig {
    /// One thread, one connection per coordinator, round robin, 10 s timeout, buckets of 1 s from now on, seed 0, no
    /// retries, dead peers as the kernel sees them, plain connections of the newest protocol.
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
            retries: Retries::default(),
            dead_peer: None,
            wire: WireOptions::default(),
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
        if self.dead_peer.is_some_and(|after| after < Duration::from_millis(100) || after > Duration::from_secs(86_400))
        {
            return refuse("the time after which a peer counts as dead is out of range", "write 100ms to 24h");
        }
        self.wire.check()?;
        self.retries.check()?;
        Ok(())
    }
}
