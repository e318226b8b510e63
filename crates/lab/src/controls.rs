//! The controls of a testbed: handles to its links, nodes, disks and clocks. Faults act on them through [`Capabilities`];
//! everything else reads them directly.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use brownout_base::{Change, random::derive};
use brownout_clock::HostClock;
use brownout_cluster::{ClusterControl, ClusterError, CpuLimit, NodeState};
use brownout_disk::{DiskControl, DiskFault, DiskGuard};
use brownout_network::{Emulator, Impairment, ImpairmentGuard, Link, LinkControl};
use brownout_units::Share;

use crate::{
    LabError,
    faults::capabilities::{Applied, Capabilities, ControlNodes, ImpairDisks, ImpairLinks, ShiftClocks, TellRoles},
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
    /// Disks that can be slow, by node and directory.
    pub disks: BTreeMap<(String, String), NodeDisk>,
    /// Clocks that can be wrong, by node.
    pub clocks: BTreeMap<String, HostClock>,
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
        self.nodes.kill(node, signal)
    }

    fn stop(&self, node: &str, within: Duration) -> Result<Change, ClusterError> {
        Ok(self.nodes.stop(node, within)?.change)
    }

    fn start(&self, node: &str) -> Result<Change, ClusterError> {
        self.nodes.start(node)
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
        self.nodes.leader()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_disk_of_every_trial_draws_for_itself_and_the_same_again() {
        let seeds = |trials: &[u64]| -> Vec<u64> {
            trials.iter().flat_map(|seed| (0..9).map(move |number| seed_of_disk(*seed, number))).collect()
        };
        assert_eq!(seeds(&[1, 2]), seeds(&[1, 2]));
        assert_eq!(seeds(&[1, 2, 3]).into_iter().collect::<BTreeSet<_>>().len(), 27);
    }
}
