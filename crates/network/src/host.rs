//! Hosts: a network namespace each, with one interface whose other end the emulator holds; or one that others have made.

mod build;
mod statistics;

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr},
    os::fd::OwnedFd,
    process::Command,
    sync::{Arc, PoisonError, RwLock},
    thread,
};

pub(crate) use build::{INTERFACE_QUEUE, Settings, route_overlay, tun_error};
pub use statistics::ChecksumErrors;

use brownout_base::{EnterableHost, HostId};

use self::statistics::Statistics;
use crate::{
    error::NetworkError,
    subnet,
    sys::{self, Tun},
};

/// The name of every host's interface, as `ip addr` shows it there.
pub const INTERFACE: &str = "lab0";

/// A host to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    /// Unique in its network.
    pub name: String,
    /// Unique in its network; hosts reach each other by it, and nothing else.
    pub address: Ipv4Addr,
    /// The same for IPv6; `None` for `fd77:6272:6f77::` with the 32 bits of the IPv4 address at its end.
    pub address6: Option<Ipv6Addr>,
    /// The TCP congestion control of its connections to other hosts, through an overlay as well; `None` for the network's.
    pub congestion_control: Option<String>,
    /// Its address on the overlay, if the network has one; `None` for what [`crate::overlay::service_address`] makes of
    /// `address`.
    pub service: Option<Ipv4Addr>,
}

impl HostSpec {
    /// A host with an IPv6 address that follows from its IPv4 address, and the network's congestion control.
    pub fn new(name: impl Into<String>, address: Ipv4Addr) -> Self {
        HostSpec { name: name.into(), address, address6: None, congestion_control: None, service: None }
    }

    /// The address that it will have on an overlay.
    pub(crate) fn service(&self) -> Ipv4Addr {
        self.service.unwrap_or_else(|| subnet::service_address(self.address))
    }

    /// The IPv6 address that it will have, where the machine has IPv6.
    pub(crate) fn address6(&self) -> Ipv6Addr {
        self.address6.unwrap_or_else(|| subnet::derived(self.address))
    }
}

/// A host that runs. Clones are the same host; its namespace lasts as long as a clone, or a process in it.
#[derive(Debug, Clone)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: HostId,
    name: String,
    /// On the overlay.
    service: Option<Ipv4Addr>,
    congestion_control: String,
    /// Stays as it is, but for a host that others have made, and have made anew.
    home: RwLock<Arc<Home>>,
}

/// Where a host is.
#[derive(Debug)]
struct Home {
    address: Ipv4Addr,
    address6: Option<Ipv6Addr>,
    namespace: Arc<OwnedFd>,
    statistics: Statistics,
    /// The interfaces by which its packets come to the emulator.
    interfaces: Vec<String>,
    /// Packets wait for the emulator in its kernel, which has stamped their arrival.
    holds_arrived: bool,
    /// It is on another machine.
    is_elsewhere: bool,
    /// What its kernel had counted before we came.
    before: ChecksumErrors,
}

/// A host that others have made, as it was found.
pub(crate) struct Found {
    /// The first of its IPv4 addresses.
    pub(crate) address: Ipv4Addr,
    /// The first of its IPv6 addresses.
    pub(crate) address6: Option<Ipv6Addr>,
    pub(crate) namespace: Arc<OwnedFd>,
    /// The devices of the exits.
    pub(crate) interfaces: Vec<String>,
    /// See [`EnterableHost::holds_arrived`].
    pub(crate) holds_arrived: bool,
    /// It is on another machine, and the namespace is any.
    pub(crate) is_elsewhere: bool,
}

impl Found {
    /// Runs on a thread that is in its namespace.
    pub(crate) fn into_host(self, id: HostId, name: String) -> io::Result<Host> {
        let congestion_control = sys::default_congestion_control()?;
        let home = RwLock::new(Arc::new(self.home()));
        Ok(Host(Arc::new(Inner { id, name, service: None, congestion_control, home })))
    }

    /// Runs there, too: the same host from now on is here.
    pub(crate) fn replaces(self, host: &Host) {
        let home = Arc::new(self.home());
        *host.0.home.write().unwrap_or_else(PoisonError::into_inner) = home;
    }

    fn home(self) -> Home {
        let statistics = Statistics::open();
        // If they cannot be read now, then later neither, and that is told.
        let before = statistics.checksum_errors().unwrap_or_default();
        let Found { address, address6, namespace, interfaces, holds_arrived, is_elsewhere } = self;
        Home { address, address6, namespace, statistics, interfaces, holds_arrived, is_elsewhere, before }
    }
}

impl Host {
    /// Makes a host and the device by which the emulator reaches it.
    pub(crate) fn start(id: HostId, spec: &HostSpec, settings: &Settings) -> Result<(Host, Tun), NetworkError> {
        // Only a thread of its own can leave the caller's namespace without taking the caller along.
        thread::scope(|scope| {
            thread::Builder::new()
                .name(format!("host-{}", spec.name))
                .spawn_scoped(scope, || build::build(id, spec, settings))
                .map_err(|source| NetworkError::Namespace { host: spec.name.clone(), source })?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Its index in the network.
    pub fn id(&self) -> HostId {
        self.0.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its address on the lab's network; of a host that others have made, the first that they said.
    pub fn address(&self) -> Ipv4Addr {
        self.home().address
    }

    /// Where others reach what runs on it: its address on the overlay, or, without one, [`Host::address`].
    pub fn service(&self) -> Ipv4Addr {
        self.0.service.unwrap_or_else(|| self.address())
    }

    /// Its IPv6 address there: as specified, else `fd77:6272:6f77::` with the 32 bits of [`Host::address`] at its end.
    /// `None` on a machine without IPv6, and where the MTU is below the 1280 bytes that IPv6 demands (RFC 8200).
    pub fn address6(&self) -> Option<Ipv6Addr> {
        self.home().address6
    }

    /// The TCP congestion control that its connections to other hosts use, as a socket reported it; of a host that others have
    /// made, when it was attached to.
    pub fn congestion_control(&self) -> &str {
        &self.0.congestion_control
    }

    /// Moves the calling thread into this host, for good.
    ///
    /// # Errors
    /// The kernel's, when the thread lacks `CAP_SYS_ADMIN` over the host's user namespace; and of a host on another machine.
    pub fn enter(&self) -> io::Result<()> {
        let home = self.home();
        if home.is_elsewhere {
            let reason = format!("{} is on another machine, and cannot be entered from this one", self.name());
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        sys::enter(&home.namespace)
    }

    /// Whether it is on another machine: it can only be sent to.
    pub fn is_elsewhere(&self) -> bool {
        self.home().is_elsewhere
    }

    /// Makes `command` run in this host whenever it is spawned; it keeps the namespace alive until it is dropped.
    pub fn prepare(&self, command: &mut Command) {
        sys::prepare(Arc::clone(&self.home().namespace), command);
    }

    /// Runs `work` on a thread inside of this host, and waits for its answer.
    ///
    /// Sockets that it opens stay in the host, wherever they are used later.
    ///
    /// # Errors
    /// When the thread cannot be started or cannot enter. A panic of `work` goes on in the caller.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let inside = || self.enter().map(|()| work());
            thread::Builder::new()
                .name(format!("in-{}", self.0.name))
                .spawn_scoped(scope, inside)?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// What its kernel threw away since it was made, or attached to.
    pub(crate) fn checksum_errors(&self) -> io::Result<ChecksumErrors> {
        let home = self.home();
        if home.is_elsewhere {
            return Ok(ChecksumErrors::default());
        }
        Ok(home.statistics.checksum_errors()?.since(home.before))
    }

    /// Packets that were dropped because the emulator did not read fast enough; `None` where the kernel does not tell.
    pub(crate) fn interface_dropped(&self) -> Option<u64> {
        let home = self.home();
        home.interfaces.iter().map(|interface| home.statistics.interface_dropped(interface)).sum()
    }

    /// Packets that one interface of it dropped at the tail; `None` where the kernel does not tell.
    pub(crate) fn dropped_at(&self, interface: &str) -> Option<u64> {
        self.home().statistics.interface_dropped(interface)
    }

    /// UDP datagrams for which its sockets had no room; `None` where the kernel does not tell.
    pub(crate) fn datagrams_dropped(&self) -> Option<u64> {
        self.home().statistics.datagrams_dropped()
    }

    fn home(&self) -> Arc<Home> {
        Arc::clone(&self.0.home.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl EnterableHost for Host {
    fn name(&self) -> &str {
        self.name()
    }

    fn address(&self) -> Ipv4Addr {
        self.address()
    }

    fn enter(&self) -> io::Result<()> {
        self.enter()
    }

    fn holds_arrived(&self) -> bool {
        self.home().holds_arrived
    }
}
