//! The phases of a trial, and the intervals that they are divided into.

use std::time::Duration;

use brownout_units::Delay;

/// All series are kept in intervals of this length; phases are whole multiples of it.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// The same in nanoseconds.
pub const INTERVAL_NS: u64 = INTERVAL.as_nanos() as u64;

/// One phase of each trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedPhase {
    /// Its kind.
    pub phase: Phase,
    /// Its length; the longest for the warm-up.
    pub length: Delay,
}

/// The phases of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Flood, settle, wait for stationary latency.
    WarmUp,
    /// Measured without fault.
    Baseline,
    /// Measured with the faults.
    Fault,
    /// Measured after healing.
    Recovery,
}

impl Phase {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::WarmUp => "warm-up",
            Phase::Baseline => "baseline",
            Phase::Fault => "fault",
            Phase::Recovery => "recovery",
        }
    }
}
