//! Probes: small UDP datagrams on every ordered pair of hosts, all the time.
//!
//! One thread sends and receives them all. A datagram carries the time at which it was sent, and
//! the kernel stamps the time at which it arrived, on the same clock: the difference is the one-way
//! delay, and does not depend on how soon the thread looks. They travel as the databases' packets
//! do, through the emulator, and are in its counters.

mod datagram;
mod overflow;
mod places;
mod prober;
mod stamps;
mod train;
mod window;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

pub use train::{TrainSample, TrainSpec, Trains};

use self::{
    places::Places,
    prober::{Prober, Socket},
};
use crate::{
    control::Emulator,
    error::NetworkError,
    link::Link,
    network::Network,
    sys::{self, ProbeSocket, Scheduling},
};

/// One below the emulator, so that a probe never delays a packet.
const FIFO_PRIORITY: u8 = 19;

/// What became of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSample {
    /// Which way it went.
    pub link: Link,
    /// Counts up by one per probe of this link; one that is no sample leaves a gap.
    pub seq: u64,
    /// When it was sent, on the monotonic clock.
    pub sent_ns: u64,
    /// From sending to arrival at the receiving host's socket; `None` if it did not arrive in time.
    pub delay_ns: Option<u64>,
    /// How often it arrived: within the longest that its link may hold it, but at most a second.
    pub copies: u8,
    /// It arrived after a probe that was sent later.
    pub reordered: bool,
}

/// How well the prober itself did since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProbeHealth {
    /// Probes sent.
    pub sent: u64,
    /// Of these, sent more than [`Probes::LATE`] after their time.
    pub late_sends: u64,
    /// The latest of all, in nanoseconds after its time.
    pub worst_lateness_ns: u64,
    /// Probes not sent because the next of the same link was due already.
    pub skipped: u64,
    /// Probes that the sending host's kernel refused.
    pub send_errors: u64,
    /// Arrivals of probes that had been given up as lost.
    pub late_answers: u64,
    /// Probes that are no samples: nobody drained them in time, or nobody knows when they arrived, because the wall
    /// clock (on which the kernel stamps them) was stepped meanwhile.
    pub discarded: u64,
    /// Probes that arrived where the receiving socket had no room left, because the prober did not run for seconds.
    /// As many that did not arrive are left out of the samples: the network did not lose them.
    pub overflowed: u64,
}

/// Probes that run until this is dropped.
#[derive(Debug)]
pub struct Probes {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    scheduling: Scheduling,
    interval: Duration,
    emulator: Emulator,
}

#[derive(Debug, Default)]
struct Shared {
    settled: Mutex<Vec<ProbeSample>>,
    stop: AtomicBool,
    health: Health,
}

/// [`ProbeHealth`], as the thread keeps it.
#[derive(Debug, Default)]
struct Health {
    sent: AtomicU64,
    late_sends: AtomicU64,
    worst_lateness_ns: AtomicU64,
    skipped: AtomicU64,
    send_errors: AtomicU64,
    late_answers: AtomicU64,
    discarded: AtomicU64,
    overflowed: AtomicU64,
}

impl Probes {
    /// A probe that has not arrived after this and the longest that its link may hold it counts as lost.
    pub const LOST_AFTER: Duration = Duration::from_secs(2);

    /// A probe sent this much after its time was sent late; its delay counts from when it was
    /// really sent, so it is still a true sample.
    pub const LATE: Duration = Duration::from_millis(1);

    /// The most probes a second over all links: more would be a load of their own.
    pub const BUDGET: u32 = 2_000;

    /// The shortest interval at which this many links can be probed.
    pub fn shortest_interval(links: usize) -> Duration {
        Duration::from_secs(1) * u32::try_from(links).unwrap_or(u32::MAX) / Self::BUDGET
    }

    /// Starts to probe every link of `network` once per `interval`, spread evenly to within 2 ms.
    ///
    /// # Errors
    /// [`NetworkError::ProbeBudget`] when `interval` is below [`Probes::shortest_interval`];
    /// [`NetworkError::Probe`] when a host's socket cannot be made.
    pub fn start(network: &Network, interval: Duration) -> Result<Probes, NetworkError> {
        Self::start_on(network, &network.links(), interval)
    }

    /// The same for some of its links only; one that is named twice is probed once.
    ///
    /// # Errors
    /// The same, and [`NetworkError::NoSuchLink`].
    pub fn start_on(network: &Network, links: &[Link], interval: Duration) -> Result<Probes, NetworkError> {
        let links = Places::of(network.hosts().len(), links)?;
        let shortest = Self::shortest_interval(links.len()).max(Duration::from_micros(1));
        if interval < shortest {
            return Err(NetworkError::ProbeBudget { links: links.len(), interval, budget: Self::BUDGET, shortest });
        }
        let sockets = network.hosts().iter().map(Socket::open).collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(Shared::default());
        let prober = Prober::new(sockets, links, interval, network.control(), Arc::clone(&shared));
        let realtime = matches!(network.realtime(), Scheduling::Fifo(_));
        let (announce, announced) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("prober".to_owned())
            .spawn(move || {
                let scheduling = sys::schedule(realtime.then_some(FIFO_PRIORITY));
                let _ = announce.send(scheduling);
                prober.run();
            })
            .map_err(|source| NetworkError::Emulator { action: "start the prober's thread", source })?;
        let scheduling = announced.recv().unwrap_or(Scheduling::Default);
        Ok(Probes { shared, thread: Some(thread), scheduling, interval, emulator: network.control() })
    }

    /// All samples that settled since this was last called: answered, or too old to be answered.
    /// Samples of a link come in no particular order; `seq` tells it.
    pub fn drain(&self) -> Vec<ProbeSample> {
        std::mem::take(&mut *self.shared.settled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How well the prober itself did.
    pub fn health(&self) -> ProbeHealth {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Health { sent, late_sends, worst_lateness_ns, skipped, send_errors, late_answers, discarded, overflowed } =
            &self.shared.health;
        ProbeHealth {
            sent: read(sent),
            late_sends: read(late_sends),
            worst_lateness_ns: read(worst_lateness_ns),
            skipped: read(skipped),
            send_errors: read(send_errors),
            late_answers: read(late_answers),
            discarded: read(discarded),
            overflowed: read(overflowed),
        }
    }

    /// How urgently the prober really runs.
    pub fn realtime(&self) -> Scheduling {
        self.scheduling
    }

    /// How long it takes until all that was sent before now has settled: been seen to arrive, or counted as lost. By the
    /// impairments in force now, of whatever link; later ones may change it.
    ///
    /// Whoever stops draining earlier has seen all that arrived and not all that was lost.
    pub fn settles_within(&self) -> Duration {
        let collected = Duration::from_nanos(2 * prober::COLLECT_NS);
        Self::LOST_AFTER.saturating_add(Duration::from_nanos(self.emulator.longest_hold_ns())).saturating_add(collected)
    }

    /// How often each link is probed.
    pub fn interval(&self) -> Duration {
        self.interval
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the prober has already been printed by its own thread.
            let _ = thread.join();
        }
    }
}

impl Socket {
    /// A socket inside of `host`; it can be used from anywhere.
    fn open(host: &crate::Host) -> Result<Socket, NetworkError> {
        let failed = |action| {
            move |source| NetworkError::Probe { host: host.name().to_owned(), address: host.address(), action, source }
        };
        let socket = host
            .run(|| ProbeSocket::bind(host.address()))
            .map_err(failed("enter the host"))?
            .map_err(failed("open a UDP socket with receive times"))?;
        let port = socket.port().map_err(failed("read its port"))?;
        Ok(Socket { socket, address: std::net::SocketAddrV4::new(host.address(), port) })
    }
}
