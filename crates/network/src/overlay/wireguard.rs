//! WireGuard from each host to each other: one thread carries the packets of all of them.
//!
//! Hosts have a TUN each, and a UDP socket on their address below, so that what WireGuard sends is impaired, counted and
//! captured like anything else. Its protocol is the crate boringtun's, packet by packet; but packets come from the TUN as GSO
//! packets, and go to the socket many at once, and back in the same way: per packet only the encryption is left to do.

use std::{
    cell::Cell,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddrV4},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use boringtun::{
    noise::{Tunn, TunnResult},
    x25519::{PublicKey, StaticSecret},
};
use brownout_base::HostId;
use brownout_machine::run_urgently;

use super::{WIREGUARD, coalesce::Coalescer};
use crate::{
    emulator::{
        Shared,
        gso::{LONGEST, Shape, VNET, complete, slice, sliced_length},
    },
    sys::{self, DatagramSocket, Epoll, Event, Tun, Wakeup},
};

/// WireGuard's own.
pub(super) const PORT: u16 = 51_820;
/// Below those who measure, above the load: packets of all hosts wait for it.
const FIFO_PRIORITY: u8 = 17;
/// boringtun's timers want to be looked at so often.
const TICK: Duration = Duration::from_millis(250);
/// What is read of one host before the others have their turn.
const BATCH: usize = 16;
/// Datagrams that the kernel takes at once (`UDP_MAX_SEGMENTS`), and their bytes.
const MOST_TOGETHER: usize = 64;
const MOST_BYTES: usize = 65_000;
/// What encryption adds to a packet, and the least room that boringtun wants.
const ROOM: usize = 256;

/// The events' number for the end; hosts have two each.
const END: u64 = u64::MAX;

/// One host's end of the tunnels, before they run.
pub(super) struct Port {
    /// Which host.
    pub(super) host: HostId,
    /// Its interface.
    pub(super) tun: Tun,
    /// Bound to its address below, and [`PORT`].
    pub(super) socket: DatagramSocket,
    /// That address.
    pub(super) below: Ipv4Addr,
    /// The address inside.
    pub(super) inside: Ipv4Addr,
}

/// The thread. Dropping it ends it.
pub(super) struct Wireguard {
    end: Arc<Wakeup>,
    thread: Option<JoinHandle<()>>,
    /// What each host did not take; see [`Refused`].
    refused: Vec<(HostId, Arc<AtomicU64>)>,
}

impl Wireguard {
    /// Starts it for these hosts, with keys that are made now and never leave this process. Hosts whose interface fails are
    /// told by `shared`.
    pub(super) fn start(ports: Vec<Port>, realtime: bool, shared: &Arc<Shared>) -> io::Result<Wireguard> {
        let ends = tunnels(ports, shared)?;
        let refused = ends.iter().map(|at| (at.port.host, Arc::clone(&at.refused.packets))).collect();
        let (epoll, end) = (Epoll::new()?, Arc::new(Wakeup::new()?));
        epoll.add(&*end, END)?;
        for (host, at) in (0..).zip(&ends) {
            epoll.add(&at.port.tun, 2 * host)?;
            epoll.add(&at.port.socket, 2 * host + 1)?;
        }
        let thread = thread::Builder::new().name("wireguard".to_owned()).spawn(move || {
            run_urgently(realtime.then_some(FIFO_PRIORITY));
            run(ends, &epoll);
        })?;
        Ok(Wireguard { end, thread: Some(thread), refused })
    }

    /// Packets (a GSO packet counts once) that a host's kernel took neither for its interface nor for its socket.
    pub(super) fn refused(&self, host: HostId) -> u64 {
        let refused = self.refused.iter().find(|(of, _)| *of == host);
        refused.map_or(0, |(_, packets)| packets.load(Ordering::Relaxed))
    }
}

impl Drop for Wireguard {
    fn drop(&mut self) {
        self.end.notify();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been printed by it.
            let _ = thread.join();
        }
    }
}

/// One host's end of the tunnels.
struct End {
    port: Port,
    /// One for each other host.
    peers: Vec<Peer>,
    coalescer: Coalescer,
    refused: Refused,
}

/// What a host's kernel did not take. No link that was asked for would have lost it.
struct Refused {
    host: HostId,
    packets: Arc<AtomicU64>,
    has_failed: Cell<bool>,
    shared: Arc<Shared>,
}

impl Refused {
    fn new(host: HostId, shared: &Arc<Shared>) -> Refused {
        Refused { host, packets: Arc::default(), has_failed: Cell::new(false), shared: Arc::clone(shared) }
    }

    /// Counts one packet.
    fn count(&self) {
        self.packets.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells that the host's interface is gone; once.
    fn fail(&self, error: &io::Error) {
        if !self.has_failed.replace(true) {
            self.shared.failed(self.host, format!("{WIREGUARD}, the overlay's: {error}"));
        }
    }
}

/// A tunnel, as one of its ends has it.
struct Peer {
    tunnel: Tunn,
    /// The other end's address below …
    below: Ipv4Addr,
    /// … and inside.
    inside: Ipv4Addr,
}

/// Makes keys, and of every two hosts a tunnel's two ends.
fn tunnels(ports: Vec<Port>, shared: &Arc<Shared>) -> io::Result<Vec<End>> {
    let keys = ports.iter().map(|_| Ok(StaticSecret::from(sys::secret()?))).collect::<io::Result<Vec<_>>>()?;
    let public: Vec<PublicKey> = keys.iter().map(PublicKey::from).collect();
    let addresses: Vec<(Ipv4Addr, Ipv4Addr)> = ports.iter().map(|port| (port.below, port.inside)).collect();
    let ends = ports.into_iter().zip(&keys).enumerate().map(|(own, (port, key))| {
        let others = (0..addresses.len()).filter(|other| *other != own);
        // Sessions are numbered by it, in the 24 upper bits: unique on this host is enough.
        let peers = (0..).zip(others).map(|(number, other)| Peer {
            tunnel: Tunn::new(key.clone(), public[other], None, None, number, None),
            below: addresses[other].0,
            inside: addresses[other].1,
        });
        let refused = Refused::new(port.host, shared);
        End { peers: peers.collect(), port, coalescer: Coalescer::default(), refused }
    });
    Ok(ends.collect())
}

/// Room that all hosts share.
struct Room {
    /// What was read.
    frame: Vec<u8>,
    /// One packet of it.
    packet: Vec<u8>,
    /// What is to be sent, or was decrypted.
    out: Vec<u8>,
}

impl Room {
    fn new() -> Room {
        Room { frame: vec![0; LONGEST], packet: Vec::new(), out: vec![0; MOST_BYTES + LONGEST + ROOM] }
    }
}

fn run(mut ends: Vec<End>, epoll: &Epoll) {
    let mut room = Room::new();
    let mut events: Vec<Event> = Vec::with_capacity(64);
    let mut next_tick = Instant::now() + TICK;
    loop {
        let wait = next_tick.saturating_duration_since(Instant::now());
        // Only a bug could make this fail; ending cuts all tunnels, which nobody can overlook.
        if epoll.wait(&mut events, Some(wait.as_nanos() as u64)).is_err() {
            return;
        }
        for event in &events {
            let number = event.data.u64();
            if number == END {
                return;
            }
            let Some(end) = usize::try_from(number / 2).ok().and_then(|host| ends.get_mut(host)) else { continue };
            if number % 2 == 1 {
                end.receives(&mut room);
            } else if let Err(error) = end.sends(&mut room) {
                // It would be reported as readable for ever.
                epoll.remove(&end.port.tun);
                end.refused.fail(&error);
            }
        }
        if Instant::now() >= next_tick {
            next_tick = Instant::now() + TICK;
            ends.iter_mut().for_each(|end| end.tick(&mut room));
        }
    }
}

impl End {
    /// Carries what the host has sent, up to a batch.
    ///
    /// # Errors
    /// When the interface is gone, because somebody inside deleted it.
    fn sends(&mut self, room: &mut Room) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(length) = self.port.tun.read(&mut room.frame)? else { break };
            self.encrypt(length, room);
        }
        Ok(())
    }

    /// Encrypts the frame that was read, packet by packet, and sends what becomes of it.
    fn encrypt(&mut self, length: usize, room: &mut Room) {
        let Room { frame, packet, out } = room;
        let frame = &mut frame[..length];
        let Some(to) = frame.get(VNET + 16..VNET + 20).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()) else {
            return;
        };
        let inside = Ipv4Addr::from(to);
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.inside == inside && frame[VNET] >> 4 == 4) else {
            // Nobody has this address: as on a link without such a host.
            return;
        };
        let to = SocketAddrV4::new(peer.below, PORT);
        let shape = Shape::of(frame);
        let Some(segments) = shape.segments else {
            complete(frame);
            if let TunnResult::WriteToNetwork(datagram) = peer.tunnel.encapsulate(&frame[VNET..], out) {
                send(&self.port.socket, &self.refused, datagram, datagram.len(), to);
            }
            return;
        };
        // Datagrams one after the other, all of the first one's size but the last.
        let (mut filled, mut size, mut count) = (0, 0, 0);
        for n in 0..shape.packets {
            packet.resize(sliced_length(&segments, &(n..n + 1)), 0);
            slice(frame, &segments, &(n..n + 1), packet);
            complete(packet);
            let TunnResult::WriteToNetwork(datagram) = peer.tunnel.encapsulate(&packet[VNET..], &mut out[filled..])
            else {
                // Kept until there is a session, or dropped.
                continue;
            };
            let length = datagram.len();
            if count == 0 {
                size = length;
            }
            (filled, count) = (filled + length, count + 1);
            if length != size || count == MOST_TOGETHER || filled + size > MOST_BYTES {
                send(&self.port.socket, &self.refused, &out[..filled], size, to);
                (filled, count) = (0, 0);
            }
        }
        if filled > 0 {
            send(&self.port.socket, &self.refused, &out[..filled], size, to);
        }
    }

    /// Takes in what has come for the host, up to a batch.
    fn receives(&mut self, room: &mut Room) {
        for _ in 0..BATCH {
            // An error is an ICMP message about an earlier datagram, which is lost anyway.
            let came = match self.port.socket.receive(&mut room.frame) {
                Ok(Some(came)) => came,
                Ok(None) => break,
                Err(_) => continue,
            };
            let End { port, peers, coalescer, refused } = self;
            let Some(peer) = peers.iter_mut().find(|peer| peer.below == came.from) else { continue };
            let to = SocketAddrV4::new(peer.below, PORT);
            let deliver = |frame: &[u8]| {
                if let Err(error) = port.tun.write(frame) {
                    refused.count();
                    if sys::is_gone(&error) {
                        refused.fail(&error);
                    }
                }
            };
            for datagram in room.frame[..came.length].chunks(came.size) {
                let mut datagram = datagram;
                loop {
                    match peer.tunnel.decapsulate(Some(IpAddr::V4(came.from)), datagram, &mut room.out) {
                        TunnResult::WriteToTunnelV4(packet, from) if from == peer.inside => {
                            coalescer.add(packet, deliver);
                            break;
                        }
                        // Handshakes; then what has waited for them.
                        TunnResult::WriteToNetwork(answer) => send(&port.socket, refused, answer, answer.len(), to),
                        _ => break,
                    }
                    datagram = &[];
                }
            }
            coalescer.flush(deliver);
        }
    }

    /// Handshakes that are due, and keepalives.
    fn tick(&mut self, room: &mut Room) {
        for peer in &mut self.peers {
            if let TunnResult::WriteToNetwork(datagram) = peer.tunnel.update_timers(&mut room.out) {
                let to = SocketAddrV4::new(peer.below, PORT);
                send(&self.port.socket, &self.refused, datagram, datagram.len(), to);
            }
        }
    }
}

/// Sends datagrams of one size, of which the last may be shorter; what the host does not take is lost, and counted.
fn send(socket: &DatagramSocket, refused: &Refused, bytes: &[u8], size: usize, to: SocketAddrV4) {
    if socket.send(bytes, size, to).is_err() {
        refused.count();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::emulator::Emulator;

    fn below(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 0, host + 1)
    }

    fn inside(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 78, 0, host + 1)
    }

    /// The ends of tunnels between hosts that share a network namespace of the calling thread's own, and who is told of
    /// failures. No interface is up.
    fn ends(hosts: u8) -> (Vec<End>, Emulator) {
        sys::unshare_network().expect("this test needs root");
        sys::interface_index("lo").and_then(sys::set_up).unwrap();
        let port = |host: u8| Port {
            host: HostId(host.into()),
            tun: Tun::create(Path::new(sys::TUN_DEVICE), &format!("tun{host}"))
                .unwrap_or_else(|_| panic!("this test needs root and /dev/net/tun")),
            socket: DatagramSocket::bind(SocketAddrV4::new(below(host), PORT)).unwrap(),
            below: below(host),
            inside: inside(host),
        };
        let (emulator, _) = Emulator::new(hosts.into(), Wakeup::new().unwrap());
        let ends = tunnels((0..hosts).map(port).collect(), &emulator.shared()).unwrap();
        (ends, emulator)
    }

    /// Sends a UDP packet from the first host to the second, as if it had been read from the first one's interface.
    fn send_packet(ends: &mut [End], room: &mut Room) {
        let mut frame = vec![0u8; VNET];
        frame.extend([0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0]);
        frame.extend(inside(0).octets());
        frame.extend(inside(1).octets());
        frame.extend([0x23, 0x52, 0, 9, 0, 8, 0, 0]);
        room.frame[..frame.len()].copy_from_slice(&frame);
        ends[0].encrypt(frame.len(), room);
    }

    fn refused(end: &End) -> u64 {
        end.refused.packets.load(Ordering::Relaxed)
    }

    #[test]
    fn what_an_interface_does_not_take_is_counted_and_that_it_is_down_is_told_once() {
        let (mut ends, emulator) = ends(2);
        let mut room = Room::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        for packets in 1..=2 {
            send_packet(&mut ends, &mut room);
            // The first waits for a handshake.
            while refused(&ends[1]) < packets {
                assert!(Instant::now() < deadline, "packet {packets} is nowhere");
                ends.iter_mut().for_each(|end| end.receives(&mut room));
            }
            let told = emulator.take_failures();
            assert_eq!(told.len(), usize::from(packets == 1), "{told:?}");
            assert!(told.iter().all(|failure| failure.host == HostId(1) && failure.reason.contains(WIREGUARD)));
        }
        assert_eq!((refused(&ends[0]), refused(&ends[1])), (0, 2));
    }

    #[test]
    fn what_a_socket_does_not_take_is_counted_and_is_no_failure_of_the_interface() {
        let (mut ends, emulator) = ends(2);
        // For documentation (RFC 5737): there is no way.
        ends[0].peers[0].below = Ipv4Addr::new(192, 0, 2, 1);
        send_packet(&mut ends, &mut Room::new());
        assert_eq!((refused(&ends[0]), refused(&ends[1])), (1, 0));
        assert_eq!(emulator.take_failures(), []);
    }
}
