//! How long control work may take.

use std::time::Duration;

/// When control work is given up.
#[derive(Clone, Copy)]
pub struct Limit<'a> {
    /// After this time.
    pub time: Duration,
    /// As soon as this returns true; polled ten times a second.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// A time limit alone: nothing interrupts the work.
impl From<Duration> for Limit<'_> {
    fn from(time: Duration) -> Self {
        Limit { time, interrupted: &|| false }
    }
}
