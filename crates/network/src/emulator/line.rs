//! One link as the emulator's thread sees it.

use super::{icmp::Allowance, layers::Layers, queue::Queue};
use crate::{clock::monotonic_ns, link::Link};

/// A link's impairments, and what it holds.
pub(super) struct Line {
    /// The sending host.
    pub(super) from: usize,
    /// The receiving host.
    pub(super) to: usize,
    pub(super) layers: Layers,
    pub(super) queue: Queue,
    /// How often its sender may be told that a packet did not pass.
    pub(super) allowance: Allowance,
}

impl Line {
    pub(super) fn new(seed: u64, link: Link) -> Self {
        Line {
            from: link.from.index(),
            to: link.to.index(),
            layers: Layers::new(seed, link),
            queue: Queue::default(),
            allowance: Allowance::default(),
        }
    }

    /// True when a packet that comes now leaves now.
    pub(super) fn is_clear(&self) -> bool {
        self.layers.is_idle() && self.queue.is_empty()
    }

    /// Changes the layers, and what is in flight accordingly.
    ///
    /// What waits for a bottleneck leaves at the new rate: since it has waited without a pause, and always at the
    /// slowest rate, its remaining wait changes as that rate does. (With several bottlenecks in series that leaves out
    /// how a packet is spread over them.) Where flights become shorter, see [`Queue::replan`].
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Layers)) {
        let before = self.summary();
        change(&mut self.layers);
        let after = self.summary();
        let factor = match (before.slowest, after.slowest) {
            (Some(before), Some(after)) => before as f64 / after as f64,
            (Some(_), None) => 0.0,
            (None, _) => 1.0,
        };
        if factor != 1.0 || after.longest_flight_ns < before.longest_flight_ns {
            let now = monotonic_ns();
            self.layers.stretch(now, factor);
            self.queue.replan(now, factor, after.longest_flight_ns);
        }
    }

    /// The longest that it holds a packet, in nanoseconds.
    pub(super) fn longest_hold_ns(&self) -> u64 {
        self.layers.effective().fold(0, |sum, layer| sum.saturating_add(layer.longest_hold_ns()))
    }

    fn summary(&self) -> Summary {
        let flights = self.layers.effective().map(|layer| layer.longest_flight_ns());
        let rates = self.layers.effective().filter_map(|layer| layer.rate);
        Summary {
            slowest: rates.map(|limit| limit.rate.bits_per_second()).min(),
            longest_flight_ns: flights.fold(0, u64::saturating_add),
        }
    }
}

struct Summary {
    /// In bits per second.
    slowest: Option<u64>,
    longest_flight_ns: u64,
}
