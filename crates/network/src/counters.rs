//! What the emulator counted.

use hdrhistogram::Histogram;

use brownout_base::{HostId, Link};

/// What one link did since the counters were last taken. Packets and bytes are of the wire: a
/// GSO packet counts as the packets it stands for, with a header each.
///
/// Over the life of a link, in packets:
///
/// `offered + duplicated + fragments = delivered + lost + cut + too_big + dropped_queue + dropped_memory + dropped_write`
/// + those in flight.
///
/// The last two drops are the emulator's own: no link that was asked for would have made them. `corrupted` and `reordered` are among those that are in flight or beyond.
#[derive(Debug, Clone)]
pub struct LinkCounters {
    /// Which link.
    pub link: Link,
    /// Frames that entered: a GSO packet counts once, so this tells how often the sender left segmentation undone.
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
    /// Packets that did not enter because the link is cut, told to their sender or not.
    pub cut: u64,
    /// Packets that did not enter because they are larger than the link's MTU and must not be fragmented.
    pub too_big: u64,
    /// Packets that fragmentation has added: one that is cut into three adds two.
    pub fragments: u64,
    /// Packets that were added because others came twice.
    pub duplicated: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Packets that skipped a delay.
    pub reordered: u64,
    /// Packets dropped because the queue of a rate limit was full.
    pub dropped_queue: u64,
    /// Packets dropped because the link, or all links together, held all they can (128 MiB of memory; a quarter of what
    /// was available at the start, from 128 MiB to 2 GiB).
    pub dropped_memory: u64,
    /// Packets that the receiving host's interface refused (it was taken down, or is out of memory).
    pub dropped_write: u64,
    /// Nanoseconds by which packets left later than intended: from the intended release to the
    /// moment they are handed to the receiving kernel. This is the emulator's own error. To 0.1 %; in networks of more
    /// than 20 hosts, to 1 %.
    pub release_error: Histogram<u64>,
    /// Nanoseconds from the moment the emulator has read a packet to the moment it hands it to the
    /// receiving kernel. As exact as `release_error`.
    pub held: Histogram<u64>,
    /// Significant digits of what is recorded.
    digits: u8,
}

impl LinkCounters {
    /// All zero, for every one of `links`: all of a network.
    pub(crate) fn of_all(links: &[Link]) -> Vec<Self> {
        let digits = if links.len() <= MOST_LINKS_IN_DETAIL { DIGITS } else { DIGITS_OF_MANY };
        links.iter().map(|link| LinkCounters::new(*link, digits)).collect()
    }

    /// All zero. Histograms take their room when something is recorded: most links of a large network are idle.
    fn new(link: Link, digits: u8) -> Self {
        LinkCounters {
            link,
            frames: 0,
            offered_packets: 0,
            offered_bytes: 0,
            delivered_packets: 0,
            delivered_bytes: 0,
            lost: 0,
            cut: 0,
            too_big: 0,
            fragments: 0,
            duplicated: 0,
            corrupted: 0,
            reordered: 0,
            dropped_queue: 0,
            dropped_memory: 0,
            dropped_write: 0,
            release_error: histogram(0),
            held: histogram(0),
            digits,
        }
    }

    /// All zero again. The histograms keep the room that they have grown to, so that they need not grow again.
    pub(crate) fn reset(&mut self) {
        self.numbers().into_iter().for_each(|number| *number = 0);
        self.release_error.reset();
        self.held.reset();
    }

    /// Packets that the emulator dropped because it ran out itself, and not because of any impairment.
    pub fn dropped_by_emulator(&self) -> u64 {
        self.dropped_memory + self.dropped_write
    }

    /// Adds what another interval of the same link counted.
    pub fn add(&mut self, other: &LinkCounters) {
        let mut other = other.clone();
        for (number, more) in self.numbers().into_iter().zip(other.numbers()) {
            *number += *more;
        }
        merge(&mut self.release_error, &other.release_error);
        merge(&mut self.held, &other.held);
    }

    /// Counts `packets` delivered so late, after so long.
    pub(crate) fn record(&mut self, late_ns: u64, held_ns: u64, packets: u64) {
        for (histogram, value) in [(&mut self.release_error, late_ns), (&mut self.held, held_ns)] {
            take_room(histogram, self.digits);
            // It grows as needed, so recording cannot fail.
            let _ = histogram.record_n(value, packets);
        }
    }

    /// All that only counts up.
    fn numbers(&mut self) -> [&mut u64; 15] {
        let LinkCounters {
            link: _,
            frames,
            offered_packets,
            offered_bytes,
            delivered_packets,
            delivered_bytes,
            lost,
            cut,
            too_big,
            fragments,
            duplicated,
            corrupted,
            reordered,
            dropped_queue,
            dropped_memory,
            dropped_write,
            release_error: _,
            held: _,
            digits: _,
        } = self;
        [
            frames,
            offered_packets,
            offered_bytes,
            delivered_packets,
            delivered_bytes,
            lost,
            cut,
            too_big,
            fragments,
            duplicated,
            corrupted,
            reordered,
            dropped_queue,
            dropped_memory,
            dropped_write,
        ]
    }
}

/// Three significant digits (0.1 %), growing with the largest value seen: to 200 kB per link that holds packets for
/// 10 ms.
const DIGITS: u8 = 3;

/// Two (1 %): to 30 kB.
const DIGITS_OF_MANY: u8 = 2;

/// More links than those of 20 hosts are counted with [`DIGITS_OF_MANY`]: 50 hosts would fill 2 GB else, which the
/// emulator's thread would have to wait for page by page.
const MOST_LINKS_IN_DETAIL: usize = 20 * 19;

/// One with no digits takes hardly any room, and holds nothing.
fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new(digits).unwrap_or_else(|_| unreachable!("a histogram has 0 to 5 digits"))
}

fn take_room(histogram: &mut Histogram<u64>, digits: u8) {
    if histogram.sigfig() < digits {
        *histogram = self::histogram(digits);
    }
}

fn merge(into: &mut Histogram<u64>, other: &Histogram<u64>) {
    if !other.is_empty() {
        take_room(into, other.sigfig());
        // It grows as needed, so adding cannot fail.
        let _ = into.add(other);
    }
}

/// Packets of one host that never reached a link, or got lost between the network and an overlay, since the network was
/// started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCounters {
    /// Which host sent them.
    pub host: HostId,
    /// Packets whose destination is no host of this network (but not those to groups of neighbours).
    pub unroutable: u64,
    /// Packets (a GSO packet counts once) that the host's own interface dropped because the
    /// emulator did not read fast enough; `None` where the kernel does not show it. With WireGuard, also those that its
    /// interface, its socket or its thread had to drop there.
    pub interface_dropped: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_nothing_can_be_written_and_read_like_any_other() {
        use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
        let idle = LinkCounters::new(Link::all(2)[0], 3);
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&idle.held, &mut bytes).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        assert!(read.is_empty() && bytes.len() < 50, "{} bytes", bytes.len());
        let mut sum = histogram(3);
        sum.add(&read).unwrap();
        assert!(sum.is_empty());
    }

    #[test]
    fn what_is_recorded_is_exact_to_three_digits_and_idle_links_are_small() {
        let mut link = Link::all(2).into_iter();
        let (mut a, mut b) =
            (LinkCounters::new(link.next().unwrap(), DIGITS), LinkCounters::new(link.next().unwrap(), DIGITS));
        assert!(a.held.distinct_values() < 10);
        b.record(1_000_000, 20_000_000, 3);
        (b.cut, b.fragments) = (4, 5);
        a.add(&b);
        a.add(&b);
        a.add(&LinkCounters::new(b.link, DIGITS));
        assert_eq!((a.cut, a.fragments, a.held.len(), a.release_error.len()), (8, 10, 6, 6));
        assert!(a.held.max().abs_diff(20_000_000) <= 20_000);
        a.reset();
        assert_eq!((a.cut, a.fragments, a.held.len()), (0, 0, 0));
        assert_eq!(a.held.sigfig(), DIGITS);
    }

    #[test]
    fn the_links_of_many_hosts_are_counted_in_less_detail_and_less_room() {
        for (hosts, digits, room) in [(20, 3, 200_000), (21, 2, 30_000)] {
            let mut counters = LinkCounters::of_all(&Link::all(hosts)).remove(0);
            counters.record(50_000, 10_000_000, 1);
            assert_eq!(counters.held.sigfig(), digits, "{hosts}");
            let taken = (counters.held.distinct_values() + counters.release_error.distinct_values()) * 8;
            assert!(taken < room, "{hosts}: {taken}");
        }
    }
}
