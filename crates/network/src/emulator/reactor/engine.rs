//! The packet path.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use brownout_base::{HostId, Link, clock::monotonic_ns};

use super::{
    agenda::Agenda,
    entrance::{Entrance, single},
    memory::Limits,
};
use crate::{
    counters::LinkCounters,
    emulator::{
        link::{End, Fate, LinkChange, LinkState, QueuedFrame, Times, memory_of},
        packet::{
            buffers::{Buffer, Pool},
            damage, frame,
            frame::Shape,
            slicer,
        },
    },
    impairment::Impairment,
    marker::Look,
    sys::{self, Tun},
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
    tuns: Vec<Tun>,
    routes: Routes,
    links: Vec<LinkState>,
    counters: Vec<LinkCounters>,
    agenda: Agenda,
    pool: Pool,
    /// The frame that was read last.
    frame: Buffer,
    fates: Vec<Fate>,
    /// Room for what may enter a link of a frame that may not.
    packets: Vec<Buffer>,
    unroutable: Vec<u64>,
    /// Which hosts' interfaces are gone.
    has_failed: Vec<bool>,
    /// Those of whom nobody has been told yet, and what their interfaces answered.
    failures: Vec<(usize, io::Error)>,
    limits: Limits,
    /// Memory that all frames take which are held, in bytes.
    memory: u64,
    /// When it was last looked what is due.
    looked_ns: u64,
    /// What is looked for in frames, if anything is.
    look: Option<Box<Look>>,
}

/// Which host has an address; sorted by address.
struct Routes {
    v4: Vec<(Ipv4Addr, HostId)>,
    v6: Vec<(Ipv6Addr, HostId)>,
}

impl Routes {
    fn new(addresses: &[(Ipv4Addr, Ipv6Addr)]) -> Self {
        let hosts = || (0..).map(HostId);
        let mut v4: Vec<_> = addresses.iter().map(|both| both.0).zip(hosts()).collect();
        let mut v6: Vec<_> = addresses.iter().map(|both| both.1).zip(hosts()).collect();
        v4.sort_unstable();
        v6.sort_unstable();
        Routes { v4, v6 }
    }

    fn find(&self, address: IpAddr) -> Option<HostId> {
        match address {
            IpAddr::V4(address) => {
                let place = self.v4.binary_search_by_key(&address, |route| route.0).ok()?;
                Some(self.v4[place].1)
            }
            IpAddr::V6(address) => {
                let place = self.v6.binary_search_by_key(&address, |route| route.0).ok()?;
                Some(self.v6[place].1)
            }
        }
    }
}

impl Engine {
    pub(in crate::emulator) fn new(
        tuns: Vec<Tun>,
        addresses: &[(Ipv4Addr, Ipv6Addr)],
        seed: u64,
        limits: Limits,
    ) -> Self {
        let links = Link::all(tuns.len());
        let mut pool = Pool::default();
        Engine {
            unroutable: vec![0; tuns.len()],
            has_failed: vec![false; tuns.len()],
            failures: Vec::new(),
            tuns,
            routes: Routes::new(addresses),
            links: links.iter().map(|link| LinkState::new(seed, *link)).collect(),
            counters: LinkCounters::of_all(&links),
            agenda: Agenda::new(links.len()),
            frame: pool.take(frame::LONGEST),
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

    /// Carries what `host` has sent, up to a batch; what is due meanwhile is released in between.
    ///
    /// # Errors
    /// When the host's interface is gone, because somebody inside deleted it.
    pub(in crate::emulator) fn receive(&mut self, host: usize) -> io::Result<()> {
        for _ in 0..READ_BATCH {
            let Some(length) = self.tuns[host].read(self.frame.room())? else { break };
            let now = monotonic_ns();
            self.frame.set_length(length);
            self.carry(HostId(host as u16), now);
            if now.saturating_sub(self.looked_ns) >= RELEASE_EVERY_NS {
                self.release_due(now);
            }
        }
        Ok(())
    }

    /// Keeps that a host takes nothing any more, if that is why it did not take a frame.
    fn note(&mut self, host: usize, taken: io::Result<()>) {
        if let Err(error) = taken
            && sys::is_gone(&error)
        {
            self.fail(host, error);
        }
    }

    /// Keeps that the interface of a host is gone, until somebody asks; once.
    pub(in crate::emulator) fn fail(&mut self, host: usize, error: io::Error) {
        if !std::mem::replace(&mut self.has_failed[host], true) {
            self.failures.push((host, error));
        }
    }

    /// Hosts whose interfaces are gone and of whom this has not told before, and what those answered.
    pub(in crate::emulator) fn take_failures(&mut self) -> Vec<(usize, io::Error)> {
        std::mem::take(&mut self.failures)
    }

    /// The device of a host.
    pub(in crate::emulator) fn tun(&self, host: usize) -> &Tun {
        &self.tuns[host]
    }

    /// Takes `self.frame`, sent by `from`, to its link.
    fn carry(&mut self, from: HostId, arrival_ns: u64) {
        let destination = frame::destination(&self.frame);
        let to = destination.and_then(|address| self.routes.find(address));
        let Some(link) = to.and_then(|to| Link { from, to }.position(self.tuns.len())) else {
            // Kernels announce themselves to groups of neighbours; there are none on a link between two.
            if !destination.is_some_and(is_group) {
                self.unroutable[from.index()] += 1;
            }
            return;
        };
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
        let state = &self.links[link];
        if state.is_clear() {
            let (to, times) = (state.to, Times { arrival_ns, departs_ns: arrival_ns, release_ns: arrival_ns });
            let taken = deliver(&self.tuns[to], counters, &self.frame, shape.packets, shape.wire_bytes, times);
            self.note(to, taken);
            return;
        }
        let mut frame = std::mem::take(&mut self.frame);
        self.enter(link, &mut frame, &shape, arrival_ns);
        self.frame = frame;
        self.agenda.set(link, self.links[link].next_release_ns());
    }

    /// Takes the packets of `self.frame` into a link one by one.
    fn carry_singly(&mut self, link: usize, shape: &Shape, arrival_ns: u64) {
        let frame = std::mem::take(&mut self.frame);
        for n in 0..shape.packets {
            let mut packet = single(&mut self.pool, &frame, shape, n);
            let shape = Shape::of(&packet);
            let state = &self.links[link];
            if state.is_clear() {
                let (to, times) = (state.to, Times { arrival_ns, departs_ns: arrival_ns, release_ns: arrival_ns });
                let counters = &mut self.counters[link];
                let taken = deliver(&self.tuns[to], counters, &packet, shape.packets, shape.wire_bytes, times);
                self.note(to, taken);
            } else {
                self.enter(link, &mut packet, &shape, arrival_ns);
            }
            self.pool.give(packet);
        }
        self.frame = frame;
        self.agenda.set(link, self.links[link].next_release_ns());
    }

    /// Takes what may enter of a frame into a link. `frame` keeps its room, but not its content.
    fn enter(&mut self, link: usize, frame: &mut Buffer, shape: &Shape, arrival_ns: u64) {
        let state = &mut self.links[link];
        let sender = &self.tuns[state.from];
        let mut entrance = Entrance { link: state, counters: &mut self.counters[link], pool: &mut self.pool, sender };
        let mut packets = std::mem::take(&mut self.packets);
        if entrance.is_open(frame, shape, arrival_ns, &mut packets) {
            self.admit(link, frame, shape, arrival_ns);
        }
        for mut packet in packets.drain(..) {
            let shape = Shape::of(&packet);
            self.admit(link, &mut packet, &shape, arrival_ns);
            self.pool.give(packet);
        }
        self.packets = packets;
    }

    /// Decides about the packets of `frame`, which have passed the gate, and queues those that go on. What is in `frame`
    /// afterwards is no longer of use, but it has as much room as before.
    fn admit(&mut self, link: usize, frame: &mut Buffer, shape: &Shape, arrival_ns: u64) {
        if !self.has_room(link, frame.len()) {
            // Before any stage, so that no bottleneck spends time on them.
            self.counters[link].dropped_memory += u64::from(shape.packets);
            return;
        }
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
                None => self.hold(link, frame, shape, run, arrival_ns, run.len() == fates.len()),
            }
        }
        self.fates = fates;
    }

    /// Queues wire packets of `frame` that share their fate; `alone` if nothing else of it is needed.
    fn hold(&mut self, link: usize, frame: &mut Buffer, shape: &Shape, run: &[Fate], arrival_ns: u64, alone: bool) {
        let (fate, last, packets) = (run[0], run[run.len() - 1], run.len() as u32);
        let range = fate.segment..last.segment + 1;
        let part = shape.segments.as_ref().filter(|_| packets < shape.packets).map(|segments| (segments, range));
        let wire_bytes = run.iter().map(|fate| fate.bytes).sum();
        let length = part.as_ref().map_or(frame.len(), |(segments, range)| slicer::sliced_length(segments, range));
        // Again: the pieces of one frame can take many times its room.
        if !self.has_room(link, length) {
            self.counters[link].dropped_memory += u64::from(packets);
            return;
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
        state.hold(times, packets, wire_bytes, buffer);
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
                let QueuedFrame { times, packets, wire_bytes, buffer, .. } = held;
                let (to, counters) = (state.to, &mut self.counters[link]);
                let taken = deliver(&self.tuns[to], counters, &buffer, packets, wire_bytes, times);
                self.pool.give(buffer);
                self.note(to, taken);
            }
            self.agenda.set(link, self.links[link].next_release_ns());
        }
    }

    pub(in crate::emulator) fn add(&mut self, id: u64, links: &[usize], impairment: Impairment) {
        let now = monotonic_ns();
        links.iter().for_each(|&link| self.change(link, now, LinkChange::Add(id, impairment)));
    }

    pub(in crate::emulator) fn amend(&mut self, id: u64, impairment: Impairment) {
        self.change_where(|state| state.has(id), LinkChange::Amend(id, impairment));
    }

    pub(in crate::emulator) fn remove(&mut self, id: u64) {
        self.change_where(|state| state.has(id), LinkChange::Remove(id));
    }

    fn change_where(&mut self, which: impl Fn(&LinkState) -> bool, change: LinkChange) {
        let now = monotonic_ns();
        for link in 0..self.links.len() {
            if which(&self.links[link]) {
                self.change(link, now, change);
            }
        }
    }

    fn change(&mut self, link: usize, now_ns: u64, change: LinkChange) {
        self.links[link].change(now_ns, change);
        self.agenda.set(link, self.links[link].next_release_ns());
    }

    /// What the impairments of a link do.
    pub(in crate::emulator) fn effective(&self, link: usize) -> Vec<Impairment> {
        self.links[link].effective().collect()
    }

    /// The longest that each link holds a packet.
    pub(in crate::emulator) fn longest_holds_ns(&self) -> impl Iterator<Item = u64> {
        self.links.iter().map(LinkState::longest_hold_ns)
    }

    pub(in crate::emulator) fn take_counters(&mut self, fresh: Vec<LinkCounters>) -> Vec<LinkCounters> {
        std::mem::replace(&mut self.counters, fresh)
    }

    pub(in crate::emulator) fn unroutable(&self) -> Vec<u64> {
        self.unroutable.clone()
    }
}

/// A group of receivers rather than one.
fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Hands a frame to its host, and counts.
///
/// # Errors
/// When the host does not take it.
fn deliver(
    tun: &Tun,
    counters: &mut LinkCounters,
    frame: &[u8],
    packets: u32,
    wire_bytes: u32,
    times: Times,
) -> io::Result<()> {
    let now = monotonic_ns();
    let packets = u64::from(packets);
    if let Err(error) = write(tun, frame) {
        counters.dropped_write += packets;
        return Err(error);
    }
    counters.delivered_packets += packets;
    counters.delivered_bytes += u64::from(wire_bytes);
    counters.record(now.saturating_sub(times.release_ns), now.saturating_sub(times.arrival_ns), packets);
    Ok(())
}

/// Writes a frame; one that the kernel does not take because it is a GSO packet in a tunnel, packet by packet.
fn write(tun: &Tun, frame: &[u8]) -> io::Result<()> {
    let Err(error) = tun.write(frame) else { return Ok(()) };
    let shape = Shape::of(frame);
    let Some(segments) = shape.segments.filter(|segments| segments.tunnel.is_some()) else { return Err(error) };
    let mut packet = Vec::new();
    for n in 0..shape.packets {
        packet.resize(slicer::sliced_length(&segments, &(n..n + 1)), 0);
        slicer::slice(frame, &segments, &(n..n + 1), &mut packet);
        tun.write(&packet)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
