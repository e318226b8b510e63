//! Real traffic through impaired links: numbered datagrams and byte streams over either family, and what became of them.

// Each test program uses its part of it; helpers may fail a test as it may itself.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{ErrorKind, Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::AsRawFd,
    thread,
    time::{Duration, Instant},
};

use brownout_network::{Host, Link, LinkCounters, Network};

use super::common::{NO_GSO_PACKETS, PATIENCE, counters, link};

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub const BOTH: [Family; 2] = [Family::V4, Family::V6];

    pub fn address(self, host: &Host) -> IpAddr {
        match self {
            Family::V4 => host.address().into(),
            Family::V6 => host.address6().expect("this test needs a kernel with IPv6").into(),
        }
    }

    /// Bytes of IP and UDP headers.
    pub fn udp_headers(self) -> usize {
        if self == Family::V4 { 28 } else { 48 }
    }
}

/// A shape of the way that packets take: from which host to which, by which family.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub from: &'static str,
    pub to: &'static str,
    pub family: Family,
}

impl Way {
    pub fn of(family: Family) -> Way {
        Way { from: "h0", to: "h1", family }
    }

    pub fn link(&self, network: &Network) -> Link {
        link(network, self.from, self.to)
    }

    /// Two connected UDP sockets, the receiving one with room for a lot.
    pub fn udp(&self, network: &Network) -> (UdpSocket, UdpSocket) {
        let socket = |name: &str| {
            let host = network.host(name).unwrap();
            host.run(|| UdpSocket::bind((self.family.address(host), 0))).unwrap().unwrap()
        };
        let (sender, receiver) = (socket(self.from), socket(self.to));
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.connect(sender.local_addr().unwrap()).unwrap();
        set_option(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 256 << 20);
        (sender, receiver)
    }

    /// A listener at the receiving host.
    pub fn listen(&self, network: &Network) -> TcpListener {
        let host = network.host(self.to).unwrap();
        host.run(|| TcpListener::bind((self.family.address(host), 0))).unwrap().unwrap()
    }

    /// Tries to connect from the sending host.
    pub fn connect(&self, network: &Network, to: SocketAddr, within: Duration) -> std::io::Result<TcpStream> {
        network.host(self.from).unwrap().run(|| TcpStream::connect_timeout(&to, within)).unwrap()
    }

    /// A connection: its sending and its receiving end.
    pub fn tcp(&self, network: &Network) -> (TcpStream, TcpStream) {
        let listener = self.listen(network);
        let to = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || listener.accept().unwrap().0);
        let sender = self.connect(network, to, PATIENCE).unwrap();
        (sender, accepting.join().unwrap())
    }
}

pub fn set_option(socket: &impl AsRawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) {
    // SAFETY: the value is an int of the length stated.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(&value).cast(), 4) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

pub fn option(socket: &impl AsRawFd, level: libc::c_int, name: libc::c_int) -> libc::c_int {
    let (mut value, mut length) = (0, 4);
    // SAFETY: there is room for an int.
    let got = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, std::ptr::from_mut(&mut value).cast(), &mut length)
    };
    assert_eq!(got, 0, "{}", std::io::Error::last_os_error());
    value
}

/// Switches TCP segmentation offload of a host's interface (`ETHTOOL_STSO`): without it the kernel
/// hands over MTU frames.
pub fn set_segmentation_offload(network: &Network, host: &str, on: bool) {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    const SET_TSO: u32 = 0x1F;
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    let set = || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let mut value = Value { command: SET_TSO, data: u32::from(on) };
        // SAFETY: a zeroed ifreq is valid; it names the interface and points to a value that lives on.
        unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (slot, byte) in request.ifr_name.iter_mut().zip(brownout_network::INTERFACE.bytes()) {
                *slot = byte as libc::c_char;
            }
            request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
            libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request)
        }
    };
    assert_eq!(network.host(host).unwrap().run(set).unwrap(), 0, "cannot switch offload to {on}");
}

/// Packets that have left the link one way or another, by the equation that [`LinkCounters`] states.
pub fn gone(counters: &LinkCounters) -> u64 {
    let LinkCounters { delivered_packets, lost, cut, too_big, dropped_queue, .. } = counters;
    delivered_packets + lost + cut + too_big + dropped_queue + counters.dropped_by_emulator()
}

/// Packets that ever were on the link.
pub fn ever(counters: &LinkCounters) -> u64 {
    counters.offered_packets + counters.duplicated + counters.fragments
}

/// Adds counters until `offered` packets have been offered and nothing is in flight.
pub fn settle(network: &Network, link: Link, all: &mut LinkCounters, offered: u64) {
    let end = Instant::now() + PATIENCE;
    loop {
        assert!(gone(all) <= ever(all) && all.offered_packets <= offered, "{offered} offered: {all:?}");
        if all.offered_packets == offered && gone(all) == ever(all) {
            return;
        }
        assert!(Instant::now() < end, "{offered} offered: {all:?}");
        all.add(&counters(network, link));
    }
}

/// What happened to numbered datagrams.
pub struct Outcome {
    /// Their numbers, in order of arrival.
    pub arrived: Vec<u32>,
    /// What their link counted.
    pub counters: LinkCounters,
}

/// Sends numbered datagrams of 1,000 bytes in GSO packets of `together`, and lets each GSO packet pass before the next:
/// what interfaces and sockets can hold is limited, and the emulator must not be blamed for what does not fit.
pub fn send_numbered(network: &Network, way: Way, datagrams: u32, together: u32) -> Outcome {
    assert_eq!(datagrams % together, 0);
    let (link, (sender, receiver)) = (way.link(network), way.udp(network));
    set_option(&sender, libc::SOL_UDP, libc::UDP_SEGMENT, 1_000);
    let (mut arrived, mut counted) = (Vec::new(), counters(network, link));
    assert_eq!(counted.offered_packets, 0, "somebody else has used this link");
    for first in (0..datagrams).step_by(together as usize) {
        let numbers = first..first + together;
        let batch: Vec<u8> = numbers.clone().flat_map(datagram).collect();
        sender.send(&batch).unwrap();
        settle(network, link, &mut counted, u64::from(numbers.end));
        receive_until(&receiver, &mut arrived, counted.delivered_packets - counted.corrupted);
    }
    if counted.corrupted > 0 {
        // The last may be damaged, and then nothing tells that the kernel has looked at it.
        receive_until_silence(&receiver, &mut arrived);
    }
    assert_eq!(counted.frames, u64::from(datagrams / together), "{together} together: {NO_GSO_PACKETS}");
    Outcome { arrived, counters: counted }
}

/// Sends numbered datagrams one by one, `together` of them before it waits that they pass: where the kernel cuts GSO packets
/// before the emulator sees them.
pub fn send_singly(network: &Network, way: Way, datagrams: u32, together: u32) -> Outcome {
    assert_eq!(datagrams % together, 0);
    let (link, (sender, receiver)) = (way.link(network), way.udp(network));
    let (mut arrived, mut counted) = (Vec::new(), counters(network, link));
    assert_eq!(counted.offered_packets, 0, "somebody else has used this link");
    for first in (0..datagrams).step_by(together as usize) {
        for number in first..first + together {
            sender.send(&datagram(number)).unwrap();
        }
        settle(network, link, &mut counted, u64::from(first + together));
        receive_until(&receiver, &mut arrived, counted.delivered_packets - counted.corrupted);
    }
    if counted.corrupted > 0 {
        receive_until_silence(&receiver, &mut arrived);
    }
    assert_eq!((counted.frames, counted.offered_packets), (u64::from(datagrams), u64::from(datagrams)));
    Outcome { arrived, counters: counted }
}

/// A datagram that tells its number, and whether it is intact.
pub fn datagram(number: u32) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[number as u8; 996]].concat()
}

/// Takes what comes until there are this many: what the emulator has handed over, the kernel may still have to bring to
/// its socket.
pub fn receive_until(receiver: &UdpSocket, arrived: &mut Vec<u32>, datagrams: u64) {
    let end = Instant::now() + PATIENCE;
    loop {
        receive_numbers(receiver, arrived);
        if arrived.len() as u64 >= datagrams {
            return;
        }
        assert!(Instant::now() < end, "{} of {datagrams} datagrams came", arrived.len());
        thread::yield_now();
    }
}

/// Takes what comes until nothing has come for a while.
pub fn receive_until_silence(receiver: &UdpSocket, arrived: &mut Vec<u32>) {
    loop {
        let before = arrived.len();
        thread::sleep(Duration::from_millis(200));
        receive_numbers(receiver, arrived);
        if arrived.len() == before {
            return;
        }
    }
}

/// Takes all that is there.
pub fn receive_numbers(receiver: &UdpSocket, arrived: &mut Vec<u32>) {
    let mut buffer = [0; 2_048];
    receiver.set_nonblocking(true).unwrap();
    loop {
        match receiver.recv(&mut buffer) {
            Ok(length) => {
                let number = u32::from_be_bytes(buffer[..4].try_into().unwrap());
                assert_eq!(buffer[..length], datagram(number), "a damaged datagram reached its receiver");
                arrived.push(number);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A byte that tells its place: no shift by a segment or a power of two goes unseen.
pub fn content(at: usize) -> u8 {
    (at % 251) as u8 ^ (at >> 16) as u8
}

/// Sends these many known bytes, and compares each that arrives.
pub fn send_stream((mut sender, mut receiver): (TcpStream, TcpStream), bytes: usize) {
    let writer = thread::spawn(move || {
        let mut block = vec![0; 1 << 18];
        for start in (0..bytes).step_by(block.len()) {
            let length = block.len().min(bytes - start);
            block[..length].iter_mut().zip(start..).for_each(|(byte, at)| *byte = content(at));
            sender.write_all(&block[..length]).unwrap();
        }
        // Whoever else has a hand on it, this is the end.
        sender.shutdown(Shutdown::Write).unwrap();
    });
    let (mut block, mut at) = (vec![0; 1 << 18], 0);
    loop {
        let length = receiver.read(&mut block).unwrap();
        if length == 0 {
            break;
        }
        for byte in &block[..length] {
            assert_eq!(*byte, content(at), "byte {at}");
            at += 1;
        }
    }
    writer.join().unwrap();
    assert_eq!(at, bytes);
}

/// Fails unless `hits` of `trials` is within the 99 % interval of the binomial distribution (normal approximation, a
/// packet added for what that leaves out), and exactly none or all of them if that is the share. `spread`: the variance
/// that correlation gives, in units of independent draws'.
pub fn assert_share(hits: u64, trials: u64, share: f64, spread: f64, what: &str) {
    assert_share_within(2.576, hits, trials, share, spread, what);
}

/// The same with another number of standard deviations: 3.89 for 99.99 %, where many such judgements are made at once.
pub fn assert_share_within(deviations: f64, hits: u64, trials: u64, share: f64, spread: f64, what: &str) {
    let mean = trials as f64 * share;
    let is_certain = share <= 0.0 || share >= 1.0;
    let room = if is_certain { 0.0 } else { deviations * (mean * (1.0 - share) * spread).sqrt() + 1.0 };
    let found = hits as f64 / trials as f64 * 100.0;
    println!("{what}: asked {:.3}%, measured {found:.3}% ({hits} of {trials})", share * 100.0);
    assert!((hits as f64 - mean).abs() <= room, "{what}: {hits} of {trials}, expected {mean:.1} ± {room:.1}");
}
