//! The whole: hosts, the emulator between them, and their end.

use std::{
    collections::HashSet,
    fs::File,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::fs::FileExt,
    sync::Arc,
    thread::JoinHandle,
};

use brownout_base::{EnterableHost, HostId, Link, LongestHold, Mesh};
use brownout_machine::{Scheduling, open_files, raise_file_limit};

use crate::{
    attach::Attachment,
    control::Emulator,
    counters::HostCounters,
    emulator::{self, Announcement, Port, Routes},
    error::NetworkError,
    host::{ChecksumErrors, Host, HostSpec, Settings},
    overlay::{self, Overlay, OverlayNetwork, ServiceHost},
    subnet::{Subnet, carrier_address},
};

/// What IPv4 demands of every link (RFC 791).
const SMALLEST_MTU: u16 = 68;
/// Of a network that nobody sends on.
pub(crate) const ETHERNET_MTU: u16 = 1_500;
/// A TUN carries no more.
pub(crate) const LARGEST_MTU: u16 = 65_521;
/// Every ordered pair has state of its own; this many hosts have a million pairs.
pub(crate) const MOST_HOSTS: usize = 1_000;
/// What one host takes: its TUN (if it has one), its namespace, five of its kernel's counters, the sockets of its probes and
/// trains, and what a lab may open in it (NTP, heartbeats).
pub(crate) const FILES_PER_HOST: u64 = 13;
/// What an overlay takes beside: a TUN, two sockets, and what children are given.
const FILES_PER_OVERLAY_HOST: u64 = 6;
/// What this process opens beside.
const OTHER_FILES: u64 = 128;

/// A network to be made.
#[derive(Debug, Clone)]
pub struct NetworkSpec {
    /// All hosts. Names and addresses are unique.
    pub hosts: Vec<HostSpec>,
    /// The largest IP packet on any link, in bytes; 1500 as on Ethernet.
    pub mtu: u16,
    /// The TCP congestion control of connections between hosts, for those without [`HostSpec::congestion_control`];
    /// `None` leaves the kernel's default.
    pub congestion_control: Option<String>,
    /// Whatever is random on a link follows from this and from the link alone.
    pub seed: u64,
    /// Try to run the emulator with `SCHED_FIFO`; see [`Network::realtime`] for what came of it.
    pub realtime: bool,
    /// A second network on top of this one; see [`Network::overlay`].
    pub overlay: Option<Overlay>,
}

/// A network that runs. Dropping it cuts all links; its hosts vanish with their last process. One that is attached to hosts
/// of others leaves them as they were: see [`Network::attach`].
#[derive(Debug)]
pub struct Network {
    pub(crate) hosts: Vec<Host>,
    pub(crate) services: Vec<ServiceHost>,
    pub(crate) overlay: Option<OverlayNetwork>,
    pub(crate) mtu: u16,
    pub(crate) emulator: Emulator,
    pub(crate) thread: Option<JoinHandle<()>>,
    pub(crate) scheduling: Scheduling,
    pub(crate) schedstat: Option<File>,
    /// What diverts packets, in a network that others have made.
    pub(crate) attachment: Option<Attachment>,
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

/// Lets this process open what so many hosts take: `more` files than it has open now.
pub(crate) fn allow_files(hosts: usize, more: u64) -> Result<(), NetworkError> {
    let needed = open_files() + OTHER_FILES + more;
    raise_file_limit(needed).map_err(|(limit, source)| NetworkError::OpenFiles { hosts, needed, limit, source })
}

fn check(spec: &NetworkSpec) -> Result<(), NetworkError> {
    let refuse = |message: String| Err(NetworkError::Spec(message));
    if spec.hosts.is_empty() || spec.hosts.len() > MOST_HOSTS {
        return refuse(format!("it has {} hosts; give it 1 to {MOST_HOSTS}", spec.hosts.len()));
    }
    if !(SMALLEST_MTU..=LARGEST_MTU).contains(&spec.mtu) {
        return refuse(format!("an MTU of {} bytes is impossible; choose {SMALLEST_MTU} to {LARGEST_MTU}", spec.mtu));
    }
    let (mut names, mut addresses) = (HashSet::new(), HashSet::<IpAddr>::new());
    for host in &spec.hosts {
        let HostSpec { name, address, .. } = host;
        // As a DNS label or a file name may be: it becomes both.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return refuse(format!(
                "the host at {address} cannot be named {name:?}; use letters, digits, '-', '_' and '.', at least one"
            ));
        }
        if !names.insert(name) {
            return refuse(format!("two hosts are named {name}"));
        }
        for (address, usable, advice) in [
            (IpAddr::from(*address), is_usable(*address), "10.0.0.1"),
            (host.address6().into(), is_usable6(host.address6()), "fd77:6272:6f77::1"),
        ] {
            if !addresses.insert(address) {
                return refuse(format!("two hosts have the address {address}, one of them {name}"));
            }
            if !usable {
                return refuse(format!(
                    "host {name} cannot have the address {address}; choose a private one, such as {advice}"
                ));
            }
        }
    }
    spec.overlay.map_or(Ok(()), |overlay| check_overlay(overlay, spec))
}

fn check_overlay(overlay: Overlay, spec: &NetworkSpec) -> Result<(), NetworkError> {
    let refuse = |message: String| Err(NetworkError::Spec(message));
    overlay.check(spec.mtu, spec.hosts.len()).or_else(refuse)?;
    let mut services = HashSet::new();
    for host in &spec.hosts {
        let HostSpec { name, .. } = host;
        let service = host.service();
        if !services.insert(service) {
            return refuse(format!("two hosts have the address {service} on the overlay, one of them {name}"));
        }
        if !is_usable(service) {
            return refuse(format!(
                "host {name} cannot have the address {service} on the overlay; choose a private one, such as 10.78.0.1"
            ));
        }
    }
    let mut ranges = vec![
        ("its hosts' addresses", Subnet::of(spec.hosts.iter().map(|host| host.address))?),
        ("those on the overlay", Subnet::of(spec.hosts.iter().map(HostSpec::service))?),
    ];
    if overlay == Overlay::WireguardVxlan {
        let carriers = || spec.hosts.iter().map(|host| carrier_address(host.address));
        let mut known = HashSet::new();
        if let Some(twice) = carriers().find(|carrier| !known.insert(*carrier)) {
            return refuse(format!(
                "two hosts have the address {twice} inside of WireGuard, which ends as theirs; choose addresses that differ in \
                 their last two numbers"
            ));
        }
        ranges.push(("those inside of WireGuard", Subnet::of(carriers())?));
    }
    for (at, (name, range)) in ranges.iter().enumerate() {
        if let Some((other, same)) = ranges[..at].iter().find(|(_, before)| before.overlaps(*range)) {
            return refuse(format!(
                "{other} ({}/{}) and {name} ({}/{}) overlap; choose them from two private ranges, such as 10.77.0.0/16 and \
                 10.78.0.0/16",
                same.address, same.prefix, range.address, range.prefix
            ));
        }
    }
    if let (true, [hub, others @ ..]) = (overlay.has_hub(), &spec.hosts[..])
        && others.iter().any(|host| host.service() < hub.service())
    {
        return refuse(format!(
            "{}, through which {overlay} takes all packets, needs the lowest address on the overlay, and has {}",
            hub.name,
            hub.service()
        ));
    }
    Ok(())
}

fn is_usable(address: Ipv4Addr) -> bool {
    !(address.is_loopback() || address.is_multicast() || address.octets()[0] == 0 || address.octets()[0] >= 240)
}

fn is_usable6(address: Ipv6Addr) -> bool {
    // ::/96 holds the unspecified address, the loopback and the long dead IPv4-compatible ones.
    let reserved = address.to_ipv4().is_some();
    !(reserved || address.is_multicast() || address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(hosts: &[(&str, &str)]) -> NetworkSpec {
        let host = |(name, address): &(&str, &str)| HostSpec::new(*name, address.parse().unwrap());
        NetworkSpec {
            hosts: hosts.iter().map(host).collect(),
            mtu: 1500,
            congestion_control: None,
            seed: 1,
            realtime: false,
            overlay: None,
        }
    }

    #[test]
    fn a_network_that_cannot_be_is_refused_with_its_reason() {
        for (hosts, reason) in [
            (&[][..], "0 hosts"),
            (&[("", "10.0.0.1")], "cannot be named"),
            (&[("a\0", "10.0.0.1")], "cannot be named"),
            (&[("a/b", "10.0.0.1")], "cannot be named"),
            (&[("a", "10.0.0.1"), ("a", "10.0.0.2")], "two hosts are named a"),
            (&[("a", "10.0.0.1"), ("b", "10.0.0.1")], "address 10.0.0.1"),
            (&[("a", "127.0.0.1")], "cannot have the address"),
            (&[("a", "224.0.0.1")], "cannot have the address"),
            (&[("a", "0.0.0.0")], "cannot have the address"),
            (&[("a", "255.255.255.255")], "cannot have the address"),
            (&[("a", "10.0.0.1"), ("b", "192.168.0.1")], "private range"),
        ] {
            let error = Network::start(spec(hosts)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn an_ipv6_address_that_cannot_be_is_refused_with_its_reason() {
        for (address6, reason) in [
            ("fd77:6272:6f77::a00:1", "two hosts have the address fd77:6272:6f77::a00:1"),
            ("::1", "cannot have the address"),
            ("::ffff:10.0.0.9", "cannot have the address"),
            ("ff02::1", "cannot have the address"),
            ("fe80::1", "cannot have the address"),
            ("2001:db8::1", "private range"),
        ] {
            let NetworkSpec { hosts, .. } = spec(&[("a", "10.0.0.1"), ("b", "10.0.0.2")]);
            let [a, b] = <[HostSpec; 2]>::try_from(hosts).unwrap();
            let hosts = vec![a, HostSpec { address6: address6.parse().ok(), ..b }];
            let error = Network::start(NetworkSpec { hosts, ..spec(&[]) }).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_time_a_thread_waited_is_the_second_number_of_its_schedstat() {
        assert_eq!(run_delay_ns("341548139 10372222 30\n"), Some(10_372_222));
        assert_eq!(run_delay_ns(""), None);
    }

    #[test]
    fn an_overlay_that_cannot_be_is_refused_with_its_reason() {
        let two = [("n1", "10.77.0.1"), ("n2", "10.77.0.2")];
        let refused = |overlay, change: fn(&mut NetworkSpec)| {
            let mut spec = NetworkSpec { overlay: Some(overlay), ..spec(&two) };
            change(&mut spec);
            Network::start(spec).unwrap_err().to_string()
        };
        for (reason, error) in [
            ("at least 626", refused(Overlay::Vxlan, |spec| spec.mtu = 600)),
            (
                "two hosts have the address 10.78.0.1",
                refused(Overlay::Wireguard, |spec| {
                    spec.hosts[1].service = spec.hosts.first().map(HostSpec::service);
                }),
            ),
            (
                "overlap",
                refused(Overlay::Vxlan, |spec| {
                    spec.hosts[0].service = Some(Ipv4Addr::new(10, 77, 0, 3));
                    spec.hosts[1].service = Some(Ipv4Addr::new(10, 77, 0, 2));
                }),
            ),
            (
                "two hosts have the address 10.79.0.1 inside of WireGuard",
                refused(Overlay::WireguardVxlan, |spec| {
                    spec.hosts[1].address = Ipv4Addr::new(10, 76, 0, 1);
                    spec.hosts[1].service = Some(Ipv4Addr::new(10, 78, 0, 2));
                }),
            ),
            (
                "those on the overlay (10.79.0.0/30) and those inside of WireGuard (10.79.0.0/30) overlap",
                refused(Overlay::WireguardVxlan, |spec| {
                    spec.hosts[0].service = Some(Ipv4Addr::new(10, 79, 0, 2));
                    spec.hosts[1].service = Some(Ipv4Addr::new(10, 79, 0, 3));
                }),
            ),
            ("lowest address", refused(Overlay::Openvpn, |spec| spec.hosts.swap(0, 1))),
        ] {
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(HostSpec::new("n1", [10, 77, 0, 7].into()).service(), Ipv4Addr::new(10, 78, 0, 7));
    }

    #[test]
    fn a_network_of_no_hosts_has_no_links_and_needs_no_rights() {
        let network = Network::without_hosts().unwrap();
        assert_eq!((network.hosts().len(), network.links(), network.host("n1").is_some()), (0, Vec::new(), false));
        assert!(crate::LinkControl::take_counters(&network.control()).unwrap().is_empty());
        assert!(network.host_counters().unwrap().is_empty());
    }

    #[test]
    fn an_impossible_mtu_is_refused() {
        for mtu in [0, 67, 65_522] {
            let spec = NetworkSpec { mtu, ..spec(&[("a", "10.0.0.1")]) };
            assert!(Network::start(spec).unwrap_err().to_string().contains("MTU"));
        }
    }
}
