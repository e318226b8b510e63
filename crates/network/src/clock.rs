//! The one time axis of a lab: `CLOCK_MONOTONIC`, in nanoseconds.

use crate::sys;

/// The monotonic clock, in nanoseconds since an arbitrary point of this boot.
///
/// All hosts of a lab share it, because they share a kernel: one-way delays are plain differences.
pub fn monotonic_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_MONOTONIC)
}

/// How far the wall clock is ahead of the monotonic one, in nanoseconds.
///
/// The two are slewed alike, so that this changes only when somebody steps the wall clock.
pub(crate) fn realtime_offset_ns() -> i128 {
    // Two monotonic readings around one of the wall clock bound the error of the pair; a thread
    // that was preempted between them is asked again.
    let mut best = (u64::MAX, 0);
    for _ in 0..4 {
        let before = monotonic_ns();
        let real = sys::clock_ns(libc::CLOCK_REALTIME);
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
