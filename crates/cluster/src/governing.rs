//! The state of a node's CPU governor; part of the node's life.

use brownout_machine::Scheduling;
use brownout_units::Share;

/// What the governor of a node knows; part of the node's life, and guarded by its lock.
#[derive(Default)]
pub(crate) struct Governing {
    /// The limits in force, each with the number of its guard. The least counts.
    pub(crate) limits: Vec<(u64, Share)>,
    pub(crate) next: u64,
    /// How the thread that keeps them is scheduled; `None` when there is none.
    pub(crate) running: Option<Scheduling>,
    pub(crate) tally: Tally,
    /// The process whose clock was read last, and what it showed. None (0) before the first start.
    pub(crate) read: (u32, u64),
    /// Since when the process is held.
    pub(crate) held_since_ns: Option<u64>,
    #[cfg(test)]
    pub(crate) sabotaged: bool,
}

impl Governing {
    /// The node was started again: nothing holds it yet.
    pub(crate) fn started(&mut self) {
        self.held_since_ns = None;
    }

    /// Makes the governor's thread panic when it next looks.
    #[cfg(test)]
    pub(crate) fn sabotage(&mut self) {
        self.sabotaged = true;
    }
}

/// Counted while a governor runs, over all starts of the node; in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) ran_ns: u64,
    pub(crate) throttled_ns: u64,
    pub(crate) periods: u64,
    pub(crate) throttled_periods: u64,
    pub(crate) late_ns: u64,
}
