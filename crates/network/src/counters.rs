//! What the emulator counted.

use hdrhistogram::Histogram;

use crate::link::{HostId, Link};

/// What one link did since the counters were last taken. Packets and bytes are of the wire: a
/// superframe counts as the packets it stands for, with a header each.
///
/// Over the life of a link `offered = delivered + lost + dropped_queue + dropped_write` + those in flight.
#[derive(Debug, Clone)]
pub struct LinkCounters {
    /// Which link.
    pub link: Link,
    /// Frames that entered: a superframe counts once, so this tells how often the sender left segmentation undone.
    pub frames: u64,
    /// Packets that entered.
    pub offered_packets: u64,
    /// Their bytes, IP headers included.
    pub offered_bytes: u64,
    /// Packets handed to the receiving host.
    pub delivered_packets: u64,
    /// Their bytes, IP headers included.
    pub delivered_bytes: u64,
    /// Packets lost because the impairment in force said so.
    pub lost: u64,
    /// Packets dropped because the link held its limit of bytes already.
    pub dropped_queue: u64,
    /// Packets that the receiving host's interface refused (it was taken down, or is out of memory).
    pub dropped_write: u64,
    /// Nanoseconds by which packets left later than intended: from the intended release to the
    /// moment they are handed to the receiving kernel. This is the emulator's own error.
    pub release_error: Histogram<u64>,
    /// Nanoseconds from the moment the emulator has read a packet to the moment it hands it to the
    /// receiving kernel.
    pub held: Histogram<u64>,
}

impl LinkCounters {
    /// All zero.
    pub(crate) fn new(link: Link) -> Self {
        LinkCounters {
            link,
            frames: 0,
            offered_packets: 0,
            offered_bytes: 0,
            delivered_packets: 0,
            delivered_bytes: 0,
            lost: 0,
            dropped_queue: 0,
            dropped_write: 0,
            release_error: histogram(),
            held: histogram(),
        }
    }

    /// All zero again. The histograms keep the room that they have grown to, so that they need not grow again.
    pub(crate) fn reset(&mut self) {
        let LinkCounters {
            link: _,
            frames,
            offered_packets,
            offered_bytes,
            delivered_packets,
            delivered_bytes,
            lost,
            dropped_queue,
            dropped_write,
            release_error,
            held,
        } = self;
        for number in [
            frames,
            offered_packets,
            offered_bytes,
            delivered_packets,
            delivered_bytes,
            lost,
            dropped_queue,
            dropped_write,
        ] {
            *number = 0;
        }
        release_error.reset();
        held.reset();
    }

    /// Adds what another interval of the same link counted.
    pub fn add(&mut self, other: &LinkCounters) {
        self.frames += other.frames;
        self.offered_packets += other.offered_packets;
        self.offered_bytes += other.offered_bytes;
        self.delivered_packets += other.delivered_packets;
        self.delivered_bytes += other.delivered_bytes;
        self.lost += other.lost;
        self.dropped_queue += other.dropped_queue;
        self.dropped_write += other.dropped_write;
        // These grow as needed, so adding cannot fail.
        let _ = self.release_error.add(&other.release_error);
        let _ = self.held.add(&other.held);
    }
}

/// Three significant digits (0.1 %), growing with the largest value seen.
fn histogram() -> Histogram<u64> {
    Histogram::new(3).unwrap_or_else(|_| unreachable!("3 is within the 0 to 5 digits of a histogram"))
}

/// Packets of one host that never reached a link, since the network was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCounters {
    /// Which host sent them.
    pub host: HostId,
    /// Packets whose destination is no host of this network.
    pub unroutable: u64,
    /// Packets (a superframe counts once) that the host's own interface dropped because the
    /// emulator did not read fast enough; `None` where the kernel does not show it.
    pub interface_dropped: Option<u64>,
}
