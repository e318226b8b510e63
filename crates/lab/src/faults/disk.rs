//! `disk`: a node's disk is slow, or fails.

use brownout_disk::{DiskErrno, DiskFault, DiskGuard, Operation};
use brownout_network::Change;
use brownout_record::{Expectation, Quantity, Subject};
use brownout_units::{Delay, Share};

use super::{Fault, Healing, InForce, Needs, Reach, among, join, known_nodes, reach::together};
use crate::{
    LabError,
    experiment::{Complaint, DiskErrorChoice, DiskFaultEntry, Names},
    hosts::Hosts,
};

/// The folders of a node that can lie on a slow disk.
pub const FOLDERS: [&str; 3] = ["data", "commitlog", "hints"];
const OPERATIONS: [&str; 4] = ["read", "write", "sync", "metadata"];
/// Half of the least tolerance: what a real disk and a busy machine add to a median.
const NOISE: Delay = Delay::from_ms(2);
/// Less is not told from what disks do by themselves.
const LEAST_DELAY: Delay = Delay::from_ms(2);

/// Operations in some folders of some nodes take longer, or fail.
#[derive(Debug, Clone)]
pub struct Disk {
    nodes: Vec<String>,
    folders: Vec<String>,
    operations: Vec<String>,
    fault: DiskFault,
}

impl Disk {
    pub(super) fn new(entry: &DiskFaultEntry, hosts: &Hosts) -> Result<Disk, Complaint> {
        let nodes = known_nodes(&entry.host, hosts)?;
        let all = |words: &[&str]| Names(words.iter().map(|word| (*word).to_owned()).collect());
        let folders = entry.folders.clone().unwrap_or_else(|| all(&FOLDERS));
        let folders = among(&folders, "folders", "the folders are", FOLDERS.into_iter())?;
        let operations = entry.operations.clone().unwrap_or_else(|| all(&["sync"]));
        let operations = among(&operations, "operations", "the operations are", OPERATIONS.into_iter())?;
        if entry.delay == Delay::ZERO && entry.error.is_none() {
            let message = "neither a delay nor an error: this does nothing; write delay: 20ms or error: io";
            return Err(Complaint::at("", message));
        }
        if entry.delay != Delay::ZERO && !(LEAST_DELAY..=Delay::from_secs(60)).contains(&entry.delay) {
            let message = format!("{} cannot be put in force and proven; write {LEAST_DELAY} to 60s", entry.delay);
            return Err(Complaint::at("delay", message));
        }
        if entry.jitter > entry.delay {
            let message = format!(
                "{} exceeds the delay of {}: some operations would have to end early",
                entry.jitter, entry.delay
            );
            return Err(Complaint::at("jitter", message));
        }
        if entry.share.fraction() < 0.01 {
            return Err(Complaint::at(
                "share",
                format!("{} of the operations is too little to be proven; write at least 1%", entry.share),
            ));
        }
        let fault = DiskFault {
            operations: operations.iter().filter_map(|word| word.parse::<Operation>().ok()).collect(),
            delay: entry.delay,
            jitter: entry.jitter,
            share: entry.share,
            error: entry.error.map(|error| match error {
                DiskErrorChoice::Io => DiskErrno::Io,
                DiskErrorChoice::NoSpace => DiskErrno::NoSpace,
                DiskErrorChoice::ReadOnly => DiskErrno::ReadOnly,
            }),
        };
        Ok(Disk { nodes, folders, operations, fault })
    }
}

impl Fault for Disk {
    fn kind(&self) -> &'static str {
        "disk"
    }

    fn subject(&self) -> String {
        join(&self.nodes)
    }

    fn text(&self) -> String {
        let DiskFault { delay, jitter, share, error, .. } = self.fault;
        let mut parts = Vec::new();
        if delay != Delay::ZERO {
            let jitter = if jitter == Delay::ZERO { String::new() } else { format!(" ± {jitter}") };
            parts.push(format!("take {delay}{jitter} longer"));
        }
        parts.extend(error.map(|error| format!("fail with {error}")));
        let share = if share == Share::ALL { String::new() } else { format!("{share} of the ") };
        let (operations, folders) = (join(&self.operations), join(&self.folders));
        format!("{share}{operations} operations in {folders} of {} {}", join(&self.nodes), parts.join(" and "))
    }

    fn effect(&self) -> String {
        format!("the disk of {} alone; RTTs of the network stay", join(&self.nodes))
    }

    fn expectations(&self, hosts: &Hosts) -> Vec<Expectation> {
        let mut all = Vec::new();
        let watched = self.operations.iter().filter_map(|operation| {
            Some(match operation.as_str() {
                "read" => (Quantity::ReadTime, Quantity::ReadErrors),
                "write" => (Quantity::WriteTime, Quantity::WriteErrors),
                "sync" => (Quantity::SyncTime, Quantity::SyncErrors),
                _ => return None,
            })
        });
        for (time, errors) in watched {
            for node in hosts.nodes().filter(|node| self.nodes.contains(&node.name)) {
                for folder in FOLDERS {
                    let hit = self.folders.iter().any(|hit| hit == folder);
                    let mut expect = |quantity, asked: f64, tolerance| {
                        let subject = Subject::folder(node.name.clone(), folder);
                        let asked = if hit { asked } else { 0.0 };
                        all.push(Expectation { subject, quantity, hit, asked, tolerance });
                    };
                    let DiskFault { delay, jitter, share, error, .. } = self.fault;
                    let delay_ns = delay.ns() as f64;
                    // A median shows what most operations meet; of fewer, only the filesystem's own count tells.
                    if delay != Delay::ZERO && share.fraction() > 0.6 {
                        let tolerance =
                            (delay_ns * 0.05 + jitter.ns() as f64 * 0.3).max(NOISE.ns() as f64).min(delay_ns / 2.0);
                        expect(time, delay_ns, tolerance);
                    }
                    if error.is_some() {
                        expect(errors, share.fraction(), (share.fraction() * 0.2).max(0.01));
                    }
                }
            }
        }
        all
    }

    fn unsettled(&self) -> Delay {
        Delay::from_ns(self.fault.delay.ns() + self.fault.jitter.ns() + brownout_analysis::SETTLE_NS)
    }

    fn needs(&self) -> Needs {
        Needs { disks: self.nodes.clone(), ..Needs::default() }
    }

    fn inject(&self, reach: &Reach) -> Result<Box<dyn InForce>, LabError> {
        let mut guards = Vec::new();
        for node in &self.nodes {
            for folder in &self.folders {
                guards.push(reach.disk(node, folder)?.control.impair(&self.fault)?);
            }
        }
        Ok(Box::new(Impaired(guards)))
    }

    fn scaled(&self, share: f64) -> Option<Box<dyn Fault>> {
        // Whether an operation fails cannot be more or less; how long it takes can.
        let delay = Delay::from_ns((self.fault.delay.ns() as f64 * share).round() as u64);
        let fault = DiskFault { delay, ..self.fault };
        (delay >= LEAST_DELAY && self.fault.error.is_none())
            .then(|| Box::new(Disk { fault, ..self.clone() }) as Box<dyn Fault>)
    }
}

struct Impaired(Vec<DiskGuard>);

fn change((asked_ns, done_ns): (u64, u64)) -> Change {
    Change::between(asked_ns, done_ns)
}

impl InForce for Impaired {
    fn change(&self) -> Change {
        together(self.0.iter().map(|guard| change(guard.since())))
    }

    fn heal(self: Box<Self>) -> Result<Healing, LabError> {
        let changes = self.0.into_iter().map(|guard| guard.heal().map(change)).collect::<Result<Vec<_>, _>>()?;
        Ok(Healing::Done(together(changes)))
    }
}
