use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use brownout_base::clock::monotonic_ns;

use crate::{LoadError, Protocol, Retries, Version, WireOptions};

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

/// What carries the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataPath {
    /// Our own connections.
    #[default]
    Own,
    /// The `scylla` driver, one session per thread. It speaks version 4 of the protocol, chooses coordinators itself
    /// (among the nodes of [`EngineConfig::coordinators`], by token unless [`Balancing::RoundRobin`] is asked for), and
    /// does not tell of lost connections: requests on them fail as [`crate::ErrorClass::ConnectionLost`].
    Driver,
}

/// [`EngineConfig::tick`] unless set. Measured with `crates/stress/benches/client_cost.rs`: it saves a quarter of the CPU
/// at 20,000 a second and changes nothing below 10,000.
pub const DEFAULT_TICK: Duration = Duration::from_micros(100);

/// How the engine connects, and when it gives up.
#[derive(Clone)]
pub struct EngineConfig {
    /// The nodes to send to.
    pub coordinators: Vec<Coordinator>,
    /// How one is chosen for an operation.
    pub balancing: Balancing,
    /// How many of the coordinators are of each tier, from the nearest on: those of a farther one take operations only
    /// while none of the nearer ones is connected. Empty: all are equally near.
    pub tiers: Vec<usize>,
    /// What carries the requests.
    pub path: DataPath,
    /// Event-loop threads. One carries over 100,000 operations a second; keys and rate are split among them.
    pub threads: usize,
    /// Connections per coordinator and thread. Each carries up to 32,767 open operations.
    pub connections: usize,
    /// The most operations that are open on one connection; `None`: as many as it has stream ids. Others wait. The
    /// driver's requests are counted over all of its connections together.
    pub max_pending: Option<u32>,
    /// After which time from its intended start an operation counts as timed out.
    pub timeout: Duration,
    /// Operations that are due by the clock are sent at most once in this time, all that is due together.
    ///
    /// System calls and wake-ups are nearly all that an operation costs the client; a longer tick saves them, at the
    /// price of lateness (up to a tick, if this thread is woken in time), which [`crate::Bucket::lateness`] shows and response times contain. Zero sends
    /// every operation as soon as it is due. Answers that come shortly before a send are read together with it, at the
    /// time the kernel has stamped them with; see [`crate::Series::service`].
    pub tick: Duration,
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
            tiers: Vec::new(),
            path: DataPath::Own,
            threads: 1,
            connections: 1,
            max_pending: None,
            timeout: Duration::from_secs(10),
            tick: DEFAULT_TICK,
            seed: 0,
            epoch_ns: monotonic_ns(),
            bucket: Duration::from_secs(1),
            retries: Retries::default(),
            dead_peer: None,
            wire: WireOptions::default(),
            thread_start: stay(),
        }
    }

    /// Where each tier ends among the coordinators.
    pub(crate) fn tier_ends(&self) -> Vec<usize> {
        if self.tiers.is_empty() {
            return vec![self.coordinators.len()];
        }
        self.tiers
            .iter()
            .scan(0, |end, count| {
                *end += count;
                Some(*end)
            })
            .collect()
    }

    /// Refuses what no engine can do.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), LoadError> {
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
        if !self.tiers.is_empty() && (self.tiers[0] == 0 || self.tiers.iter().sum::<usize>() != self.coordinators.len())
        {
            return refuse(
                "the tiers are not of as many nodes as there are coordinators",
                "count each coordinator once",
            );
        }
        if self.max_pending == Some(0) {
            return refuse("a connection that may have no operation", "write at least 1");
        }
        if self.path == DataPath::Driver && self.wire.protocol == Protocol::Exactly(Version::V5) {
            return refuse("the scylla driver does not speak version 5 of the protocol", "use version 4");
        }
        if self.connections == 0 || self.connections > 1024 {
            return refuse("the number of connections per coordinator is out of range", "write 1 to 1024");
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > Duration::from_secs(3600) {
            return refuse("the timeout of operations is out of range", "write 1ms to 1h");
        }
        if self.tick > Duration::from_secs(1) {
            return refuse("the tick is out of range", "write 0 to 1s");
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
