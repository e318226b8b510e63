//! `kill` and `stop`: a node's process ends, and is started again in the end.

use std::{
    thread::{self, JoinHandle},
    time::Duration,
};

use brownout_cluster::{ClusterControl, ClusterError};
use brownout_network::{Change, monotonic_ns};
use brownout_record::Expectation;
use brownout_units::Delay;

use super::{Fault, Healing, InForce, Needs, Reach, Untouched, join, known_nodes, pause::silent, reach::together, s};
use crate::{
    LabError,
    experiment::{Complaint, NodeFault},
    hosts::Hosts,
};

/// A node that has been asked to end is killed after this.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// A node that does not answer by then, started again, will not.
const BACK_WITHIN: Duration = Duration::from_secs(120);

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// SIGKILL: at once, as by a power cut that spares the disk.
    Kill,
    /// SIGTERM: in good order.
    Stop,
}

/// The nodes' processes end.
#[derive(Debug, Clone)]
pub struct Ends {
    nodes: Vec<String>,
    how: How,
}

impl Ends {
    pub(super) fn new(entry: &NodeFault, hosts: &Hosts, how: How) -> Result<Ends, Complaint> {
        let nodes = known_nodes(&entry.host, hosts)?;
        if nodes.len() == hosts.nodes().count() {
            return Err(Complaint::at(
                "host",
                "with every node gone there is no cluster left to look at; leave one out",
            ));
        }
        Ok(Ends { nodes, how })
    }
}

impl Fault for Ends {
    fn kind(&self) -> &'static str {
        match self.how {
            How::Kill => "kill",
            How::Stop => "stop",
        }
    }

    fn subject(&self) -> String {
        join(&self.nodes)
    }

    fn text(&self) -> String {
        let how = match self.how {
            How::Kill => format!("{} killed (SIGKILL)", if self.nodes.len() == 1 { "is" } else { "are" }),
            How::Stop => format!("end{} in good order (SIGTERM)", s(&self.nodes)),
        };
        format!("{} {how}, and started again in the end", join(&self.nodes))
    }

    fn effect(&self) -> String {
        "its connections are closed and new ones refused; RTTs of the network stay".to_owned()
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        silent(&self.nodes, hosts)
    }

    fn unsettled(&self) -> Delay {
        match self.how {
            How::Kill => Delay::from_ns(2 * brownout_analysis::SETTLE_NS),
            // What it takes a small node to end in good order.
            How::Stop => Delay::from_secs(8),
        }
    }

    fn needs(&self) -> Needs {
        Needs { process_witness: true, ..Needs::default() }
    }

    fn inject(&self, reach: &Reach) -> Result<Box<dyn InForce>, LabError> {
        if reach.sabotage {
            return Ok(Untouched::now());
        }
        let control = reach.nodes.clone();
        if self.how == How::Kill {
            let changes =
                self.nodes.iter().map(|node| control.kill(node, libc::SIGKILL)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Box::new(Ended { control, nodes: self.nodes.clone(), change: together(changes), ending: None }));
        }
        // To end in good order takes seconds; the lab has other things to do meanwhile.
        let (nodes, stopping) = (self.nodes.clone(), control.clone());
        let stop = move || nodes.iter().try_for_each(|node| stopping.stop(node, STOP_WITHIN).map(drop));
        let ending = thread::Builder::new().name("stop".to_owned()).spawn(stop).map_err(failed)?;
        Ok(Box::new(Ended { control, nodes: self.nodes.clone(), change: together([]), ending: Some(ending) }))
    }
}

fn failed(source: std::io::Error) -> LabError {
    LabError::Ground { doing: "start a thread", source }
}

struct Ended {
    control: ClusterControl,
    nodes: Vec<String>,
    change: Change,
    /// While nodes end in good order.
    ending: Option<JoinHandle<Result<(), ClusterError>>>,
}

impl InForce for Ended {
    fn change(&self) -> Change {
        self.change
    }

    fn takes_long_to_heal(&self) -> bool {
        true
    }

    fn heal(self: Box<Self>) -> Result<Healing, LabError> {
        let Ended { control, nodes, ending, .. } = *self;
        // A database takes seconds to start, too.
        let back = move || -> Result<Change, LabError> {
            if let Some(ending) = ending {
                ending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            // It is over somewhere between the first start and the last answer: until then a process runs that is no
            // use to anyone.
            let asked_ns = monotonic_ns();
            nodes.iter().try_for_each(|node| control.start(node).map(drop))?;
            nodes.iter().try_for_each(|node| control.wait_answers(node, BACK_WITHIN, &|| false).map(drop))?;
            Ok(Change::between(asked_ns, monotonic_ns()))
        };
        thread::Builder::new().name("restart".to_owned()).spawn(back).map(Healing::UnderWay).map_err(failed)
    }
}
