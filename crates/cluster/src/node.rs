//! A handle to a node: its name, its process, the CPU time it uses.

use std::{fmt, net::Ipv4Addr, path::PathBuf, sync::Arc};

use crate::{Hands, clock, supervisor::Supervisor};

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
    /// Of a node that was not started here.
    pub(crate) hands: Option<Arc<dyn Hands>>,
}

impl Node {
    /// Its process, in the PID namespace we are in: that of its last start, dead or alive. 0 of a node of others that is down,
    /// or whose process nobody here knows.
    pub fn pid(&self) -> u32 {
        match &self.hands {
            Some(hands) => hands.pid().unwrap_or_default(),
            None => self.supervisor.life().pid().unwrap_or_default(),
        }
    }

    /// When it was last started here, in nanoseconds of CLOCK_MONOTONIC; 0 if it was not.
    pub fn started_ns(&self) -> u64 {
        self.supervisor.life().started_ns
    }

    /// CPU time used by all its threads since its last start, in nanoseconds; `None` while it is dead.
    pub fn cpu_ns(&self) -> Option<u64> {
        match &self.hands {
            Some(hands) => hands.cpu_ns(),
            None => clock::process_cpu_ns(self.supervisor.life().living_pid()?),
        }
    }

    /// Whether its process is there. A process that was stopped by a signal is.
    pub fn alive(&self) -> bool {
        match &self.hands {
            Some(hands) => hands.pid().is_some(),
            None => self.supervisor.life().living_pid().is_some(),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.name).field("address", &self.address).finish_non_exhaustive()
    }
}
