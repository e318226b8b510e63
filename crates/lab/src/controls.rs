//! The controls of a testbed: handles to its links, nodes, disks and clocks. Faults act on them through [`Capabilities`];
//! everything else reads them directly.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use brownout_base::{Change, random::derive};
use brownout_clock::HostClock;
use brownout_cluster::{ClusterControl, ClusterError, CpuLimit, NodeState};
use brownout_disk::{DiskControl, DiskFault, DiskGuard};
use brownout_network::{Emulator, Impairment, ImpairmentGuard, Link, LinkControl};
use brownout_units::Share;

use crate::{
    LabError,
    faults::capabilities::{Applied, Capabilities, ControlNodes, ImpairDisks, ImpairLinks, ShiftClocks, TellRoles},
    hosts::Hosts,
};

/// A clock that is this near to the true one, without a drift, is right: this is what the rounding of a drift leaves. The
/// least offset that can be asked for is far more.
const ROUNDING_NS: u64 = 10_000;

/// What a disk of a trial draws from, by its number: not what another one does, nor a link.
fn seed_of_disk(seed: u64, number: usize) -> u64 {
    derive(derive(seed, u64::from_be_bytes(*b"    disk")), number as u64)
}

/// All of them.
pub struct Controls {
    /// Who impairs links.
    pub control: Emulator,
    /// The link of each ordered pair of host names.
    pub by_name: BTreeMap<(String, String), Link>,
    /// The nodes' processes.
    pub nodes: ClusterControl,
    /// All nodes, where some of them are on other machines: asked who leads. None: `nodes` are all.
    pub roles: Option<ClusterControl>,
    /// Disks that can be slow, by node and directory.
    pub disks: BTreeMap<(String, String), NodeDisk>,
    /// Clocks that can be wrong, by node.
    pub clocks: BTreeMap<String, HostClock>,
    /// Nodes that faults have ended: of containers nothing else tells that somebody asked for it.
    pub ended: EndedNodes,
    /// Its hosts are containers that ran before.
    pub are_containers: bool,
}

/// Nodes that were ended on purpose, until they are seen to run again.
#[derive(Debug, Clone, Default)]
pub struct EndedNodes(Arc<Mutex<BTreeMap<String, Ending>>>);

/// How far the end of a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It was asked to end, or has ended.
    Ended,
    /// It was started again.
    Started,
}

impl EndedNodes {
    /// Ends a node by `end`; one that is ended is never without its note, and one that could not be has none.
    fn end<T>(&self, node: &str, end: impl FnOnce() -> Result<T, ClusterError>) -> Result<T, ClusterError> {
        let before = self.all().insert(node.to_owned(), Ending::Ended);
        end().inspect_err(|_| {
            let mut all = self.all();
            match before {
                Some(before) => all.insert(node.to_owned(), before),
                None => all.remove(node),
            };
        })
    }

    /// Starts a node again by `start`. It is noted before: who looks may see it run before `start` is done.
    fn start<T>(&self, node: &str, start: impl FnOnce() -> Result<T, ClusterError>) -> Result<T, ClusterError> {
        self.note(node, Ending::Started);
        start().inspect_err(|_| self.note(node, Ending::Ended))
    }

    /// How far the end of a node is that was ended on purpose.
    fn note(&self, node: &str, ending: Ending) {
        if let Some(noted) = self.all().get_mut(node) {
            *noted = ending;
        }
    }

    /// Whether somebody has asked for the end of a node that does not run.
    pub fn is_asked(&self, node: &str) -> bool {
        self.all().contains_key(node)
    }

    /// Whether it was started again on purpose, now that it is seen to run; that is noted once.
    pub fn take_started(&self, node: &str) -> bool {
        let mut all = self.all();
        let is_started = all.get(node) == Some(&Ending::Started);
        if is_started {
            all.remove(node);
        }
        is_started
    }

    /// Entries are put there whole, so a panic of another thread has broken nothing.
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Ending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nothing here can touch the processes of a cluster's nodes, nor sees them: they are only asked.
pub fn are_only_asked(nodes: &ClusterControl) -> bool {
    !nodes.is_ours() && nodes.names().iter().any(|name| !nodes.has_hands(name))
}

/// A directory that lies on a disk of its own.
pub struct NodeDisk {
    /// Who makes it slow.
    pub control: DiskControl,
    /// Where the database sees it.
    pub directory: PathBuf,
}

impl Controls {
    /// The capabilities that faults act through.
    pub fn capabilities(self: &Arc<Self>) -> Capabilities {
        Capabilities {
            links: Arc::<Controls>::clone(self),
            nodes: Arc::<Controls>::clone(self),
            disks: Arc::<Controls>::clone(self),
            clocks: Arc::<Controls>::clone(self),
            roles: Arc::<Controls>::clone(self),
        }
    }

    /// From now on, all randomness of links and disks is drawn from this seed.
    ///
    /// # Errors
    /// When the emulator cannot be reached.
    pub fn reseed(&self, seed: u64) -> Result<(), LabError> {
        for (number, disk) in self.disks.values().enumerate() {
            disk.control.reseed(seed_of_disk(seed, number));
        }
        Ok(self.control.reseed(seed)?)
    }

    /// The link between two hosts of the lab.
    pub fn link(&self, from: &str, to: &str) -> Option<Link> {
        self.by_name.get(&(from.to_owned(), to.to_owned())).copied()
    }

    /// The links that are to be measured, of those that can be impaired here.
    pub fn watched(&self, hosts: &Hosts) -> Vec<Link> {
        hosts.watched_pairs().filter_map(|(from, to)| self.link(&from.name, &to.name)).collect()
    }

    /// A directory's disk; none: it lies on none that can be slow.
    pub fn disk(&self, node: &str, directory: &str) -> Option<&NodeDisk> {
        self.disks.get(&(node.to_owned(), directory.to_owned()))
    }
}

impl ImpairLinks for Controls {
    fn impair(
        &self,
        pairs: &[(String, String)],
        impairment: &Impairment,
    ) -> Result<Box<dyn Applied<Impairment>>, LabError> {
        let links: Vec<Link> = pairs.iter().filter_map(|(from, to)| self.link(from, to)).collect();
        Ok(Box::new(self.control.impair(&links, impairment)?))
    }
}

impl Applied<Impairment> for ImpairmentGuard {
    fn change(&self) -> Change {
        ImpairmentGuard::change(self)
    }

    fn amend(&mut self, to: &Impairment) -> Result<Option<Change>, LabError> {
        Ok(Some(ImpairmentGuard::amend(self, to)?))
    }

    fn heal(self: Box<Self>) -> Result<Change, LabError> {
        Ok(ImpairmentGuard::heal(*self)?)
    }
}

impl ControlNodes for Controls {
    fn state(&self, node: &str) -> Result<NodeState, ClusterError> {
        self.nodes.state(node)
    }

    fn pause(&self, node: &str) -> Result<Change, ClusterError> {
        self.nodes.pause(node)
    }

    fn unpause(&self, node: &str) -> Result<Change, ClusterError> {
        self.nodes.unpause(node)
    }

    fn kill(&self, node: &str, signal: i32) -> Result<Change, ClusterError> {
        self.ended.end(node, || self.nodes.kill(node, signal))
    }

    fn stop(&self, node: &str, within: Duration) -> Result<Change, ClusterError> {
        Ok(self.ended.end(node, || self.nodes.stop(node, within))?.change)
    }

    fn start(&self, node: &str) -> Result<Change, ClusterError> {
        self.ended.start(node, || self.nodes.start(node))
    }

    fn wait_answers(&self, node: &str, within: Duration) -> Result<(), ClusterError> {
        self.nodes.wait_answers(node, within, &|| false).map(drop)
    }

    fn limit_cpu(&self, node: &str, share: Share) -> Result<Box<dyn Applied<Share>>, ClusterError> {
        Ok(Box::new(self.nodes.limit_cpu(node, share)?))
    }
}

impl Applied<Share> for CpuLimit {
    fn change(&self) -> Change {
        self.since()
    }

    fn amend(&mut self, _: &Share) -> Result<Option<Change>, LabError> {
        Ok(None)
    }

    fn heal(self: Box<Self>) -> Result<Change, LabError> {
        Ok(CpuLimit::heal(*self))
    }
}

impl ImpairDisks for Controls {
    fn impair(&self, node: &str, directory: &str, fault: &DiskFault) -> Result<Box<dyn Applied<DiskFault>>, LabError> {
        let place = self.disk(node, directory).ok_or_else(|| {
            if self.are_containers {
                return LabError::Trial(format!(
                    "the disk of {node} cannot be reached from outside of its container; use a lab for faults of disks"
                ));
            }
            LabError::Trial(format!(
                "the {directory} directory of {node} is not on a disk that can be slowed; was the lab started \
                 with --no-disk?"
            ))
        })?;
        Ok(Box::new(place.control.impair(fault)?))
    }
}

impl Applied<DiskFault> for DiskGuard {
    fn change(&self) -> Change {
        self.since()
    }

    fn amend(&mut self, to: &DiskFault) -> Result<Option<Change>, LabError> {
        Ok(Some(DiskGuard::amend(self, to)?))
    }

    fn heal(self: Box<Self>) -> Result<Change, LabError> {
        Ok(DiskGuard::heal(*self)?)
    }
}

impl ShiftClocks for Controls {
    fn shift(&self, node: &str, by_ns: i64, by_ppb: i64) -> Result<Change, LabError> {
        let clock = self.clocks.get(node).ok_or_else(|| {
            if self.are_containers {
                return LabError::Trial(format!(
                    "{node} was attached to without a clock of its own; start it with the override that `brownout wrap` prints"
                ));
            }
            LabError::Trial(format!(
                "the clock of {node} cannot be changed: the lab was built without a clock of its own for it"
            ))
        })?;
        let change = clock.shift(by_ns, by_ppb)?;
        let left = clock.skew();
        if left.drift_ppb == 0 && left.offset_ns.unsigned_abs() < ROUNDING_NS {
            clock.reset()?;
        }
        Ok(change)
    }
}

impl TellRoles for Controls {
    fn leader(&self) -> Result<String, ClusterError> {
        self.roles.as_ref().unwrap_or(&self.nodes).leader()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_node_is_noted_as_ended_until_its_start_is_seen_and_one_that_lives_on_is_not() {
        let ended = EndedNodes::default();
        let not_ours = || Err(ClusterError::NotOurs { node: "n1".to_owned() });
        assert!(ended.end::<()>("n1", not_ours).is_err() && !ended.is_asked("n1"));
        ended.end("n1", || Ok(())).unwrap();
        assert!(ended.is_asked("n1") && !ended.take_started("n1"));
        // It is down already.
        assert!(ended.end::<()>("n1", not_ours).is_err() && ended.is_asked("n1"));
        assert!(ended.start::<()>("n1", not_ours).is_err() && !ended.take_started("n1") && ended.is_asked("n1"));
        ended.start("n1", || Ok(())).unwrap();
        assert!(ended.take_started("n1") && !ended.take_started("n1") && !ended.is_asked("n1"));
        ended.start("n2", || Ok(())).unwrap();
        assert!(!ended.is_asked("n2"), "nobody has ended it");
    }

    #[test]
    fn every_disk_of_every_trial_draws_for_itself_and_the_same_again() {
        let seeds = |trials: &[u64]| -> Vec<u64> {
            trials.iter().flat_map(|seed| (0..9).map(move |number| seed_of_disk(*seed, number))).collect()
        };
        assert_eq!(seeds(&[1, 2]), seeds(&[1, 2]));
        assert_eq!(seeds(&[1, 2, 3]).into_iter().collect::<BTreeSet<_>>().len(), 27);
    }
}
