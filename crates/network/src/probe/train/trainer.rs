//! The thread that sends trains and collects what arrives.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, atomic::Ordering},
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;

use super::{
    Shared,
    car::{self, Car},
    dispersion::Open,
    plan::Plan,
};
use crate::{
    control::Emulator,
    link::Link,
    probe::{
        Probes,
        prober::Socket,
        stamps::{STAMPS_AFTER_NS, WallClock},
    },
};

/// How often arrivals are collected, and whether to end is asked. Arrival times are the kernel's, so this costs no
/// precision; the socket holds more than arrives meanwhile.
const COLLECT: Duration = Duration::from_millis(10);
/// A complete train stays open this long, to see whether a copy of its last packet arrives.
const COPY_GRACE_NS: u64 = 50_000_000;
/// Time for the kernel to take a whole train: it waits when the emulator is slow to read.
const SENDING: Duration = Duration::from_millis(20);
/// Samples kept for a caller who does not drain.
const KEPT_SAMPLES: usize = 100_000;

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
    emulator: Emulator,
    shared: Arc<Shared>,
    wall: WallClock,
    /// Per host, how many datagrams its socket had no room for.
    overflowed: Vec<u32>,
    open: HashMap<(Link, u64), Open>,
}

impl Trainer {
    pub(super) fn new(
        sockets: Vec<Socket>,
        plans: Vec<(Link, Plan)>,
        payload: u16,
        packet_bytes: u32,
        emulator: Emulator,
        shared: Arc<Shared>,
    ) -> Self {
        let begin = monotonic_ns() + STAMPS_AFTER_NS;
        let links = plans.len().max(1) as u32;
        let route = |(place, (link, plan)): (u32, (Link, Plan))| {
            // Spread, so that trains meet as little as possible in the emulator.
            let first = plan.every / links * place;
            Route { link, plan, due_ns: begin + first.as_nanos() as u64, next_train: 0 }
        };
        Trainer {
            overflowed: vec![0; sockets.len()],
            sockets,
            routes: (0..).zip(plans).map(route).collect(),
            payload: payload.into(),
            packet_bytes,
            emulator,
            shared,
            wall: WallClock::read(),
            open: HashMap::new(),
        }
    }

    /// Until told to end.
    pub(super) fn run(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            let now = monotonic_ns();
            for place in 0..self.routes.len() {
                if self.routes[place].due_ns <= now {
                    self.send(place);
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

    fn send(&mut self, place: usize) {
        let route = &mut self.routes[place];
        let (link, plan, train) = (route.link, route.plan, route.next_train);
        route.next_train += 1;
        let sent_ns = monotonic_ns();
        // One that is late moves those after it: two in a row would measure each other.
        route.due_ns = sent_ns + plan.every.as_nanos() as u64;

        let mut payloads = vec![0; plan.packets as usize * self.payload];
        for (index, payload) in (0..).zip(payloads.chunks_mut(self.payload)) {
            Car { link, train, index }.write(payload);
        }
        let target = self.sockets[link.to.index()].address;
        let socket = &self.sockets[link.from.index()].socket;
        let (mut rest, end) = (payloads.as_mut_slice(), sent_ns + SENDING.as_nanos() as u64);
        while !rest.is_empty() && monotonic_ns() < end {
            match socket.send_burst(rest, self.payload, target) {
                Ok(sent) => rest = &mut rest[sent * self.payload..],
                // Full, or an ICMP message about an earlier packet: the next try tells.
                Err(_) => thread::yield_now(),
            }
        }
        let packets = plan.packets - (rest.len() / self.payload) as u32;
        if packets > 0 {
            self.open.insert((link, train), Open::new(link, sent_ns, packets, self.packet_bytes));
        } else {
            self.shared.discarded.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn collect(&mut self) {
        let mut buffer = [0; car::SHORTEST];
        let mut arrivals = Vec::new();
        for (host, socket) in self.sockets.iter().enumerate() {
            // An error here is an ICMP message about an earlier packet, which will be missed anyway.
            while let Ok(Some(received)) = socket.socket.receive(&mut buffer) {
                if std::mem::replace(&mut self.overflowed[host], received.overflowed) != received.overflowed {
                    self.open.values_mut().filter(|open| open.link().to.index() == host).for_each(Open::make_void);
                }
                let car = Car::read(&buffer[..received.length]).filter(|car| car.link.to.index() == host);
                arrivals.extend(car.map(|car| (car, received.realtime_ns)));
            }
        }
        let round = self.wall.next_round();
        for (Car { link, train, index }, stamp) in arrivals {
            if let Some(open) = self.open.get_mut(&(link, train)) {
                open.arrived(index, stamp.and_then(|stamp| round.on_monotonic(stamp)));
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        let now = monotonic_ns();
        let emulator = &self.emulator;
        let over = |(link, _): &(Link, u64), open: &mut Open| {
            let lost_after = (Probes::LOST_AFTER.as_nanos() as u64).saturating_add(emulator.longest_hold_of_ns(*link));
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
