//! The state of a node's CPU governor; part of the node's life.

use brownout_units::Share;

/// What the governor of a node knows; part of the node's life, and guarded by its lock.
#[derive(Default)]
pub(crate) struct Governing {
    /// The limits in force, each with the number of its guard. The least counts.
    pub(crate) limits: Vec<(u64, Share)>,
    pub(crate) next: u64,
    /// Whether there is a thread that keeps them.
    pub(crate) running: bool,
    /// For how long they have held the process up to the last count, over all its starts, in nanoseconds.
    pub(crate) held_ns: u64,
    /// The process whose clock was read last, and what it showed. None (0) before the first start.
    pub(crate) read: (u32, u64),
    /// Since when the process is held, or since the last count.
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
