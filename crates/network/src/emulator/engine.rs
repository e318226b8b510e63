//! The packet path.

use std::{io, net::Ipv4Addr, ops::Range};

use super::{
    agenda::Agenda,
    buffers::{Buffer, Pool},
    frame::{self, Shape},
    line::Line,
    queue::Held,
    slicer,
    stages::{self, Fate},
};
use crate::{
    clock::monotonic_ns,
    counters::LinkCounters,
    impairment::Impairment,
    link::{HostId, Link},
    sys::Tun,
};

/// Frames read from one host before others have their turn.
const READ_BATCH: usize = 64;
/// Frames released before hosts are read again.
const RELEASE_BATCH: usize = 128;

/// What a link may hold, in wire bytes: 5 Gbit/s for 100 ms are 63 MB. Reaching it is counted.
const QUEUE_LIMIT_BYTES: u64 = 128 << 20;

/// Hosts, links between them, and what is on its way.
pub(super) struct Engine {
    tuns: Vec<Tun>,
    /// Sorted by address.
    routes: Vec<(Ipv4Addr, HostId)>,
    lines: Vec<Line>,
    counters: Vec<LinkCounters>,
    agenda: Agenda,
    pool: Pool,
    /// The frame that was read last.
    frame: Buffer,
    fates: Vec<Fate>,
    unroutable: Vec<u64>,
}

impl Engine {
    pub(super) fn new(tuns: Vec<Tun>, addresses: &[Ipv4Addr], seed: u64) -> Self {
        let mut routes: Vec<_> = addresses.iter().copied().zip((0..).map(HostId)).collect();
        routes.sort_unstable();
        let links = Link::all(tuns.len());
        let line = |link: &Link| Line::new(link.to.index(), stages::pipeline(seed, *link));
        let mut pool = Pool::default();
        Engine {
            unroutable: vec![0; tuns.len()],
            tuns,
            routes,
            lines: links.iter().map(line).collect(),
            counters: links.iter().copied().map(LinkCounters::new).collect(),
            agenda: Agenda::new(links.len()),
            frame: pool.take(frame::LONGEST),
            pool,
            fates: Vec::new(),
        }
    }

    /// Carries what `host` has sent, up to a batch; what is due meanwhile is released in between.
    ///
    /// # Errors
    /// When the host's interface is gone, because somebody inside deleted it.
    pub(super) fn receive(&mut self, host: usize) -> io::Result<()> {
        for _ in 0..READ_BATCH {
            let Some(length) = self.tuns[host].read(self.frame.room())? else { break };
            let now = monotonic_ns();
            self.frame.set_length(length);
            self.carry(HostId(host as u16), now);
            if self.agenda.next().is_some_and(|release| release <= now) {
                self.release_due(now);
            }
        }
        Ok(())
    }

    /// The device of a host.
    pub(super) fn tun(&self, host: usize) -> &Tun {
        &self.tuns[host]
    }

    /// Takes `self.frame`, sent by `from`, to its link.
    fn carry(&mut self, from: HostId, arrival_ns: u64) {
        let route = |address| self.routes.binary_search_by_key(&address, |route| route.0).ok();
        let to = frame::destination(&self.frame).and_then(route).map(|place| self.routes[place].1);
        let Some(link) = to.and_then(|to| Link { from, to }.position(self.tuns.len())) else {
            self.unroutable[from.index()] += 1;
            return;
        };
        let shape = Shape::of(&self.frame);
        let counters = &mut self.counters[link];
        counters.frames += 1;
        counters.offered_packets += u64::from(shape.packets);
        counters.offered_bytes += u64::from(shape.wire_bytes);
        let line = &mut self.lines[link];
        if line.is_clear() {
            let times = Times { arrival_ns, release_ns: arrival_ns };
            deliver(&self.tuns[line.to], counters, &self.frame, shape.packets, shape.wire_bytes, times);
            return;
        }

        let mut fates = std::mem::take(&mut self.fates);
        fates.clear();
        fates.resize(shape.packets as usize, Fate::default());
        line.stages.decide(&mut fates);
        for (fate, run) in runs(&fates) {
            if fate.lost {
                self.counters[link].lost += run.len() as u64;
            } else {
                self.hold(link, &shape, run, Times { arrival_ns, release_ns: arrival_ns.saturating_add(fate.hold_ns) });
            }
        }
        self.fates = fates;
        self.agenda.set(link, self.lines[link].queue.next_release_ns());
    }

    /// Queues the wire packets `run` of `self.frame`.
    fn hold(&mut self, link: usize, shape: &Shape, run: Range<u32>, times: Times) {
        let packets = run.len() as u32;
        let (length, wire_bytes) = match &shape.segments {
            Some(segments) if packets < shape.packets => {
                let length = slicer::sliced_length(segments, &run);
                let headers = (packets - 1) as usize * segments.headers;
                (length, (length - frame::VNET + headers) as u32)
            }
            _ => (self.frame.len(), shape.wire_bytes),
        };
        let queue = &mut self.lines[link].queue;
        if queue.wire_bytes() + u64::from(wire_bytes) > QUEUE_LIMIT_BYTES {
            self.counters[link].dropped_queue += u64::from(packets);
            return;
        }
        let buffer = match &shape.segments {
            Some(segments) if packets < shape.packets => {
                let mut buffer = self.pool.take(length);
                slicer::slice(&self.frame, segments, &run, &mut buffer);
                buffer
            }
            // Nothing else of this frame is needed, so its buffer may go along.
            _ if Pool::is_large(length) => std::mem::replace(&mut self.frame, self.pool.take(frame::LONGEST)),
            _ => {
                let mut buffer = self.pool.take(length);
                buffer.copy_from_slice(&self.frame);
                buffer
            }
        };
        queue.push(times.release_ns, times.arrival_ns, packets, wire_bytes, buffer);
    }

    /// When the next packet is due.
    pub(super) fn next_release_ns(&mut self) -> Option<u64> {
        self.agenda.next()
    }

    /// Hands over what is due, up to a batch.
    pub(super) fn release_due(&mut self, now_ns: u64) {
        for _ in 0..RELEASE_BATCH {
            let Some(link) = self.agenda.due(now_ns) else { return };
            let line = &mut self.lines[link];
            if let Some(held) = line.queue.pop_due(now_ns) {
                let Held { release_ns, arrival_ns, packets, wire_bytes, buffer, .. } = held;
                let times = Times { arrival_ns, release_ns };
                deliver(&self.tuns[line.to], &mut self.counters[link], &buffer, packets, wire_bytes, times);
                self.pool.give(buffer);
            }
            self.agenda.set(link, line.queue.next_release_ns());
        }
    }

    pub(super) fn add_layer(&mut self, layer: u64, links: &[usize], impairment: Impairment) {
        for &link in links {
            self.lines[link].add_layer(layer, impairment);
            self.agenda.set(link, self.lines[link].queue.next_release_ns());
        }
    }

    pub(super) fn amend_layer(&mut self, layer: u64, impairment: Impairment) {
        self.change_all(|line| line.amend_layer(layer, impairment));
    }

    pub(super) fn remove_layer(&mut self, layer: u64) {
        self.change_all(|line| line.remove_layer(layer));
    }

    /// See [`crate::Emulator::sabotage`].
    pub(super) fn sabotage(&mut self, on: bool) {
        self.change_all(|line| line.sabotage(on));
    }

    fn change_all(&mut self, mut change: impl FnMut(&mut Line)) {
        for (link, line) in self.lines.iter_mut().enumerate() {
            change(line);
            self.agenda.set(link, line.queue.next_release_ns());
        }
    }

    /// What the stages of a link do.
    pub(super) fn effective(&self, link: usize) -> Vec<Impairment> {
        vec![self.lines[link].stages.report()]
    }

    /// The longest that any link holds a packet.
    pub(super) fn longest_hold_ns(&self) -> u64 {
        self.lines.iter().map(|line| line.stages.report().longest_hold_ns()).max().unwrap_or(0)
    }

    pub(super) fn take_counters(&mut self, fresh: Vec<LinkCounters>) -> Vec<LinkCounters> {
        std::mem::replace(&mut self.counters, fresh)
    }

    pub(super) fn unroutable(&self) -> Vec<u64> {
        self.unroutable.clone()
    }
}

/// When a packet came, and when it is to leave.
#[derive(Clone, Copy)]
struct Times {
    arrival_ns: u64,
    release_ns: u64,
}

/// Hands a frame to its host, and counts.
fn deliver(tun: &Tun, counters: &mut LinkCounters, frame: &[u8], packets: u32, wire_bytes: u32, times: Times) {
    let now = monotonic_ns();
    let packets = u64::from(packets);
    if tun.write(frame).is_err() {
        counters.dropped_write += packets;
        return;
    }
    counters.delivered_packets += packets;
    counters.delivered_bytes += u64::from(wire_bytes);
    // These histograms grow as needed, so recording cannot fail.
    let _ = counters.release_error.record_n(now.saturating_sub(times.release_ns), packets);
    let _ = counters.held.record_n(now.saturating_sub(times.arrival_ns), packets);
}

/// The longest runs of neighbours that share their fate.
fn runs(fates: &[Fate]) -> impl Iterator<Item = (Fate, Range<u32>)> {
    let mut start = 0;
    fates.chunk_by(|a, b| a == b).map(move |run| {
        let range = start..start + run.len() as u32;
        start = range.end;
        (run[0], range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_neighbours_with_one_fate() {
        let kept = |hold_ns| Fate { lost: false, hold_ns };
        let lost = Fate { lost: true, hold_ns: 5 };
        let fates = [kept(5), kept(5), lost, kept(5), kept(6)];
        let found: Vec<_> = runs(&fates).collect();
        assert_eq!(found, [(kept(5), 0..2), (lost, 2..3), (kept(5), 3..4), (kept(6), 4..5)]);
        assert_eq!(runs(&[]).count(), 0);
    }
}
