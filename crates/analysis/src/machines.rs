//! The machines that made a trial together, and how exactly their clocks were known.

use brownout_record::{MachineClockRow, MachineRole};
use serde::Serialize;

use crate::{Meanwhile, TrialEvidence, stats};

/// One machine of a trial that several made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineFindings {
    /// Its name.
    pub machine: String,
    /// Whether operations are sent from there; else hosts run there.
    pub sends: bool,
    /// The hosts that run there.
    pub hosts: Vec<String>,
    /// What it knew of the clocks of others, of each one that it asked.
    pub clocks: Vec<MachineClock>,
}

/// What a machine knew of the monotonic clock of another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineClock {
    /// The other.
    pub other: String,
    /// By how much its clock was ahead, median, ns.
    pub ahead_ns: f64,
    /// The truth was within ± this: in the median, ns.
    pub error_ns: f64,
    /// At the worst, ns.
    pub worst_ns: u64,
}

/// What events of whoever runs the nodes are called.
const GROUND: &str = "kubernetes";

/// What whoever runs the nodes did to them, in order of time.
pub(crate) fn meanwhile(evidence: &TrialEvidence) -> Vec<Meanwhile> {
    let own = evidence.events.iter().filter(|event| event.kind == GROUND);
    let mut all: Vec<Meanwhile> = own
        .map(|event| Meanwhile {
            node: event.subject.clone(),
            at_ns: event.at_ns,
            error_ns: event.error_ns,
            text: event.text.clone(),
        })
        .collect();
    all.sort_by_key(|one| one.at_ns);
    all
}

/// All of them; empty where one machine made all.
pub(crate) fn machines(evidence: &TrialEvidence) -> Vec<MachineFindings> {
    let clock = |machine: &str, other: &str| {
        let rows = || evidence.machine_clocks.iter().filter(|row| row.machine == machine && row.other == other);
        let median = |of: fn(&MachineClockRow) -> f64| {
            stats::quantile(&mut rows().map(of).collect::<Vec<_>>(), 0.5).unwrap_or_default()
        };
        MachineClock {
            other: other.to_owned(),
            ahead_ns: median(|row| row.ahead_ns as f64),
            error_ns: median(|row| row.error_ns as f64),
            worst_ns: rows().map(|row| row.error_ns).max().unwrap_or_default(),
        }
    };
    let findings = evidence.machines.iter().map(|row| {
        let rows = evidence.machine_clocks.iter().filter(|one| one.machine == row.machine);
        let mut others: Vec<&str> = rows.map(|one| one.other.as_str()).collect();
        others.sort_unstable();
        others.dedup();
        MachineFindings {
            machine: row.machine.clone(),
            sends: row.role == MachineRole::Load,
            hosts: row.hosts.clone(),
            clocks: others.into_iter().map(|other| clock(&row.machine, other)).collect(),
        }
    });
    findings.collect()
}
