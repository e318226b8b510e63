//! What does not get into a link: it is cut, or its packets have to be small.

use super::engine::Engine;
use crate::{
    emulator::{
        link::Gate,
        packet::{
            buffers::{Buffer, Whole},
            checksum, fragment,
            frame::{Shape, VNET},
            icmp::{self, Refusal},
            slicer,
        },
    },
    impairment::Cut,
};

/// No IPv4 link carries less (RFC 791), whatever was asked for.
const LEAST_MTU: u16 = 68;

impl Engine {
    /// Takes a frame to the gate of a link, and what passes on into it. `frame` keeps its room, but not its content.
    pub(in crate::emulator) fn enter(&mut self, link: usize, frame: &mut Buffer, shape: &Shape, arrival_ns: u64) {
        let Gate { cut, mtu } = self.links[link].gate();
        match (cut, mtu.map(|mtu| mtu.max(LEAST_MTU))) {
            (Some(cut), _) => {
                self.counters[link].cut += u64::from(shape.packets);
                // Asked before anything is copied: most packets of a flood tell nobody anything.
                if cut == Cut::Reject && self.links[link].allowance.take(arrival_ns) {
                    let first = self.single(frame, shape, 0);
                    self.refuse(Refusal::Prohibited, first);
                }
            }
            // The first packet is as large as any.
            (None, Some(mtu)) if shape.bytes_of(0) > u32::from(mtu) => {
                self.narrow(link, frame, shape, mtu, arrival_ns);
            }
            _ => self.admit(link, frame, shape, arrival_ns),
        }
    }

    /// Takes a frame, of whose packets some are too large, through a link with this MTU, packet by packet.
    fn narrow(&mut self, link: usize, frame: &Buffer, shape: &Shape, mtu: u16, arrival_ns: u64) {
        // All packets of a frame have the headers of the frame.
        let may_cut = fragment::is_allowed(&frame[VNET..]);
        let mut has_told = false;
        for n in 0..shape.packets {
            if shape.bytes_of(n) <= u32::from(mtu) {
                let packet = self.single(frame, shape, n);
                self.admit_single(link, packet, arrival_ns);
            } else if may_cut {
                let mut packet = self.single(frame, shape, n);
                // The checksum covers what its fragments will carry apart.
                checksum::complete(&mut packet);
                self.admit_fragments(link, packet, mtu, arrival_ns);
            } else {
                self.counters[link].too_big += 1;
                // Told of one, the sender makes all smaller.
                if !std::mem::replace(&mut has_told, true) && self.links[link].allowance.take(arrival_ns) {
                    let packet = self.single(frame, shape, n);
                    self.refuse(Refusal::TooBig { mtu }, packet);
                }
            }
        }
    }

    fn admit_fragments(&mut self, link: usize, packet: Buffer, mtu: u16, arrival_ns: u64) {
        let mut fragments = std::mem::take(&mut self.fragments);
        let room = |length| Whole::new(self.pool.take(VNET + length), &packet);
        if fragment::cut(&packet[VNET..], usize::from(mtu), room, &mut fragments) {
            self.counters[link].fragments += fragments.len().saturating_sub(1) as u64;
            for Whole(fragment) in fragments.drain(..) {
                self.admit_single(link, fragment, arrival_ns);
            }
        } else {
            self.counters[link].too_big += 1;
        }
        self.fragments = fragments;
        self.pool.give(packet);
    }

    fn admit_single(&mut self, link: usize, mut packet: Buffer, arrival_ns: u64) {
        let shape = Shape::of(&packet);
        self.admit(link, &mut packet, &shape, arrival_ns);
        self.pool.give(packet);
    }

    /// The `n`-th wire packet of a frame, in a frame of its own.
    pub(super) fn single(&mut self, frame: &Buffer, shape: &Shape, n: u32) -> Buffer {
        match &shape.segments {
            Some(segments) => {
                let mut packet = self.pool.take(slicer::sliced_length(segments, &(n..n + 1)));
                slicer::slice(frame, segments, &(n..n + 1), &mut packet);
                packet
            }
            None => {
                let mut packet = self.pool.take(frame.len());
                packet.copy_from_slice(frame);
                packet
            }
        }
    }

    /// Tells the sender of `packet`, which was just read, that it does not pass.
    ///
    /// At once, as if by a router at its own end of the link; so nothing is wrong with the way that it comes.
    fn refuse(&mut self, refusal: Refusal, mut packet: Buffer) {
        checksum::complete(&mut packet);
        let mut message = self.pool.take(icmp::LONGEST);
        if let Some(length) = icmp::write(refusal, &packet[VNET..], &mut message) {
            // An interface that takes nothing has no sender behind it to be told.
            let _ = self.arrived_at().map(|port| port.tell(&message[..length]));
        }
        self.pool.give(message);
        self.pool.give(packet);
    }
}
