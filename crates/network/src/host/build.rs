//! Making a host: a namespace, its interface, addresses and routes.

use std::{
    fs::{self, File},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
    sync::{Arc, RwLock},
    thread,
    time::{Duration, Instant},
};

use brownout_base::HostId;

use super::{ChecksumErrors, Home, Host, HostSpec, INTERFACE, Inner, statistics::Statistics};
use crate::{
    error::NetworkError,
    subnet::Subnet,
    sys::{self, OpenError, TUN_DEVICE, Tun},
};

/// How many packets may wait for the emulator. A TUN drops at its tail without back-pressure, so
/// this must outlast the emulator's worst pause: 10,000 packets are 80 ms of 1.5 Gbit/s in MTU frames.
pub(crate) const INTERFACE_QUEUE: u32 = 10_000;

/// What IPv6 demands of every link (RFC 8200 section 5); the kernel refuses it below.
const SMALLEST_MTU6: u16 = 1280;

/// What all hosts of a network share.
pub(crate) struct Settings<'a> {
    pub(crate) subnet: Subnet,
    pub(crate) subnet6: Subnet,
    pub(crate) mtu: u16,
    /// Of the hosts that have none of their own.
    pub(crate) congestion_control: Option<&'a str>,
    /// Whether an overlay is built on them.
    pub(crate) has_overlay: bool,
}

/// Runs on a thread of its own, which stays in the new namespace until it ends.
pub(super) fn build(id: HostId, spec: &HostSpec, settings: &Settings) -> Result<(Host, Tun), NetworkError> {
    let host = || spec.name.clone();
    let configure = |action: &str| {
        let (host, action) = (host(), action.to_owned());
        move |source| NetworkError::Configure { host, action, source }
    };

    sys::unshare_network().map_err(|source| NetworkError::Namespace { host: host(), source })?;
    let namespace = File::open("/proc/thread-self/ns/net")
        .map_err(configure("open /proc/thread-self/ns/net (is /proc mounted for this PID namespace?)"))?;
    sys::interface_index("lo").and_then(sys::set_up).map_err(configure("bring lo up"))?;

    let tun = Tun::create(Path::new(TUN_DEVICE), INTERFACE).map_err(|error| tun_error(host(), error))?;
    let index = sys::interface_index(INTERFACE).map_err(configure("find its interface"))?;
    sys::set_queue_length(index, INTERFACE_QUEUE).map_err(configure("lengthen its interface's queue"))?;
    sys::set_mtu(index, settings.mtu).map_err(configure(&format!("set the MTU to {}", settings.mtu)))?;
    // Nobody asked for packets to routers. A kernel without IPv6 refuses, and sends none.
    let _ = sys::forbid_link_local(index);
    sys::add_address(index, spec.address.into()).map_err(configure(&format!("set the address {}", spec.address)))?;
    sys::set_up(index).map_err(configure("bring its interface up"))?;
    let address6 = spec.address6();
    let has_ipv6 = give_address6(index, address6, settings.mtu);
    let has_ipv6 = has_ipv6.map_err(configure(&format!("set the address {address6}")))?;
    let address6 = has_ipv6.then_some(address6);

    let algorithm = spec.congestion_control.as_deref().or(settings.congestion_control);
    let lab = Lab { host: &spec.name, index, algorithm, tun: Some(&tun) };
    let congestion_control = lab.route(settings.subnet, spec.address.into())?;
    if let Some(address6) = address6 {
        lab.route(settings.subnet6, address6.into())?;
    }

    let statistics = Statistics::open();
    let (name, address, namespace) = (host(), spec.address, Arc::new(namespace.into()));
    let service = settings.has_overlay.then(|| spec.service());
    let interfaces = vec![INTERFACE.to_owned()];
    let before = ChecksumErrors::default();
    let (holds_arrived, is_elsewhere) = (false, false);
    let home = Home { address, address6, namespace, statistics, interfaces, holds_arrived, is_elsewhere, before };
    let home = Arc::new(home);
    let inner = Inner { id, name, service, congestion_control, home: RwLock::new(home) };
    Ok((Host(Arc::new(inner)), tun))
}

/// Gives the interface its IPv6 address, if this machine has IPv6; whether it does.
fn give_address6(index: u32, address: Ipv6Addr, mtu: u16) -> io::Result<bool> {
    if mtu < SMALLEST_MTU6 {
        return Ok(false);
    }
    match sys::add_address(index, address.into()) {
        Ok(()) => await_local_route6(address).map(|()| true),
        Err(error) if is_without_ipv6(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until the namespace delivers to its own address. The kernel takes an IPv6 address at once, but makes the route
/// by which packets for it are received from a work queue; on a busy machine the first ones would be dropped.
fn await_local_route6(address: Ipv6Addr) -> io::Result<()> {
    const ROUTES: &str = "/proc/thread-self/net/ipv6_route";
    let deadline = Instant::now() + Duration::from_secs(10);
    while !fs::read_to_string(ROUTES)?.lines().any(|line| is_route_to(line, address)) {
        if Instant::now() > deadline {
            let reason = "the kernel has made no route to it within 10 s (see /proc/net/ipv6_route)";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Whether a line of `ipv6_route` is the route to this address alone: 32 hexadecimal digits, then the prefix's length.
fn is_route_to(line: &str, address: Ipv6Addr) -> bool {
    line.starts_with(&format!("{:032x} 80 ", u128::from(address)))
}

/// How a kernel that has no IPv6, or was told to use none, refuses to be configured for it.
fn is_without_ipv6(error: &io::Error) -> bool {
    // Not built in, or `ipv6.disable=1`: the first two. `ipv6.disable_ipv6=1`: the third.
    [libc::EAFNOSUPPORT, libc::EOPNOTSUPP, libc::EACCES].map(Some).contains(&error.raw_os_error())
}

/// Routes `subnet` out of `source` by the interface of an overlay with this number, in the calling thread's host, with this TCP
/// congestion control: that of the route below is not the overlay's.
pub(crate) fn route_overlay(
    host: &str,
    index: u32,
    algorithm: Option<&str>,
    subnet: Subnet,
    source: Ipv4Addr,
) -> Result<(), NetworkError> {
    Lab { host, index, algorithm, tun: None }.route(subnet, source.into()).map(drop)
}

/// A host's way into the lab.
struct Lab<'a> {
    host: &'a str,
    index: u32,
    /// The TCP congestion control asked for.
    algorithm: Option<&'a str>,
    /// What nobody reads yet; `None` where packets are carried already.
    tun: Option<&'a Tun>,
}

impl Lab<'_> {
    /// Routes `subnet` out of `source`, and answers with the congestion control that connections there get.
    fn route(&self, subnet: Subnet, source: IpAddr) -> Result<String, NetworkError> {
        let Subnet { address, prefix } = subnet;
        let host = || self.host.to_owned();
        let route = |algorithm| sys::add_subnet_route(address, prefix, self.index, source, algorithm);
        match (route(self.algorithm), self.algorithm) {
            (Ok(()), _) => {}
            // With the algorithm it fails, without it does not: then it is the algorithm.
            (Err(source), Some(asked)) if route(None).is_ok() => {
                let (asked, available) = (asked.to_owned(), available_congestion_controls());
                return Err(NetworkError::CongestionControl { host: host(), asked, available, source });
            }
            (Err(source), _) => {
                let action = format!("route {address}/{prefix}");
                return Err(NetworkError::Configure { host: host(), action, source });
            }
        }
        let found = read_back_congestion_control(source, self.tun).map_err(|source| {
            let action = "read back the TCP congestion control of a socket".to_owned();
            NetworkError::Configure { host: host(), action, source }
        })?;
        match self.algorithm.filter(|asked| *asked != found) {
            Some(asked) => Err(NetworkError::CongestionControlIgnored { host: host(), asked: asked.to_owned(), found }),
            None => Ok(found),
        }
    }
}

/// Asks a socket, which is the truth that the databases will see, and swallows the SYN that this
/// sends: nobody has begun to count.
fn read_back_congestion_control(address: IpAddr, tun: Option<&Tun>) -> io::Result<String> {
    // The subnet holds at least four addresses, so the neighbour is in it, whether a host or not.
    let neighbour = match address {
        IpAddr::V4(address) => Ipv4Addr::from(u32::from(address) ^ 1).into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) ^ 1).into(),
    };
    let found = sys::tcp_congestion_control(neighbour)?;
    let mut discarded = [0; 2048];
    if let Some(tun) = tun {
        while tun.read(&mut discarded)?.is_some() {}
    }
    Ok(found)
}

fn available_congestion_controls() -> String {
    const LIST: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    fs::read_to_string(LIST).map_or_else(|error| format!("? ({LIST}: {error})"), |list| list.trim().to_owned())
}

pub(crate) fn tun_error(host: String, error: OpenError) -> NetworkError {
    match error {
        OpenError::Open(source) => {
            let remedy = match source.kind() {
                io::ErrorKind::NotFound => {
                    "load the driver with `modprobe tun`, or give the container the device (--device /dev/net/tun)"
                }
                _ => "make it usable with `chmod 0666 /dev/net/tun`, or run as root",
            };
            NetworkError::Tun { host, path: TUN_DEVICE.into(), source, remedy }
        }
        OpenError::Create(source) => NetworkError::Tun {
            host,
            path: TUN_DEVICE.into(),
            source,
            remedy: "making an interface needs CAP_NET_ADMIN: run as root, or inside a user namespace in which you are",
        },
        OpenError::Offload(source) => NetworkError::Configure {
            host,
            action: "switch checksum and segmentation offload on (Linux 5.11 or newer is needed)".to_owned(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_ipv6_is_told_from_one_that_fails() {
        for (errno, without) in [(libc::EOPNOTSUPP, true), (libc::EACCES, true), (libc::EINVAL, false)] {
            assert_eq!(is_without_ipv6(&io::Error::from_raw_os_error(errno)), without);
        }
    }

    #[test]
    fn the_route_to_an_address_is_told_from_those_around_it() {
        let line = |address: &str, prefix| {
            let none = "00000000000000000000000000000000";
            format!("{address} {prefix} {none} 00 {none} 00000000 00000001 00000000 80200001     eth0")
        };
        let address = "fd77::2".parse().unwrap();
        assert!(is_route_to(&line("fd770000000000000000000000000002", "80"), address));
        assert!(!is_route_to(&line("fd770000000000000000000000000000", "40"), address));
        assert!(!is_route_to(&line("fd770000000000000000000000000003", "80"), address));
    }

    #[test]
    fn an_unusable_tun_device_comes_with_its_remedy() {
        for (errno, remedy) in [(libc::ENOENT, "modprobe tun"), (libc::EACCES, "chmod 0666 /dev/net/tun")] {
            let error = tun_error("n1".to_owned(), OpenError::Open(io::Error::from_raw_os_error(errno))).to_string();
            for part in ["/dev/net/tun", "n1", remedy] {
                assert!(error.contains(part), "{error}");
            }
        }
    }
}
