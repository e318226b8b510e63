//! `pause`: a node's process is paused, as under a long garbage collection or a frozen virtual machine.

use std::sync::Arc;

use brownout_base::Change;
use brownout_cluster::ClusterError;
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::Delay;

use super::{
    capabilities::{Capabilities, ControlNodes, together},
    fault::{ActiveFault, Fault, Healing},
    names::{are, join, known_nodes},
    needs::Needs,
};
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
        format!("{} {} paused (SIGSTOP)", join(&self.nodes), are(&self.nodes))
    }

    fn effect(&self) -> String {
        "connections stay open and packets are accepted, but nothing is answered; network RTTs do not change".to_owned()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        silent(&self.nodes, hosts)
    }

    fn unsettled(&self) -> Delay {
        Delay::from_ns(2 * brownout_analysis::SETTLE_NS)
    }

    fn stills(&self) -> &[String] {
        &self.nodes
    }

    fn is_stall(&self) -> bool {
        true
    }

    fn needs(&self) -> Needs {
        Needs { process_witness: true, ..Needs::default() }
    }

    fn inject(&self, capabilities: &Capabilities) -> Result<Box<dyn ActiveFault>, LabError> {
        let mut paused = Paused { control: Arc::clone(&capabilities.nodes), nodes: Vec::new(), changes: Vec::new() };
        for node in &self.nodes {
            let change = capabilities.nodes.pause(node)?;
            paused.nodes.push(node.clone());
            paused.changes.push(change);
        }
        Ok(Box::new(paused))
    }
}

/// Continues in the end whom it stopped.
struct Paused {
    control: Arc<dyn ControlNodes>,
    nodes: Vec<String>,
    changes: Vec<Change>,
}

impl Paused {
    /// Lets all of them go on, whatever becomes of one; says what went wrong first.
    fn resume(&mut self) -> Result<Change, LabError> {
        let resumed = std::mem::take(&mut self.nodes).into_iter().map(|node| self.control.unpause(&node));
        all_resumed(resumed.collect()).map_err(LabError::from)
    }
}

/// What letting several nodes go on came to. One that has died, or that somebody else let go on, stands still no more.
fn all_resumed(nodes: Vec<Result<Change, ClusterError>>) -> Result<Change, ClusterError> {
    let mut changes = Vec::new();
    let mut result = Ok(());
    for node in nodes {
        match node {
            Ok(change) => changes.push(change),
            Err(ClusterError::NotNow { .. }) => {}
            Err(error) => result = result.and(Err(error)),
        }
    }
    result.map(|()| together(changes))
}

impl ActiveFault for Paused {
    fn change(&self) -> Change {
        together(self.changes.iter().copied())
    }

    fn heal(mut self: Box<Self>) -> Result<Healing, LabError> {
        Ok(Healing::Done(self.resume()?))
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        // Who asks for the outcome heals; here there is nobody to be told.
        let _ = self.resume();
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
            let subject = Subject::host(host.name.clone());
            all.push(Expectation { subject, quantity, hit, asked, tolerance, burst: None });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_died_meanwhile_is_healed_and_hides_no_other_error() {
        let change = |at| Ok(Change::between(at, at + 2));
        let down = || {
            let (node, state, remedy) = ("n1".to_owned(), "is down".to_owned(), "start it".to_owned());
            Err(ClusterError::NotNow { node, doing: "unpause", state, remedy })
        };
        let ended = || Err(ClusterError::Ended { node: "n2".to_owned() });
        assert_eq!(all_resumed(vec![down(), change(10), change(20)]).unwrap(), Change::between(10, 22));
        assert!(all_resumed(vec![down()]).is_ok());
        let error = all_resumed(vec![change(1), ended(), down(), change(5)]).unwrap_err();
        assert!(matches!(error, ClusterError::Ended { node } if node == "n2"));
    }
}
