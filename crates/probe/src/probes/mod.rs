//! Probes: small UDP datagrams on every ordered pair of hosts, all the time.
//!
//! One thread sends and receives them all. A datagram carries the time at which it was sent, and
//! the kernel stamps the time at which it arrived, on the same clock: the difference is the one-way
//! delay, and does not depend on how soon the thread looks.

mod datagram;
mod health;
mod overflow;
mod prober;
mod window;

use std::{
    fmt,
    sync::{Arc, PoisonError, atomic::Ordering},
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::{EnterableHost, HostId, Link, LongestHold, Mesh};
use brownout_machine::{Scheduling, run_urgently};

use self::prober::{Prober, Shared};
pub use self::{health::ProbeHealth, window::ProbeSample};
use crate::{
    error::ProbeError,
    moves::Move,
    selection::{Selection, from_here},
    socket::Socket,
};

/// One below an emulator that carries the packets, so that a probe never delays one.
const FIFO_PRIORITY: u8 = 19;

/// Probes that run until this is dropped.
pub struct Probes {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    scheduling: Scheduling,
    interval: Duration,
    links: Vec<Link>,
    holds: Arc<dyn LongestHold>,
}

impl Probes {
    /// A probe that has not arrived after this and the longest that its link may hold it counts as lost.
    pub const LOST_AFTER: Duration = crate::LOST_AFTER;

    /// A probe sent this much after its time was sent late; its delay counts from when it was
    /// really sent, so it is still a true sample.
    pub const LATE: Duration = prober::LATE;

    /// The most probes a second over all links: more would be a load of their own.
    pub const BUDGET: u32 = 2_000;

    /// The shortest interval at which this many links can be probed.
    pub fn shortest_interval(links: usize) -> Duration {
        Duration::from_secs(1) * u32::try_from(links).unwrap_or(u32::MAX) / Self::BUDGET
    }

    /// Starts to probe every link of `network` that begins on this machine once per `interval`, spread evenly to within 2 ms.
    ///
    /// # Errors
    /// [`ProbeError::Budget`] when `interval` is below [`Probes::shortest_interval`];
    /// [`ProbeError::Socket`] when a host's socket cannot be made.
    pub fn start(network: &dyn Mesh, interval: Duration) -> Result<Probes, ProbeError> {
        let is_here = |link: &Link| network.elsewhere(link.from).is_none();
        let all = Link::all(network.enterable_hosts().len());
        Self::start_on(network, &all.into_iter().filter(is_here).collect::<Vec<_>>(), interval)
    }

    /// The same for some of its links only; one that is named twice is probed once.
    ///
    /// # Errors
    /// The same, and [`ProbeError::NoSuchLink`].
    pub fn start_on(network: &dyn Mesh, links: &[Link], interval: Duration) -> Result<Probes, ProbeError> {
        let selection = Selection::of(network.enterable_hosts().len(), links)?;
        let shortest = Self::shortest_interval(selection.len()).max(Duration::from_micros(1));
        if interval < shortest {
            return Err(ProbeError::Budget { links: selection.len(), interval, budget: Self::BUDGET, shortest });
        }
        from_here(network, selection.links())?;
        let sockets = Socket::open_all(network)?;
        let shared = Arc::new(Shared::default());
        let links = selection.links().to_vec();
        let prober = Prober::new(sockets, selection, interval, network.holds(), Arc::clone(&shared));
        let priority = network.is_realtime().then_some(FIFO_PRIORITY);
        let (announce, announced) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("prober".to_owned())
            .spawn(move || {
                let _ = announce.send(run_urgently(priority));
                prober.run();
            })
            .map_err(|source| ProbeError::Thread { does: "sends probes", source })?;
        let scheduling = announced.recv().unwrap_or(Scheduling::Default);
        Ok(Probes { shared, thread: Some(thread), scheduling, interval, links, holds: network.holds() })
    }

    /// A host's network is gone since that moment of the monotonic clock: what was sent to it or by it from then on, and has not
    /// arrived, is no sample, and nothing more is sent there until [`Probes::came`].
    pub fn left(&self, host: HostId, since_ns: u64) {
        self.shared.moves.tell(Move::Left { host, since_ns });
    }

    /// A host that had left is there again, in the network and with the address that `there` has: it is probed as before.
    ///
    /// # Errors
    /// [`ProbeError::Socket`] when its socket cannot be made; it stays left.
    pub fn came(&self, host: HostId, there: &dyn EnterableHost) -> Result<(), ProbeError> {
        let (there, ()) = Socket::open_in(there, || ())?;
        self.shared.moves.tell(Move::Came { host, there });
        Ok(())
    }

    /// The same of a host on another machine, which is where its arrivals say.
    pub fn back(&self, host: HostId) {
        self.shared.moves.tell(Move::Back { host });
    }

    /// All samples that settled since this was last called: answered, or too old to be answered.
    /// Samples of a link come in no particular order; `seq` tells it.
    pub fn drain(&self) -> Vec<ProbeSample> {
        std::mem::take(&mut *self.shared.settled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The links that are probed, in the network's order.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// How well the prober itself did.
    pub fn health(&self) -> ProbeHealth {
        self.shared.health.read()
    }

    /// How urgently the prober really runs.
    pub fn realtime(&self) -> Scheduling {
        self.scheduling
    }

    /// How long it takes until all that was sent before now has settled: been seen to arrive, or counted as lost. By what
    /// is in force on its links now; later impairments may change it.
    ///
    /// Whoever stops draining earlier has seen all that arrived and not all that was lost.
    pub fn settles_within(&self) -> Duration {
        let longest = self.links.iter().map(|link| self.holds.longest_hold_of_ns(*link)).max().unwrap_or(0);
        Self::LOST_AFTER + Duration::from_nanos(longest) + Duration::from_nanos(2 * prober::COLLECT_NS)
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

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probes")
            .field("links", &self.links.len())
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}
