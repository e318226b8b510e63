//! The one time axis of a lab: `CLOCK_MONOTONIC`, in nanoseconds.

use crate::sys;

/// The monotonic clock, in nanoseconds since an arbitrary point of this boot.
pub(crate) fn monotonic_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_MONOTONIC)
}
