//! IPv6 beside IPv4: on the same hosts, through the same links. Needs a kernel with IPv6.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    thread,
    time::Instant,
};

use brownout_network::{Host, HostSpec, Impairment, Loss, Network, NetworkSpec};
use common::{PATIENCE, impair, link, network, settled_counters, spec, start};

fn address6(host: &Host) -> Ipv6Addr {
    host.address6().expect("this test needs a kernel with IPv6")
}

const FAMILIES: [fn(&Host) -> IpAddr; 2] = [|host| host.address().into(), |host| address6(host).into()];

/// Two UDP sockets of one family, connected from `h0` to `h1`.
fn udp(network: &Network, address: fn(&Host) -> IpAddr) -> [UdpSocket; 2] {
    let bind = |host: &Host| host.run(|| UdpSocket::bind((address(host), 0))).unwrap().unwrap();
    let sockets = [0, 1].map(|host| bind(&network.hosts()[host]));
    sockets[0].connect(sockets[1].local_addr().unwrap()).unwrap();
    sockets.iter().for_each(|socket| socket.set_read_timeout(Some(PATIENCE)).unwrap());
    sockets
}

/// A TCP connection over IPv6 from `h0` to `h1`.
fn tcp(network: &Network) -> [TcpStream; 2] {
    let [client, server] = [0, 1].map(|host| &network.hosts()[host]);
    let listener = server.run(|| TcpListener::bind((address6(server), 0))).unwrap().unwrap();
    let target = listener.local_addr().unwrap();
    let client = client.run(|| TcpStream::connect(target)).unwrap().unwrap();
    let server = listener.accept().unwrap().0;
    [client, server]
}

/// An ICMPv6 echo (RFC 4443 section 4.1) from `h0` to `h1`; the type of what comes back.
fn ping(network: &Network) -> u8 {
    const ECHO_REQUEST: u8 = 128;
    let [from, to] = [0, 1].map(|host| &network.hosts()[host]);
    let open = || {
        // SAFETY: the descriptor is new and owned by nobody else.
        unsafe {
            let fd = libc::socket(libc::AF_INET6, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMPV6);
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            // A raw socket is sent to and received from as a datagram socket is.
            UdpSocket::from(OwnedFd::from_raw_fd(fd))
        }
    };
    let socket = from.run(open).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // The kernel fills in the checksum of ICMPv6.
    let request = [ECHO_REQUEST, 0, 0, 0, 0x12, 0x34, 0, 1, b'?'];
    socket.send_to(&request, SocketAddr::V6(SocketAddrV6::new(address6(to), 0, 0, 0))).unwrap();
    let mut answer = [0; 64];
    let length = socket.recv(&mut answer).expect("no answer");
    assert_eq!(answer[4..length], request[4..]);
    answer[0]
}

#[test]
fn every_host_has_an_ipv6_address_that_follows_from_its_ipv4_address_unless_it_was_given_one() {
    const GIVEN: Ipv6Addr = Ipv6Addr::new(0xfd77, 0x6272, 0x6f77, 9, 0, 0, 0, 1);
    let NetworkSpec { mut hosts, .. } = spec(2);
    hosts.push(HostSpec { address6: Some(GIVEN), ..HostSpec::new("h2", [10, 77, 0, 3].into()) });
    let network = start(NetworkSpec { hosts, ..spec(2) });
    let addresses: Vec<_> = network.hosts().iter().map(address6).collect();
    assert_eq!(
        addresses[..2],
        ["fd77:6272:6f77::a4d:1", "fd77:6272:6f77::a4d:2"].map(|text| text.parse::<Ipv6Addr>().unwrap())
    );
    assert_eq!(addresses[2], GIVEN);
    let receiver = network.hosts()[2].run(|| UdpSocket::bind((GIVEN, 0))).unwrap().unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let sender = network.hosts()[0].run(|| UdpSocket::bind("[::]:0")).unwrap().unwrap();
    sender.send_to(b"far", receiver.local_addr().unwrap()).unwrap();
    assert_eq!(receiver.recv_from(&mut [0; 8]).unwrap().1.ip(), addresses[0]);
}

#[test]
fn hosts_reach_one_another_by_icmp_udp_and_tcp() {
    const ECHO_REPLY: u8 = 129;
    let network = network(2);
    assert_eq!(ping(&network), ECHO_REPLY);
    let [sender, receiver] = udp(&network, |host| address6(host).into());
    sender.send(b"by UDP").unwrap();
    let mut buffer = [0; 16];
    assert_eq!((receiver.recv(&mut buffer).unwrap(), &buffer[..6]), (6, &b"by UDP"[..]));
    let [mut client, mut server] = tcp(&network);
    client.write_all(b"by TCP").unwrap();
    server.read_exact(&mut buffer[..6]).unwrap();
    assert_eq!(&buffer[..6], b"by TCP");
    assert!(network.host_counters().unwrap().iter().all(|counters| counters.unroutable == 0));
}

#[test]
fn a_link_delays_both_families() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    let _guard = impair(&network, &[there], Impairment::delay("50ms".parse().unwrap()));
    for family in FAMILIES {
        let [sender, receiver] = udp(&network, family);
        let sent = Instant::now();
        sender.send(b"late").unwrap();
        receiver.recv(&mut [0; 8]).unwrap();
        assert!(sent.elapsed().as_millis() >= 50, "{:?}", sent.elapsed());
    }
    assert_eq!(settled_counters(&network, there).delivered_packets, 2);
}

#[test]
fn tcp_gso_packets_cross_whole_and_in_pieces() {
    const BYTES: usize = 8 << 20;
    let network = network(2);
    let there = link(&network, "h0", "h1");
    for loss in [None, Some("0.5%")] {
        // A loss takes GSO packets apart.
        let _guard = loss.map(|loss| {
            impair(
                &network,
                &[there],
                Impairment { loss: Loss::Independent(loss.parse().unwrap()), ..Impairment::NONE },
            )
        });
        let [mut client, mut server] = tcp(&network);
        let sent: Vec<u8> = (0..BYTES).map(|place| ((place * 31) >> 7) as u8).collect();
        let mut received = vec![0; BYTES];
        thread::scope(|scope| {
            scope.spawn(|| client.write_all(&sent).unwrap());
            server.set_read_timeout(Some(PATIENCE)).unwrap();
            server.read_exact(&mut received).unwrap();
        });
        assert!(sent == received, "what arrived is not what was sent");
        let counters = settled_counters(&network, there);
        println!("{loss:?}: {} frames, {} packets, {} lost", counters.frames, counters.offered_packets, counters.lost);
        assert!(counters.frames * 2 < counters.offered_packets, "{}", common::NO_GSO_PACKETS);
        assert_eq!(counters.lost > 0, loss.is_some());
    }
}

#[test]
fn udp_gso_packets_count_as_the_packets_they_stand_for_in_both_families() {
    let network = network(2);
    let there = link(&network, "h0", "h1");
    for family in FAMILIES {
        let [sender, receiver] = udp(&network, family);
        let headers = if sender.local_addr().unwrap().is_ipv4() { 28 } else { 48 };
        let size: libc::c_int = 1_000;
        // SAFETY: the value is an int of the length stated.
        let set = unsafe {
            let value = std::ptr::from_ref(&size).cast();
            libc::setsockopt(sender.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, 4)
        };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        for delay in [None, Some("1ms")] {
            let _guard = delay.map(|delay| impair(&network, &[there], Impairment::delay(delay.parse().unwrap())));
            sender.send(&(0..40).flat_map(|number| [number; 1_000]).collect::<Vec<u8>>()).unwrap();
            for number in 0..40 {
                let mut datagram = [0; 2_000];
                assert_eq!(receiver.recv(&mut datagram).unwrap(), 1_000);
                assert_eq!(datagram[..1_000], [number; 1_000]);
            }
            let counters = settled_counters(&network, there);
            assert_eq!((counters.frames, counters.offered_packets), (1, 40), "{}", common::NO_GSO_PACKETS);
            assert_eq!(counters.offered_bytes, 40 * (1_000 + headers));
        }
    }
}

#[test]
fn below_the_mtu_that_ipv6_demands_there_is_ipv4_alone() {
    for (mtu, has) in [(1_279, false), (1_280, true)] {
        let network = start(NetworkSpec { mtu, ..spec(2) });
        assert_eq!(network.hosts()[0].address6().is_some(), has, "{mtu}");
        let [sender, receiver] = udp(&network, |host| host.address().into());
        sender.send(b"?").unwrap();
        assert_eq!(receiver.recv(&mut [0; 8]).unwrap(), 1);
    }
}
