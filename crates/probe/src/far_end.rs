//! The far end of probes and trains that are sent from other machines: they are received here, and told of.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_base::{ArrivalElsewhere, EnterableHost, HostId, Mesh};
use brownout_machine::run_urgently;

use crate::{
    error::ProbeError,
    moves::{Move, Moves},
    socket::{Received, Socket},
    stamps::{Stamp, WallClock},
};

/// As urgent as those who send.
const FIFO_PRIORITY: u8 = 19;
/// How often arrivals are collected. Their times are the kernel's, so this costs no precision.
const COLLECT: Duration = Duration::from_millis(10);
/// As much of a datagram as whoever sent it reads.
const BEGINNING: usize = 32;

/// A datagram that has arrived here, for whoever has sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarArrival {
    /// The host that has sent it.
    pub from: HostId,
    /// The host at which it arrived.
    pub to: HostId,
    /// Whose it is: the number of its sender's kind, as of [`FarEnd::address`].
    pub stream: u16,
    /// What arrived, and when, on *this* machine's monotonic clock.
    pub arrival: ArrivalElsewhere,
}

/// Who is told of what has arrived in a round.
pub type Tell = dyn FnMut(Vec<FarArrival>) + Send;

/// Sockets in hosts of this machine, to which others send their probes and trains. They go when this is dropped.
pub struct FarEnd {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Per host that is here, and stream.
    addresses: Vec<(HostId, Vec<SocketAddr>)>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    moves: Moves<Vec<Socket>>,
}

impl FarEnd {
    /// Opens `streams` sockets in each host of this machine, and begins to tell of what arrives.
    ///
    /// # Errors
    /// [`ProbeError::Socket`] when a host's socket cannot be made.
    pub fn start(network: &dyn Mesh, streams: u16, tell: Box<Tell>) -> Result<FarEnd, ProbeError> {
        let mut places: Vec<(HostId, Vec<Socket>)> = Vec::new();
        for (id, host) in (0..).map(HostId).zip(network.enterable_hosts()) {
            if network.elsewhere(id).is_none() {
                places.push((id, open(host, streams)?));
            }
        }
        let addresses = places.iter().map(|(id, sockets)| (*id, addresses(sockets))).collect();
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let priority = network.is_realtime().then_some(FIFO_PRIORITY);
        let thread = thread::Builder::new()
            .name("far-end".to_owned())
            .spawn(move || {
                run_urgently(priority);
                receive_all(places, &own, tell);
            })
            .map_err(|source| ProbeError::Thread { does: "receives probes of other machines", source })?;
        Ok(FarEnd { shared, thread: Some(thread), addresses })
    }

    /// Where datagrams of a stream are to be sent that are meant for a host; `None` if it is not here.
    pub fn address(&self, host: HostId, stream: u16) -> Option<SocketAddr> {
        let (_, addresses) = self.addresses.iter().find(|(id, _)| *id == host)?;
        addresses.get(usize::from(stream)).copied()
    }

    /// A host that is somewhere else on this machine now. Others have to be told the new addresses.
    ///
    /// # Errors
    /// As of [`FarEnd::start`].
    pub fn came(&mut self, host: HostId, there: &dyn EnterableHost) -> Result<(), ProbeError> {
        let Some((_, known)) = self.addresses.iter_mut().find(|(id, _)| *id == host) else { return Ok(()) };
        let sockets = open(there, u16::try_from(known.len()).unwrap_or(u16::MAX))?;
        *known = addresses(&sockets);
        self.shared.moves.tell(Move::Came { host, there: sockets });
        Ok(())
    }
}

impl fmt::Debug for FarEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FarEnd").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been printed by itself.
            let _ = thread.join();
        }
    }
}

fn open(host: &dyn EnterableHost, streams: u16) -> Result<Vec<Socket>, ProbeError> {
    (0..streams).map(|_| Ok(Socket::open_in(host, || ())?.0)).collect()
}

fn addresses(sockets: &[Socket]) -> Vec<SocketAddr> {
    sockets.iter().map(Socket::address).collect()
}

/// Until told to end.
fn receive_all(mut places: Vec<(HostId, Vec<Socket>)>, shared: &Shared, mut tell: Box<Tell>) {
    let mut wall = WallClock::read();
    while !shared.stop.load(Ordering::Relaxed) {
        for told in shared.moves.take() {
            if let Move::Came { host, there } = told
                && let Some((_, sockets)) = places.iter_mut().find(|(id, _)| *id == host)
            {
                *sockets = there;
            }
        }
        let arrivals = collect(&places, &mut wall);
        if !arrivals.is_empty() {
            tell(arrivals);
        }
        thread::sleep(COLLECT);
    }
}

fn collect(places: &[(HostId, Vec<Socket>)], wall: &mut WallClock) -> Vec<FarArrival> {
    let mut round: Vec<(FarArrival, Option<Stamp>)> = Vec::new();
    let mut buffer = [0; BEGINNING];
    for (to, sockets) in places {
        for (stream, socket) in (0..).zip(sockets) {
            while let Ok(Some(Received { length, arrived, overflowed })) = socket.receive(&mut buffer) {
                let Some(from) = sender(&buffer[..length], *to) else { continue };
                let datagram = buffer[..length].to_vec();
                // Those with a wrong checksum are dropped in their turn: what is new was just before this one.
                let dropped = socket.dropped().unwrap_or(overflowed);
                let arrival = ArrivalElsewhere { datagram, at_ns: None, dropped };
                round.push((FarArrival { from, to: *to, stream, arrival }, arrived));
            }
        }
    }
    let stamps = wall.next_round();
    let stamped = round.into_iter().map(|(mut far, stamp)| {
        far.arrival.at_ns = stamp.and_then(|stamp| stamps.on_monotonic(stamp));
        far
    });
    stamped.collect()
}

/// Who has sent a probe or a packet of a train, if it was meant for this host: both begin with a mark and their link.
fn sender(datagram: &[u8], to: HostId) -> Option<HostId> {
    let host = |at: usize| Some(HostId(u16::from_be_bytes(datagram.get(at..at + 2)?.try_into().ok()?)));
    (host(10)? == to).then(|| host(8)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_says_who_has_sent_it_if_it_came_where_it_was_to() {
        let datagram = [0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 1, 2];
        assert_eq!(sender(&datagram, HostId(0x0102)), Some(HostId(9)));
        assert_eq!(sender(&datagram, HostId(1)), None);
        assert_eq!(sender(&datagram[..11], HostId(0x0102)), None);
    }
}
