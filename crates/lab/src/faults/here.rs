//! Faults where hosts are on several machines: each machine does what is to be done to its own, and acknowledges the rest, which
//! others do. (That links which begin elsewhere are not impaired here, the network knows.)

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use brownout_base::Change;
use brownout_cluster::{ClusterError, NodeState};
use brownout_disk::DiskFault;
use brownout_network::Impairment;
use brownout_units::Share;

use super::{
    capabilities::{Applied, Capabilities, ControlNodes, ImpairDisks, ImpairLinks, ShiftClocks, now},
    sabotage::Untouched,
};
use crate::LabError;

/// The same, of these nodes alone.
pub fn on_these(capabilities: &Capabilities, nodes: impl Iterator<Item = String>) -> Capabilities {
    let here: Arc<BTreeSet<String>> = Arc::new(nodes.collect());
    Capabilities {
        links: Arc::new(Here(Arc::clone(&capabilities.links), Arc::clone(&here))),
        nodes: Arc::new(Here(Arc::clone(&capabilities.nodes), Arc::clone(&here))),
        disks: Arc::new(Here(Arc::clone(&capabilities.disks), Arc::clone(&here))),
        clocks: Arc::new(Here(Arc::clone(&capabilities.clocks), here)),
        roles: Arc::clone(&capabilities.roles),
    }
}

/// A handle, and the nodes that it is for.
struct Here<H>(H, Arc<BTreeSet<String>>);

impl<H> Here<H> {
    fn has(&self, node: &str) -> bool {
        self.1.contains(node)
    }
}

impl ImpairLinks for Here<Arc<dyn ImpairLinks>> {
    fn impair(
        &self,
        pairs: &[(String, String)],
        impairment: &Impairment,
    ) -> Result<Box<dyn Applied<Impairment>>, LabError> {
        // What comes from outside is impaired where it arrives.
        let is_here =
            |(from, to): &&(String, String)| self.has(from) || (from == crate::hosts::Hosts::LOAD && self.has(to));
        let own: Vec<(String, String)> = pairs.iter().filter(is_here).cloned().collect();
        match own.is_empty() {
            true => Ok(Box::new(Untouched(now()))),
            false => self.0.impair(&own, impairment),
        }
    }
}

impl ImpairDisks for Here<Arc<dyn ImpairDisks>> {
    fn impair(&self, node: &str, directory: &str, fault: &DiskFault) -> Result<Box<dyn Applied<DiskFault>>, LabError> {
        match self.has(node) {
            true => self.0.impair(node, directory, fault),
            false => Ok(Box::new(Untouched(now()))),
        }
    }
}

impl ShiftClocks for Here<Arc<dyn ShiftClocks>> {
    fn shift(&self, node: &str, by_ns: i64, by_ppb: i64) -> Result<Change, LabError> {
        if self.has(node) { self.0.shift(node, by_ns, by_ppb) } else { Ok(now()) }
    }
}

impl ControlNodes for Here<Arc<dyn ControlNodes>> {
    fn state(&self, node: &str) -> Result<NodeState, ClusterError> {
        // Nobody here can know more of another machine's.
        if self.has(node) { self.0.state(node) } else { Ok(NodeState::Up) }
    }

    fn pause(&self, node: &str) -> Result<Change, ClusterError> {
        if self.has(node) { self.0.pause(node) } else { Ok(now()) }
    }

    fn unpause(&self, node: &str) -> Result<Change, ClusterError> {
        if self.has(node) { self.0.unpause(node) } else { Ok(now()) }
    }

    fn kill(&self, node: &str, signal: i32) -> Result<Change, ClusterError> {
        if self.has(node) { self.0.kill(node, signal) } else { Ok(now()) }
    }

    fn stop(&self, node: &str, within: Duration) -> Result<Change, ClusterError> {
        if self.has(node) { self.0.stop(node, within) } else { Ok(now()) }
    }

    fn start(&self, node: &str) -> Result<Change, ClusterError> {
        if self.has(node) { self.0.start(node) } else { Ok(now()) }
    }

    fn wait_answers(&self, node: &str, within: Duration) -> Result<(), ClusterError> {
        if self.has(node) { self.0.wait_answers(node, within) } else { Ok(()) }
    }

    fn limit_cpu(&self, node: &str, share: Share) -> Result<Box<dyn Applied<Share>>, ClusterError> {
        match self.has(node) {
            true => self.0.limit_cpu(node, share),
            false => Ok(Box::new(Untouched(now()))),
        }
    }
}
