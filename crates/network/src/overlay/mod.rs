//! Overlays: a second network on top of the emulated one, as clusters in clouds and containers have it.
//!
//! Every host gets an address more, its *service address*, by which others reach it through the overlay. What the overlay
//! makes of it passes the emulated links like anything else. All of it lives in the hosts' namespaces and in this process and
//! its children, and goes with them.

mod certificates;
mod coalesce;
mod openvpn;
mod vxlan;
mod wireguard;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use brownout_base::{EnterableHost, Link, LongestHold, Mesh};

use self::{
    openvpn::Openvpn,
    wireguard::{Port, Wireguard},
};
pub use self::{openvpn::openvpn_program, vxlan::try_vxlan};
pub use crate::overlay_kind::Overlay;
pub use crate::subnet::service_address;
use crate::{
    emulator::Emulator,
    error::NetworkError,
    host::{Host, INTERFACE, route_overlay, tun_error},
    subnet::{Subnet, carrier_address},
    sys::{self, DatagramSocket, TUN_DEVICE, Tun},
};

/// The name of the interface of an overlay, as `ip addr` shows it in every host.
const VXLAN: &str = "vxlan0";
const WIREGUARD: &str = "wg0";
const OPENVPN: &str = "ovpn0";

/// How many packets may wait for a tunnel's thread.
const INTERFACE_QUEUE: u32 = 10_000;

/// An overlay that does not carry a packet by then never will: OpenVPN takes 2.4 s on a small machine.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How long one attempt to reach a host may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// The discard port, where nobody listens: a host that refuses a connection there was reached.
const DISCARD: u16 = 9;

/// The overlay of a network that runs: a [`Mesh`] of the same hosts, by their service addresses.
pub struct OverlayNetwork {
    kind: Overlay,
    mtu: u16,
    realtime: bool,
    hosts: Vec<ServiceHost>,
    emulator: Emulator,
    // Both end what they have started when they go.
    wireguard: Option<Wireguard>,
    openvpn: Option<Openvpn>,
}

/// A host by its service address.
#[derive(Debug, Clone)]
pub(crate) struct ServiceHost(pub(crate) Host);

impl EnterableHost for ServiceHost {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn address(&self) -> Ipv4Addr {
        self.0.service()
    }

    fn enter(&self) -> io::Result<()> {
        self.0.enter()
    }
}

/// What an overlay is made with.
pub(crate) struct Settings {
    pub(crate) kind: Overlay,
    /// The largest packet below, in bytes.
    pub(crate) below: u16,
    /// All service addresses.
    pub(crate) subnet: Subnet,
    /// TCP congestion control by host; none: the kernel's default.
    pub(crate) congestion_controls: Vec<Option<String>>,
    /// Try to run its thread with `SCHED_FIFO`.
    pub(crate) realtime: bool,
    pub(crate) emulator: Emulator,
}

impl OverlayNetwork {
    /// Builds it on hosts whose network runs, with nothing impaired, and waits until every host reaches every other.
    pub(crate) fn start(hosts: &[Host], settings: Settings) -> Result<OverlayNetwork, NetworkError> {
        let Settings { kind, below, subnet, congestion_controls, realtime, emulator } = settings;
        let mtu = kind.mtu(below);
        let build = Build { kind, hosts, subnet, congestion_controls: &congestion_controls, emulator: &emulator };
        let (mut wireguard, mut openvpn) = (None, None);
        match kind {
            Overlay::Vxlan => build.vxlan(INTERFACE, mtu, Host::address)?,
            Overlay::Wireguard => wireguard = Some(build.wireguard(mtu, Host::service, realtime)?),
            Overlay::WireguardVxlan => {
                let carries = Overlay::Wireguard.mtu(below);
                wireguard = Some(build.wireguard(carries, |host| carrier_address(host.address()), realtime)?);
                build.vxlan(WIREGUARD, mtu, |host| carrier_address(host.address()))?;
            }
            Overlay::Openvpn => openvpn = Some(build.openvpn(mtu)?),
        }
        build.await_all(openvpn.as_ref())?;
        let hosts = hosts.iter().cloned().map(ServiceHost).collect();
        Ok(OverlayNetwork { kind, mtu, realtime, hosts, emulator, wireguard, openvpn })
    }

    /// Which one it is.
    pub fn kind(&self) -> Overlay {
        self.kind
    }

    /// The links below that packets from one host to another pass, in order.
    pub fn route(&self, link: Link) -> Vec<Link> {
        self.kind.route(link)
    }

    /// Packets (a GSO packet counts once) that got lost on a host because what carries them here ran out: the thread of
    /// WireGuard did not read the host's interface or its own socket there fast enough, or the host's kernel did not take what
    /// the thread had for it. VXLAN is the kernel's, and OpenVPN a program with a short queue of its own, as anywhere.
    pub(crate) fn dropped(&self, host: &Host) -> u64 {
        let Some(wireguard) = &self.wireguard else { return 0 };
        let unread = host.dropped_at(WIREGUARD).unwrap_or(0);
        // The kernel counts these by host; what else speaks UDP there, probes and clocks, is the instrument's own, too.
        let untaken = host.datagrams_dropped().unwrap_or(0);
        wireguard.refused(host.id()) + unread + untaken
    }

    /// The processes that carry it, beside this one.
    pub fn processes(&self) -> &[u32] {
        self.openvpn.as_ref().map_or(&[], Openvpn::processes)
    }
}

impl Mesh for OverlayNetwork {
    fn enterable_hosts(&self) -> Vec<&dyn EnterableHost> {
        self.hosts.iter().map(|host| host as &dyn EnterableHost).collect()
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn is_realtime(&self) -> bool {
        self.realtime
    }

    fn holds(&self) -> Arc<dyn LongestHold> {
        Arc::new(RouteHolds { kind: self.kind, below: self.emulator.clone(), hosts: self.hosts.len() })
    }
}

impl std::fmt::Debug for OverlayNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OverlayNetwork").field("kind", &self.kind).field("mtu", &self.mtu).finish_non_exhaustive()
    }
}

/// What a way through the overlay holds is what the links of its route hold.
struct RouteHolds {
    kind: Overlay,
    below: Emulator,
    hosts: usize,
}

impl LongestHold for RouteHolds {
    fn longest_hold_of_ns(&self, link: Link) -> u64 {
        if link.position(self.hosts).is_none() {
            return 0;
        }
        let holds = self.kind.route(link).into_iter().map(|below| self.below.longest_hold_of_ns(below));
        holds.fold(0, u64::saturating_add)
    }
}

/// What an overlay is built from.
struct Build<'a> {
    kind: Overlay,
    hosts: &'a [Host],
    subnet: Subnet,
    congestion_controls: &'a [Option<String>],
    emulator: &'a Emulator,
}

impl Build<'_> {
    /// VXLAN on the interface `carrier` of each host, which has the address `below` there.
    fn vxlan(&self, carrier: &str, mtu: u16, below: impl Fn(&Host) -> Ipv4Addr + Sync) -> Result<(), NetworkError> {
        let endpoint = |host: &Host| vxlan::Endpoint { inside: host.service(), below: below(host) };
        let endpoints: Vec<vxlan::Endpoint> = self.hosts.iter().map(endpoint).collect();
        for (number, host) in self.hosts.iter().enumerate() {
            let others: Vec<vxlan::Endpoint> = endpoints
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number)
                .map(|(_, endpoint)| *endpoint)
                .collect();
            let index = self.inside(host, "make its VXLAN interface", || {
                vxlan::make(VXLAN, carrier, mtu, endpoints[number], &others)
            })?;
            self.finish(number, index)?;
        }
        Ok(())
    }

    /// WireGuard between all, where each host has the address `inside`.
    fn wireguard(
        &self,
        mtu: u16,
        inside: impl Fn(&Host) -> Ipv4Addr,
        realtime: bool,
    ) -> Result<Wireguard, NetworkError> {
        let mut ports = Vec::new();
        for (number, host) in self.hosts.iter().enumerate() {
            let (below, inside) = (host.address(), inside(host));
            let tun = host.run(|| Tun::create(Path::new(TUN_DEVICE), WIREGUARD));
            let tun = tun.map_err(|source| self.failed(host, "enter the host", source))?;
            let tun = tun.map_err(|error| tun_error(host.name().to_owned(), error))?;
            let (socket, index) = self.inside(host, "open a socket for WireGuard and set up its interface", || {
                let index = sys::interface_index(WIREGUARD)?;
                sys::set_queue_length(index, INTERFACE_QUEUE)?;
                sys::set_mtu(index, mtu)?;
                let _ = sys::forbid_link_local(index);
                Ok((DatagramSocket::bind(SocketAddrV4::new(below, wireguard::PORT))?, index))
            })?;
            match self.kind {
                Overlay::Wireguard => self.finish(number, index)?,
                // It only carries: its addresses are nobody's.
                _ => self.route_to_carriers(host, index, inside)?,
            }
            ports.push(Port { host: host.id(), tun, socket, below, inside });
        }
        Wireguard::start(ports, realtime, &self.emulator.shared())
            .map_err(|source| self.failed_everywhere("start the thread of WireGuard", source))
    }

    /// The addresses inside of WireGuard where that carries another overlay.
    fn route_to_carriers(&self, host: &Host, index: u32, inside: Ipv4Addr) -> Result<(), NetworkError> {
        let subnet = Subnet::of(self.hosts.iter().map(|host| carrier_address(host.address())))?;
        self.inside(host, "give its WireGuard interface an address", || {
            sys::add_address(index, inside.into())?;
            sys::set_up(index)?;
            sys::add_subnet_route(subnet.address, subnet.prefix, index, inside.into(), None)
        })
    }

    /// OpenVPN, with the first host's process as the server.
    fn openvpn(&self, mtu: u16) -> Result<Openvpn, NetworkError> {
        let member = |host: &Host| openvpn::Member {
            name: host.name().to_owned(),
            below: host.address(),
            inside: host.service(),
        };
        let members: Vec<openvpn::Member> = self.hosts.iter().map(member).collect();
        let settings = openvpn::Settings { interface: OPENVPN, prefix: self.subnet.prefix, mtu };
        let openvpn = Openvpn::start(self.hosts, &members, settings, &self.emulator.shared())
            .map_err(|source| self.failed_everywhere("start the processes of OpenVPN", source))?;
        let deadline = Instant::now() + READY_WITHIN;
        for (number, host) in self.hosts.iter().enumerate() {
            // A client makes its interface when the server has answered.
            let index = loop {
                match host.run(|| sys::interface_index(OPENVPN)).and_then(|index| index) {
                    Ok(index) => break index,
                    Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(20)),
                    Err(source) => {
                        let action = format!("wait for its OpenVPN interface (its log ends: {})", openvpn.log(number));
                        return Err(self.failed(host, &action, source));
                    }
                }
            };
            self.inside(host, "set up its OpenVPN interface", || {
                let _ = sys::forbid_link_local(index);
                sys::set_mtu(index, mtu)
            })?;
            self.finish(number, index)?;
        }
        Ok(openvpn)
    }

    /// Gives a host's interface its service address, brings it up, and routes all others' there.
    fn finish(&self, number: usize, index: u32) -> Result<(), NetworkError> {
        let host = &self.hosts[number];
        let service = host.service();
        self.inside(host, &format!("give it the address {service}"), || {
            sys::add_address(index, service.into())?;
            sys::set_up(index)
        })?;
        let algorithm = self.congestion_controls.get(number).and_then(Option::as_deref);
        let routed = host.run(|| route_overlay(host.name(), index, algorithm, self.subnet, service));
        routed.map_err(|source| self.failed(host, "enter the host", source))?
    }

    /// Waits until every host was reached from every other, each pair from one side: an answer came back.
    fn await_all(&self, openvpn: Option<&Openvpn>) -> Result<(), NetworkError> {
        let deadline = Instant::now() + READY_WITHIN;
        for (number, from) in self.hosts.iter().enumerate() {
            let others = &self.hosts[number + 1..];
            let missing = from.run(|| others.iter().find(|to| !is_reached(to.service(), deadline)));
            if let Some(to) = missing.map_err(|source| self.failed(from, "enter the host", source))? {
                let log = openvpn.map(|openvpn| openvpn.log(number)).unwrap_or_default();
                let said = if log.is_empty() { log } else { format!("; the log of OpenVPN there ends: {log}") };
                return Err(NetworkError::OverlaySilent {
                    overlay: self.kind,
                    from: from.name().to_owned(),
                    to: to.name().to_owned(),
                    within: READY_WITHIN,
                    said,
                });
            }
        }
        Ok(())
    }

    fn inside<T: Send>(
        &self,
        host: &Host,
        action: &str,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<T, NetworkError> {
        host.run(work).and_then(|done| done).map_err(|source| self.failed(host, action, source))
    }

    fn failed(&self, host: &Host, action: &str, source: io::Error) -> NetworkError {
        let action = format!("{action} on host {}", host.name());
        self.failed_everywhere(&action, source)
    }

    fn failed_everywhere(&self, action: &str, source: io::Error) -> NetworkError {
        NetworkError::Overlay { overlay: self.kind, action: action.to_owned(), remedy: self.remedy(&source), source }
    }

    /// What helps against what usually goes wrong.
    fn remedy(&self, source: &io::Error) -> &'static str {
        match (self.kind, source.raw_os_error()) {
            (Overlay::Openvpn, _) if openvpn_program().is_none() => {
                "install the package openvpn, or choose another overlay"
            }
            (Overlay::Openvpn, _) => "see what it says, or choose another overlay",
            // RTM_NEWLINK of a kind that the kernel does not have.
            (Overlay::Vxlan | Overlay::WireguardVxlan, Some(libc::EOPNOTSUPP | libc::ENOENT)) => {
                "load the driver with `modprobe vxlan`, or choose another overlay, such as wireguard"
            }
            _ => "run as root, or choose another overlay",
        }
    }
}

/// Whether the host at `address` answers the calling thread's host by then.
fn is_reached(address: Ipv4Addr, deadline: Instant) -> bool {
    let to = SocketAddr::from((address, DISCARD));
    loop {
        match TcpStream::connect_timeout(&to, PATIENCE) {
            Ok(_) => return true,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return true,
            Err(_) if Instant::now() >= deadline => return false,
            // Whatever it was, it may have been too early; errors that come at once are not to fill a processor.
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}
