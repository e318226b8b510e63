//! Hosts: a network namespace each, with one interface whose other end the emulator holds.

use std::{
    fs::{self, File},
    io,
    net::Ipv4Addr,
    os::{fd::OwnedFd, unix::fs::FileExt},
    path::Path,
    process::Command,
    sync::Arc,
    thread,
};

use crate::{
    error::NetworkError,
    link::HostId,
    subnet::Subnet,
    sys::{self, Interface, OpenError, Tun},
};

/// The name of every host's interface, as `ip addr` shows it there.
pub const INTERFACE: &str = "lab0";

const TUN_DEVICE: &str = "/dev/net/tun";

/// How many packets may wait for the emulator. A TUN drops at its tail without back-pressure, so
/// this must outlast the emulator's worst pause: 10,000 packets are 80 ms of 1.5 Gbit/s in MTU frames.
const INTERFACE_QUEUE: u32 = 10_000;

/// A host to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    /// Unique in its network.
    pub name: String,
    /// Unique in its network; hosts reach each other by it, and nothing else.
    pub address: Ipv4Addr,
}

/// A host that runs. Clones are the same host; its namespace lasts as long as a clone, or a process in it.
#[derive(Debug, Clone)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: HostId,
    name: String,
    address: Ipv4Addr,
    namespace: Arc<OwnedFd>,
    congestion_control: String,
    /// `/proc/net/dev` of the namespace: it shows that namespace to whoever reads it.
    statistics: Option<File>,
}

/// What all hosts of a network share.
pub(crate) struct Settings<'a> {
    pub(crate) subnet: Subnet,
    pub(crate) mtu: u16,
    pub(crate) congestion_control: Option<&'a str>,
}

impl Host {
    /// Makes a host and the device by which the emulator reaches it.
    pub(crate) fn start(id: HostId, spec: &HostSpec, settings: &Settings) -> Result<(Host, Tun), NetworkError> {
        // Only a thread of its own can leave the caller's namespace without taking the caller along.
        thread::scope(|scope| {
            thread::Builder::new()
                .name(format!("host-{}", spec.name))
                .spawn_scoped(scope, || build(id, spec, settings))
                .map_err(|source| NetworkError::Namespace { host: spec.name.clone(), source })?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Its place in the network.
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

    /// Packets that its interface dropped at the tail, since it was made.
    pub(crate) fn interface_dropped(&self) -> Option<u64> {
        let mut text = [0u8; 4096];
        let length = self.0.statistics.as_ref()?.read_at(&mut text, 0).ok()?;
        transmit_drops(&String::from_utf8_lossy(&text[..length]))
    }
}

/// Runs on a thread of its own, which stays in the new namespace until it ends.
fn build(id: HostId, spec: &HostSpec, settings: &Settings) -> Result<(Host, Tun), NetworkError> {
    let host = || spec.name.clone();
    let configure = |action: &str| {
        let (host, action) = (host(), action.to_owned());
        move |source| NetworkError::Configure { host, action, source }
    };

    sys::unshare_network().map_err(|source| NetworkError::Namespace { host: host(), source })?;
    let namespace = File::open("/proc/thread-self/ns/net")
        .map_err(configure("open /proc/thread-self/ns/net (is /proc mounted for this PID namespace?)"))?;
    Interface::new("lo").and_then(|lo| lo.set_up()).map_err(configure("bring lo up"))?;

    let tun = Tun::create(Path::new(TUN_DEVICE), INTERFACE).map_err(|error| tun_error(host(), error))?;
    // The lab speaks IPv4; without this the kernel would announce itself on a link that nobody asked
    // to carry IPv6. A kernel without IPv6, or a read-only /proc/sys, only costs a few unroutable packets.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6"), "1");
    let interface = Interface::new(INTERFACE).map_err(configure("find its interface"))?;
    let index = interface.index().map_err(configure("find its interface"))?;
    sys::set_queue_length(index, INTERFACE_QUEUE).map_err(configure("lengthen its interface's queue"))?;
    interface.set_mtu(settings.mtu).map_err(configure(&format!("set the MTU to {}", settings.mtu)))?;
    interface.set_address(spec.address).map_err(configure(&format!("set the address {}", spec.address)))?;
    interface.set_up().map_err(configure("bring its interface up"))?;

    let Subnet { address, prefix } = settings.subnet;
    let route = |algorithm| sys::add_subnet_route(address, prefix, index, spec.address, algorithm);
    match (route(settings.congestion_control), settings.congestion_control) {
        (Ok(()), _) => {}
        // With the algorithm it fails, without it does not: then it is the algorithm.
        (Err(source), Some(asked)) if route(None).is_ok() => {
            return Err(NetworkError::CongestionControl {
                host: host(),
                asked: asked.to_owned(),
                available: available_congestion_controls(),
                source,
            });
        }
        (Err(source), _) => return Err(configure(&format!("route {address}/{prefix}"))(source)),
    }
    let congestion_control = read_back_congestion_control(spec.address, &tun)
        .map_err(configure("read back the TCP congestion control of a socket"))?;
    if let Some(asked) = settings.congestion_control.filter(|asked| *asked != congestion_control) {
        let asked = asked.to_owned();
        return Err(NetworkError::CongestionControlIgnored { host: host(), asked, found: congestion_control });
    }

    let statistics = File::open("/proc/thread-self/net/dev").ok();
    let (name, address, namespace) = (host(), spec.address, Arc::new(namespace.into()));
    Ok((Host(Arc::new(Inner { id, name, address, namespace, congestion_control, statistics })), tun))
}

/// Asks a socket, which is the truth that the databases will see, and swallows the SYN that this
/// sends: nobody has begun to count.
fn read_back_congestion_control(address: Ipv4Addr, tun: &Tun) -> io::Result<String> {
    // The subnet holds at least four addresses, so the neighbour is in it, whether a host or not.
    let neighbour = Ipv4Addr::from(u32::from(address) ^ 1);
    let found = sys::tcp_congestion_control(neighbour)?;
    let mut discarded = [0; 2048];
    while tun.read(&mut discarded)?.is_some() {}
    Ok(found)
}

fn available_congestion_controls() -> String {
    const LIST: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    fs::read_to_string(LIST).map_or_else(|error| format!("? ({LIST}: {error})"), |list| list.trim().to_owned())
}

fn tun_error(host: String, error: OpenError) -> NetworkError {
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

/// The twelfth number of our line in `/proc/net/dev`: transmit drops (proc_pid_net(5)).
fn transmit_drops(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_drops_are_read_from_our_line() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16\n  \
            lab0:     21      22   23   24   25    26         27        28       29     30   31   32   33    34      35         36\n";
        assert_eq!(transmit_drops(text), Some(32));
        assert_eq!(transmit_drops("lo: 1 2 3"), None);
        assert_eq!(transmit_drops("lab0: 1 2 3"), None);
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
