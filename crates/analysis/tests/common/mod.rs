//! Made-up runs of which the truth is known: three nodes and a load, one of the nodes slow for a while.
//!
//! Everything is a function of the fields of [`Synthetic`]; no test changes rows afterwards.

#![allow(dead_code)] // Each test binary uses its part.
#![allow(clippy::unwrap_used)] // What supports tests may unwrap, too.

mod write;

use std::path::Path;

use brownout_analysis::Routes;
use brownout_record::{
    Arm, CellRow, ClockRow, CpuRow, Description, DesignDescription, EncodedTimes, Environment, Event, EvidenceRow,
    Expectation, FactorDescription, FaultRecord, Histogram, HostCounterRow, HostDescription, LatencyRow, LinkRow,
    LoadDescription, LoadPart, LoadRow, NodePlacement, Objective, OperationPlacement, PairDistance, Period,
    PhaseDescription, PhaseRow, Placement, ProbeRow, ProbeSample, Quantity, Recorder, Run, SearchDescription, Severity,
    Stamp, Subject, TrialRow, TrialState,
};

pub const SECOND: u64 = 1_000_000_000;
pub const MS: u64 = 1_000_000;
pub const HOSTS: [&str; 4] = ["n1", "n2", "n3", "load"];
pub const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// A run to be made up.
#[derive(Clone)]
pub struct Synthetic {
    /// Blocks that were run …
    pub trials: u32,
    /// … of so many that were planned.
    pub planned_trials: u32,
    /// Trials without a fault in each block.
    pub without: u32,
    /// What is asked, shown, counted and felt in each cell, ms; none: there is one cell, and nothing varies.
    pub levels: &'static [u64],
    /// Cells differ in more than their faults: none is compared with the trials of another one.
    pub apart: bool,
    /// What is searched among the levels, one after the other.
    pub search: Option<SearchDescription>,
    /// Numbers in the design whose first attempts do not balance.
    pub spoilt: &'static [u32],
    /// Operations per second.
    pub rate: u64,
    pub threads: Option<u32>,
    /// Operations that are loads of their own, as the plan says.
    pub parts: Vec<LoadPart>,
    /// Seconds of set-up, warm-up, baseline, fault, recovery.
    pub seconds: [u64; 5],
    /// What is asked of everything that n2 sends, ns.
    pub asked: u64,
    /// What the network really does to it while the fault is in force, ns.
    pub shown: u64,
    /// What the emulator's counters say of it, ns.
    pub counted: u64,
    /// A spared pair that is slow too.
    pub also_slow: Option<(&'static str, &'static str)>,
    /// The network stays slow after healing.
    pub stays_slow: bool,
    /// Probes per second and pair.
    pub probes: u64,
    /// Operations through n2 take longer by this while the fault is in force, ns.
    pub slower: u64,
    /// Seconds after healing in which they still do.
    pub lag: u64,
    /// The fault is healed this many seconds after its phase began; none: when the phase ends.
    pub length: Option<u64>,
    /// Seconds after the beginning of the recovery phase of which there is no row of the load.
    pub silent: u64,
    /// Operations per second in the warm-up, if not those of the other phases.
    pub flood: Option<u64>,
    /// The load says of every operation of this phase that it took 2 ns.
    pub broken_in: Option<&'static str>,
    /// The record ends here, ns after the trial's start, in the last trial.
    pub cut_at: Option<u64>,
    pub cut_state: TrialState,
    /// Share of operations that time out in the fault phase, through n2.
    pub time_outs: u64,
    /// Extra operations claimed as sent in one interval, to unbalance the sheet.
    pub invented: u64,
    /// By how much operations of all phases of a trial (from 1) take longer than usual, a share.
    pub drift: fn(u32) -> f64,
    /// By how much operations take longer than usual at the beginning of a baseline, a share that falls to nothing by its end.
    pub unsettled: f64,
    /// Operations that are due in each second of the baseline and find no user.
    pub withheld: u64,
    /// Generator lateness, ns, in the fault phase …
    pub lateness: u64,
    /// … and how long the generator stands still in each interval of it, ns …
    pub stood_still: u64,
    /// … in its first seconds.
    pub late_for: u64,
    /// In the fault phase, this much is added to one in twenty packets of all pairs before the emulator sees them, ns.
    pub stall: u64,
    /// In the fault phase, the load's threads wait this long in each second, ns.
    pub waited: u64,
    /// The same of an overlay's thread.
    pub overlay_waited: u64,
    /// Packets that the emulator drops on each pair in each second of the fault phase because it ran out itself.
    pub overrun: u64,
    /// Packets that n1's interface drops in each second of the fault phase, because the emulator did not read them in time.
    pub unread_packets: u64,
    /// Nobody knows how long the nodes waited for a processor.
    pub unknown_waits: bool,
    /// Share of the machine that is busy with the lab.
    pub busy: f64,
    /// By how much more CPU time the nodes, and Brownout itself, take in a trial (from 1), shares.
    pub dearer: fn(u32) -> (f64, f64),
    /// Share of the machine that the threads and processes of an overlay take besides.
    pub carrying: f64,
    /// Share of the machine that another program, `spin`, takes …
    pub foreign: f64,
    /// … and that the hypervisor takes …
    pub stolen: f64,
    /// … in these phases …
    pub crowded: &'static [&'static str],
    /// … in the first seconds of each.
    pub crowded_for: u64,
    /// The other program cannot be seen from where the lab was started.
    pub hidden: bool,
    /// Seconds after the beginning of the fault phase of which there is no row of the processors.
    pub unread: u64,
    /// How long the nodes' threads wait for a processor, as a share of the CPU time that they use.
    pub queued: f64,
    /// Events besides: trial, kind, text.
    pub events: &'static [(Option<u32>, &'static str, &'static str)],
    /// What the database tells in each trial, at times since its beginning.
    pub database: fn() -> Vec<EvidenceRow>,
    /// Hosts ask each other what time it is: in the fault phase n2's clock is ahead by this, ns; none: they do not ask.
    pub clocks: Option<i64>,
    /// A node dies in the fault phase.
    pub death: bool,
    /// Share of the operations of the trial of block t (from 1), second s of a phase, that fail; by phase name.
    pub failing: fn(u32, &str, u64) -> f64,
    /// The same of trials without a fault, by their number among all of these.
    pub failing_without: fn(u32, &str, u64) -> f64,
    /// What `failing` is asked with: of the trial that is written.
    pub number: u32,
    pub objective_ns: u64,
    pub objective_share: f64,
    pub objective_phases: &'static [&'static str],
    /// Phases begin this long after the interval does, ns.
    pub offset: u64,
    /// One more fault, in force with the other: everything n3 sends is late by this.
    pub second_fault: Option<u64>,
    pub no_fault: bool,
    /// The plan has a fault, the record has none.
    pub unrecorded: bool,
    /// Where rows lie and who is asked, if the record tells.
    pub placement: Option<Placement>,
    /// Labs that work at once, and take trials in turn.
    pub labs: u32,
    /// What the file says is no change.
    pub margin: Option<f64>,
    /// Instead of a delay: everything n2 sends is lost with this probability …
    pub loss: Option<f64>,
    /// … and really with this one.
    pub lost: f64,
    /// What carries the hosts' packets; empty: nothing.
    pub overlay: &'static str,
    /// Through the overlay nothing is late, whatever happens below.
    pub only_below: bool,
    /// Through it what was late stays late, though it is healed below.
    pub stays_above: bool,
    /// Share of what is sent through it that it loses in the fault phase, of itself.
    pub lost_above: f64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Synthetic {
            trials: 2,
            planned_trials: 2,
            without: 0,
            levels: &[],
            apart: false,
            search: None,
            spoilt: &[],
            rate: 300,
            threads: None,
            parts: Vec::new(),
            seconds: [2, 4, 10, 10, 10],
            asked: 100 * MS,
            shown: 100 * MS,
            counted: 100 * MS,
            also_slow: None,
            stays_slow: false,
            probes: 20,
            slower: 100 * MS,
            lag: 0,
            length: None,
            silent: 0,
            flood: None,
            broken_in: None,
            cut_at: None,
            cut_state: TrialState::Running,
            time_outs: 0,
            invented: 0,
            drift: |_| 0.0,
            unsettled: 0.0,
            withheld: 0,
            lateness: 50_000,
            stood_still: 0,
            overrun: 0,
            unread_packets: 0,
            unknown_waits: false,
            late_for: u64::MAX,
            stall: 0,
            waited: 0,
            overlay_waited: 0,
            busy: 0.4,
            dearer: |_| (0.0, 0.0),
            carrying: 0.0,
            foreign: 0.0,
            stolen: 0.01,
            crowded: &["fault"],
            crowded_for: u64::MAX,
            hidden: false,
            unread: 0,
            queued: 0.1,
            events: &[],
            database: Vec::new,
            clocks: None,
            death: false,
            failing: |_, _, _| 0.0,
            failing_without: |_, _, _| 0.0,
            number: 0,
            objective_ns: 50 * MS,
            objective_share: 0.99,
            objective_phases: &["baseline"],
            offset: 0,
            second_fault: None,
            no_fault: false,
            unrecorded: false,
            placement: None,
            labs: 1,
            margin: None,
            loss: None,
            lost: 0.0,
            overlay: "",
            only_below: false,
            stays_above: false,
            lost_above: 0.0,
        }
    }
}

/// A small repeatable stream of numbers.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    /// A latency around `typical` with a tail up to ten times of it.
    fn latency(&mut self, typical: u64) -> u64 {
        let spread = typical / 2 + self.below(typical);
        match self.below(1000) {
            0..=9 => spread * (3 + self.below(8)),
            _ => spread,
        }
    }
}

pub fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new(3).unwrap();
    for value in values {
        histogram.record(value).unwrap();
    }
    histogram
}

pub fn times(values: impl IntoIterator<Item = u64>) -> EncodedTimes {
    (&histogram(values)).into()
}

/// Where the rows of these nodes lie: three copies, asked by token at QUORUM.
pub fn three_copies() -> Placement {
    let node = |(at, name): (usize, &&str)| NodePlacement {
        node: (*name).to_owned(),
        token: i64::MIN.wrapping_add((at as i64).wrapping_mul(6_148_914_691_236_517_205)),
        site: "datacenter1".to_owned(),
        rack: "rack1".to_owned(),
    };
    let operation = |name: &str| OperationPlacement {
        operation: name.to_owned(),
        reads: name == "read",
        share: Some(0.5),
        consistency: "quorum".to_owned(),
        copies: [("datacenter1".to_owned(), 3)].into(),
        rows: 100_000,
    };
    Placement {
        ring: NODES.iter().enumerate().map(node).collect(),
        coordinators: "token-aware".to_owned(),
        asked: NODES.map(str::to_owned).to_vec(),
        operations: ["read", "write"].map(operation).to_vec(),
        distances: vec![PairDistance { from: "load".into(), to: "n1".into(), delay_ns: 20_000, least_ns: 15_000 }],
    }
}

const PHASES: [&str; 5] = ["set-up", "warm-up", "baseline", "fault", "recovery"];
const BASE_DELAY: u64 = 60_000;

pub fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    HOSTS.into_iter().flat_map(|from| HOSTS.into_iter().filter(move |to| *to != from).map(move |to| (from, to)))
}

fn event(trial: u32, at_ns: u64, kind: &str, subject: &str, text: &str) -> Event {
    Event {
        trial: Some(trial),
        at_ns,
        error_ns: 40_000,
        kind: kind.to_owned(),
        subject: subject.to_owned(),
        text: text.to_owned(),
    }
}

fn environment() -> Environment {
    Environment {
        version: "0.1.0".to_owned(),
        kernel: "6.1.0".to_owned(),
        cpu: "Example CPU <with> & \"signs\"".to_owned(),
        cores: 2,
        memory: 8 << 30,
        clock_source: "tsc".to_owned(),
        privilege: "root".to_owned(),
        emulator_scheduling: "SCHED_FIFO 50".to_owned(),
        idle: "awake (haltpoll)".to_owned(),
        congestion_control: "cubic".to_owned(),
        java: "17.0.15".to_owned(),
        system_settings: "heap 256M\nsynchronous commit log".to_owned(),
        seed: 42,
    }
}
