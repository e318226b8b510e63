//! What the tests of real networks share. They need root (or a user namespace in which they are),
//! because they make network namespaces and TUN devices; without it they fail and say so.

// Each test program uses its part of it; helpers may fail a test as it may itself.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    ffi::CString,
    net::{Ipv4Addr, UdpSocket},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use brownout_network::{
    HostFailure, HostSpec, Impairment, ImpairmentGuard, Link, LinkControl, LinkCounters, Network, NetworkSpec,
};
use brownout_probe::{ProbeSample, Probes};

/// For what must come: no property of ours, only an end for a test that hangs. A machine that is shared may stand
/// still for seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Why a test of GSO packets cannot show anything.
pub const NO_GSO_PACKETS: &str =
    "the kernel segments by itself what should come as GSO packets (UDP: before Linux 6.2)";

/// A specification of `hosts` hosts named h0, h1 … at 10.77.0.1, 10.77.0.2 …
pub fn spec(hosts: u8) -> NetworkSpec {
    let host = |n| HostSpec::new(format!("h{n}"), Ipv4Addr::new(10, 77, 0, n + 1));
    NetworkSpec {
        hosts: (0..hosts).map(host).collect(),
        mtu: 1500,
        congestion_control: Some("reno".into()),
        seed: 20_111,
        realtime: true,
        overlay: None,
    }
}

/// A running network of that specification.
pub fn network(hosts: u8) -> Network {
    start(spec(hosts))
}

/// A running network.
pub fn start(spec: NetworkSpec) -> Network {
    Network::start(spec).unwrap_or_else(|error| panic!("this test needs root and /dev/net/tun: {error}"))
}

pub fn link(network: &Network, from: &str, to: &str) -> Link {
    network.link(from, to).unwrap()
}

pub fn impair(network: &Network, links: &[Link], impairment: Impairment) -> ImpairmentGuard {
    network.control().impair(links, &impairment).unwrap()
}

pub fn counters(network: &Network, link: Link) -> LinkCounters {
    network.control().take_counters().unwrap().into_iter().find(|counters| counters.link == link).unwrap()
}

/// What root inside of a host may do to an interface there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meddling {
    Delete,
    TakeDown,
    /// Lets only so many packets wait on it.
    Shorten(u32),
}

/// Does so, by rtnetlink(7).
pub fn meddle(network: &Network, host: &str, interface: &str, how: Meddling) {
    let (kind, changed_flags) = match how {
        Meddling::Delete => (libc::RTM_DELLINK, 0),
        Meddling::TakeDown => (libc::RTM_NEWLINK, libc::IFF_UP as u32),
        Meddling::Shorten(_) => (libc::RTM_NEWLINK, 0),
    };
    let mut attribute = Vec::new();
    if let Meddling::Shorten(packets) = how {
        // struct rtattr, which counts its own four bytes, and a number.
        attribute.extend(8u16.to_ne_bytes());
        attribute.extend(libc::IFLA_TXQLEN.to_ne_bytes());
        attribute.extend(packets.to_ne_bytes());
    }
    let name = CString::new(interface).unwrap();
    let ask = || {
        // SAFETY: the name ends with a zero; the message is as long as it says; the descriptor is closed with its owner.
        unsafe {
            let index = libc::if_nametoindex(name.as_ptr());
            assert!(index > 0, "{interface}");
            let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
            assert!(socket >= 0);
            let socket = OwnedFd::from_raw_fd(socket);
            // struct nlmsghdr and struct ifinfomsg: no flag is set, and those that change are thereby cleared.
            let mut message = Vec::new();
            message.extend((32 + attribute.len() as u32).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend((libc::NLM_F_REQUEST as u16 | libc::NLM_F_ACK as u16).to_ne_bytes());
            message.extend([0; 8]);
            message.extend([0; 4]);
            message.extend(index.to_ne_bytes());
            message.extend([0; 4]);
            message.extend(changed_flags.to_ne_bytes());
            message.extend(&attribute);
            let sent = libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0);
            assert_eq!(sent, message.len() as isize);
            let mut answer = [0u8; 128];
            assert!(libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) >= 20);
            assert_eq!(i32::from_ne_bytes(answer[16..20].try_into().unwrap()), 0, "the kernel refused {how:?}");
        }
    };
    network.host(host).unwrap().run(ask).unwrap();
}

/// The hosts that have failed, once somebody is told of any.
pub fn failures(network: &Network, mut meanwhile: impl FnMut()) -> Vec<HostFailure> {
    let end = Instant::now() + PATIENCE;
    loop {
        let told = network.control().take_failures();
        if !told.is_empty() {
            return told;
        }
        assert!(Instant::now() < end, "nobody is told that a host failed");
        meanwhile();
        thread::sleep(Duration::from_millis(1));
    }
}

/// Takes counters until something has been sent on `link` and nothing is in flight, and adds them up.
pub fn settled_counters(network: &Network, link: Link) -> LinkCounters {
    let mut all = counters(network, link);
    let end = Instant::now() + PATIENCE;
    loop {
        let out = all.delivered_packets + all.lost + all.dropped_queue + all.dropped_by_emulator();
        assert!(out <= all.offered_packets, "{all:?}");
        if out == all.offered_packets && out > 0 {
            return all;
        }
        assert!(Instant::now() < end, "still in flight: {all:?}");
        thread::sleep(Duration::from_millis(20));
        all.add(&counters(network, link));
    }
}

/// Drains until `enough` samples are there.
pub fn samples(probes: &Probes, enough: impl Fn(&[ProbeSample]) -> bool) -> Vec<ProbeSample> {
    let end = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    while !enough(&all) {
        assert!(Instant::now() < end, "only {} samples within {PATIENCE:?}; {:?}", all.len(), probes.health());
        thread::sleep(Duration::from_millis(20));
        all.extend(probes.drain());
    }
    all
}

/// Delays of `link` among `samples`, in ms, sorted.
pub fn delays_ms(samples: &[ProbeSample], link: Link) -> Vec<f64> {
    let of_link = samples.iter().filter(|sample| sample.link == link);
    let mut delays: Vec<f64> = of_link.filter_map(|sample| sample.delay_ns).map(|ns| ns as f64 / 1e6).collect();
    delays.sort_by(f64::total_cmp);
    delays
}

/// By how much the emulator released 99 of 100 packets of `link` too late since the counters were last taken, in ms:
/// how busy the machine was in this very run.
pub fn lateness_ms(network: &Network, link: Link) -> f64 {
    counters(network, link).release_error.value_at_quantile(0.99) as f64 / 1e6
}

/// The value below which `share` of the sorted `values` lie.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    values[((values.len() - 1) as f64 * share) as usize]
}

/// The sending end of [`udp_pair`].
pub struct Sender(UdpSocket);

/// The receiving end of [`udp_pair`].
pub struct Receiver(UdpSocket);

/// Two UDP sockets, connected from one host to another.
pub fn udp_pair(network: &Network, from: &str, to: &str) -> (Sender, Receiver) {
    let socket = |name: &str| {
        let host = network.host(name).unwrap();
        host.run(|| UdpSocket::bind((host.address(), 0))).unwrap().unwrap()
    };
    let (sender, receiver) = (socket(from), socket(to));
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (Sender(sender), Receiver(receiver))
}

impl Sender {
    pub fn send(&self, datagram: &[u8]) {
        self.0.send(datagram).unwrap();
    }

    /// Sends datagrams of one length (the last may be shorter) in one call, as one GSO packet where
    /// the kernel can (`UDP_SEGMENT`, udp(7)).
    pub fn send_gso_packet(&self, datagrams: &[Vec<u8>]) {
        let size = datagrams[0].len() as libc::c_int;
        // SAFETY: the value is an int of the length stated.
        let set = unsafe {
            let value = std::ptr::from_ref(&size).cast();
            libc::setsockopt(self.0.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, 4)
        };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        self.send(&datagrams.concat());
    }
}

impl Receiver {
    /// The next datagram, if one comes in time.
    pub fn receive(&self, within: Duration) -> Option<Vec<u8>> {
        self.0.set_read_timeout(Some(within)).unwrap();
        let mut buffer = vec![0; 65_536];
        let length = self.0.recv(&mut buffer).ok()?;
        buffer.truncate(length);
        Some(buffer)
    }

    /// All datagrams that are there.
    pub fn receive_all(&self) -> Vec<Vec<u8>> {
        self.0.set_nonblocking(true).unwrap();
        let all = std::iter::from_fn(|| self.receive(Duration::from_secs(1))).collect();
        self.0.set_nonblocking(false).unwrap();
        all
    }
}
