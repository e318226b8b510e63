//! The time line of a trial: marks one interval apart, and waiting for them.

use std::time::Duration;

use brownout_base::clock::monotonic_ns;

use crate::{LabError, ground::Interrupts, plan::INTERVAL_NS};

/// How long an interrupt may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Marks at a beginning and every [`crate::plan::INTERVAL`] after it, on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub struct TimeLine {
    /// The first mark.
    pub epoch_ns: u64,
    interrupts: Interrupts,
}

impl TimeLine {
    /// Begins now.
    pub fn begin(interrupts: Interrupts) -> Self {
        TimeLine::from(monotonic_ns(), interrupts)
    }

    /// Begins then.
    pub fn from(epoch_ns: u64, interrupts: Interrupts) -> Self {
        TimeLine { epoch_ns, interrupts }
    }

    /// The first mark after `at_ns`.
    pub fn next_mark(&self, at_ns: u64) -> u64 {
        self.epoch_ns + (at_ns.saturating_sub(self.epoch_ns) / INTERVAL_NS + 1) * INTERVAL_NS
    }

    /// Sleeps until a moment, or until the user asks for the end.
    pub fn wait_until(&self, at_ns: u64) -> Result<(), LabError> {
        loop {
            if self.interrupts.any() {
                return Err(LabError::Interrupted);
            }
            let left = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Whether the user asked for the end.
    pub fn interrupted(&self) -> bool {
        self.interrupts.any()
    }
}
