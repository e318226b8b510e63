//! The rows of the run's tables. EncodedTimes are ns since the run's zero.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{EncodedTimes, Histogram, Quantity, Subject, times};

/// How a trial stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialState {
    /// Being run; in a file nobody writes any more: killed.
    Running,
    /// Ran to its end.
    Done,
    /// Ended by the user.
    Interrupted,
    /// Could not go on; an event says why.
    Failed,
}

impl TrialState {
    pub(crate) const ALL: [TrialState; 4] =
        [TrialState::Running, TrialState::Done, TrialState::Interrupted, TrialState::Failed];
}

impl fmt::Display for TrialState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TrialState::Running => "running",
            TrialState::Done => "done",
            TrialState::Interrupted => "interrupted",
            TrialState::Failed => "failed",
        })
    }
}

/// Whether the faults of its cell are injected in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// They are.
    Fault,
    /// They are not: the same phases pass without.
    None,
}

impl Arm {
    pub(crate) const ALL: [Arm; 2] = [Arm::Fault, Arm::None];
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Arm::Fault => "fault",
            Arm::None => "none",
        })
    }
}

/// One trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRow {
    /// From 1, in the order in which they were run.
    pub trial: u32,
    /// Its number in the design, from 1; all attempts at it share it.
    pub planned: u32,
    /// Its cell, from 1.
    pub cell: u32,
    /// Its block, from 1.
    pub block: u32,
    /// With the cell's faults, or without.
    pub arm: Arm,
    /// From 1.
    pub attempt: u32,
    /// The network and cluster that served it, from 1.
    pub stand: u32,
    /// The lab that it ran in, of those that worked at once, from 1.
    pub lab: u32,
    /// The processors that this lab had, as the kernel lists them: `0-3,8`. Empty in a run of format 6 and before.
    pub processors: String,
    /// The session in which it was run, from 1.
    pub session: u32,
    /// Its own seed.
    pub seed: u64,
    /// Its start.
    pub starts_ns: u64,
    /// Its end; none if it has not ended.
    pub ends_ns: Option<u64>,
    /// How it stands.
    pub state: TrialState,
}

impl TrialRow {
    /// The only trial of a run without a design, before it has ended.
    pub fn single(seed: u64, starts_ns: u64, arm: Arm) -> TrialRow {
        TrialRow {
            trial: 1,
            planned: 1,
            cell: 1,
            block: 1,
            arm,
            attempt: 1,
            stand: 1,
            lab: 1,
            processors: String::new(),
            session: 1,
            seed,
            starts_ns,
            ends_ns: None,
            state: TrialState::Running,
        }
    }
}

/// One phase of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseRow {
    /// The trial.
    pub trial: u32,
    /// `set-up`, `warm-up`, `baseline`, `fault`, `recovery`.
    pub name: String,
    /// Its start.
    pub starts_ns: u64,
    /// Its end; none if it has not ended.
    pub ends_ns: Option<u64>,
    /// What ended it: `time`, `stationary`, `limit`, `interrupt`.
    pub ended_by: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The trial it belongs to, if any.
    pub trial: Option<u32>,
    /// When.
    pub at_ns: u64,
    /// Known to within this.
    pub error_ns: u64,
    /// `phase`, `inject`, `heal`, `ready`, `warning`, …; `node-died`: nobody asked for it, and the trial is invalid;
    /// `node-ended`: a fault asked for it.
    pub kind: String,
    /// The host, fault or phase.
    pub subject: String,
    /// In words.
    pub text: String,
}

/// What became of the operations of one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationRows {
    /// The operations themselves.
    pub load: LoadRow,
    /// Their latencies.
    pub latencies: Vec<LatencyRow>,
    /// What watches saw of them.
    pub watches: Vec<LatencyRow>,
}

/// The load of one interval, by intended start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Start of the interval.
    pub starts_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Whether every operation of it has ended.
    pub settled: bool,
    /// Operations intended to start in it.
    pub scheduled: u64,
    /// Those sent.
    pub sent: u64,
    /// Those given up before they could be sent.
    pub never_sent: u64,
    /// The same by operation, for those of which there is any. Runs of format 3 and before have only the sum.
    pub never_sent_by_operation: BTreeMap<String, u64>,
    /// Reads that returned an older version than one acknowledged before they were sent.
    pub stale: u64,
    /// The generator's own lateness, ns.
    pub lateness: EncodedTimes,
    /// How much of the length the generator stood still in, ns: it owed an operation that could have been sent, and did not
    /// send it. 0 in runs of format 4 and before, which do not tell.
    pub stood_still_ns: u64,
    /// What the schedule of users called for in it while none of them was free, until the pace ended: no part of `scheduled`.
    /// 0 in runs of format 4 and before, which do not tell.
    pub withheld: u64,
    /// Acknowledged writes that a read of the interval was the first to look for. 0 in runs of format 7 and before, which do
    /// not tell.
    pub looked_for: u64,
    /// Those of `looked_for` that it did not find. 0 in runs of format 7 and before.
    pub lost: u64,
}

impl LoadRow {
    /// An interval in which nothing was to start, and which is settled by that.
    pub fn empty(starts_ns: u64, length_ns: u64) -> LoadRow {
        LoadRow {
            starts_ns,
            length_ns,
            settled: true,
            scheduled: 0,
            sent: 0,
            never_sent: 0,
            never_sent_by_operation: BTreeMap::new(),
            stale: 0,
            lateness: (&times::empty()).into(),
            stood_still_ns: 0,
            withheld: 0,
            looked_for: 0,
            lost: 0,
        }
    }
}

/// Latencies of one kind of operation in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyRow {
    /// Start of the interval.
    pub starts_ns: u64,
    /// `read`, `write`.
    pub statement: String,
    /// The node that was asked.
    pub coordinator: String,
    /// `ok`, `failed:CLASS`, `timed-out`, `late` (answered after the time-out: also counted in `timed-out`).
    pub outcome: String,
    /// Operations.
    pub count: u64,
    /// Sent − intended, ns.
    pub wait: EncodedTimes,
    /// Ended − sent, ns.
    pub service: EncodedTimes,
    /// Ended − intended, ns.
    pub response: EncodedTimes,
}

/// What the emulator counted on one ordered pair in one interval; wire packets and bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkRow {
    /// Start of the interval.
    pub starts_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Packets that came in.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets handed on; a duplicated one counts twice, a corrupted one too.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets dropped by the loss asked for.
    pub lost: u64,
    /// Packets dropped because the queue of the link's rate was full.
    pub dropped_queue: u64,
    /// Packets dropped because the emulator itself ran out: of memory, or the receiving interface refused them. No fault
    /// asks for these.
    pub dropped_emulator: u64,
    /// Packets of which a second copy was sent on.
    pub duplicated: u64,
    /// Packets sent on with a bit flipped.
    pub corrupted: u64,
    /// Packets that were chosen to overtake those before them.
    pub reordered: u64,
    /// Packets dropped or rejected because the pair is cut.
    pub cut: u64,
    /// Packets refused because they are larger than the link carries.
    pub too_big: u64,
    /// Actual − intended release, ns.
    pub release_error: Histogram,
    /// Time from arrival at the emulator to release, ns.
    pub held: Histogram,
}

/// A [`LinkRow`] as it lies in the file: its histograms still encoded; see [`crate::add_encoded`].
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the fields are those of LinkRow")]
pub struct LinkReading<'a> {
    pub starts_ns: u64,
    pub length_ns: u64,
    pub from: &'a str,
    pub to: &'a str,
    pub offered: u64,
    pub offered_bytes: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    pub lost: u64,
    pub dropped_queue: u64,
    pub dropped_emulator: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    pub reordered: u64,
    pub cut: u64,
    pub too_big: u64,
    pub release_error: &'a [u8],
    pub held: &'a [u8],
}

/// One probe packet.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeSample {
    /// Sequence number on its pair.
    pub seq: u64,
    /// When it was sent, ns since the run's zero.
    pub sent_ns: u64,
    /// One-way delay, ns; none if it never arrived.
    pub delay_ns: Option<u64>,
    /// How often it arrived.
    pub copies: u8,
    /// Whether one sent later arrived earlier.
    pub reordered: bool,
}

/// The probes of one ordered pair sent in one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeRow {
    /// Start of the interval.
    pub starts_ns: u64,
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// In the order of sending.
    pub samples: Vec<ProbeSample>,
}

/// CPU time used in one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuRow {
    /// Start of the interval.
    pub starts_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// `machine`, `stolen`, `cores`, `node:NAME`, `emulator`, `load`, `instrument`, `interrupts`, `programs`,
    /// `program:PID:NAME`, `kernel`, `waited:NODE`, `emulator-waited`, `load-waited`, `overlay-waited`, `pressure`; see `schema.sql`.
    pub subject: String,
    /// CPU time, ns; for `cores` the number of cores × the length.
    pub busy_ns: u64,
}

/// One measurement by a witness of a fault: one who looks at the subject itself, beside the probes and the emulator.
#[derive(Debug, Clone, PartialEq)]
pub struct WitnessRow {
    /// When it was begun, ns since the run's zero.
    pub at_ns: u64,
    /// Where.
    pub subject: Subject,
    /// What.
    pub quantity: Quantity,
    /// By whom: `train`, `heartbeat`, `process`, `governor`, `disk-probe`, `disk`, `sntp`, `database`.
    pub source: String,
    /// The value, in the quantity's unit: not a change, and of a single measurement: 1 or 0 where the quantity is a share of many.
    pub value: f64,
    /// The true value lies within `value ± error`; 0 where it is exact.
    pub error: f64,
}

/// What the kernel of one host counted in one interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCounterRow {
    /// Start of the interval.
    pub starts_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// The host.
    pub host: String,
    /// Packets that it threw away because a checksum (of IP, TCP, UDP or ICMP) was wrong.
    pub checksum_errors: u64,
    /// Packets that its interfaces dropped because the emulator, or the thread of an overlay, did not take or give them in time.
    pub interface_dropped: u64,
}
