//! The largest packet that a link carries, found out as a sender would: by packets that must not be fragmented.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_network::{Host, HostId, Network};
use brownout_record::{Quantity, Subject, WitnessRow};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, set_ip_mtu_discover, set_socket_recv_buffer_size, set_socket_recv_buffer_size_force,
};

use super::poller::{Poller, tell};
use crate::{LabError, containers::Follower};

/// Between two rounds of packets on all links.
const EVERY: Duration = Duration::from_millis(250);
/// What a packet may take besides what links hold it for.
const PATIENCE: Duration = Duration::from_millis(100);
/// All links are looked at in a lab of so many hosts; in larger ones only those that a fault hits, and the ways back.
const ALL_LINKS_UP_TO: usize = 8;
/// Room for the packets of one round, bytes.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;
const PORT: u16 = 47_002;
/// Sizes that are tried, besides the network's own: what standards name, and steps between.
const SIZES: [usize; 12] = [576, 640, 768, 900, 1_024, 1_152, 1_280, 1_360, 1_400, 1_440, 1_480, 1_492];

/// A host's socket, if it is on this machine, and its address.
type End = (Option<Arc<UdpSocket>>, Ipv4Addr);

/// All hosts, in their order; none of one that is not there at the moment.
pub(super) struct Ends(Vec<(String, Mutex<Option<End>>)>);

/// Who sends what to whom.
struct SizeProbes {
    ends: Arc<Ends>,
    /// By the places of the ends.
    links: Vec<(usize, usize)>,
    sizes: BTreeSet<usize>,
}

/// `asked` are links and sizes that faults ask for: those sizes, and one more, are tried, too.
pub(super) fn start(
    network: &Network,
    mtu: u16,
    asked: &[(String, String, u16)],
    seen: Sender<WitnessRow>,
) -> Result<(Poller, Arc<Ends>), LabError> {
    let mut ends = Vec::new();
    for host in network.hosts() {
        ends.push((host.name().to_owned(), Mutex::new(Some(end(host)?))));
    }
    let limits = asked.iter().flat_map(|(.., limit)| [usize::from(*limit), usize::from(*limit) + 1]);
    let sizes = SIZES.into_iter().chain(limits).chain([usize::from(mtu)]).filter(|size| *size <= usize::from(mtu));
    let all =
        (0..ends.len()).flat_map(|from| (0..ends.len()).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let hit = |from: usize, to: usize| {
        let (from, to) = (&ends[from].0, &ends[to].0);
        asked.iter().any(|(a, b, _)| (a == from && b == to) || (a == to && b == from))
    };
    // Those of other machines are looked at there.
    let carried =
        |from: usize, to: usize| network.link(&ends[from].0, &ends[to].0).is_some_and(|link| network.carries(link));
    let wanted = |from: usize, to: usize| ends.len() <= ALL_LINKS_UP_TO || hit(from, to);
    let links = all.filter(|(from, to)| wanted(*from, *to) && carried(*from, *to)).collect();
    let ends = Arc::new(Ends(ends));
    let plan = SizeProbes { sizes: sizes.collect(), links, ends: Arc::clone(&ends) };
    let control = network.control();
    let mut round = 0_u32;
    let look = move || {
        round = round.wrapping_add(1);
        let patience = PATIENCE + Duration::from_nanos(control.longest_hold_ns());
        self::round(&plan, round, patience, &seen);
    };
    Ok((Poller::start("witness-mtu".to_owned(), EVERY, || Ok(()), look)?, ends))
}

impl Ends {
    fn put(&self, host: HostId, end: Option<End>) {
        if let Some((_, place)) = self.0.get(host.index()) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = end;
        }
    }

    /// Those of this moment.
    fn now(&self) -> Vec<(&str, Option<End>)> {
        let end = |place: &Mutex<Option<End>>| place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.0.iter().map(|(name, place)| (name.as_str(), end(place))).collect()
    }
}

impl Follower for Ends {
    fn left(&self, host: HostId, _: u64) {
        self.put(host, None);
    }

    fn came(&self, host: &Host) -> Result<(), LabError> {
        self.put(host.id(), Some(end(host)?));
        Ok(())
    }
}

fn end(host: &Host) -> Result<End, LabError> {
    let failed = |source| LabError::Ground { doing: "find out the largest packets", source };
    let socket = if host.is_elsewhere() { None } else { Some(Arc::new(socket(host).map_err(failed)?)) };
    Ok((socket, host.address()))
}

fn socket(host: &Host) -> io::Result<UdpSocket> {
    let socket = host.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)))??;
    socket.set_nonblocking(true)?;
    // Sets "don't fragment", and looks at no path MTU that the kernel has learned (ip(7)).
    set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
    // Without CAP_NET_ADMIN over the machine, as much as the machine allows.
    set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
        .or_else(|_| set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER))?;
    Ok(socket)
}

/// One packet of every size on every link; the largest that arrives is told.
fn round(plan: &SizeProbes, round: u32, patience: Duration, seen: &Sender<WitnessRow>) {
    let SizeProbes { ends, links, sizes } = plan;
    let ends = ends.now();
    let at_ns = monotonic_ns();
    let mut buffer = vec![0; 65_536];
    for (from, to) in links {
        let (Some((Some(sender), _)), Some((_, address))) = (&ends[*from].1, &ends[*to].1) else { continue };
        buffer[..4].copy_from_slice(&round.to_be_bytes());
        buffer[4..6].copy_from_slice(&(*from as u16).to_be_bytes());
        for size in sizes {
            let target = SocketAddr::from((*address, PORT));
            // An error here is the kernel's about an earlier packet that was too large.
            let _ = sender.send_to(&buffer[..size - HEADERS], target);
        }
    }
    thread::sleep(patience);
    for (receiver, end) in &ends {
        let Some((Some(socket), _)) = end else { continue };
        let mut largest = vec![0; ends.len()];
        loop {
            match socket.recv_from(&mut buffer) {
                Ok((length, _)) if length >= 6 => {
                    let number = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
                    let from = usize::from(u16::from_be_bytes([buffer[4], buffer[5]]));
                    // Other machines have rounds of their own.
                    let is_elsewhere = matches!(ends.get(from), Some((_, Some((None, _)))));
                    if let Some(largest) = largest.get_mut(from).filter(|_| number == round || is_elsewhere) {
                        *largest = (length + HEADERS).max(*largest);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // What the sender's side of this socket was told of packets that did not pass.
                Err(_) => {}
            }
        }
        for ((sender, _), size) in ends.iter().zip(largest).filter(|(_, size)| *size > 0) {
            tell(
                seen,
                WitnessRow {
                    at_ns,
                    subject: Subject::pair(*sender, *receiver),
                    quantity: Quantity::LargestPacket,
                    source: "sizes".to_owned(),
                    value: size as f64,
                    error: 0.0,
                },
            );
        }
    }
}
