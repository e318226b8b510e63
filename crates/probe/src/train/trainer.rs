//! The thread that sends trains and collects what arrives.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use brownout_base::{Link, LongestHold, clock::monotonic_ns};

use super::{
    dispersion::{Open, TrainSample},
    packet::{self, TrainPacket},
    plan::Plan,
    room::Room,
};
use crate::{
    LOST_AFTER,
    moves::{Move, Moves},
    socket::{Socket, can_pass},
    stamps::{STAMPS_AFTER_NS, WallClock},
};

/// How often arrivals are collected, and whether to end is asked. Arrival times are the kernel's, so this costs no
/// precision; the socket holds more than arrives meanwhile.
const COLLECT: Duration = Duration::from_millis(10);
/// A complete train stays open this long, to see whether a copy of its last packet arrives.
const COPY_GRACE_NS: u64 = 50_000_000;
/// Time for the kernel to take a whole train: it waits when whoever carries the packets is slow to read.
const SENDING: Duration = Duration::from_millis(20);
/// Samples kept for a caller who does not drain.
const KEPT_SAMPLES: usize = 100_000;

/// What the thread and its handle share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) settled: Mutex<Vec<TrainSample>>,
    pub(super) stop: AtomicBool,
    pub(super) sent: AtomicU64,
    pub(super) discarded: AtomicU64,
    pub(super) moves: Moves<(Socket, Room)>,
}

/// One link's trains.
struct Route {
    link: Link,
    plan: Plan,
    due_ns: u64,
    next_train: u64,
}

pub(super) struct Trainer {
    /// Per host.
    sockets: Vec<Socket>,
    routes: Vec<Route>,
    payload: usize,
    packet_bytes: u32,
    holds: Arc<dyn LongestHold>,
    shared: Arc<Shared>,
    wall: WallClock,
    /// Per host, how many datagrams its socket had dropped, whyever.
    dropped: Vec<u32>,
    /// Per host.
    rooms: Vec<Room>,
    /// Per host, whether it is not there at the moment.
    away: Vec<bool>,
    open: HashMap<(Link, u64), Open>,
}

impl Trainer {
    pub(super) fn new(
        sockets: Vec<(Socket, Room)>,
        plans: Vec<(Link, Plan)>,
        payload: u16,
        packet_bytes: u32,
        holds: Arc<dyn LongestHold>,
        shared: Arc<Shared>,
    ) -> Self {
        let (sockets, rooms): (Vec<_>, Vec<_>) = sockets.into_iter().unzip();
        let begin = monotonic_ns() + STAMPS_AFTER_NS;
        let links = plans.len().max(1) as u32;
        let route = |(index, (link, plan)): (u32, (Link, Plan))| {
            // Spread, so that trains meet as little as possible.
            let first = plan.every / links * index;
            Route { link, plan, due_ns: begin + first.as_nanos() as u64, next_train: 0 }
        };
        Trainer {
            dropped: vec![0; sockets.len()],
            away: vec![false; sockets.len()],
            rooms,
            sockets,
            routes: (0..).zip(plans).map(route).collect(),
            payload: payload.into(),
            packet_bytes,
            holds,
            shared,
            wall: WallClock::read(),
            open: HashMap::new(),
        }
    }

    /// Until told to end.
    pub(super) fn run(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.hear();
            let now = monotonic_ns();
            for route in 0..self.routes.len() {
                if self.routes[route].due_ns <= now {
                    self.send(route);
                }
            }
            if !self.open.is_empty() {
                self.collect();
            }
            let now = monotonic_ns();
            let due = self.routes.iter().map(|route| route.due_ns).min().unwrap_or(u64::MAX);
            thread::sleep(Duration::from_nanos(due.saturating_sub(now)).min(COLLECT));
        }
    }

    /// Learns which hosts are not there any more, and where others are now.
    fn hear(&mut self) {
        for told in self.shared.moves.take() {
            match told {
                Move::Left { host, since_ns } => {
                    if let Some(away) = self.away.get_mut(host.index()) {
                        *away = true;
                    }
                    // One of before may be complete.
                    self.open.retain(|(link, _), open| {
                        (link.from != host && link.to != host) || open.is_complete_before(since_ns)
                    });
                }
                Move::Came { host, there: (socket, room) } => {
                    let at = host.index();
                    if let Some(place) = self.sockets.get_mut(at) {
                        (*place, self.rooms[at], self.dropped[at], self.away[at]) = (socket, room, 0, false);
                    }
                }
                Move::Back { host } => {
                    if let Some(away) = self.away.get_mut(host.index()) {
                        *away = false;
                    }
                }
            }
        }
    }

    fn send(&mut self, route: usize) {
        let route = &mut self.routes[route];
        let (link, plan, train) = (route.link, route.plan, route.next_train);
        let sent_ns = monotonic_ns();
        // One that is late moves those after it: two in a row would measure each other.
        route.due_ns = sent_ns + plan.every.as_nanos() as u64;
        if self.away[link.from.index()] || self.away[link.to.index()] {
            return;
        }
        route.next_train += 1;
        self.shared.sent.fetch_add(1, Ordering::Relaxed);

        let mut payloads = vec![0; plan.packets as usize * self.payload];
        for (index, payload) in (0..).zip(payloads.chunks_mut(self.payload)) {
            TrainPacket { link, train, index }.write(payload);
        }
        let target = self.sockets[link.to.index()].address();
        let socket = &self.sockets[link.from.index()];
        let end = sent_ns + SENDING.as_nanos() as u64;
        let left = send_all(&payloads, self.payload, end, |rest| socket.send_burst(rest, self.payload, target));
        let packets = plan.packets - left as u32;
        if packets > 0 {
            self.open.insert((link, train), Open::new(link, sent_ns, packets, self.packet_bytes));
        } else {
            self.shared.discarded.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn collect(&mut self) {
        let mut buffer = [0; packet::SHORTEST];
        let mut arrivals = Vec::new();
        for (host, socket) in self.sockets.iter().enumerate() {
            let before = self.dropped[host];
            // An error here is an ICMP message about an earlier packet, which will be missed anyway.
            while let Ok(Some(received)) = socket.receive(&mut buffer) {
                // Those with a wrong checksum are dropped in their turn: what is new was just before this one.
                let dropped = socket.dropped().unwrap_or(received.overflowed);
                let damaged = dropped.wrapping_sub(std::mem::replace(&mut self.dropped[host], dropped));
                let packet =
                    TrainPacket::read(&buffer[..received.length]).filter(|packet| packet.link.to.index() == host);
                arrivals.extend(packet.map(|packet| (packet, received.arrived, damaged)));
            }
            // Where there was no room, nobody knows for which packets.
            if self.dropped[host] != before && self.rooms[host].lacked() {
                self.open.values_mut().filter(|open| open.link().to.index() == host).for_each(Open::make_void);
            }
        }
        let round = self.wall.next_round();
        for (TrainPacket { link, train, index }, stamp, damaged) in arrivals {
            if let Some(open) = self.open.get_mut(&(link, train)) {
                open.arrived(index, stamp.and_then(|stamp| round.on_monotonic(stamp)), damaged);
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        let now = monotonic_ns();
        let holds = &self.holds;
        let over = |(link, _): &(Link, u64), open: &mut Open| {
            let lost_after = (LOST_AFTER.as_nanos() as u64).saturating_add(holds.longest_hold_of_ns(*link));
            open.is_over(now, COPY_GRACE_NS, lost_after)
        };
        let (mut settled, mut discarded) = (Vec::new(), 0);
        for (_, open) in self.open.extract_if(over) {
            match open.is_void() {
                true => discarded += 1,
                false => settled.push(open.sample()),
            }
        }
        let mut samples = self.shared.settled.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT_SAMPLES.saturating_sub(samples.len());
        discarded += settled.len().saturating_sub(room) as u64;
        samples.extend(settled.into_iter().take(room));
        self.shared.discarded.fetch_add(discarded, Ordering::Relaxed);
    }
}

/// Hands all packets of `size` bytes to `send`, which says how many it took; tries again until `end_ns` if what is in the
/// way can pass. Returns how many are left.
fn send_all(mut rest: &[u8], size: usize, end_ns: u64, mut send: impl FnMut(&[u8]) -> io::Result<usize>) -> usize {
    while !rest.is_empty() && monotonic_ns() < end_ns {
        match send(rest) {
            Ok(sent) => rest = &rest[sent * size..],
            Err(error) if can_pass(&error) => thread::yield_now(),
            // A host without a way there has none 20 ms later, and this thread may be a real-time one.
            Err(_) => break,
        }
    }
    rest.len() / size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_pass_is_tried_again() {
        for (errno, passes) in [
            (libc::ENETUNREACH, false),
            (libc::EPERM, false),
            (libc::EINVAL, false),
            (libc::ENOBUFS, true),
            (libc::EAGAIN, true),
            (libc::EINTR, true),
        ] {
            let mut tried = 0;
            // Three packets: one is taken, then there is an obstacle for three tries, then the rest is taken.
            let left = send_all(&[0; 30], 10, u64::MAX, |rest| {
                tried += 1;
                match (rest.len(), tried) {
                    (30, _) => Ok(1),
                    (_, 2..=4) => Err(io::Error::from_raw_os_error(errno)),
                    (length, _) => Ok(length / 10),
                }
            });
            assert_eq!((tried, left), if passes { (5, 0) } else { (2, 2) }, "{errno}");
        }
        // What never passes ends with the time.
        let full = |_: &[u8]| Err(io::Error::from_raw_os_error(libc::EAGAIN));
        assert_eq!(send_all(&[0; 30], 10, monotonic_ns() + 1_000_000, full), 3);
    }
}
