//! The whole: hosts, the emulator between them, and their end.

mod attached;
mod check;
mod spec;

use std::{
    fs::File,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::FileExt,
    sync::Arc,
    thread::JoinHandle,
};

use brownout_base::{EnterableHost, HostId, Link, LongestHold, Mesh};
use brownout_machine::Scheduling;

use self::check::check;
pub use self::spec::NetworkSpec;
use crate::{
    attach::Attachment,
    counters::HostCounters,
    emulator::{self, Announcement, Emulator, Port, Routes},
    error::NetworkError,
    host::{ChecksumErrors, Host, HostSpec, Settings},
    limits::{ETHERNET_MTU, FILES_PER_HOST, allow_files},
    overlay::{self, Overlay, OverlayNetwork, ServiceHost},
    subnet::Subnet,
};

/// What an overlay takes beside: a TUN, two sockets, and what children are given.
const FILES_PER_OVERLAY_HOST: u64 = 6;

/// A network that runs. Dropping it cuts all links; its hosts vanish with their last process. One that is attached to hosts
/// of others leaves them as they were: see [`Network::attach`].
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    services: Vec<ServiceHost>,
    overlay: Option<OverlayNetwork>,
    mtu: u16,
    emulator: Emulator,
    thread: Option<JoinHandle<()>>,
    scheduling: Scheduling,
    schedstat: Option<File>,
    /// What diverts packets, in a network that others have made.
    attachment: Option<Attachment>,
}

impl Network {
    /// Makes all hosts, with a link between every ordered pair, nothing impaired.
    ///
    /// Needs `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` in the caller's user namespace and `/dev/net/tun`.
    /// The caller's own network namespace is not touched.
    ///
    /// Raises the limit of open files of this process, as far as the hosts need it and it may. Programs that it starts from
    /// then on inherit that limit, unless they are given their own.
    ///
    /// # Errors
    /// See [`NetworkError`]; nothing of a network that could not be made stays.
    pub fn start(spec: NetworkSpec) -> Result<Network, NetworkError> {
        Network::start_within(spec, None)
    }

    /// The same for one of several networks: this much of the machine's memory is its share, in bytes, of which packets on
    /// their way may take a part. None: all that is available.
    ///
    /// # Errors
    /// As of [`Network::start`].
    pub fn start_within(spec: NetworkSpec, memory: Option<u64>) -> Result<Network, NetworkError> {
        check(&spec)?;
        let files_per_host = FILES_PER_HOST + if spec.overlay.is_some() { FILES_PER_OVERLAY_HOST } else { 0 };
        allow_files(spec.hosts.len(), files_per_host * spec.hosts.len() as u64)?;
        let settings = Settings {
            subnet: Subnet::of(spec.hosts.iter().map(|host| host.address))?,
            subnet6: Subnet::of6(spec.hosts.iter().map(HostSpec::address6))?,
            mtu: spec.mtu,
            congestion_control: spec.congestion_control.as_deref(),
            has_overlay: spec.overlay.is_some(),
        };
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        for (id, host) in (0..).map(HostId).zip(&spec.hosts) {
            let (host, tun) = Host::start(id, host, &settings)?;
            hosts.push(host);
            ports.push((id, Port::Tun(tun)));
        }
        // Where there is no IPv6, nobody sends to the second ones.
        let addresses = (0..)
            .map(HostId)
            .zip(&spec.hosts)
            .flat_map(|(id, host)| [IpAddr::from(host.address), host.address6().into()].map(|address| (address, id)));
        let routes = Routes::new(addresses, None);
        let (emulator, thread, announcement) =
            emulator::start(hosts.len(), ports, routes, spec.seed, spec.realtime, memory)?;
        let Announcement { scheduling, schedstat } = announcement;
        let services = hosts.iter().cloned().map(ServiceHost).collect();
        // Whole before there is an overlay: if that fails, this ends the emulator.
        let mut network = Network {
            hosts,
            services,
            overlay: None,
            mtu: spec.mtu,
            emulator,
            thread: Some(thread),
            scheduling,
            schedstat,
            attachment: None,
        };
        network.overlay = spec.overlay.map(|kind| network.start_overlay(kind, &spec)).transpose()?;
        Ok(network)
    }

    fn start_overlay(&self, kind: Overlay, spec: &NetworkSpec) -> Result<OverlayNetwork, NetworkError> {
        let common = &spec.congestion_control;
        let algorithm = |host: &HostSpec| host.congestion_control.clone().or_else(|| common.clone());
        let settings = overlay::Settings {
            kind,
            below: spec.mtu,
            subnet: Subnet::of(spec.hosts.iter().map(HostSpec::service))?,
            congestion_controls: spec.hosts.iter().map(algorithm).collect(),
            realtime: spec.realtime,
            emulator: self.emulator.clone(),
        };
        OverlayNetwork::start(&self.hosts, settings)
    }

    /// One of no hosts, for whoever works on hosts that are not ours: nothing is made, no right is needed, and its emulator has
    /// nothing to carry.
    ///
    /// # Errors
    /// [`NetworkError::Emulator`] when its thread cannot be started.
    pub fn without_hosts() -> Result<Network, NetworkError> {
        let (emulator, thread, announcement) = emulator::start(0, Vec::new(), Routes::default(), 0, false, None)?;
        let Announcement { scheduling, schedstat } = announcement;
        Ok(Network {
            hosts: Vec::new(),
            services: Vec::new(),
            overlay: None,
            mtu: ETHERNET_MTU,
            emulator,
            thread: Some(thread),
            scheduling,
            schedstat,
            attachment: None,
        })
    }

    /// All hosts, in the order of their specification.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The largest IP packet that a host sends, in bytes; a link may take less.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// The overlay on it, if it has one: the same hosts and links, by their service addresses.
    pub fn overlay(&self) -> Option<&OverlayNetwork> {
        self.overlay.as_ref()
    }

    /// A host by the address at which others reach what runs on it: that on the overlay, if there is one; `None` if there is
    /// no such host.
    pub fn service_host(&self, name: &str) -> Option<&dyn EnterableHost> {
        self.services.iter().find(|host| host.0.name() == name).map(|host| host as &dyn EnterableHost)
    }

    /// That address; `None` if there is no such host.
    pub fn service_address(&self, host: HostId) -> Option<Ipv4Addr> {
        self.hosts.get(host.index()).map(Host::service)
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name() == name)
    }

    /// The link from one host to another, by name; `None` if a name is unknown or both are the same.
    pub fn link(&self, from: &str, to: &str) -> Option<Link> {
        let link = Link { from: self.host(from)?.id(), to: self.host(to)?.id() };
        (link.from != link.to).then_some(link)
    }

    /// The name of a host of this network.
    pub fn name(&self, host: HostId) -> Option<&str> {
        self.hosts.get(host.index()).map(Host::name)
    }

    /// Every ordered pair of hosts.
    pub fn links(&self) -> Vec<Link> {
        Link::all(self.hosts.len())
    }

    /// A handle by which links are impaired and asked; any number may exist, on any thread.
    pub fn control(&self) -> Emulator {
        self.emulator.clone()
    }

    /// How urgently the emulator really runs.
    pub fn realtime(&self) -> Scheduling {
        self.scheduling
    }

    /// Nanoseconds that the emulator's thread could have run and was not let to, since it was started. Only what a
    /// packet waits inside of the emulator is in [`crate::LinkCounters`]; this also tells of packets that wait to be
    /// read. `None` where the kernel does not tell.
    pub fn waited_ns(&self) -> Option<u64> {
        let mut text = [0u8; 128];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        run_delay_ns(&String::from_utf8_lossy(&text[..length]))
    }

    /// What each host sent that never reached a link, and what got lost in it on the way to or from an overlay.
    ///
    /// # Errors
    /// [`NetworkError::EmulatorGone`].
    pub fn host_counters(&self) -> Result<Vec<HostCounters>, NetworkError> {
        let unroutable = self.emulator.unroutable()?;
        let counters = self.hosts.iter().zip(unroutable).map(|(host, unroutable)| {
            let by_overlay = self.overlay.as_ref().map_or(0, |overlay| overlay.dropped(host));
            let interface_dropped = host.interface_dropped().map(|dropped| dropped + by_overlay);
            HostCounters { host: host.id(), unroutable, interface_dropped }
        });
        Ok(counters.collect())
    }

    /// What a host's kernel threw away because a checksum was wrong, since the network was started. Takes some 100 µs.
    ///
    /// # Errors
    /// [`NetworkError::NoSuchHost`]; [`NetworkError::Statistics`] when the kernel's counters cannot be read.
    pub fn checksum_errors(&self, host: HostId) -> Result<ChecksumErrors, NetworkError> {
        let unknown = || NetworkError::NoSuchHost { host: host.0, hosts: self.hosts.len() };
        let host = self.hosts.get(host.index()).ok_or_else(unknown)?;
        let failed = |source| NetworkError::Statistics { host: host.name().to_owned(), source };
        host.checksum_errors().map_err(failed)
    }
}

impl Mesh for Network {
    fn enterable_hosts(&self) -> Vec<&dyn EnterableHost> {
        self.hosts.iter().map(|host| host as &dyn EnterableHost).collect()
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn is_realtime(&self) -> bool {
        matches!(self.scheduling, Scheduling::Fifo(_))
    }

    fn holds(&self) -> Arc<dyn LongestHold> {
        Arc::new(self.control())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // First what is on top of it.
        drop(self.overlay.take());
        if let Some(attachment) = self.attachment.take() {
            attachment.end(&self.emulator);
        }
        self.emulator.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the emulator has already been printed by its own thread.
            let _ = thread.join();
        }
    }
}

/// The second number of a thread's schedstat (Linux, Documentation/scheduler/sched-stats.rst): nanoseconds runnable but
/// not running.
fn run_delay_ns(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_a_thread_waited_is_the_second_number_of_its_schedstat() {
        assert_eq!(run_delay_ns("341548139 10372222 30\n"), Some(10_372_222));
        assert_eq!(run_delay_ns(""), None);
    }

    #[test]
    fn a_network_of_no_hosts_has_no_links_and_needs_no_rights() {
        let network = Network::without_hosts().unwrap();
        assert_eq!((network.hosts().len(), network.links(), network.host("n1").is_some()), (0, Vec::new(), false));
        assert!(crate::LinkControl::take_counters(&network.control()).unwrap().is_empty());
        assert!(network.host_counters().unwrap().is_empty());
    }
}
