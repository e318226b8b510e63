//! The wall clock beside the time axis.

use brownout_base::clock::{monotonic_ns, realtime_ns};

/// How far the wall clock is ahead of the monotonic one, in nanoseconds.
///
/// The two are slewed alike, so that this changes only when somebody steps the wall clock.
pub(crate) fn realtime_offset_ns() -> i128 {
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
