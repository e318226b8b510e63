//! A node, as others see it: what it is, what it uses, how it ended.

use std::{fmt, fs, net::Ipv4Addr, path::PathBuf, sync::Arc};

use brownout_units::Bytes;
use serde::Serialize;

use crate::{clock, supervisor::Supervisor};

/// A node of the cluster: a handle, which follows it through its deaths and starts.
#[derive(Clone)]
pub struct Node {
    /// Its name, which is its host's: `n1`.
    pub name: String,
    /// Where it listens.
    pub address: Ipv4Addr,
    /// The directory of its logs, which outlives it.
    pub logs: PathBuf,
    pub(crate) supervisor: Arc<Supervisor>,
}

impl Node {
    /// Its process, in the PID namespace we are in: that of its last start, dead or alive.
    pub fn pid(&self) -> u32 {
        self.supervisor.life().pid().unwrap_or_default()
    }

    /// When it was last started, in nanoseconds of CLOCK_MONOTONIC.
    pub fn started_ns(&self) -> u64 {
        self.supervisor.life().started_ns
    }

    /// CPU time used by all its threads since its last start, in nanoseconds; `None` while it is dead.
    pub fn cpu_ns(&self) -> Option<u64> {
        clock::process_cpu_ns(self.supervisor.life().living_pid()?)
    }

    /// Its resident memory, mapped files included; `None` while it is dead.
    pub fn rss(&self) -> Option<Bytes> {
        let pid = self.supervisor.life().living_pid()?;
        // The second field of statm is resident pages (proc(5)).
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        // SAFETY: sysconf has no preconditions.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        Some(Bytes(pages * page))
    }

    /// Whether its process is there. A process that was stopped by a signal is.
    pub fn alive(&self) -> bool {
        self.supervisor.life().living_pid().is_some()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.name).field("address", &self.address).finish_non_exhaustive()
    }
}

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
    /// Whether somebody asked for it: [`crate::ClusterControl`]'s `kill`, `stop` or `restart`. What a node does to
    /// itself, or another to it, was not asked for.
    pub asked: bool,
    /// The last lines of its logs.
    pub log_tail: String,
}
