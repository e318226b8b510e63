//! The kernel's receive times: it stamps them with the wall clock, which somebody may step.

use brownout_base::clock::{monotonic_ns, realtime_ns};

/// The kernel begins to stamp arrivals a moment after the first socket asks for it; before, it
/// stamps when they are collected.
pub(crate) const STAMPS_AFTER_NS: u64 = 20_000_000;

/// The wall clock moved against the monotonic one by more than this: somebody stepped it.
const STEP_NS: u128 = 50_000;

/// When a datagram arrived, as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// By this kernel: `CLOCK_REALTIME`, ns.
    Realtime(u64),
    /// By another machine, and already on this one's monotonic clock, ns.
    Monotonic(u64),
}

/// How far the wall clock is ahead of the monotonic one, as it was when it was last read.
pub(crate) struct WallClock {
    ahead_ns: i128,
}

/// Two readings that enclose all stamps of one round of collecting arrivals.
pub(crate) struct Round {
    before_ns: i128,
    after_ns: i128,
}

impl WallClock {
    pub(crate) fn read() -> Self {
        WallClock { ahead_ns: realtime_offset_ns() }
    }

    /// To be called once all arrivals of a round have been collected, before any is judged.
    pub(crate) fn next_round(&mut self) -> Round {
        let before_ns = std::mem::replace(&mut self.ahead_ns, realtime_offset_ns());
        Round { before_ns, after_ns: self.ahead_ns }
    }
}

impl Round {
    /// A stamp of this round on the monotonic clock; `None` when the wall clock was stepped meanwhile, since nobody
    /// knows which stamps were made before.
    pub(crate) fn on_monotonic(&self, stamp: Stamp) -> Option<u64> {
        let stamp_ns = match stamp {
            Stamp::Realtime(stamp_ns) => stamp_ns,
            Stamp::Monotonic(at_ns) => return Some(at_ns),
        };
        let stepped = (self.after_ns - self.before_ns).unsigned_abs() > STEP_NS;
        if stepped { None } else { u64::try_from(i128::from(stamp_ns) - self.after_ns).ok() }
    }
}

/// How far the wall clock is ahead of the monotonic one, in nanoseconds.
///
/// The two are slewed alike, so that this changes only when somebody steps the wall clock.
fn realtime_offset_ns() -> i128 {
    // Two monotonic readings around one of the wall clock bound the error of the pair; a thread
    // that was preempted between them is asked again.
    let mut best = (u64::MAX, 0);
    for _ in 0..4 {
        let before = monotonic_ns();
        let real = realtime_ns();
        let after = monotonic_ns();
        let width = after - before;
        if width < best.0 {
            best = (width, i128::from(real) - i128::from(before + width / 2));
        }
        if width < 1_000 {
            break;
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_counts_only_when_the_wall_clock_was_not_stepped_meanwhile() {
        let on_monotonic =
            |stamp, before_ns, after_ns| Round { before_ns, after_ns }.on_monotonic(Stamp::Realtime(stamp));
        assert_eq!(on_monotonic(1_000_700, 1_000_000, 1_000_000), Some(700));
        assert_eq!(on_monotonic(1_000_700, 1_000_000, 1_000_200), Some(500), "slewed, or read with an error");
        assert_eq!(on_monotonic(1_000_700, 1_000_000, -5_000_000), None);
        assert_eq!(on_monotonic(9_000_000, 1_000_000, 5_000_000), None);
        assert_eq!(on_monotonic(0, 1_000_000, 1_000_000), None);
        let elsewhere = Stamp::Monotonic(7);
        assert_eq!(
            Round { before_ns: 0, after_ns: 1_000_000 }.on_monotonic(elsewhere),
            Some(7),
            "whatever clocks do here"
        );
    }
}
