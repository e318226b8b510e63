use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use brownout_base::clock::monotonic_ns;

use crate::{Arrivals, LoadError, Pace, Protocol, RateProfile, Retries, Version, WireOptions};

/// A node to which operations are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coordinator {
    /// Its name in results: `n1`.
    pub name: String,
    /// Where it takes requests: its CQL address, or the client port of an etcd.
    pub address: SocketAddr,
}

/// Called first by every thread that the load starts; the lab uses it to enter the load's host.
pub type ThreadStart = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// A hook that does nothing, for threads that stay where they are.
pub fn stay() -> ThreadStart {
    Arc::new(|| Ok(()))
}

/// Which coordinator an operation goes to.
///
/// A coordinator without a ready connection is skipped, as drivers do; [`crate::Balance::rerouted`] counts how often.
/// If none is connected, operations wait until one is, or until they time out (never sent).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancing {
    /// Round robin.
    RoundRobin,
    /// Round robin among the replicas of the operation's key.
    TokenAware,
    /// The member that leads (etcd): each is asked four times a second. While nobody is known to lead, or who does is not
    /// connected, round robin.
    Leader,
}

/// What carries the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataPath {
    /// Our own connections.
    #[default]
    Own,
    /// The `scylla` driver, one session per thread. It speaks version 4 of the protocol, chooses coordinators itself
    /// (among the nodes of [`EngineConfig::coordinators`], by token unless [`Balancing::RoundRobin`] is set), and does
    /// not report lost connections: requests on them fail as [`crate::ErrorClass::ConnectionLost`].
    Driver,
    /// Our own connections to an etcd, with its gRPC API. Of [`EngineConfig::wire`], only encryption and credentials
    /// mean something there.
    Etcd,
}

/// Default of [`EngineConfig::tick`]. Measured with `crates/stress/benches/client_cost.rs`: it saves a quarter of the
/// CPU at 20,000 operations per second and changes nothing below 10,000.
pub const DEFAULT_TICK: Duration = Duration::from_micros(100);

/// One of several engines, on as many machines, that make one load together.
///
/// Each has its part by construction, and knows nothing of the others: with one thread each, operation number *k* of a schedule is
/// that of engine *k* mod [`Part::of`]; users of closed loops and keys are dealt out in the same way. All have to be given the same
/// seed, and the same paces from the same moment on ([`crate::Engine::set_paces_from`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which, from 0.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Part {
    /// The only one.
    pub const WHOLE: Part = Part { number: 0, of: 1 };

    /// How many operations of a pace are this engine's, of those due before `after` from when the pace came into force, if each
    /// engine has one thread: exactly, where arrivals are even; of Poisson arrivals, as many as are due in the mean. 0 of paces by
    /// which nothing is due before a user asks for it.
    pub fn due(self, pace: &Pace, after: Duration) -> u64 {
        let (count, arrivals) = match pace {
            Pace::Open { rate, arrivals } => (RateProfile::constant(*rate).count(after), arrivals),
            Pace::Varying { profile, arrivals } => (profile.count(after), arrivals),
            Pace::Closed { .. } | Pace::Limited { .. } | Pace::Populate { .. } | Pace::Idle => return 0,
        };
        // They are numbered from 0: number k is due when the count reaches k.
        let all = match arrivals {
            Arrivals::Constant => count.ceil(),
            Arrivals::Poisson => count.round(),
        };
        (all as u64).saturating_sub(self.number as u64).div_ceil(self.of as u64)
    }
}

/// How the engine connects, and when it gives up.
#[derive(Clone)]
pub struct EngineConfig {
    /// The nodes to send to.
    pub coordinators: Vec<Coordinator>,
    /// How the coordinator of an operation is chosen.
    pub balancing: Balancing,
    /// Number of coordinators in each tier, nearest tier first. Coordinators of a farther tier get operations only
    /// while no nearer one is connected. Empty: all are equally near.
    pub tiers: Vec<usize>,
    /// What carries the requests.
    pub path: DataPath,
    /// Event-loop threads. One carries over 100,000 operations per second; keys and rate are divided among them.
    pub threads: usize,
    /// Whether others make the same load.
    pub part: Part,
    /// Connections per coordinator and thread. Each carries up to 32,767 open operations.
    pub connections: usize,
    /// Most operations in flight on one connection; `None`: as many as it has stream ids. Further operations wait. The
    /// driver's requests are counted over all of its connections together.
    pub max_pending: Option<u32>,
    /// How long after its intended start an operation counts as timed out.
    pub timeout: Duration,
    /// Operations that are due by the clock are sent at most once per tick, all that are due together.
    ///
    /// System calls and wake-ups are nearly all that an operation costs the client. A longer tick saves them at the
    /// price of lateness (up to a tick, if the thread is woken in time), which [`crate::Bucket::lateness`] shows and
    /// response times contain. Zero sends every operation as soon as it is due. Answers that arrive shortly before a
    /// send are read together with it, and timed by the kernel's timestamps; see [`crate::Series::service`].
    pub tick: Duration,
    /// Seed for keys, statements and arrivals.
    pub seed: u64,
    /// Start of bucket 0 on CLOCK_MONOTONIC in ns; operations intended earlier count in bucket 0.
    pub epoch_ns: u64,
    /// Length of a bucket.
    pub bucket: Duration,
    /// Whether and when requests that failed are sent again.
    pub retries: Retries,
    /// How long a peer may show no sign of life before its connection counts as lost, although nobody has closed it.
    /// `None`: as long as the kernel waits, which on Linux is a quarter of an hour.
    ///
    /// A connection counts as dead when the peer's *kernel* has not acknowledged sent data for this long
    /// (TCP_USER_TIMEOUT, tcp(7)); an idle one is probed by keep-alives. A frozen database is not dead by this rule,
    /// because its kernel still acknowledges. A cut cable is. Operations in flight fail as
    /// [`crate::ErrorClass::ConnectionLost`], and the connection is made anew.
    pub dead_peer: Option<Duration>,
    /// Protocol, compression, encryption, credentials.
    pub wire: WireOptions,
    /// Called first by every thread.
    pub thread_start: ThreadStart,
}

impl EngineConfig {
    /// One thread, one connection per coordinator, round robin, 10 s timeout, buckets of 1 s from now on, seed 0, no
    /// retries, dead peers as the kernel detects them, unencrypted connections of the newest protocol.
    pub fn new(coordinators: Vec<Coordinator>) -> Self {
        EngineConfig {
            coordinators,
            balancing: Balancing::RoundRobin,
            tiers: Vec::new(),
            path: DataPath::Own,
            threads: 1,
            part: Part::WHOLE,
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

    /// How many threads there are, those of all parts together.
    pub(crate) fn threads_of_all(&self) -> usize {
        self.threads * self.part.of
    }

    /// The number of one of this part's threads among all of them. The parts take turns, so that operation *k* is part *k* mod n's.
    pub(crate) fn number_of(&self, thread: usize) -> usize {
        thread * self.part.of + self.part.number
    }

    /// How many of so many things, dealt out to all threads in turn, are those of one of this part's.
    pub(crate) fn share_of(&self, thread: usize, things: u64) -> u64 {
        things.saturating_sub(self.number_of(thread) as u64).div_ceil(self.threads_of_all() as u64)
    }

    /// End index of each tier among the coordinators.
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
        if self.part.number >= self.part.of || self.part.of > 1_000 {
            return refuse("the part of the load is out of range", "number the parts from 0, of at most 1000");
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
        if self.balancing == Balancing::Leader && self.path != DataPath::Etcd {
            return refuse("Cassandra has no leader that requests could go to", "balance round robin or by token");
        }
        if self.balancing == Balancing::TokenAware && self.path == DataPath::Etcd {
            return refuse("etcd has no tokens to balance by", "balance round robin or to the leader");
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
