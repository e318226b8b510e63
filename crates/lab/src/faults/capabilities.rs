//! How faults act on a lab: the links, the nodes' processes, their disks, their clocks and their roles, each a capability of its own.
//! The testbed's own controls ([`crate::controls`]) implement them all; a test of the proof wraps them ([`super::sabotage`]).

use std::{sync::Arc, time::Duration};

use brownout_base::Change;
use brownout_cluster::{ClusterError, NodeState};
use brownout_disk::DiskFault;
use brownout_network::Impairment;
use brownout_units::Share;

use crate::LabError;

/// What faults can do to one lab.
#[derive(Clone)]
pub struct Capabilities {
    /// Impairs links.
    pub links: Arc<dyn ImpairLinks>,
    /// Stops, ends and starts the nodes' processes.
    pub nodes: Arc<dyn ControlNodes>,
    /// Makes disks slow.
    pub disks: Arc<dyn ImpairDisks>,
    /// Makes clocks wrong.
    pub clocks: Arc<dyn ShiftClocks>,
    /// Tells who has which role.
    pub roles: Arc<dyn TellRoles>,
}

/// Something that one handle has put in force. Dropping it heals it.
pub trait Applied<T>: Send {
    /// Since when.
    fn change(&self) -> Change;

    /// Makes it another of its kind in place; none where that cannot be.
    fn amend(&mut self, to: &T) -> Result<Option<Change>, LabError>;

    /// Takes it back.
    fn heal(self: Box<Self>) -> Result<Change, LabError>;
}

/// Impairs links.
pub trait ImpairLinks: Send + Sync {
    /// The same on all of these ordered pairs of hosts, beside what is there already.
    fn impair(
        &self,
        pairs: &[(String, String)],
        impairment: &Impairment,
    ) -> Result<Box<dyn Applied<Impairment>>, LabError>;
}

/// What can be done to the nodes' processes; see [`brownout_cluster::ClusterControl`] for each.
pub trait ControlNodes: Send + Sync {
    /// What the kernel shows of it.
    fn state(&self, node: &str) -> Result<NodeState, ClusterError>;

    /// SIGSTOP.
    fn pause(&self, node: &str) -> Result<Change, ClusterError>;

    /// SIGCONT.
    fn unpause(&self, node: &str) -> Result<Change, ClusterError>;

    /// Ends it by a signal.
    fn kill(&self, node: &str, signal: i32) -> Result<Change, ClusterError>;

    /// Ends it cleanly; one that does not end by then is killed.
    fn stop(&self, node: &str, within: Duration) -> Result<Change, ClusterError>;

    /// Starts one that is down.
    fn start(&self, node: &str) -> Result<Change, ClusterError>;

    /// Waits until it answers.
    fn wait_answers(&self, node: &str, within: Duration) -> Result<(), ClusterError>;

    /// Limits its time on the processors.
    fn limit_cpu(&self, node: &str, share: Share) -> Result<Box<dyn Applied<Share>>, ClusterError>;
}

/// Makes disks slow, or fail.
pub trait ImpairDisks: Send + Sync {
    /// That of a directory of a node.
    fn impair(&self, node: &str, directory: &str, fault: &DiskFault) -> Result<Box<dyn Applied<DiskFault>>, LabError>;
}

/// Makes clocks wrong.
pub trait ShiftClocks: Send + Sync {
    /// Steps a node's clock by an offset, and adds to its drift.
    fn shift(&self, node: &str, by_ns: i64, by_ppb: i64) -> Result<Change, LabError>;
}

/// Tells who has which role among the nodes.
pub trait TellRoles: Send + Sync {
    /// The node that leads at this moment; see [`brownout_cluster::ClusterControl::leader`].
    fn leader(&self) -> Result<String, ClusterError>;
}

/// Several changes that belong together: from the first that was asked for to the last that was done.
pub fn together(changes: impl IntoIterator<Item = Change>) -> Change {
    let ends = changes
        .into_iter()
        .map(|change| (change.at_ns.saturating_sub(change.error_ns), change.at_ns + change.error_ns));
    let all = ends.reduce(|(from, to), (other_from, other_to)| (from.min(other_from), to.max(other_to)));
    all.map_or_else(now, |(from, to)| Change::between(from, to))
}

/// At this moment.
pub(super) fn now() -> Change {
    let now = brownout_base::clock::monotonic_ns();
    Change::between(now, now)
}
