//! ADR, the adaptive detector of Lu et al., *One-Size-Fits-None* (NSDI 2025), section 6.2, as it is printed there.
//!
//! At each update of a variable X, here the response time of one operation at one coordinator:
//!
//! 1. X is slow if it exceeds the 99th percentile of a window of earlier values (a default T until the window is full) while the
//!    frequency of updates is falling.
//! 2. The frequency is higher or lower if it lies outside of mean ± 1 sd of its own window.
//! 3. Over the last second's updates, most of them decide. Higher: more load, all windows are emptied. Lower: *fatal* if
//!    most are slow, else less load, all windows are emptied. Beyond T is always fatal.
//! 4. Windows hold ten times as many values as there were in the last second.
//!
//! What the record cannot give: the moment of each update. So frequencies are counted over whole steps. A frequency that is counted over
//! 100 ms, with arrivals that do not depend on each other, has √10 times the deviation that it has over a second, relative to its mean; more than half of
//! ten such lie below mean − 1 sd when the second lies below mean − √10 sd of seconds.

use std::collections::VecDeque;

use super::{Accused, Alarm, Ended, Times, Watched, change::Latch};
use crate::stats;

/// The default threshold T, ns: Cassandra's `slow_query_log_timeout`.
const DEFAULT_NS: u64 = 500_000_000;
/// Windows are ten seconds of updates.
const WINDOW_NS: u64 = 10_000_000_000;
/// Over which a frequency is counted, ns.
const COUNTED_NS: f64 = 100e6;

/// The frequency of updates beside what it was.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    Higher,
    Steady,
    Lower,
}

/// Wherever there are operations.
pub(super) fn can_watch(watched: &Watched) -> bool {
    !watched.streams.is_empty()
}

/// Alarms of all streams; each accuses its coordinator.
pub(super) fn alarms(watched: &Watched) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    let mut latches = vec![Latch::default(); watched.coordinators.len()];
    let mut states = vec![Adr::of(watched); watched.streams.len()];
    for (at, step) in watched.steps.iter().enumerate() {
        let mut fatal = vec![false; watched.coordinators.len()];
        for (index, stream) in watched.streams.iter().enumerate() {
            fatal[stream.coordinator] |= states[index].observe(&step.ended[index]);
        }
        for (coordinator, latch) in latches.iter_mut().enumerate() {
            // Its windows fill while others learn; what it says then counts for nothing.
            if at >= watched.learnt && latch.raises(fatal[coordinator]) {
                let accused = Some(Accused::node(&watched.coordinators[coordinator]));
                alarms.push(Alarm { at_ns: watched.end_of(at), accused });
            }
        }
    }
    alarms
}

/// The state of one stream.
#[derive(Clone)]
struct Adr {
    /// Steps in a window.
    window: usize,
    /// Deviations of a step's count that make a majority.
    deviations: f64,
    /// Since the last reset, the latest last.
    values: VecDeque<Times>,
    counts: VecDeque<f64>,
}

impl Adr {
    fn of(watched: &Watched) -> Adr {
        Adr {
            window: (WINDOW_NS.div_ceil(watched.step_ns) as usize).max(2),
            deviations: (watched.step_ns as f64 / COUNTED_NS).sqrt().max(1.0),
            values: VecDeque::new(),
            counts: VecDeque::new(),
        }
    }

    /// Takes what ended in a step; true if it is fatal.
    fn observe(&mut self, ended: &Ended) -> bool {
        let mut now = ended.ok.clone();
        now.add_all(&ended.timed_out);
        let count = now.count();
        if count <= 0.0 {
            // It speaks at updates alone.
            return false;
        }
        let load = self.load(count);
        let slow = load == Load::Lower && self.limit(count).is_some_and(|limit| now.above(limit) > count / 2.0);
        if load == Load::Higher || load == Load::Lower && !slow {
            self.values.clear();
            self.counts.clear();
        }
        let beyond = now.above(DEFAULT_NS) > 0.0;
        self.values.push_back(now);
        self.counts.push_back(count);
        while self.counts.len() > self.window {
            self.values.pop_front();
            self.counts.pop_front();
        }
        slow || beyond
    }

    /// Of the steps before.
    fn load(&self, count: f64) -> Load {
        let counts: Vec<f64> = self.counts.iter().copied().collect();
        if counts.len() < self.window {
            return Load::Steady;
        }
        let (Some(mean), Some(sd)) = (stats::mean(&counts), stats::deviation(&counts)) else { return Load::Steady };
        // Where a schedule is even there is no deviation: less than one operation is no change.
        let reach = (self.deviations * sd).max(1.0);
        match count - mean {
            change if change > reach => Load::Higher,
            change if change < -reach => Load::Lower,
            _ => Load::Steady,
        }
    }

    /// The 99th percentile of the latest ten seconds' worth of values, at the frequency of now; none while there are fewer.
    fn limit(&self, count: f64) -> Option<u64> {
        let wanted = count * self.window as f64;
        let mut left = wanted;
        let mut window: Vec<(u64, f64)> = Vec::new();
        for times in self.values.iter().rev() {
            // Of the oldest step as much as is wanted still, alike of all of its values.
            let part = (left / times.count()).min(1.0);
            window.extend(times.iter().map(|(ns, count)| (ns, count * part)));
            left -= times.count() * part;
            if left <= 1e-9 * wanted {
                break;
            }
        }
        if left > 0.5 {
            return None;
        }
        window.sort_unstable_by_key(|(ns, _)| *ns);
        let mut below = 0.0;
        window
            .iter()
            .find(|(_, count)| {
                below += count;
                below >= 0.99 * (wanted - left) - 1e-9
            })
            .map(|(ns, _)| *ns)
    }
}
