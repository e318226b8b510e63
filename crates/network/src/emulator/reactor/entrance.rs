//! What does not get into a link: it is cut, or its packets have to be small.

use crate::{
    counters::LinkCounters,
    emulator::{
        link::{Gate, LinkState},
        packet::{
            buffers::{Buffer, Pool, Whole},
            checksum, fragment,
            frame::{Shape, VNET},
            icmp::{self, Refusal},
            slicer,
        },
        port::Port,
    },
    impairment::Cut,
};

/// No IPv4 link carries less (RFC 791), whatever was asked for.
const LEAST_MTU: u16 = 68;

/// Where frames are to enter a link.
pub(super) struct Entrance<'a> {
    pub(super) link: &'a mut LinkState,
    pub(super) counters: &'a mut LinkCounters,
    pub(super) pool: &'a mut Pool,
    /// By which their sender is told.
    pub(super) sender: Option<&'a Port>,
}

impl Entrance<'_> {
    /// Whether a frame may enter as it is. If not, what may enter of it is put into `packets`, each in a frame of its own.
    pub(super) fn is_open(
        &mut self,
        frame: &Buffer,
        shape: &Shape,
        arrival_ns: u64,
        packets: &mut Vec<Buffer>,
    ) -> bool {
        let Gate { cut, mtu } = self.link.gate();
        match (cut, mtu.map(|mtu| mtu.max(LEAST_MTU))) {
            (Some(cut), _) => {
                self.counters.cut += u64::from(shape.packets);
                // Asked before anything is copied: most packets of a flood tell nobody anything.
                if cut == Cut::Reject && self.link.allowance.take(arrival_ns) {
                    let first = single(self.pool, frame, shape, 0);
                    self.refuse(Refusal::Prohibited, first);
                }
                false
            }
            // The first packet is as large as any.
            (None, Some(mtu)) if shape.bytes_of(0) > u32::from(mtu) => {
                self.narrow(frame, shape, mtu, arrival_ns, packets);
                false
            }
            _ => true,
        }
    }

    /// Takes a frame, of whose packets some are too large, through a link with this MTU, packet by packet.
    fn narrow(&mut self, frame: &Buffer, shape: &Shape, mtu: u16, arrival_ns: u64, packets: &mut Vec<Buffer>) {
        // All packets of a frame have the headers of the frame.
        let may_cut = fragment::is_allowed(&frame[VNET..]);
        let mut has_told = false;
        for n in 0..shape.packets {
            if shape.bytes_of(n) <= u32::from(mtu) {
                packets.push(single(self.pool, frame, shape, n));
            } else if may_cut {
                let mut packet = single(self.pool, frame, shape, n);
                // The checksum covers what its fragments will carry apart.
                checksum::complete(&mut packet);
                self.cut(packet, mtu, packets);
            } else {
                self.counters.too_big += 1;
                // Told of one, the sender makes all smaller.
                if !std::mem::replace(&mut has_told, true) && self.link.allowance.take(arrival_ns) {
                    let packet = single(self.pool, frame, shape, n);
                    self.refuse(Refusal::TooBig { mtu }, packet);
                }
            }
        }
    }

    /// Cuts a packet into fragments that this MTU lets through.
    fn cut(&mut self, packet: Buffer, mtu: u16, packets: &mut Vec<Buffer>) {
        let before = packets.len();
        let room = |length| Whole::new(self.pool.take(VNET + length), &packet);
        if fragment::cut(&packet[VNET..], usize::from(mtu), room, |Whole(fragment)| packets.push(fragment)) {
            self.counters.fragments += (packets.len() - before).saturating_sub(1) as u64;
        } else {
            self.counters.too_big += 1;
        }
        self.pool.give(packet);
    }

    /// Tells the sender of `packet`, which was just read, that it does not pass.
    ///
    /// At once, as if by a router at its own end of the link; so nothing is wrong with the way that it comes.
    fn refuse(&mut self, refusal: Refusal, mut packet: Buffer) {
        checksum::complete(&mut packet);
        let mut message = self.pool.take(icmp::LONGEST);
        if let Some(length) = icmp::write(refusal, &packet[VNET..], &mut message) {
            // An interface that takes nothing has no sender behind it to be told.
            let _ = self.sender.map(|port| port.tell(&message[..length]));
        }
        self.pool.give(message);
        self.pool.give(packet);
    }
}

/// The `n`-th wire packet of a frame, in a frame of its own.
pub(super) fn single(pool: &mut Pool, frame: &Buffer, shape: &Shape, n: u32) -> Buffer {
    match &shape.segments {
        Some(segments) => {
            let mut packet = pool.take(slicer::sliced_length(segments, &(n..n + 1)));
            slicer::slice(frame, segments, &(n..n + 1), &mut packet);
            packet
        }
        None => {
            let mut packet = pool.take(frame.len());
            packet.copy_from_slice(frame);
            packet
        }
    }
}
