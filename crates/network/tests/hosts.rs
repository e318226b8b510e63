//! Hosts: what is inside of them, and what stays outside.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    fs,
    net::{IpAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use brownout_network::{ChecksumErrors, Host, LinkControl, Network, NetworkError, NetworkSpec};
use common::{PATIENCE, counters, link, network, settled_counters, spec, start, udp_pair};

fn namespace() -> String {
    fs::read_link("/proc/thread-self/ns/net").unwrap().display().to_string()
}

fn congestion_control(socket: &impl AsRawFd) -> String {
    let (mut name, mut length) = ([0u8; 16], 16);
    // SAFETY: the buffer has the length stated.
    let got = unsafe {
        let name = name.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, &mut length)
    };
    assert_eq!(got, 0);
    String::from_utf8(name.into_iter().take_while(|byte| *byte != 0).collect()).unwrap()
}

#[test]
fn each_host_has_a_namespace_and_the_caller_keeps_its_own() {
    let (before, interfaces) = (namespace(), fs::read_to_string("/proc/self/net/route").unwrap());
    let network = network(3);
    assert_eq!(namespace(), before);
    assert_eq!(fs::read_to_string("/proc/self/net/route").unwrap(), interfaces);
    let mut inside: Vec<_> = network.hosts().iter().map(|host| host.run(namespace).unwrap()).collect();
    inside.push(before);
    inside.sort();
    inside.dedup();
    assert_eq!(inside.len(), 4);
}

#[test]
fn commands_and_threads_run_where_they_are_put() {
    let network = network(2);
    for host in network.hosts() {
        let mut command = Command::new("readlink");
        host.prepare(command.arg("/proc/self/ns/net"));
        let there = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert_eq!(there.trim(), host.run(namespace).unwrap());
        let entered = host.clone();
        let entered = thread::spawn(move || entered.enter().map(|()| namespace())).join().unwrap().unwrap();
        assert_eq!(there.trim(), entered);
    }
    let names: Vec<_> = network.hosts().iter().map(Host::name).collect();
    assert_eq!(names, ["h0", "h1"]);
    assert!(network.host("h2").is_none());
    assert!(network.link("h0", "h0").is_none());
}

#[test]
fn a_prepared_command_runs_in_its_host_even_after_the_network_is_dropped() {
    let network = network(1);
    let (mut command, host) = (Command::new("readlink"), network.host("h0").unwrap().clone());
    let there = host.run(namespace).unwrap();
    host.prepare(command.arg("/proc/self/ns/net"));
    drop((network, host));
    assert_eq!(String::from_utf8(command.output().unwrap().stdout).unwrap().trim(), there);
}

#[test]
fn a_host_reaches_itself_and_its_peers_and_nothing_else() {
    let network = network(2);
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    sender.send(b"to a peer");
    assert_eq!(receiver.receive(PATIENCE).as_deref(), Some(&b"to a peer"[..]));
    let (sender, receiver) = udp_pair(&network, "h0", "h0");
    sender.send(b"to itself");
    assert_eq!(receiver.receive(PATIENCE).as_deref(), Some(&b"to itself"[..]));

    let host = network.host("h0").unwrap();
    let outside = host.run(|| UdpSocket::bind("0.0.0.0:0")?.send_to(b"?", "192.0.2.1:9")).unwrap();
    assert_eq!(outside.unwrap_err().raw_os_error(), Some(libc::ENETUNREACH));

    // In the lab's subnet, but nobody's address: it leaves the host, and is counted.
    host.run(|| UdpSocket::bind("0.0.0.0:0")?.send_to(b"?", "10.77.0.3:9")).unwrap().unwrap();
    let end = Instant::now() + PATIENCE;
    while network.host_counters().unwrap()[0].unroutable != 1 {
        assert!(Instant::now() < end, "{:?}", network.host_counters());
        thread::sleep(Duration::from_millis(5));
    }
    assert!(network.host_counters().unwrap().iter().all(|counters| counters.interface_dropped == Some(0)));
}

#[test]
fn nothing_but_the_hosts_own_packets_is_on_a_quiet_network() {
    let network = network(2);
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    thread::sleep(Duration::from_millis(300));
    sender.send(&[0; 100]);
    receiver.receive(PATIENCE).unwrap();
    let there = counters(&network, link(&network, "h0", "h1"));
    assert_eq!((there.offered_packets, there.offered_bytes, there.delivered_packets), (1, 128, 1));
    assert_eq!(there.held.len(), 1);
    assert!(network.host_counters().unwrap().iter().all(|counters| counters.unroutable == 0));
    assert_eq!(counters(&network, link(&network, "h0", "h1")).offered_packets, 0, "taking starts anew");
}

/// A connection between the first two hosts, over the family of `address`.
fn connect(network: &Network, address: fn(&Host) -> IpAddr) -> (TcpStream, TcpStream) {
    let [client, server] = network.hosts() else { unreachable!() };
    let listener = server.run(|| TcpListener::bind((address(server), 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let connected = client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    (connected, listener.accept().unwrap().0)
}

const FAMILIES: [fn(&Host) -> IpAddr; 2] =
    [|host| host.address().into(), |host| host.address6().expect("this test needs a kernel with IPv6").into()];

#[test]
fn the_congestion_control_asked_for_is_what_both_ends_of_a_connection_use() {
    let listed = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    for asked in listed.split_whitespace() {
        let network = start(NetworkSpec { congestion_control: Some(asked.to_owned()), ..spec(2) });
        assert!(network.hosts().iter().all(|host| host.congestion_control() == asked));
        for family in FAMILIES {
            let (connected, accepted) = connect(&network, family);
            assert_eq!((congestion_control(&connected), congestion_control(&accepted)), (asked.into(), asked.into()));
        }
    }
    let network = start(NetworkSpec { congestion_control: None, ..spec(2) });
    assert!(listed.split_whitespace().any(|name| name == network.hosts()[0].congestion_control()));
}

#[test]
fn a_host_may_have_a_congestion_control_of_its_own() {
    let listed = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let other = listed.split_whitespace().find(|name| *name != "reno").expect("this kernel has reno alone");
    let NetworkSpec { mut hosts, .. } = spec(2);
    hosts[1].congestion_control = Some(other.into());
    let network = start(NetworkSpec { hosts, ..spec(2) });
    assert_eq!(network.hosts().iter().map(Host::congestion_control).collect::<Vec<_>>(), ["reno", other]);
    for family in FAMILIES {
        let (connected, accepted) = connect(&network, family);
        assert_eq!((congestion_control(&connected), congestion_control(&accepted)), ("reno".into(), other.into()));
    }
}

/// Sends what is no valid message of `protocol` from the first host to the second, as it is.
fn send_raw(network: &Network, address: IpAddr, protocol: libc::c_int, message: &[u8]) {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let open = || {
        // SAFETY: the descriptor is new and owned by nobody else. It is sent to as a UDP socket is.
        unsafe {
            let fd = libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol);
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            UdpSocket::from(OwnedFd::from_raw_fd(fd))
        }
    };
    network.hosts()[0].run(open).unwrap().send_to(message, (address, 0)).unwrap();
}

#[test]
fn wrong_checksums_are_counted_by_protocol_where_they_arrive() {
    let network = network(2);
    let [sender, receiver] = network.hosts() else { unreachable!() };
    assert_eq!(network.checksum_errors(receiver.id()).unwrap(), ChecksumErrors::default());
    // Ports 4096 and 9, length 9, checksum 0xdead, one byte.
    let udp = [0x10, 0, 0, 9, 0, 9, 0xde, 0xad, b'?'];
    // Ports 4096 and 9, a SYN with header and no options, checksum 0xdead.
    let tcp = [0x10, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0xde, 0xad, 0, 0];
    // An echo request with checksum 0xdead.
    let icmp = [8, 0, 0xde, 0xad, 0, 1, 0, 1];
    for family in FAMILIES {
        send_raw(&network, family(receiver), libc::IPPROTO_UDP, &udp);
        send_raw(&network, family(receiver), libc::IPPROTO_TCP, &tcp);
    }
    send_raw(&network, receiver.address().into(), libc::IPPROTO_ICMP, &icmp);
    let expected = ChecksumErrors { tcp: 2, udp: 2, ip_header: 0, icmp: 1 };
    let end = Instant::now() + PATIENCE;
    while network.checksum_errors(receiver.id()).unwrap() != expected {
        assert!(Instant::now() < end, "{:?}", network.checksum_errors(receiver.id()));
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(network.checksum_errors(sender.id()).unwrap(), ChecksumErrors::default());
}

#[test]
fn an_unknown_congestion_control_is_refused_with_those_there_are() {
    let error = Network::start(NetworkSpec { congestion_control: Some("nosuch".into()), ..spec(2) }).unwrap_err();
    assert!(matches!(&error, NetworkError::CongestionControl { asked, .. } if asked == "nosuch"), "{error}");
    assert!(error.to_string().contains("reno"), "{error}");
}

#[test]
fn a_host_that_loses_its_interface_cuts_only_itself_off() {
    let network = network(3);
    let mut delete = Command::new("ip");
    network.host("h1").unwrap().prepare(delete.args(["link", "delete", brownout_network::INTERFACE]));
    let status = delete.status().expect("this test needs iproute2: apt-get install iproute2");
    assert!(status.success());
    let (sender, receiver) = udp_pair(&network, "h0", "h2");
    sender.send(b"still here");
    assert!(receiver.receive(PATIENCE).is_some());
    network.host("h0").unwrap().run(|| UdpSocket::bind("0.0.0.0:0")?.send_to(b"?", "10.77.0.2:9")).unwrap().unwrap();
    assert_eq!(settled_counters(&network, link(&network, "h0", "h1")).dropped_write, 1);
}

#[test]
fn a_host_alone_is_a_network_without_links() {
    let network = network(1);
    assert!(network.links().is_empty());
    assert!(network.control().take_counters().unwrap().is_empty());
}
