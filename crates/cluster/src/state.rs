//! The state of a node's process as the kernel shows it, and its end.

use std::fmt;

use serde::Serialize;

/// What the kernel shows of a node's process. Written `UP`, `PAUSED`, `DOWN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NodeState {
    /// It is there, and runs whenever it has work and CPU time. One whose CPU share is limited is up.
    Up,
    /// It is there, and stopped by a signal (`T` in `/proc/PID/stat`).
    Paused,
    /// It is not there.
    Down,
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            NodeState::Up => "UP",
            NodeState::Paused => "PAUSED",
            NodeState::Down => "DOWN",
        })
    }
}

/// The end of a node's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Death {
    /// The node.
    pub node: String,
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// How: "exit code 3", "killed by signal 9".
    pub status: String,
    /// Whether somebody asked for it: [`crate::ClusterControl`]'s `kill` or `stop`. What a node does to
    /// itself, or another to it, was not asked for.
    pub asked: bool,
    /// The last lines of its logs.
    pub log_tail: String,
}
