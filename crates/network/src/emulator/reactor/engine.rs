//! The packet path.

use std::io;

use brownout_base::{HostId, Link, clock::monotonic_ns};

use super::{
    agenda::Agenda,
    delivery::deliver,
    entrance::{Entrance, single},
    memory::Limits,
};
use crate::{
    counters::LinkCounters,
    emulator::{
        link::{End, Fate, LinkState, Load, QueuedFrame, Times, memory_of},
        packet::{
            buffers::{Buffer, Pool},
            damage, frame,
            frame::Shape,
            slicer,
        },
        port::Port,
        routes::Routes,
    },
    marker::Look,
    sys,
};

/// Frames read from one host before others have their turn.
const READ_BATCH: usize = 64;
/// While hosts are read, what is due is released this often, in nanoseconds. Later, it would be late; after every frame,
/// reading and writing would push each other's code and data out of the caches.
const RELEASE_EVERY_NS: u64 = 5_000;
/// Frames released before hosts are read again.
const RELEASE_BATCH: usize = 128;

/// Hosts, links between them, and what is on its way.
pub(in crate::emulator) struct Engine {
    pub(super) hosts: usize,
    /// `None` where one was taken away. In a lab, a host's TUN has the host's number.
    pub(super) ports: Vec<Option<Port>>,
    /// Whose each is.
    pub(super) owners: Vec<HostId>,
    pub(super) routes: Routes,
    pub(super) links: Vec<LinkState>,
    pub(super) counters: Vec<LinkCounters>,
    pub(super) agenda: Agenda,
    pool: Pool,
    /// The frame that was read last.
    pub(super) frame: Buffer,
    /// The port by which its sender is told what became of it.
    told_by: Option<usize>,
    /// The port that it leaves by.
    leaves_by: usize,
    /// Whether nothing is done to packets any more, whatever is in force.
    pub(super) is_ending: bool,
    fates: Vec<Fate>,
    /// Room for what may enter a link of a frame that may not.
    packets: Vec<Buffer>,
    pub(super) unroutable: Vec<u64>,
    /// Which ports' interfaces are gone.
    pub(super) has_failed: Vec<bool>,
    /// Those of which nobody has been told yet, and what their interfaces answered.
    failures: Vec<(usize, io::Error)>,
    limits: Limits,
    /// Memory that all frames take which are held, in bytes.
    memory: u64,
    /// When it was last looked what is due.
    looked_ns: u64,
    /// What is looked for in frames, if anything is.
    look: Option<Box<Look>>,
}

impl Engine {
    /// For so many hosts, with these ports and their owners.
    pub(in crate::emulator) fn new(
        hosts: usize,
        ports: Vec<(HostId, Port)>,
        routes: Routes,
        seed: u64,
        limits: Limits,
    ) -> Self {
        let links = Link::all(hosts);
        let mut pool = Pool::default();
        let has_failed = vec![false; ports.len()];
        let (owners, ports) = ports.into_iter().map(|(owner, port)| (owner, Some(port))).unzip();
        Engine {
            hosts,
            unroutable: vec![0; hosts],
            has_failed,
            failures: Vec::new(),
            ports,
            owners,
            routes,
            links: links.iter().map(|link| LinkState::new(seed, *link)).collect(),
            counters: LinkCounters::of_all(&links),
            agenda: Agenda::new(links.len()),
            frame: pool.take(frame::LONGEST),
            told_by: None,
            leaves_by: 0,
            is_ending: false,
            pool,
            fates: Vec::new(),
            packets: Vec::new(),
            limits,
            memory: 0,
            looked_ns: 0,
            look: None,
        }
    }

    /// What is looked for from now on.
    pub(in crate::emulator) fn look_for(&mut self, look: Option<Box<Look>>) {
        self.look = look;
    }

    /// How often it was seen, by the links' positions.
    pub(in crate::emulator) fn sightings(&self) -> Vec<u64> {
        self.look.as_ref().map(|look| look.sightings()).unwrap_or_default()
    }

    /// Impairments that come from now on draw from this.
    pub(in crate::emulator) fn reseed(&mut self, seed: u64) {
        self.links.iter_mut().for_each(|link| link.reseed(seed));
    }

    /// Carries what comes by a port, up to a batch; what is due meanwhile is released in between. Says whether there may be
    /// more.
    ///
    /// # Errors
    /// When the interface is gone, because somebody inside deleted it.
    pub(in crate::emulator) fn receive(&mut self, port: usize) -> io::Result<bool> {
        for _ in 0..READ_BATCH {
            let Some(Some(open)) = self.ports.get(port) else { return Ok(false) };
            let Some(length) = open.read(self.frame.room())? else { return Ok(false) };
            let now = monotonic_ns();
            self.frame.set_length(length);
            self.carry(port, now);
            if now.saturating_sub(self.looked_ns) >= RELEASE_EVERY_NS {
                self.release_due(now);
            }
        }
        Ok(true)
    }

    /// Keeps that a port takes nothing any more, if that is why it did not take a frame.
    fn note(&mut self, port: usize, taken: io::Result<()>) {
        if let Err(error) = taken
            && sys::is_gone(&error)
        {
            self.fail(port, error);
        }
    }

    /// Keeps that the interface of a port is gone, until somebody asks; once.
    pub(in crate::emulator) fn fail(&mut self, port: usize, error: io::Error) {
        if !std::mem::replace(&mut self.has_failed[port], true) {
            self.failures.push((port, error));
        }
    }

    /// Ports whose interfaces are gone and of which this has not told before, and what those answered.
    pub(in crate::emulator) fn take_failures(&mut self) -> Vec<(usize, io::Error)> {
        std::mem::take(&mut self.failures)
    }

    /// Takes `self.frame`, read at a port, to its link.
    fn carry(&mut self, port: usize, arrival_ns: u64) {
        let Some(course) = self.course(port) else {
            self.leave_alone(port);
            return;
        };
        let link = course.link;
        (self.leaves_by, self.told_by) = (course.leaves_by, course.told_by);
        let shape = Shape::of(&self.frame);
        let counters = &mut self.counters[link];
        counters.frames += 1;
        counters.offered_packets += u64::from(shape.packets);
        counters.offered_bytes += u64::from(shape.wire_bytes);
        if let Some(look) = &mut self.look {
            look.at(link, &self.frame);
        }
        let in_tunnel = shape.segments.filter(|segments| segments.tunnel.is_some());
        if in_tunnel.is_some_and(|segments| segments.must_be_cut()) {
            self.carry_singly(link, &shape, arrival_ns);
            return;
        }
        if in_tunnel.is_some() {
            frame::offer_tunnel(&mut self.frame);
        }
        if self.is_ending || self.links[link].is_clear() {
            let times = Times { arrival_ns, departs_ns: arrival_ns, release_ns: arrival_ns };
            let port = self.ports[self.leaves_by].as_ref();
            let taken = deliver(port, counters, &self.frame, shape.packets, shape.wire_bytes, times);
            self.note(self.leaves_by, taken);
            return;
        }
        let mut frame = std::mem::take(&mut self.frame);
        if !self.enter(link, &mut frame, &shape, arrival_ns)
            && let Some(open) = &self.ports[port]
        {
            open.discard(&frame);
        }
        self.frame = frame;
        self.agenda.set(link, self.links[link].next_release_ns());
    }

    /// Takes the packets of `self.frame` into a link one by one.
    fn carry_singly(&mut self, link: usize, shape: &Shape, arrival_ns: u64) {
        let frame = std::mem::take(&mut self.frame);
        for n in 0..shape.packets {
            let mut packet = single(&mut self.pool, &frame, shape, n);
            let shape = Shape::of(&packet);
            if self.is_ending || self.links[link].is_clear() {
                let times = Times { arrival_ns, departs_ns: arrival_ns, release_ns: arrival_ns };
                let (port, counters) = (self.ports[self.leaves_by].as_ref(), &mut self.counters[link]);
                let taken = deliver(port, counters, &packet, shape.packets, shape.wire_bytes, times);
                self.note(self.leaves_by, taken);
            } else {
                self.enter(link, &mut packet, &shape, arrival_ns);
            }
            self.pool.give(packet);
        }
        self.frame = frame;
        self.agenda.set(link, self.links[link].next_release_ns());
    }

    /// Takes what may enter of a frame into a link; says whether anything did. If so, `frame` keeps its room, but not its
    /// content.
    fn enter(&mut self, link: usize, frame: &mut Buffer, shape: &Shape, arrival_ns: u64) -> bool {
        let state = &mut self.links[link];
        let sender = self.told_by.and_then(|port| self.ports[port].as_ref());
        let mut entrance = Entrance { link: state, counters: &mut self.counters[link], pool: &mut self.pool, sender };
        let mut packets = std::mem::take(&mut self.packets);
        let mut is_held = false;
        if entrance.is_open(frame, shape, arrival_ns, &mut packets) {
            is_held |= self.admit(link, frame, shape, arrival_ns);
        }
        for mut packet in packets.drain(..) {
            let shape = Shape::of(&packet);
            is_held |= self.admit(link, &mut packet, &shape, arrival_ns);
            self.pool.give(packet);
        }
        self.packets = packets;
        is_held
    }

    /// Decides about the packets of `frame`, which have passed the gate, and queues those that go on; says whether any
    /// does. If so, what is in `frame` afterwards is no longer of use, but it has as much room as before.
    fn admit(&mut self, link: usize, frame: &mut Buffer, shape: &Shape, arrival_ns: u64) -> bool {
        if !self.has_room(link, frame.len()) {
            // Before any stage, so that no bottleneck spends time on them.
            self.counters[link].dropped_memory += u64::from(shape.packets);
            return false;
        }
        let mut is_held = false;
        let mut fates = std::mem::take(&mut self.fates);
        fates.clear();
        fates.extend((0..shape.packets).map(|n| Fate::new(n, shape.bytes_of(n), arrival_ns)));
        self.links[link].decide(&mut fates);
        self.counters[link].duplicated += (fates.len() - shape.packets as usize) as u64;
        let mut rest = fates.as_slice();
        while let Some(first) = rest.first() {
            let (run, others) = rest.split_at(first.joins(rest));
            rest = others;
            match first.end {
                Some(End::Lost) => self.counters[link].lost += run.len() as u64,
                Some(End::QueueFull) => self.counters[link].dropped_queue += run.len() as u64,
                // If it is all of them, the frame is of no use to any other.
                None => is_held |= self.hold(link, frame, shape, run, arrival_ns, run.len() == fates.len()),
            }
        }
        self.fates = fates;
        is_held
    }

    /// Queues wire packets of `frame` that share their fate; `alone` if nothing else of it is needed. False if there is no
    /// room for them.
    fn hold(
        &mut self,
        link: usize,
        frame: &mut Buffer,
        shape: &Shape,
        run: &[Fate],
        arrival_ns: u64,
        alone: bool,
    ) -> bool {
        let (fate, last, packets) = (run[0], run[run.len() - 1], run.len() as u32);
        let range = fate.segment..last.segment + 1;
        let part = shape.segments.as_ref().filter(|_| packets < shape.packets).map(|segments| (segments, range));
        let wire_bytes = run.iter().map(|fate| fate.bytes).sum();
        let length = part.as_ref().map_or(frame.len(), |(segments, range)| slicer::sliced_length(segments, range));
        // Again: the pieces of one frame can take many times its room.
        if !self.has_room(link, length) {
            self.counters[link].dropped_memory += u64::from(packets);
            return false;
        }
        let (state, counters) = (&mut self.links[link], &mut self.counters[link]);
        let mut buffer = match part {
            Some((segments, range)) => {
                let mut buffer = self.pool.take(length);
                slicer::slice(frame, segments, &range, &mut buffer);
                buffer
            }
            None if alone && Pool::needs_longest(frame.len()) => {
                std::mem::replace(frame, self.pool.take(frame::LONGEST))
            }
            None => {
                let mut buffer = self.pool.take(length);
                buffer.copy_from_slice(frame);
                buffer
            }
        };
        if let Some(draw) = fate.flip {
            counters.corrupted += u64::from(damage::flip(&mut buffer, draw));
        }
        if fate.overtakes {
            counters.reordered += u64::from(packets);
        }
        let times = Times { arrival_ns, departs_ns: last.departs_ns, release_ns: last.release_ns() };
        self.memory += memory_of(buffer.capacity());
        state.hold(times, Load { packets, wire_bytes, leaves_by: self.leaves_by, buffer });
        true
    }

    /// Whether this link, and all together, may hold a frame of this length, too.
    fn has_room(&self, link: usize, length: usize) -> bool {
        let more = memory_of(Pool::capacity_for(length));
        let fits = |held: u64, limit| held.saturating_add(more) <= limit;
        fits(self.links[link].memory(), self.limits.of_link) && fits(self.memory, self.limits.of_all)
    }

    /// When the next packet is due.
    pub(in crate::emulator) fn next_release_ns(&mut self) -> Option<u64> {
        self.agenda.next()
    }

    /// Hands over what is due, up to a batch.
    pub(in crate::emulator) fn release_due(&mut self, now_ns: u64) {
        self.looked_ns = now_ns;
        for _ in 0..RELEASE_BATCH {
            let Some(link) = self.agenda.due(now_ns) else { return };
            let state = &mut self.links[link];
            if let Some(held) = state.pop_due(now_ns) {
                self.memory -= held.memory();
                let QueuedFrame { times, load: Load { packets, wire_bytes, leaves_by, buffer }, .. } = held;
                let port = self.ports[leaves_by].as_ref();
                let taken = deliver(port, &mut self.counters[link], &buffer, packets, wire_bytes, times);
                self.pool.give(buffer);
                self.note(leaves_by, taken);
            }
            self.agenda.set(link, self.links[link].next_release_ns());
        }
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
