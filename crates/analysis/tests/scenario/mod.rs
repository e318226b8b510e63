//! Made-up trials with any number of faults of any kind, of which the truth is known.
//!
//! What is measured follows from what the faults really do ([`Made::does`]), which a test may make differ from what they say.

#![allow(dead_code)] // Each test binary uses its part.
#![allow(clippy::unwrap_used)] // What supports tests may unwrap, too.

mod truth;
mod write;

use brownout_record::{
    EvidenceRow, Expectation, FaultRecord, LatencyRow, LoadPart, Period, Placement, Quantity, Severity, Stamp, Subject,
};

pub const SECOND: u64 = 1_000_000_000;
pub const MS: u64 = 1_000_000;

/// A fault that is made up.
#[derive(Clone)]
pub struct Made {
    /// The subjects that it says it hits.
    pub hits: Vec<Subject>,
    pub quantity: Quantity,
    /// One for each severity.
    pub asked: Vec<f64>,
    pub tolerance: f64,
    /// Severity, from, to; seconds since the fault phase began.
    pub periods: Vec<(u32, f64, f64)>,
    pub does: Does,
    /// A second quantity that it asks of the same subjects: how much, and how exactly.
    pub also: Option<(Quantity, f64, f64)>,
    /// How many packets in a row it says that it hits.
    pub burst: Option<f64>,
}

/// What a fault really does.
#[derive(Clone, PartialEq)]
pub enum Does {
    /// What it says.
    AsSaid,
    /// Nothing.
    Nothing,
    /// The same on one more subject.
    Spills(Subject),
    /// It does not go when it is healed.
    Stays,
    /// It never goes from its first period to its last.
    NoPauses,
    /// It stays at its first severity.
    FirstSeverity,
    /// Of its two quantities the first alone.
    OnlyFirst,
    /// Nothing between these seconds since the fault phase began.
    Gone(Vec<(f64, f64)>),
    /// Between them this much instead of what is asked.
    Otherwise(f64, Vec<(f64, f64)>),
    /// The same on one more subject, in these of its periods, from 1.
    SpillsIn(Subject, Vec<usize>),
}

impl Made {
    pub fn new(quantity: Quantity, hits: Vec<Subject>, asked: f64, tolerance: f64) -> Self {
        Made {
            hits,
            quantity,
            asked: vec![asked],
            tolerance,
            periods: vec![(0, 0.0, 20.0)],
            does: Does::AsSaid,
            also: None,
            burst: None,
        }
    }

    pub fn during(self, periods: &[(u32, f64, f64)]) -> Self {
        Made { periods: periods.to_vec(), ..self }
    }

    pub fn does(self, does: Does) -> Self {
        Made { does, ..self }
    }
}

/// How the delays of a jitter are distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    Uniform,
    Normal,
    Pareto,
    ParetoNormal,
    /// Normal, each with this correlation to the one before.
    Correlated(f64),
}

/// A trial that is made up.
#[derive(Clone)]
pub struct Scenario {
    pub hosts: Vec<String>,
    pub faults: Vec<Made>,
    /// What happens besides, and no file asked for.
    pub outside: Vec<Made>,
    /// The emulator does not see what happens outside: a packet filter of a host, for instance.
    pub unseen: bool,
    /// Pairs before whose limit a full queue drops this share of all packets in the fault phase.
    pub queues: Vec<(Subject, f64)>,
    /// How the delays of a jitter are distributed.
    pub jitter: Jitter,
    /// The share of packets that escape it: they take what is asked without it.
    pub escaping: f64,
    /// How long the emulator waits for a processor in each second of the fault phase, ns; none: nobody knows.
    pub starved: Option<u64>,
    /// Seconds of baseline, fault, recovery.
    pub seconds: [u64; 3],
    /// Seconds after the recovery, in which the load is idle.
    pub idle: u64,
    /// Probes per second and pair.
    pub probes: u64,
    /// What witnesses do in ten seconds.
    pub looks: u64,
    /// Whether the emulator's counters are there.
    pub counted: bool,
    /// What every pair has before any fault: delay, jitter (half of a uniform range), ns; loss.
    pub base: (u64, u64, f64),
    /// The network in words, and the pairs with a limit of rate; none: the record is of a version that did not tell.
    pub network: Vec<String>,
    pub bottlenecks: Option<Vec<Subject>>,
    /// Where rows lie and who is asked, if the record tells.
    pub placement: Option<Placement>,
    /// Whether a governor says for how long it held its node.
    pub held: bool,
    /// Virtual users, if the loop is closed.
    pub threads: Option<u32>,
    /// Whether these do as many operations as their answers let them; else there are a hundred a second.
    pub closes: bool,
    /// Operations that are loads of their own, each 40 ms slower than the one before, instead of reads alone.
    pub parts: Vec<LoadPart>,
    /// Witnesses that see nothing.
    pub silent: Vec<String>,
    /// Witnesses, or probes, that see nothing between two moments, seconds since the fault phase began; with a place
    /// behind the name (`probes n2 → n1`) nothing there.
    pub absent: Vec<(String, f64, f64)>,
    /// Whether the record says when each answer came, as it does since it has answer times.
    pub answer_times: bool,
    /// How much later than they were due the emulator says that it released packets, ns.
    pub released_late: u64,
    /// Whether a database answers late now and then.
    pub late_answers: bool,
    /// Who leads, where operations are proposals: who is asked waits for the leader, and that for the nearest other member.
    pub leader: Option<String>,
    /// What the database says.
    pub database: Vec<EvidenceRow>,
    /// What watches saw.
    pub watches: Vec<LatencyRow>,
    /// Nodes whose process a fault ended, and when: seconds since the fault phase began.
    pub ended: Vec<(String, f64)>,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            hosts: ["n1", "n2", "n3", "load"].map(str::to_owned).to_vec(),
            faults: Vec::new(),
            outside: Vec::new(),
            unseen: false,
            queues: Vec::new(),
            jitter: Jitter::Uniform,
            escaping: 0.0,
            starved: Some(0),
            seconds: [20, 20, 20],
            idle: 0,
            probes: 50,
            looks: 100,
            counted: true,
            base: (60_000, 10_000, 0.0),
            network: Vec::new(),
            bottlenecks: Some(Vec::new()),
            placement: None,
            held: false,
            threads: None,
            closes: false,
            parts: Vec::new(),
            silent: Vec::new(),
            absent: Vec::new(),
            answer_times: false,
            released_late: 10_000,
            late_answers: false,
            leader: None,
            database: Vec::new(),
            watches: Vec::new(),
            ended: Vec::new(),
        }
    }
}

impl Scenario {
    /// Faults of what lies beside the network say nothing of links: then these are looked at little, as it takes time.
    pub fn of(faults: Vec<Made>) -> Self {
        let is_of_links = |made: &Made| made.hits.iter().any(|subject| matches!(subject, Subject::Pair { .. }));
        let is_beside = !faults.is_empty() && !faults.iter().any(is_of_links);
        let (probes, counted) = if is_beside { (2, false) } else { (50, true) };
        Scenario { faults, probes, counted, ..Scenario::default() }
    }

    /// Start of the fault phase, ns since the run's zero; the run begins with its baseline.
    pub fn fault_ns(&self) -> u64 {
        self.seconds[0] * SECOND
    }

    pub fn end_ns(&self) -> u64 {
        (self.seconds.iter().sum::<u64>() + self.idle) * SECOND
    }

    pub fn pairs(&self) -> Vec<Subject> {
        let to = |from: &String| {
            let others = self.hosts.iter().filter(move |to| *to != from);
            others.map(|to| Subject::pair(from, to)).collect::<Vec<_>>()
        };
        self.hosts.iter().flat_map(to).collect()
    }

    /// All subjects of the kind that a quantity is measured in.
    pub fn subjects(&self, quantity: Quantity) -> Vec<Subject> {
        let nodes = || self.hosts.iter().filter(|host| *host != "load");
        match quantity {
            Quantity::OneWayDelay
            | Quantity::DelaySpread
            | Quantity::Loss
            | Quantity::Duplicates
            | Quantity::Reordered
            | Quantity::Corruption
            | Quantity::Rate
            | Quantity::LargestPacket => self.pairs(),
            Quantity::ReadTime
            | Quantity::WriteTime
            | Quantity::SyncTime
            | Quantity::ReadErrors
            | Quantity::WriteErrors
            | Quantity::SyncErrors
            | Quantity::MetadataTime
            | Quantity::MetadataErrors
            | Quantity::ReadDelayed
            | Quantity::WriteDelayed
            | Quantity::SyncDelayed
            | Quantity::MetadataDelayed => nodes().map(|host| Subject::directory(host, "data")).collect(),
            _ => nodes().map(Subject::host).collect(),
        }
    }

    /// The same without what happens elsewhere.
    pub fn of_subject(&self, subject: &Subject) -> Scenario {
        let here = |made: &&Made| {
            let spills =
                matches!(&made.does, Does::Spills(where_to) | Does::SpillsIn(where_to, _) if where_to == subject);
            made.hits.contains(subject) || spills
        };
        let local = |made: &Made| Made { hits: vec![subject.clone()], ..made.clone() };
        let of = |all: &[Made]| all.iter().filter(here).map(local).collect();
        Scenario { hosts: Vec::new(), faults: of(&self.faults), outside: of(&self.outside), ..self.clone() }
    }

    pub fn at(&self, seconds: f64) -> u64 {
        self.fault_ns() + (seconds * 1e9).round() as u64
    }

    /// All that really happens.
    pub fn acting(&self) -> impl Iterator<Item = &Made> {
        self.faults.iter().chain(&self.outside)
    }

    /// What a fault says of itself.
    pub fn record(&self, index: usize, made: &Made) -> FaultRecord {
        // A period that ends at infinity is still there when the trial ends.
        let stamp = |seconds: f64| seconds.is_finite().then(|| Stamp { at_ns: self.at(seconds), error_ns: 20_000 });
        let severity = |asked: &f64| Severity {
            text: if made.asked.len() > 1 { format!("{asked}") } else { String::new() },
            expectations: (self.subjects(made.quantity).into_iter())
                .flat_map(|subject| {
                    let hit = made.hits.contains(&subject);
                    let all = [Some((made.quantity, *asked, made.tolerance)), made.also];
                    all.into_iter().flatten().map(move |(quantity, asked, tolerance)| {
                        let asked = if hit { asked } else { 0.0 };
                        let burst = made.burst.filter(|_| hit && quantity == made.quantity);
                        Expectation { subject: subject.clone(), quantity, hit, asked, tolerance, burst }
                    })
                })
                .collect(),
        };
        let delay = if matches!(made.quantity, Quantity::OneWayDelay | Quantity::DelaySpread) {
            made.asked.iter().copied().fold(0.0, f64::max) as u64
        } else {
            0
        };
        let stops = matches!(made.quantity, Quantity::Answers | Quantity::Running);
        FaultRecord {
            index: index as u32,
            kind: if stops { "pause".to_owned() } else { made.quantity.to_string() },
            text: format!("fault {index}: {} of {}", made.quantity, made.hits[0]),
            effect: "as said".to_owned(),
            unsettled_ns: brownout_analysis::SETTLE_NS + delay,
            severities: made.asked.iter().map(severity).collect(),
            periods: (made.periods.iter())
                .map(|(severity, from, to)| Period { severity: *severity, injected: stamp(*from), healed: stamp(*to) })
                .collect(),
        }
    }
}

/// One trial with faults of many kinds: a ramp, a flapping link, a partition, a clock that drifts, a slow disk, a bottleneck, a
/// pause, a processor limit.
pub fn many() -> Scenario {
    let pair = |from: &str, to: &str| Subject::pair(from, to);
    let flaps: Vec<(u32, f64, f64)> = (0..12).map(|at| (0, f64::from(at) * 5.0, f64::from(at) * 5.0 + 2.5)).collect();
    let made = |quantity, hits: Vec<Subject>, asked, tolerance| Made::new(quantity, hits, asked, tolerance);
    let from_n2 = || vec![pair("n2", "n1"), pair("n2", "n3"), pair("n2", "load")];
    let ramp = Made { asked: vec![20e6, 40e6, 60e6, 80e6], ..made(Quantity::OneWayDelay, from_n2(), 20e6, 2e6) };
    let cut = vec![pair("n1", "n3"), pair("n3", "n1")];
    Scenario {
        seconds: [30, 60, 30],
        held: true,
        ..Scenario::of(vec![
            ramp.during(&[(0, 0.0, 8.0), (1, 8.0, 16.0), (2, 16.0, 24.0), (3, 24.0, 32.0)]),
            made(Quantity::Loss, vec![pair("load", "n1")], 0.2, 0.03).during(&flaps),
            made(Quantity::Loss, cut, 1.0, 0.001).during(&[(0, 36.0, 44.0)]),
            made(Quantity::ClockDrift, vec![Subject::host("n3")], 20e6, 4e6).during(&[(0, 5.0, 40.0)]),
            made(Quantity::SyncTime, vec![Subject::directory("n1", "data")], 20e6, 2e6).during(&[(0, 20.0, 50.0)]),
            made(Quantity::Rate, vec![pair("n3", "n2")], 10e6, 0.3e6).during(&[(0, 10.0, 30.0)]),
            made(Quantity::Answers, vec![Subject::host("n2")], -1.0, 0.05).during(&[(0, 48.0, 56.0)]),
            made(Quantity::ProcessorShare, vec![Subject::host("n1")], 0.2, 0.02).during(&[(0, 30.0, 60.0)]),
            made(Quantity::Duplicates, vec![pair("n1", "load")], 0.1, 0.02).during(&[(0, 50.0, 60.0)]),
        ])
    }
}
