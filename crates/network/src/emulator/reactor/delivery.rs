//! Handing frames over.

use std::io;

use brownout_base::clock::monotonic_ns;

use crate::{
    counters::LinkCounters,
    emulator::{
        link::Times,
        packet::{frame::Shape, slicer},
        port::Port,
    },
};

/// Hands a frame over, and counts. What was to leave by a port that is there no more is dropped.
///
/// # Errors
/// When the port does not take it.
#[inline]
pub(super) fn deliver(
    port: Option<&Port>,
    counters: &mut LinkCounters,
    frame: &[u8],
    packets: u32,
    wire_bytes: u32,
    times: Times,
) -> io::Result<()> {
    let now = monotonic_ns();
    let packets = u64::from(packets);
    let taken = port.map(|port| write(port, frame));
    let Some(Ok(())) = taken else {
        counters.dropped_write += packets;
        return taken.unwrap_or(Ok(()));
    };
    counters.delivered_packets += packets;
    counters.delivered_bytes += u64::from(wire_bytes);
    counters.record(now.saturating_sub(times.release_ns), now.saturating_sub(times.arrival_ns), packets);
    Ok(())
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
