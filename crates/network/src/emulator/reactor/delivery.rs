//! Handing frames over.

use std::io;

use brownout_base::clock::monotonic_ns;

use super::port::Port;
use crate::{
    counters::LinkCounters,
    emulator::{
        link::Times,
        packet::{frame::Shape, slicer},
    },
};

/// Hands a frame over, and counts.
#[inline]
pub(super) fn deliver(
    port: Option<&Port>,
    counters: &mut LinkCounters,
    frame: &[u8],
    packets: u32,
    wire_bytes: u32,
    times: Times,
) {
    let now = monotonic_ns();
    let packets = u64::from(packets);
    if port.is_none_or(|port| write(port, frame).is_err()) {
        counters.dropped_write += packets;
        return;
    }
    counters.delivered_packets += packets;
    counters.delivered_bytes += u64::from(wire_bytes);
    counters.record(now.saturating_sub(times.release_ns), now.saturating_sub(times.arrival_ns), packets);
}

/// Writes a frame; one that the kernel does not take because it is a GSO packet in a tunnel, packet by packet.
fn write(port: &Port, frame: &[u8]) -> io::Result<()> {
    let Err(error) = port.write(frame) else { return Ok(()) };
    let shape = Shape::of(frame);
    let Some(segments) = shape.segments.filter(|segments| segments.tunnel.is_some()) else { return Err(error) };
    let mut packet = Vec::new();
    for n in 0..shape.packets {
        packet.resize(slicer::sliced_length(&segments, &(n..n + 1)), 0);
        slicer::slice(frame, &segments, &(n..n + 1), &mut packet);
        port.write(&packet)?;
    }
    Ok(())
}
