//! Nodes that were not started here: where they are, who can touch their processes, and what whoever does needs.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use brownout_base::{Change, EnterableHost};
use brownout_units::Share;

use crate::{ClusterError, NodeState, Stopped};
pub use crate::{
    clock::process_cpu_ns,
    kernel::{state, stopped, threads},
    quota::{Account, PERIOD_NS},
    signals::DEADLY,
};

/// A node of a cluster that runs already.
#[derive(Clone)]
pub struct AttachedNode {
    /// Its name, no other's.
    pub name: String,
    /// Where it answers clients.
    pub address: SocketAddr,
    /// Where it is asked from: its own network, so that no fault of the network passes for one of the node. `enter` moves a
    /// thread into the network that the node is in at that moment, also when the node was started again in another one: it is
    /// called before each connection. `None`: it is asked from the network that this process is in.
    pub host: Option<Arc<dyn EnterableHost>>,
    /// Who can touch its processes; `None`: nobody here.
    pub hands: Option<Arc<dyn Hands>>,
}

/// Whoever can touch the processes of a node that was not started here.
///
/// Errors and what is waited for are as of the functions of [`crate::ClusterControl`] of the same names. Once this is
/// dropped, nothing of what it did is in force: a paused node goes on, a limited one is free.
pub trait Hands: Send + Sync {
    /// What the kernel shows of it.
    ///
    /// # Errors
    /// When that cannot be told.
    fn state(&self) -> Result<NodeState, ClusterError>;

    /// Its main process, in the PID namespace we are in; `None` while it is down.
    fn pid(&self) -> Option<u32>;

    /// CPU time of all its processes since its last start, in nanoseconds; `None` while it is down.
    fn cpu_ns(&self) -> Option<u64>;

    /// Stops all its processes.
    ///
    /// # Errors
    /// When it is paused already or down, or the kernel does not show it stopped: it then goes on.
    fn pause(&self) -> Result<Change, ClusterError>;

    /// Lets it go on.
    ///
    /// # Errors
    /// When it is not paused.
    fn unpause(&self) -> Result<Change, ClusterError>;

    /// Ends it by this signal.
    ///
    /// # Errors
    /// When it is down already, the signal does not end processes, or it lives on.
    fn kill(&self, signal: i32) -> Result<Change, ClusterError>;

    /// Asks it to end, by SIGTERM unless it wants another signal, and kills it when it has not ended within this time.
    ///
    /// # Errors
    /// When it is down already, or does not even die of SIGKILL.
    fn stop(&self, within: Duration) -> Result<Stopped, ClusterError>;

    /// Starts it again, as it was started before; it does not answer yet.
    ///
    /// # Errors
    /// When it runs, or nobody here can start it.
    fn start(&self) -> Result<Change, ClusterError>;

    /// Limits its CPU time to this share of that of all processors which this process may use, in every 100 ms, until the
    /// guard goes. Of several limits the least counts.
    ///
    /// # Errors
    /// When the share is too small, or nobody can keep the limit.
    fn limit_cpu(&self, share: Share) -> Result<Box<dyn CpuHold>, ClusterError>;

    /// The least of the limits that are kept at this moment.
    fn cpu_share(&self) -> Option<Share>;

    /// Time for which limits have held it since this was made, in nanoseconds.
    fn held_ns(&self) -> u64;

    /// The last of its starts that nobody has asked for here yet: it was started again, by whomever, and has another process
    /// and, as a rule, another network namespace. Told once.
    fn restarted(&self) -> Option<Restart>;
}

/// A node of others was started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// When its new process began, in nanoseconds of CLOCK_MONOTONIC: known to 10 ms, as the kernel tells it.
    pub at_ns: u64,
    /// For how long it was down before, in nanoseconds. Of several restarts that are told as one, from the first end to the
    /// last start.
    pub gap_ns: u64,
    /// Its new main process, in the PID namespace we are in.
    pub pid: u32,
}

/// A limit of CPU time, in force until this is dropped.
pub trait CpuHold: fmt::Debug + Send {
    /// Since when it is in force.
    fn since(&self) -> Change;

    /// Takes it back, and says when.
    fn heal(self: Box<Self>) -> Change;
}

/// A limit on a node's CPU time, in force until this is dropped or [`CpuLimit::heal`]ed. It stays through the node's
/// deaths and starts. Of several on one node, the least counts.
#[must_use = "the node is unlimited as soon as the guard is dropped"]
#[derive(Debug)]
pub struct CpuLimit(pub(crate) Box<dyn CpuHold>);

impl CpuLimit {
    /// In each of these the node may use its share.
    pub const PERIOD: Duration = Duration::from_nanos(PERIOD_NS);

    /// Since when it is in force.
    pub fn since(&self) -> Change {
        self.0.since()
    }

    /// Takes the limit back, and says when. The node goes on at once unless it is paused, or limited by another.
    pub fn heal(self) -> Change {
        self.0.heal()
    }
}

/// The least share of CPU time that a node can be limited to: below it, one tick of the kernel's clock is more than can be
/// evened out in the periods that follow.
const LEAST: f64 = 0.01;

/// Whether a limit to this share can be kept.
///
/// # Errors
/// When it is below 1 %.
pub fn check_cpu_share(share: Share) -> Result<(), ClusterError> {
    if share.fraction() < LEAST {
        let least = Share::new(LEAST).unwrap_or_default().to_string();
        return Err(ClusterError::CpuShare { share: share.to_string(), least });
    }
    Ok(())
}

/// Whether a node can be killed by this signal.
///
/// # Errors
/// When it does not end a process.
pub fn check_deadly(node: &str, signal: i32) -> Result<(), ClusterError> {
    if DEADLY.contains(&signal) {
        return Ok(());
    }
    Err(ClusterError::NotDeadly { node: node.to_owned(), signal, deadly: DEADLY.to_vec() })
}
