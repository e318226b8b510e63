//! One link as the emulator's thread sees it.

use super::{
    icmp::Allowance,
    layers::Layers,
    queue::{Queue, Replan},
    stages::stretched,
};
use crate::{impairment::RateLimit, link::Link};

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

    /// Changes the layers from `now_ns` on, and what is in flight accordingly: see [`Queue::replan`].
    ///
    /// What waits for a bottleneck leaves at the new rate: since it has waited without a pause, and always at the
    /// slowest rate, its remaining wait changes as that rate does. With several bottlenecks in series that leaves out
    /// how a packet is spread over them.
    pub(super) fn change(&mut self, now_ns: u64, change: impl FnOnce(&mut Layers)) {
        let before = Summary::of(&self.layers);
        change(&mut self.layers);
        let after = Summary::of(&self.layers);
        let shorter_ns = before.delay_ns.saturating_sub(after.delay_ns);
        let is_faster = shorter_ns > 0 || after.longest_flight_ns < before.longest_flight_ns;
        let factor = if before.limits == after.limits { 1.0 } else { self.stretch(now_ns, &before, &after) };
        if factor != 1.0 || is_faster {
            self.queue.replan(Replan { now_ns, factor, shorter_ns, longest_ns: after.longest_flight_ns });
        }
        if before.limits != after.limits {
            self.adopt_departures(now_ns);
        }
    }

    /// Stretches the queues of those bottlenecks that changed; says how many times as long everything waits for the
    /// slowest of them.
    fn stretch(&mut self, now_ns: u64, before: &Summary, after: &Summary) -> f64 {
        // Only headers' costs depend on it.
        let bytes = self.queue.mean_bytes().unwrap_or(1_500);
        let factor = match (before.slowest(bytes), after.slowest(bytes)) {
            (Some(before), Some(after)) => after / before,
            (Some(_), None) => 0.0,
            (None, _) => 1.0,
        };
        // When packets leave a bottleneck does not depend on those behind it.
        let first_changed = before.first_that_differs(after);
        let mut floor_ns = now_ns;
        for (layer, busy_until_ns) in self.layers.busy_until_ns() {
            if layer < first_changed {
                floor_ns = floor_ns.max(*busy_until_ns);
            } else if let (Some(before), Some(after)) = (before.limit(layer), after.limit(layer)) {
                let factor = time_of(after, bytes).zip(time_of(before, bytes)).map_or(1.0, |(new, old)| new / old);
                *busy_until_ns = stretched(now_ns, *busy_until_ns, factor);
            }
        }
        match self.queue.last_departure_ns().filter(|last| *last > now_ns) {
            Some(last) => factor.max((floor_ns - now_ns) as f64 / (last - now_ns) as f64),
            None => 1.0,
        }
    }

    /// Makes the bottlenecks agree with the departures of what is held: nothing leaves the last of them before what came
    /// earlier, even if that came before this bottleneck did; and none is busy with packets that have left them all.
    fn adopt_departures(&mut self, now_ns: u64) {
        let last_ns = self.queue.last_departure_ns().unwrap_or(0);
        let mut bottlenecks = self.layers.busy_until_ns().map(|(_, busy_until_ns)| busy_until_ns).peekable();
        while let Some(busy_until_ns) = bottlenecks.next() {
            let is_last = bottlenecks.peek().is_none();
            *busy_until_ns = if is_last { last_ns } else { (*busy_until_ns).min(last_ns.max(now_ns)) };
        }
    }

    /// The longest that it holds a packet, in nanoseconds.
    pub(super) fn longest_hold_ns(&self) -> u64 {
        self.layers.effective().fold(0, |sum, layer| sum.saturating_add(layer.longest_hold_ns()))
    }
}

/// What a change is judged by.
struct Summary {
    /// Of the bottlenecks, each with its layer, in the order in which packets meet them.
    limits: Vec<(u32, RateLimit)>,
    /// All constant delays.
    delay_ns: u64,
    /// With all that jitter can add.
    longest_flight_ns: u64,
}

impl Summary {
    fn of(layers: &Layers) -> Summary {
        Summary {
            limits: layers.limits().collect(),
            delay_ns: layers.effective().fold(0, |sum, layer| sum.saturating_add(layer.delay.ns())),
            longest_flight_ns: layers.effective().fold(0, |sum, layer| sum.saturating_add(layer.longest_flight_ns())),
        }
    }

    fn limit(&self, layer: u32) -> Option<&RateLimit> {
        self.limits.iter().find(|(its, _)| *its == layer).map(|(_, limit)| limit)
    }

    /// The time that a packet of so many bytes takes at the slowest of them.
    fn slowest(&self, bytes: u32) -> Option<f64> {
        self.limits.iter().filter_map(|(_, limit)| time_of(limit, bytes)).max_by(f64::total_cmp)
    }

    /// The first layer whose limit is another one in `other`, came, or went.
    fn first_that_differs(&self, other: &Summary) -> u32 {
        let differs = |layer: &u32| self.limit(*layer) != other.limit(*layer);
        let layers = self.limits.iter().chain(&other.limits).map(|(layer, _)| *layer);
        layers.filter(differs).min().unwrap_or(u32::MAX)
    }
}

/// Nanoseconds that a packet of so many bytes takes; `None` if it takes none.
fn time_of(limit: &RateLimit, bytes: u32) -> Option<f64> {
    let bits = limit.charged_bytes(bytes) as f64 * 8.0;
    (bits > 0.0).then(|| bits * 1e9 / limit.rate.bits_per_second() as f64)
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
