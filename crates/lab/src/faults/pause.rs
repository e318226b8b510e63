//! `pause`: a node's process stands still, as under a long garbage collection or a frozen virtual machine.

use brownout_cluster::ClusterControl;
use brownout_network::Change;
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::Delay;

use super::{Fault, Healing, InForce, Needs, Reach, Untouched, join, known_nodes, reach::together, s};
use crate::{
    LabError,
    experiment::{Complaint, NodeFault},
    hosts::Hosts,
};

/// The nodes' processes get SIGSTOP, and SIGCONT in the end; their kernels answer as ever.
#[derive(Debug, Clone)]
pub struct Pause {
    nodes: Vec<String>,
}

impl Pause {
    pub(super) fn new(entry: &NodeFault, hosts: &Hosts) -> Result<Pause, Complaint> {
        Ok(Pause { nodes: known_nodes(&entry.host, hosts)? })
    }
}

impl Fault for Pause {
    fn kind(&self) -> &'static str {
        "pause"
    }

    fn subject(&self) -> String {
        join(&self.nodes)
    }

    fn text(&self) -> String {
        format!("{} stand{} still (SIGSTOP)", join(&self.nodes), s(&self.nodes))
    }

    fn effect(&self) -> String {
        "connections stay open, packets are taken, nothing is answered; RTTs of the network stay".to_owned()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        silent(&self.nodes, hosts)
    }

    fn unsettled(&self) -> Delay {
        Delay::from_ns(2 * brownout_analysis::SETTLE_NS)
    }

    fn needs(&self) -> Needs {
        Needs { process_witness: true, ..Needs::default() }
    }

    fn inject(&self, reach: &Reach) -> Result<Box<dyn InForce>, LabError> {
        if reach.sabotage {
            return Ok(Untouched::now());
        }
        let mut paused = Paused { control: reach.nodes.clone(), nodes: Vec::new(), changes: Vec::new() };
        for node in &self.nodes {
            let change = reach.nodes.pause(node)?;
            paused.nodes.push(node.clone());
            paused.changes.push(change);
        }
        Ok(Box::new(paused))
    }
}

/// Continues in the end whom it stopped.
struct Paused {
    control: ClusterControl,
    nodes: Vec<String>,
    changes: Vec<Change>,
}

impl InForce for Paused {
    fn change(&self) -> Change {
        together(self.changes.iter().copied())
    }

    fn heal(mut self: Box<Self>) -> Result<Healing, LabError> {
        let nodes = std::mem::take(&mut self.nodes);
        let changes = nodes.iter().map(|node| self.control.unpause(node)).collect::<Result<Vec<_>, _>>()?;
        Ok(Healing::Done(together(changes)))
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        for node in &self.nodes {
            // One that has died meanwhile stands still anyway.
            let _ = self.control.unpause(node);
        }
    }
}

/// What is to be seen where processes do not run: no answers and no running, while all others do both.
pub(super) fn silent(nodes: &[String], hosts: &Hosts) -> Vec<Expectation> {
    let mut all = Vec::new();
    for host in hosts.nodes() {
        let hit = nodes.contains(&host.name);
        let asked = if hit { -1.0 } else { 0.0 };
        // A busy machine may keep a live process from answering in time now and then.
        for (quantity, tolerance) in [(Quantity::Answers, 0.2), (Quantity::Running, 0.05)] {
            all.push(Expectation { subject: Subject::host(host.name.clone()), quantity, hit, asked, tolerance });
        }
    }
    all
}
