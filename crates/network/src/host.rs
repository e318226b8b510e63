//! Hosts: a network namespace each, with one interface whose other end the emulator holds.

mod build;
mod statistics;

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr},
    os::fd::OwnedFd,
    process::Command,
    sync::Arc,
    thread,
};

pub(crate) use build::{Settings, route_overlay, tun_error};
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
    address: Ipv4Addr,
    address6: Option<Ipv6Addr>,
    /// On the overlay.
    service: Option<Ipv4Addr>,
    namespace: Arc<OwnedFd>,
    congestion_control: String,
    statistics: Statistics,
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

    /// Its address on the lab's network.
    pub fn address(&self) -> Ipv4Addr {
        self.0.address
    }

    /// Where others reach what runs on it: its address on the overlay, or, without one, [`Host::address`].
    pub fn service(&self) -> Ipv4Addr {
        self.0.service.unwrap_or(self.0.address)
    }

    /// Its IPv6 address there: as specified, else `fd77:6272:6f77::` with the 32 bits of [`Host::address`] at its end.
    /// `None` on a machine without IPv6, and where the MTU is below the 1280 bytes that IPv6 demands (RFC 8200).
    pub fn address6(&self) -> Option<Ipv6Addr> {
        self.0.address6
    }

    /// The TCP congestion control that its connections to other hosts use, as a socket reported it.
    pub fn congestion_control(&self) -> &str {
        &self.0.congestion_control
    }

    /// Moves the calling thread into this host, for good.
    ///
    /// # Errors
    /// The kernel's, when the thread lacks `CAP_SYS_ADMIN` over the host's user namespace.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter(&self.0.namespace)
    }

    /// Makes `command` run in this host whenever it is spawned; it keeps the namespace alive until it is dropped.
    pub fn prepare(&self, command: &mut Command) {
        sys::prepare(Arc::clone(&self.0.namespace), command);
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

    /// What its kernel counted.
    pub(crate) fn statistics(&self) -> &Statistics {
        &self.0.statistics
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
}
