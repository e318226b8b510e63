//! What the governor of a container's CPU time knows; part of the container's life, and guarded by its lock.

use brownout_units::Share;

/// The limits, and what was counted.
#[derive(Default)]
pub(super) struct Governing {
    /// The limits in force, each with the number of its guard. The least counts.
    pub(super) limits: Vec<(u64, Share)>,
    /// The number of the next guard.
    pub(super) next: u64,
    /// Whether there is a thread that keeps them.
    pub(super) running: bool,
    /// For how long they have held it up to the last count, ns.
    pub(super) held_ns: u64,
    /// The main process at the last count, and what all had used. None (0) before the first.
    pub(super) read: (u32, u64),
    /// Since when it is held, or since the last count.
    pub(super) held_since_ns: Option<u64>,
}

impl Governing {
    /// Nothing holds it any more.
    pub(super) fn died(&mut self) {
        self.held_since_ns = None;
    }
}
