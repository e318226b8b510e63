//! What faults can act on: the links, the nodes, their disks and clocks, in one lab that stands.

use std::{collections::BTreeMap, path::PathBuf};

use brownout_base::Change;
use brownout_clock::HostClock;
use brownout_cluster::ClusterControl;
use brownout_disk::DiskControl;
use brownout_network::{Emulator, Link, LinkControl};

use super::{Fault, Healing, InForce};
use crate::LabError;

/// The reach of faults in one lab.
pub struct Reach {
    /// Who impairs links.
    pub control: Emulator,
    /// The link of each ordered pair of host names.
    pub by_name: BTreeMap<(String, String), Link>,
    /// The nodes' processes.
    pub nodes: ClusterControl,
    /// Disks that can be slow, by node and folder.
    pub disks: BTreeMap<(String, String), DiskPlace>,
    /// Clocks that can be wrong, by node.
    pub clocks: BTreeMap<String, HostClock>,
    /// Faults are accepted and acknowledged, but not put in force: a test of the proof.
    pub sabotage: bool,
}

/// A folder that lies on a disk of its own.
pub struct DiskPlace {
    /// Who makes it slow.
    pub control: DiskControl,
    /// Where the database sees it.
    pub folder: PathBuf,
}

impl Reach {
    /// The control of the links.
    pub fn links(&self) -> &dyn LinkControl {
        &self.control
    }

    /// The link between two hosts of the lab.
    pub fn link(&self, from: &str, to: &str) -> Option<Link> {
        self.by_name.get(&(from.to_owned(), to.to_owned())).copied()
    }

    /// A folder's disk.
    pub fn disk(&self, node: &str, folder: &str) -> Result<&DiskPlace, LabError> {
        self.disks.get(&(node.to_owned(), folder.to_owned())).ok_or_else(|| {
            LabError::Trial(format!(
                "the {folder} of {node} lies on no disk that can be slow; was the lab made without?"
            ))
        })
    }

    /// A node's clock.
    pub fn clock(&self, node: &str) -> Result<&HostClock, LabError> {
        self.clocks
            .get(node)
            .ok_or_else(|| LabError::Trial(format!("the clock of {node} cannot be wrong; was the lab made without?")))
    }
}

/// What a sabotaged fault does: nothing, at this moment.
pub struct Untouched(Change);

impl Untouched {
    /// Acknowledges.
    pub fn now() -> Box<dyn InForce> {
        Box::new(Untouched(now()))
    }
}

impl InForce for Untouched {
    fn change(&self) -> Change {
        self.0
    }

    fn heal(self: Box<Self>) -> Result<Healing, LabError> {
        Ok(Healing::Done(now()))
    }

    fn amend(&mut self, _: &dyn Fault) -> Result<Option<Change>, LabError> {
        Ok(Some(now()))
    }
}

fn now() -> Change {
    let now = brownout_base::clock::monotonic_ns();
    Change::between(now, now)
}

/// Several changes that belong together: from the first that was asked for to the last that was done.
pub fn together(changes: impl IntoIterator<Item = Change>) -> Change {
    let ends = changes
        .into_iter()
        .map(|change| (change.at_ns.saturating_sub(change.error_ns), change.at_ns + change.error_ns));
    let all = ends.reduce(|(from, to), (other_from, other_to)| (from.min(other_from), to.max(other_to)));
    all.map_or_else(now, |(from, to)| Change::between(from, to))
}
