//! The machines that made a trial together, and how exactly their clocks were known.

use std::collections::BTreeMap;

use brownout_record::{MachineClockRow, MachineRole};
use serde::Serialize;

use crate::{
    Meanwhile, TrialEvidence,
    evidence::{PhaseWindow, phase},
    stats,
};

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
    /// That it was lost in the middle of the trial, which went on; none: it was not.
    pub lost: Option<MachineLost>,
}

/// A machine that sent operations was lost in the middle of a trial. What was still to come from there was never sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineLost {
    /// When, ns since the run's zero.
    pub at_ns: u64,
    /// The true time is within `at_ns` ± this.
    pub error_ns: u64,
    /// Why, in words.
    pub why: String,
    /// Of each measured phase: how large a share of its load was never sent for that, 0 to 1.
    pub shares: BTreeMap<String, f64>,
}

/// A trial is invalid in which a larger share of the load of one phase was never sent because a machine was lost: what is missing is
/// no doing of the database, but counts like it. 1 %, since effects that are looked for are larger.
pub const LOST_SHARE: f64 = 0.01;

impl MachineLost {
    /// Whether so much is missing that the trial says nothing.
    pub fn too_much(&self) -> bool {
        self.shares.values().any(|share| *share > LOST_SHARE)
    }

    /// What became of the load of a machine, in words.
    pub(crate) fn words(&self, machine: &str) -> String {
        let of = |(phase, share): (&String, &f64)| format!("{:.1}% of that of the {phase}", share * 100.0);
        let missing = self.shares.iter().filter(|(_, share)| **share > 0.0).map(of).collect::<Vec<_>>();
        let what = match &missing[..] {
            [] => "all of its measured load was sent before".to_owned(),
            some => format!("with it its share of the load, {}, was never sent", some.join(", ")),
        };
        format!("{machine} was lost at {:.1} s ({}): {what}", self.at_ns as f64 / 1e9, self.why)
    }
}

/// What the event is called that a machine that sends was lost.
const LOST: &str = "load-lost";

/// When and why a machine was lost, of so many that send.
fn lost(evidence: &TrialEvidence, machine: &str, of: usize) -> Option<MachineLost> {
    let event = evidence.events.iter().find(|event| event.kind == LOST && event.subject == machine)?;
    let measured = evidence.phases.iter().filter(|window| phase::MEASURED.contains(&window.name.as_str()));
    let share = |window: &PhaseWindow| {
        let (from_ns, to_ns) = (window.measured_from_ns, window.measured_to_ns);
        let length_ns = to_ns.saturating_sub(from_ns).max(1);
        let without_ns = to_ns.saturating_sub(event.at_ns.max(from_ns));
        without_ns as f64 / length_ns as f64 / of.max(1) as f64
    };
    Some(MachineLost {
        at_ns: event.at_ns,
        error_ns: event.error_ns,
        why: event.text.clone(),
        shares: measured.map(|window| (window.name.clone(), share(window))).collect(),
    })
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
    let clock = |(other, rows): (&String, &Vec<MachineClockRow>)| {
        let median = |of: fn(&MachineClockRow) -> f64| {
            stats::quantile(&mut rows.iter().map(of).collect::<Vec<_>>(), 0.5).unwrap_or_default()
        };
        MachineClock {
            other: other.clone(),
            ahead_ns: median(|row| row.ahead_ns as f64),
            error_ns: median(|row| row.error_ns as f64),
            worst_ns: rows.iter().map(|row| row.error_ns).max().unwrap_or_default(),
        }
    };
    let senders = evidence.machines.iter().filter(|row| row.role == MachineRole::Load).count();
    let findings = evidence.machines.iter().map(|row| MachineFindings {
        machine: row.machine.clone(),
        sends: row.role == MachineRole::Load,
        hosts: row.hosts.clone(),
        clocks: evidence.machine_clocks.get(&row.machine).into_iter().flatten().map(clock).collect(),
        lost: lost(evidence, &row.machine, senders),
    });
    findings.collect()
}
