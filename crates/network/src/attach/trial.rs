//! Which of the ways to divert work here, tried out on an interface of our own.

use std::{
    fs::File,
    io,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::{
    diversion::Place,
    forward,
    opened::Opened,
    queue, route,
    spec::{AttachedKind, AttachedSpec, Exit},
};
use crate::{
    emulator::{Port, gso},
    error::NetworkError,
    host::tun_error,
    sys::{self, PacketSocket, TUN_DEVICE, Tap, Tun},
    way::Way,
};

/// Who the messages are about.
const HOST: &str = "trial";
/// The interface of the trials that have a TUN in a container's place.
const INTERFACE: &str = "trial0";

const PATIENCE: Duration = Duration::from_secs(5);
/// How long nothing must come that is held.
const SILENCE: Duration = Duration::from_millis(20);

/// Bytes of `struct virtio_net_hdr`.
const HEADER: usize = 10;

/// For documentation (RFC 5737): the host, and who it talks to.
const HERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const THERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// What is sent.
const WORDS: &[u8; 12] = b"brownout ?  ";

/// What works here of all ways to divert, tried in namespaces of our own: for `doctor`. Takes some 100 ms for each.
///
/// By each, a packet is diverted, held, sent on, and, when nothing is diverted any more, passes by.
pub fn attach_trials() -> Vec<(Way, Result<(), NetworkError>)> {
    Way::ALL.into_iter().map(|way| (way, try_out(way))).collect()
}

/// The way by which [`crate::Network::attach`] diverts here: the first that works.
///
/// # Errors
/// What the first way lacks, if none works; see [`NetworkError`].
pub fn attach_way() -> Result<Way, NetworkError> {
    let mut first = None;
    for way in Way::ALL {
        match try_out(way) {
            Ok(()) => return Ok(way),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    first.map_or(Ok(Way::Forward), Err)
}

fn try_out(way: Way) -> Result<(), NetworkError> {
    let failed = |source| NetworkError::Namespace { host: HOST.to_owned(), source };
    thread::Builder::new()
        .name("attach-trial".to_owned())
        .spawn(move || {
            sys::unshare_network().map_err(failed)?;
            match way {
                Way::Forward => forwarding(),
                Way::Queue => queueing(),
                Way::Route => routing(),
            }
        })
        .map_err(failed)?
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A packet that can be sent again and again, and an end at which it arrives.
struct Scene<'a> {
    send: &'a dyn Fn() -> io::Result<()>,
    /// Whether it has arrived since this was last asked.
    has_arrived: &'a dyn Fn() -> io::Result<bool>,
}

impl Scene<'_> {
    /// Has a packet diverted, held, sent on, and let pass.
    fn play(&self, mut opened: Opened, port: &Port) -> Result<(), NetworkError> {
        let hosts = [host("trial", HERE)?, host("other", THERE)?];
        let devices: Vec<String> = opened.device.iter().cloned().collect();
        opened.begin(&Place { hosts: &hosts, number: 0, devices: &devices })?;
        (self.send)().map_err(configure("send a packet"))?;
        let frame = self.diverted(port).map_err(configure("divert a packet"))?;
        thread::sleep(SILENCE);
        if (self.has_arrived)().map_err(configure("hold a packet"))? {
            let passed = io::Error::new(io::ErrorKind::InvalidData, "it arrived all the same");
            return Err(configure("hold a diverted packet")(passed));
        }
        port.write(&frame).map_err(configure("send a packet on"))?;
        self.arrives().map_err(configure("send a diverted packet on"))?;
        opened.pass();
        (self.send)().map_err(configure("send another packet"))?;
        self.arrives().map_err(configure("stop to divert packets"))
    }

    /// Waits until the packet is diverted; the frame that it is in.
    fn diverted(&self, port: &Port) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; gso::LONGEST];
        awaited(|| match port.read(&mut buffer)? {
            Some(length) if buffer[..length].ends_with(WORDS) => Ok(Some(buffer[..length].to_vec())),
            Some(_) | None => Ok(None),
        })
    }

    /// Waits until the packet arrives.
    fn arrives(&self) -> io::Result<()> {
        awaited(|| Ok((self.has_arrived)()?.then_some(())))
    }
}

fn awaited<T>(mut look: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match look()? {
            Some(found) => return Ok(found),
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not arrive within {PATIENCE:?}")))
}

/// What leaves by a TAP in the place of a container's interface can be read at it.
fn forwarding() -> Result<(), NetworkError> {
    let container = Tap::create(Path::new(TUN_DEVICE), 1_500, 16).map_err(|error| tun_error(HOST.to_owned(), error))?;
    let sender = PacketSocket::open(container.index(), 0).map_err(configure("open a packet socket"))?;
    // Ethernet: to, from, IPv4.
    let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &packet(HERE, THERE, 9)[..]].concat();
    let (opened, port) = forward::open(HOST, &Exit { interface: container.name().to_owned(), to: None })?;
    let scene =
        Scene { send: &|| sender.send(&[0; HEADER], &frame), has_arrived: &|| any(|buffer| container.read(buffer)) };
    scene.play(opened, &port)
}

/// What is written to a TUN in the place of a container's interface comes to a socket.
fn queueing() -> Result<(), NetworkError> {
    let container = interface()?;
    let receiver = socket()?;
    let to = receiver.local_addr().map_err(configure("ask a socket for its port"))?.port();
    let frame = [&[0; gso::VNET][..], &packet(THERE, HERE, to)[..]].concat();
    let (opened, port) = queue::open(&host(HOST, HERE)?)?;
    let scene = Scene {
        send: &|| container.write(&frame),
        has_arrived: &|| {
            any(|buffer| match receiver.recv(buffer) {
                Ok(length) => Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error),
            })
        },
    };
    scene.play(opened, &port)
}

/// What a socket sends leaves by such a TUN. Whether answers would come is another matter, and another namespace's.
fn routing() -> Result<(), NetworkError> {
    let container = interface()?;
    let sender = socket()?;
    let (opened, port) = route::open_any(HOST, &Exit { interface: INTERFACE.to_owned(), to: None })?;
    let scene = Scene {
        send: &|| sender.send_to(WORDS, (THERE, 9)).map(drop),
        has_arrived: &|| any(|buffer| container.read(buffer)),
    };
    scene.play(opened, &port)
}

/// A TUN with the host's address, and a route to the other one.
fn interface() -> Result<Tun, NetworkError> {
    let tun = Tun::create(Path::new(TUN_DEVICE), INTERFACE).map_err(|error| tun_error(HOST.to_owned(), error))?;
    let prepare = || {
        let index = sys::interface_index(INTERFACE)?;
        // A kernel without IPv6 refuses, and sends none.
        let _ = sys::forbid_link_local(index);
        sys::add_address(index, HERE.into())?;
        sys::set_up(index)?;
        sys::add_subnet_route(Ipv4Addr::new(192, 0, 2, 0).into(), 24, index, HERE.into(), None)
    };
    prepare().map_err(configure("give an interface its address"))?;
    Ok(tun)
}

fn socket() -> Result<UdpSocket, NetworkError> {
    let open = || -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((HERE, 0))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    open().map_err(configure("open a socket"))
}

/// Takes all that is there; whether the packet was among it.
fn any(read: impl Fn(&mut [u8]) -> io::Result<Option<usize>>) -> io::Result<bool> {
    let (mut buffer, mut found) = ([0u8; 2_048], false);
    while let Some(length) = read(&mut buffer)? {
        found |= buffer[..length].ends_with(WORDS);
    }
    Ok(found)
}

/// A UDP packet without a checksum.
fn packet(from: Ipv4Addr, to: Ipv4Addr, port: u16) -> Vec<u8> {
    let length = 8 + WORDS.len() as u16;
    let mut packet = vec![0x45, 0, 0, 20 + length as u8, 0, 1, 0x40, 0, 64, 17, 0, 0];
    packet.extend(from.octets());
    packet.extend(to.octets());
    gso::seal_ipv4(&mut packet);
    [9, port, length, 0].iter().for_each(|field| packet.extend(field.to_be_bytes()));
    packet.extend(WORDS);
    packet
}

/// As if it were in the calling thread's namespace.
fn host(name: &str, address: Ipv4Addr) -> Result<AttachedSpec, NetworkError> {
    let namespace = File::open("/proc/thread-self/ns/net").map_err(configure("find its network namespace"))?;
    Ok(AttachedSpec {
        name: name.to_owned(),
        addresses: vec![IpAddr::from(address)],
        namespace: Arc::new(namespace.into()),
        exits: Vec::new(),
        kind: AttachedKind::Host,
    })
}

fn configure(action: &str) -> impl Fn(io::Error) -> NetworkError {
    let action = action.to_owned();
    move |source| NetworkError::Configure { host: HOST.to_owned(), action: action.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_diverted_held_sent_on_and_let_pass() {
        // Kernels have been built without what the second way takes: what it says there is no failure of ours.
        for (way, tried) in attach_trials() {
            match tried {
                Ok(()) => println!("{}: works", way.name()),
                Err(error) => println!("{}: {error}", way.name()),
            }
        }
        assert_eq!(attach_way().unwrap(), Way::Forward, "this test needs root and Linux 5.17");
        attach_way().unwrap();
    }
}
