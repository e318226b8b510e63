//! A part of a run that has no hosts and sends nothing: it tells, and records, what one would.
//!
//! It speaks what parts and controllers speak over a pipe (`crates/lab/src/machines/message.rs`): frames of a length, a kind and
//! JSON. Rates of rows are those of real runs: per node and second, as an etcd tells of itself.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::Path,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use brownout_base::{clock::monotonic_ns, random::Random};
use brownout_lab::{
    Plan,
    experiment::{ClusterSection, Source},
};
use brownout_load::{Arrivals, Pace, Part as Share};
use brownout_record::{
    Arm, CpuRow, EncodedTimes, EvidenceRow, Histogram, HostCounterRow, LatencyRow, LinkRow, LoadRow, MachineClockRow,
    OperationRows, ProbeRow, ProbeSample, Recorder, Stamp, TrialRow,
};
use serde_json::{Value, json};

use super::{
    COUNTS,
    fleet::{Fleet, HERE},
};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const TRIAL: u32 = 1;
/// What one-way delays and answers take where nothing is slow, ns.
const QUICK: u64 = 300_000;
/// What an etcd tells of itself in a second.
const EVIDENCE: [&str; 6] = ["apply", "fsync", "term", "leader", "proposals-failed", "reading"];

/// Reads frames on a thread of its own.
fn listen() -> Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut from = io::stdin().lock();
        loop {
            let mut head = [0; 5];
            if from.read_exact(&mut head).is_err() {
                std::process::exit(0);
            }
            HEARD.fetch_add(1, Ordering::Relaxed);
            let mut holds = vec![0; u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize];
            from.read_exact(&mut holds).unwrap();
            if sender.send(serde_json::from_slice(&holds).unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Messages that were told, their bytes, and messages that were heard.
static TOLD: AtomicU64 = AtomicU64::new(0);
static TOLD_BYTES: AtomicU64 = AtomicU64::new(0);
static HEARD: AtomicU64 = AtomicU64::new(0);

fn frame(kind: u8, holds: &[u8]) {
    let mut to = io::stdout().lock();
    to.write_all(&u32::try_from(holds.len()).unwrap().to_be_bytes()).unwrap();
    to.write_all(&[kind]).unwrap();
    to.write_all(holds).unwrap();
    to.flush().unwrap();
}

fn tell(message: &Value) {
    let holds = serde_json::to_vec(message).unwrap();
    TOLD.fetch_add(1, Ordering::Relaxed);
    TOLD_BYTES.fetch_add(holds.len() as u64, Ordering::Relaxed);
    frame(0, &holds);
}

/// Does what the part of a machine does, until its trial is over.
pub fn part(fleet: &Fleet, number: usize) {
    let from = listen();
    loop {
        let message = from.recv().unwrap();
        if message.get("look").is_some() {
            return tell(&json!({ "found": { "text": fleet.found_on(number).to_string() } }));
        }
        if let Some(asked) = message.get("survey") {
            return tell(&json!({ "surveyed": { "software": fleet.software(&choice(&plan(asked))) } }));
        }
        if let Some(order) = message.get("order") {
            return trial(fleet, order, &from);
        }
    }
}

/// The plan of an experiment, as it is known everywhere.
fn plan(asked: &Value) -> Plan {
    let attached: BTreeMap<String, String> = serde_json::from_value(asked["attached"].clone()).unwrap();
    let source = Source::from_text(Path::new("fleet.yaml"), asked["text"].as_str().unwrap().to_owned()).unwrap();
    Plan::new(&source.with_attached(attached)).unwrap()
}

/// As what a controller looks for what its nodes run.
fn choice(plan: &Plan) -> String {
    let ClusterSection { cassandra, etcd, external, access, names, .. } = &plan.experiment.cluster;
    format!("external {:?} {names:?} {cassandra:?} {etcd:?} {access:?}", external.as_ref().map(|one| &one.0))
}

fn trial(fleet: &Fleet, order: &Value, from: &Receiver<Value>) {
    let machine = order["machine"].as_str().unwrap().to_owned();
    let share = order["role"].get("load").map(|load| Share {
        number: load["number"].as_u64().unwrap() as usize,
        of: load["of"].as_u64().unwrap() as usize,
    });
    let plan = plan(&order["asked"]);
    let far: Vec<Value> = match share {
        Some(_) => Vec::new(),
        None => fleet.far_hosts(&machine),
    };
    let here = json!(HERE);
    let at = share.is_none().then_some(here);
    tell(&json!({ "ready": { "clock": at, "relay": at, "far": far, "boot": machine, "pids": [] } }));
    let mut part = Part {
        fleet,
        own: fleet.hosts_of(&machine),
        machine,
        share,
        plan: &plan,
        record: None,
        directory: tempfile::tempdir().unwrap(),
        epoch_ns: 0,
        seconds: 0,
        sent: BTreeMap::new(),
        random: Random::new(1),
        pace: None,
        filled: false,
        fault_ns: u64::MAX,
        ends_ns: u64::MAX,
    };
    loop {
        let wait = match part.record {
            Some(_) => (part.epoch_ns + (part.seconds + 1) * S).saturating_sub(monotonic_ns()),
            None => 3_600 * S,
        };
        match from.recv_timeout(Duration::from_nanos(wait)) {
            Ok(message) if message == "stop" => return part.over(),
            Ok(message) => part.hear(&message),
            Err(_) => part.second(),
        }
        if monotonic_ns() >= part.ends_ns.saturating_add(S / 2) {
            return part.over();
        }
    }
}

struct Part<'a> {
    fleet: &'a Fleet,
    machine: String,
    own: Vec<String>,
    share: Option<Share>,
    plan: &'a Plan,
    record: Option<Recorder>,
    directory: tempfile::TempDir,
    epoch_ns: u64,
    /// How many of its seconds are recorded.
    seconds: u64,
    /// How many probes of each pair were sent.
    sent: BTreeMap<(String, String), u64>,
    random: Random,
    /// What is measured, and since when.
    pace: Option<(Pace, u64)>,
    filled: bool,
    fault_ns: u64,
    ends_ns: u64,
}

impl Part<'_> {
    fn hear(&mut self, message: &Value) {
        let time = |of: &str, key: &str| message.get(of).map(|told| told[key].as_u64().unwrap());
        if message.get("peers").is_some() {
            tell(&json!({ "synchronised": { "error_ns": 20_000 } }));
        } else if message == "now" {
            tell(&json!({ "now": { "axis_ns": monotonic_ns() } }));
        } else if let Some(epoch_ns) = time("begin", "epoch_ns") {
            self.epoch_ns = epoch_ns;
            let mut record = Recorder::create(&self.directory.path().join("part.db"), epoch_ns, 0).unwrap();
            record.batch(|record| record.trial(&TrialRow::single(1, 0, Arm::Fault))).unwrap();
            self.record = Some(record);
            tell(&json!("done"));
        } else if message.get("make-schema").is_some() || message == "connect" {
            tell(&json!("done"));
        } else if message == "fill" {
            self.filled = true;
        } else if let Some(from_ns) = time("measure", "from_ns") {
            let rate = self.plan.load.rate(&self.plan.experiment.load).unwrap();
            let rate = brownout_units::Rate::per_second(rate).unwrap();
            self.pace = Some((Pace::Open { rate, arrivals: Arrivals::Constant }, from_ns));
        } else if let Some(from_ns) = time("faults", "from_ns") {
            self.fault_ns = from_ns;
        } else if let Some(at_ns) = time("end", "at_ns") {
            self.ends_ns = at_ns;
        }
    }

    /// Records the second that is over, and tells of it.
    fn second(&mut self) {
        let starts_ns = self.seconds * S;
        self.seconds += 1;
        let mut tick = json!({
            "offered": 0, "delivered": 0, "failed": 0, "seconds": 1.0, "p50_ns": QUICK, "p99_ns": 2 * QUICK, "coordinators": [],
            "operations": [], "faults": [], "busy": 0.3, "filled": [u64::from(self.filled), u64::from(self.filled)],
            "refused": null, "error_ns": 20_000,
        });
        match self.share {
            None => self.agent(starts_ns),
            Some(share) => {
                let rows = self.load(starts_ns, share);
                tick["offered"] = json!(rows.load.scheduled);
                tick["delivered"] = json!(rows.load.sent);
                tell(&json!({ "operations": [rows] }));
            }
        }
        tell(&json!({ "tick": tick }));
    }

    /// Whether a pair is slow then, ns since the epoch.
    fn is_slow(&self, from: &str, at_ns: u64) -> bool {
        let length_ns = self.plan.faults[0].ends().ns();
        let fault_ns = self.fault_ns.saturating_sub(self.epoch_ns);
        from == self.fleet.slow() && (fault_ns..fault_ns.saturating_add(length_ns)).contains(&at_ns)
    }

    fn agent(&mut self, starts_ns: u64) {
        let every_ns = brownout_lab::plan::probe_interval(&self.plan.layout.hosts).as_nanos() as u64;
        let (mut links, mut probes) = (Vec::new(), Vec::new());
        let pairs: Vec<(String, String)> = self
            .plan
            .layout
            .hosts
            .watched_pairs()
            // What comes from outside is carried where it arrives.
            .filter(|(from, to)| self.own.contains(if from.name == "load" { &to.name } else { &from.name }))
            .map(|(from, to)| (from.name.clone(), to.name.clone()))
            .collect();
        for (place, (from, to)) in pairs.into_iter().enumerate() {
            let offset_ns = place as u64 * 7_919_000 % every_ns;
            let mut samples = Vec::new();
            let first = starts_ns.saturating_sub(offset_ns).div_ceil(every_ns);
            for number in first.. {
                let sent_ns = offset_ns + number * every_ns;
                if sent_ns >= starts_ns + S {
                    break;
                }
                let more_ns = if self.is_slow(&from, sent_ns) { 50 * MS } else { 0 };
                let delay_ns = Some(QUICK + more_ns + self.random.below(50_000));
                let seq = self.sent.entry((from.clone(), to.clone())).or_default();
                *seq += 1;
                samples.push(ProbeSample { seq: *seq, sent_ns, delay_ns, copies: 1, reordered: false });
            }
            let packets = 3 + samples.len() as u64;
            let held = if self.is_slow(&from, starts_ns) { 50 * MS } else { 1_000 };
            links.push(link_row(starts_ns, &from, &to, packets, held));
            if !samples.is_empty() {
                probes.push(ProbeRow { starts_ns, from, to, samples });
            }
        }
        let clocks = self.clock_rows(starts_ns);
        let own = self.own.clone();
        let mut record = self.record.take().unwrap();
        record
            .batch(|record| {
                links.iter().try_for_each(|row| record.link(TRIAL, row))?;
                probes.iter().try_for_each(|row| record.probe(TRIAL, row))?;
                clocks.iter().try_for_each(|row| record.machine_clock(TRIAL, row))?;
                let fixed = [
                    "machine",
                    "stolen",
                    "instrument",
                    "emulator",
                    "emulator-waited",
                    "interrupts",
                    "programs",
                    "kernel",
                ];
                let of_nodes = own.iter().flat_map(|host| [format!("node:{host}"), format!("waited:{host}")]);
                for subject in fixed.map(str::to_owned).into_iter().chain(of_nodes) {
                    record.cpu(TRIAL, &CpuRow { starts_ns, length_ns: S, subject, busy_ns: 30 * MS })?;
                }
                let cores = CpuRow { starts_ns, length_ns: S, subject: "cores".to_owned(), busy_ns: 8 * S };
                record.cpu(TRIAL, &cores)?;
                for host in own {
                    let row = HostCounterRow {
                        starts_ns,
                        length_ns: S,
                        host: host.clone(),
                        checksum_errors: 0,
                        interface_dropped: 0,
                    };
                    record.host_counters(TRIAL, &row)?;
                    for name in EVIDENCE {
                        record.evidence(TRIAL, &evidence_row(starts_ns, &host, name))?;
                    }
                }
                Ok(())
            })
            .unwrap();
        self.record = Some(record);
    }

    /// As real parts do, of many others some in turn.
    fn clock_rows(&self, at_ns: u64) -> Vec<MachineClockRow> {
        let others: Vec<String> = self.fleet.nodes().filter(|other| *other != self.machine).collect();
        let turns = others.len().div_ceil((2_000 / (others.len() + 1)).max(1)).max(1) as u64;
        let in_turn = (0_u64..).zip(others).filter(|(place, _)| place % turns == at_ns / S % turns);
        let row =
            |(_, other)| MachineClockRow { machine: self.machine.clone(), other, at_ns, ahead_ns: 0, error_ns: 20_000 };
        in_turn.map(row).collect()
    }

    fn load(&mut self, starts_ns: u64, share: Share) -> OperationRows {
        let due = |at_ns: u64| match &self.pace {
            Some((pace, from_ns)) => {
                let after_ns = (self.epoch_ns + at_ns).min(self.ends_ns).saturating_sub(*from_ns);
                share.due(pace, Duration::from_nanos(after_ns))
            }
            // The flood: as much as is measured later.
            None if self.filled => {
                let rate = self.plan.load.rate(&self.plan.experiment.load).unwrap();
                (rate * at_ns as f64 / 1e9 / share.of as f64) as u64
            }
            None => 0,
        };
        let scheduled = due(starts_ns + S).saturating_sub(due(starts_ns));
        // Each operation has a coordinator of its own, in turn: of few operations a second there are as many rows.
        let mut counts: BTreeMap<(&str, usize), Histogram> = BTreeMap::new();
        for number in 0..scheduled {
            let coordinator =
                ((self.seconds * scheduled + number) as usize * share.of + share.number) % self.fleet.pods;
            let name = if number % 2 == 0 { "put" } else { "range" };
            let times = counts.entry((name, coordinator)).or_insert_with(|| Histogram::new(3).unwrap());
            times.record(QUICK + self.random.below(QUICK)).unwrap();
        }
        let latency = |((name, coordinator), times): ((&str, usize), Histogram)| LatencyRow {
            starts_ns,
            statement: name.to_owned(),
            coordinator: Fleet::pod(coordinator),
            outcome: "ok".to_owned(),
            count: times.len(),
            wait: EncodedTimes::from(&times),
            service: EncodedTimes::from(&times),
            response: EncodedTimes::from(&times),
        };
        let latencies = counts.into_iter().map(latency).collect();
        let mut lateness = Histogram::new(3).unwrap();
        lateness.record_n(60_000, scheduled).unwrap();
        let lateness = EncodedTimes::from(&lateness);
        let load = LoadRow { scheduled, sent: scheduled, lateness, ..LoadRow::empty(starts_ns, S) };
        let rows = OperationRows { load, latencies, watches: Vec::new() };
        let mut record = self.record.take().unwrap();
        record.batch(|record| record.operations(TRIAL, &rows)).unwrap();
        self.record = Some(record);
        rows
    }

    fn over(mut self) {
        let path = self.directory.path().join("part.db");
        let Some(mut record) = self.record.take() else { return };
        if self.share.is_none() {
            let stamp = |at_ns: u64| Some(Stamp { at_ns: at_ns.saturating_sub(self.epoch_ns), error_ns: 50_000 });
            let mut fault = self.plan.faults[0].record(0, &self.plan.layout.hosts);
            if self.own.iter().any(|host| host == self.fleet.slow()) && self.fault_ns != u64::MAX {
                for period in &mut fault.periods {
                    period.injected = stamp(self.fault_ns);
                    period.healed = stamp(self.fault_ns + self.plan.faults[0].ends().ns());
                }
            }
            record.batch(|record| record.fault(TRIAL, &fault)).unwrap();
        }
        record.finish().unwrap();
        let counts = [&TOLD, &TOLD_BYTES, &HEARD].map(|count| count.load(Ordering::Relaxed).to_string());
        let directory = std::env::var_os(COUNTS).unwrap();
        std::fs::write(Path::new(&directory).join(&self.machine), counts.join(" ")).unwrap();
        // Four a second, as real ones.
        let exchange = |number: u64| {
            let asked_ns = self.epoch_ns + number * S / 4;
            [asked_ns, asked_ns + 20_000, asked_ns + 25_000, asked_ns + 45_000]
        };
        let exchanges: Vec<[u64; 4]> = (0..self.seconds * 4).map(exchange).collect();
        let bytes = std::fs::read(&path).unwrap();
        tell(&json!({ "over": {
            "failure": null, "interrupted": false, "exchanges": exchanges, "zero_ns": self.epoch_ns, "record": bytes.len(),
        } }));
        bytes.chunks(1 << 20).for_each(|piece| frame(1, piece));
    }
}

fn evidence_row(at_ns: u64, node: &str, name: &str) -> EvidenceRow {
    EvidenceRow {
        at_ns,
        error_ns: 1_000,
        node: node.to_owned(),
        source: "metrics".to_owned(),
        subject: String::new(),
        name: name.to_owned(),
        value: at_ns as f64,
    }
}

fn link_row(starts_ns: u64, from: &str, to: &str, packets: u64, held_ns: u64) -> LinkRow {
    let mut held = Histogram::new(3).unwrap();
    held.record_n(held_ns, packets).unwrap();
    let mut release_error = Histogram::new(3).unwrap();
    release_error.record_n(20_000, packets).unwrap();
    LinkRow {
        starts_ns,
        length_ns: S,
        from: from.to_owned(),
        to: to.to_owned(),
        offered: packets,
        offered_bytes: packets * 200,
        delivered: packets,
        delivered_bytes: packets * 200,
        lost: 0,
        dropped_queue: 0,
        dropped_emulator: 0,
        duplicated: 0,
        corrupted: 0,
        reordered: 0,
        cut: 0,
        too_big: 0,
        release_error,
        held,
    }
}
