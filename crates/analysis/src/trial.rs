//! The findings of one trial.

use brownout_record::Arm;
use serde::Serialize;

use crate::{
    Balance, ClockMatrix, ClosedLoop, DatabaseFindings, DetectorFindings, Effect, EncryptionFindings, Explained,
    FaultFindings, HarmFindings, Instrument, MachineFindings, PhaseFindings, Standstill, WatchLag,
};

/// Whether the evidence can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// Every trial ran, every fault is proven, the balance sheet balances, the instrument was punctual.
    Valid,
    /// Programs outside of the lab, or the hypervisor, took processors that the nodes or the instrument waited for: the
    /// trial shows the machine, and is to be repeated.
    Disturbed,
    /// Something else of that is not so.
    Invalid,
    /// The run was ended by its user or killed (or is still running).
    Interrupted,
}

impl Validity {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Validity::Valid => "valid",
            Validity::Disturbed => "disturbed",
            Validity::Invalid => "invalid",
            Validity::Interrupted => "interrupted",
        }
    }
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialFindings {
    /// From 1, in the order in which they were run.
    pub trial: u32,
    /// Its number in the design, from 1: attempts share it.
    pub planned: u32,
    /// Its cell, from 1.
    pub cell: u32,
    /// Its block, from 1.
    pub block: u32,
    /// `fault`, or `none`: the faults of its cell were not injected.
    pub arm: Arm,
    /// From 1.
    pub attempt: u32,
    /// The network and cluster that served it, from 1.
    pub stand: u32,
    /// The lab that it ran in, of those that worked at once, from 1.
    pub lab: u32,
    /// The processors that this lab had, `0-3,8`; none where the record does not tell.
    pub processors: Option<String>,
    /// Its seed.
    pub seed: u64,
    /// `running` (in a file nobody writes any more: killed), `done`, `interrupted`, `failed`.
    pub state: String,
    /// Whether it did not come to its end.
    pub cut: bool,
    /// Its start, ns since the run's zero.
    pub starts_ns: u64,
    /// Its end; of a cut one the last thing seen.
    pub ends_ns: u64,
    /// Whether its evidence can be used.
    pub validity: Validity,
    /// Why not: why it is invalid or disturbed; empty if it is neither.
    pub invalid: Vec<String>,
    /// Its phases, in order.
    pub phases: Vec<PhaseFindings>,
    /// How much ln p50 changes over its baseline, by least squares over the intervals; none of fewer than five.
    pub baseline_change: Option<f64>,
    /// What the faults did to goodput.
    pub effect: Effect,
    /// Of a closed loop: what arithmetic alone explains. None for an open loop, where it does not apply.
    pub closed_loop: Option<ClosedLoop>,
    /// Of an open loop while nodes stood still: what arithmetic alone explains. None where something else was in force, too.
    pub standstill: Option<Standstill>,
    /// What the plan says of it, beside what was measured. None where the record does not tell where rows lie.
    pub explained: Option<Explained>,
    /// The proof of each fault.
    pub faults: Vec<FaultFindings>,
    /// What subjects showed that no fault asked of them; the trial is invalid.
    pub harm: Vec<HarmFindings>,
    /// Ordered pairs of hosts on which harm was not looked for, because too few of their probes were sent in the baseline.
    pub harm_not_judged: u64,
    /// The instrument's own errors.
    pub instrument: Instrument,
    /// The balance sheet.
    pub balance: Balance,
    /// What detectors would have made of it; empty where there was too little time without a fault to learn from.
    pub detectors: Vec<DetectorFindings>,
    /// Round trips and clock offsets between all hosts, phase by phase; empty where the plan does not ask for them.
    pub clocks: Vec<ClockMatrix>,
    /// The machines that made it together; empty where one made all.
    pub machines: Vec<MachineFindings>,
    /// How far watches lagged behind the puts that they tell of; empty where nothing was watched.
    pub watches: Vec<WatchLag>,
    /// What the database says that it did; none in a run whose record has nothing of it.
    pub database: Option<DatabaseFindings>,
    /// Whether the database encrypted what it was to; none where nothing was to be, and nobody looked.
    pub encryption: Option<EncryptionFindings>,
    /// Nodes that ended by themselves.
    pub deaths: Vec<NodeDeath>,
    /// What whoever runs the nodes did to them meanwhile, in order of time: a Kubernetes. Empty where nobody tells.
    pub meanwhile: Vec<Meanwhile>,
}

impl TrialFindings {
    /// What it is called: by its number in the design, and as which attempt.
    pub fn label(&self) -> String {
        if self.attempt > 1 { format!("{}, attempt {}", self.planned, self.attempt) } else { self.planned.to_string() }
    }
}

/// Something that whoever runs the nodes did to one by itself, as it tells that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Meanwhile {
    /// The node.
    pub node: String,
    /// When, ns since the run's zero.
    pub at_ns: u64,
    /// The true time is within `at_ns` ± this.
    pub error_ns: u64,
    /// What: "Killing: Container etcd failed liveness probe, will be restarted".
    pub text: String,
}

/// A node that ended by itself, and not because a fault ended it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeDeath {
    /// The node.
    pub node: String,
    /// When, ns since the run's zero.
    pub at_ns: u64,
    /// Whether it ended itself because a fault made operations on one of its disks fail.
    pub of_its_disk: bool,
    /// How, with the last lines of its log.
    pub text: String,
}
