//! A scenario becomes a file, through the real recorder.

use std::{collections::BTreeSet, path::Path};

use brownout_record::{
    Arm, CpuRow, Description, Histogram, HostCounterRow, HostDescription, LatencyRow, LinkRow, LoadDescription,
    LoadRow, Objective, PhaseDescription, PhaseRow, ProbeRow, ProbeSample, RecordError, Recorder, Run, TrialRow,
    TrialState, WitnessRow,
};

use super::*;

type Done = Result<(), RecordError>;

/// Packets per second and pair.
const PACKETS: u64 = 400;
/// Looks at the truth in each second.
const STEPS: u64 = 20;
/// What a node takes of the processors if it may.
const WANTED: f64 = 0.5;
/// What a train shows without a limit, bit/s.
const FREE: f64 = 800e6;

/// A small repeatable stream of numbers.
pub struct Noise(u64);

impl Noise {
    /// Uniform from 0 to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// Uniform from −1 to 1.
    fn around(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }
}

fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new(3).unwrap();
    for value in values {
        histogram.record(value).unwrap();
    }
    histogram
}

fn names(place: &Subject) -> (String, String) {
    match place {
        Subject::Pair { from, to } | Subject::Overlay { from, to } => (from.clone(), to.clone()),
        Subject::Host { host } | Subject::Directory { host, .. } => (host.clone(), String::new()),
    }
}

impl Scenario {
    /// Writes the run and opens it.
    pub fn run(&self, directory: &Path) -> Run {
        let mut recorder = Recorder::create(&directory.join("run.db"), 0, 1_780_000_000_000).unwrap();
        recorder.batch(|recorder| self.write(recorder)).unwrap();
        Run::open(directory).unwrap()
    }

    fn write(&self, recorder: &Recorder) -> Done {
        recorder.single_cell(&self.description())?;
        let ends_ns = Some(self.end_ns());
        recorder.trial(&TrialRow { ends_ns, state: TrialState::Done, ..TrialRow::single(1, 0, Arm::Fault) })?;
        let mut starts_ns = 0;
        for (name, seconds) in ["baseline", "fault", "recovery"].into_iter().zip(self.seconds) {
            let ends_ns = starts_ns + seconds * SECOND;
            recorder.phase(&PhaseRow {
                trial: 1,
                name: name.to_owned(),
                starts_ns,
                ends_ns: Some(ends_ns),
                ended_by: Some("time".to_owned()),
            })?;
            starts_ns = ends_ns;
        }
        for (index, made) in self.faults.iter().enumerate() {
            recorder.fault(1, &self.record(index, made))?;
        }
        for row in &self.database {
            recorder.evidence(1, row)?;
        }
        for row in &self.watches {
            recorder.watch(1, row)?;
        }
        let mut noise = Noise(7);
        let places: Vec<(Subject, Scenario)> =
            self.pairs().into_iter().map(|place| (place.clone(), self.in_place(&place))).collect();
        for second in 0..self.end_ns() / SECOND {
            self.load(recorder, second * SECOND)?;
            self.links(recorder, &places, second * SECOND, &mut noise)?;
            self.processors(recorder, second * SECOND)?;
        }
        self.witnesses(recorder, &mut noise)
    }

    fn description(&self) -> Description {
        let role = |name: &str| if name == "load" { "load" } else { "node" };
        Description {
            name: "scenario".to_owned(),
            question: None,
            hosts: (self.hosts.iter())
                .map(|name| HostDescription { name: name.clone(), address: String::new(), role: role(name).to_owned() })
                .collect(),
            database: "Cassandra 5.0.6".to_owned(),
            external: false,
            load: LoadDescription {
                text: "open, 100/s, constant arrivals".to_owned(),
                rate: self.threads.is_none().then_some(100.0),
                threads: self.threads,
                parts: self.parts.clone(),
                consistency: "quorum".to_owned(),
                replication: 3,
                timeout_ns: 2 * SECOND,
            },
            phases: ["baseline", "fault", "recovery"]
                .into_iter()
                .zip(self.seconds)
                .map(|(name, seconds)| PhaseDescription { name: name.to_owned(), length_ns: seconds * SECOND })
                .collect(),
            faults: self.faults.iter().enumerate().map(|(at, made)| self.record(at, made).text).collect(),
            network: self.network.clone(),
            overlay: String::new(),
            encryption: Vec::new(),
            bottlenecks: self.bottlenecks.clone(),
            placement: self.placement.clone(),
            trials: 1,
            objective: Objective { response_ns: 50 * MS, share: 0.99, phases: Vec::new(), operation: None },
            interval_ns: SECOND,
            warnings: Vec::new(),
        }
    }

    fn load(&self, recorder: &Recorder, starts_ns: u64) -> Done {
        let nodes: Vec<&String> = self.hosts.iter().filter(|host| *host != "load").collect();
        let idle = starts_ns >= self.end_ns() - self.idle * SECOND;
        let hop = |from: &str, to: &str| {
            let slow = self.truth(&Subject::pair(from, to), Quantity::OneWayDelay, starts_ns + 1).sum;
            slow as u64 + self.base.0
        };
        let there_and_back = |from: &str, to: &str| hop(from, to) + hop(to, from);
        // From the member that is asked: to the leader and back, and from that to the nearest of the others.
        let decided = |node: &str| {
            let Some(leader) = &self.leader else { return 0 };
            let others = nodes.iter().filter(|other| **other != leader);
            let nearest = others.map(|other| there_and_back(leader, other)).min().unwrap_or(0);
            nearest + if node == leader { 0 } else { there_and_back(node, leader) }
        };
        let took = |node: &String| there_and_back("load", node) + decided(node) + MS;
        let each = nodes.len() as f64;
        let alone =
            LoadPart { operation: "read".to_owned(), rate: Some(100.0), threads: self.threads.filter(|_| self.closes) };
        let parts = if self.parts.is_empty() { vec![alone] } else { self.parts.clone() };
        let mut sent = 0;
        for (at, part) in parts.iter().enumerate().filter(|_| !idle) {
            let took = |node: &String| took(node) + at as u64 * 40 * MS;
            let count = match part.threads {
                Some(threads) => u64::from(threads) * SECOND / nodes.iter().map(|node| took(node)).sum::<u64>(),
                None => (part.rate.unwrap_or(0.0) / each) as u64,
            };
            sent += count * nodes.len() as u64;
            for node in &nodes {
                let took = took(node);
                let times = || histogram((0..count).map(|at| took + at % 100 * 1_000));
                recorder.latency(
                    1,
                    &LatencyRow {
                        starts_ns,
                        statement: part.operation.clone(),
                        coordinator: (*node).clone(),
                        outcome: "ok".to_owned(),
                        count,
                        wait: histogram((0..count).map(|_| 10_000)),
                        service: times(),
                        response: times(),
                    },
                )?;
            }
        }
        recorder.load(
            1,
            &LoadRow {
                starts_ns,
                length_ns: SECOND,
                settled: true,
                scheduled: sent,
                sent,
                never_sent: 0,
                never_sent_by_operation: Default::default(),
                stale: 0,
                lateness: histogram([10_000]),
                stood_still_ns: 0,
                withheld: 0,
                looked_for: 0,
                lost: 0,
            },
        )
    }

    fn links(&self, recorder: &Recorder, places: &[(Subject, Scenario)], starts_ns: u64, noise: &mut Noise) -> Done {
        let mut damaged: Vec<(String, u64)> = self.hosts.iter().map(|host| (host.clone(), 0)).collect();
        for (place, here) in places {
            let (from, to) = names(place);
            let samples = (0..self.probes).map(|at| here.probe(place, starts_ns, at, noise)).collect();
            recorder.probe(1, &ProbeRow { starts_ns, from: from.clone(), to: to.clone(), samples })?;
            if !self.counted {
                continue;
            }
            let mut row = LinkRow {
                starts_ns,
                length_ns: SECOND,
                from,
                to: to.clone(),
                offered: 0,
                offered_bytes: 0,
                delivered: 0,
                delivered_bytes: 0,
                lost: 0,
                dropped_queue: 0,
                dropped_emulator: 0,
                duplicated: 0,
                corrupted: 0,
                reordered: 0,
                cut: 0,
                too_big: 0,
                release_error: histogram([10_000]),
                held: histogram([]),
            };
            let mut carried = [0.0; 4];
            for step in 0..STEPS {
                let at = starts_ns + step * SECOND / STEPS;
                let share = |quantity| here.truth(place, quantity, at).share;
                let packets = PACKETS / STEPS;
                // Fractions of packets are carried on, so that shares are exact over time.
                let mut part = |at: usize, share: f64, of: u64| {
                    carried[at] += share * of as f64;
                    let whole = carried[at].floor();
                    carried[at] -= whole;
                    whole as u64
                };
                let lost = part(0, share(Quantity::Loss), packets);
                let passed = packets - lost;
                row.offered += packets;
                if share(Quantity::Loss) >= 1.0 {
                    row.cut += lost
                } else {
                    row.lost += lost
                }
                row.duplicated += part(1, share(Quantity::Duplicates), passed);
                row.corrupted += part(2, share(Quantity::Corruption), passed);
                row.reordered += part(3, share(Quantity::Reordered), passed);
                row.delivered += passed;
                for _ in 0..passed {
                    let (delay, jitter) = here.delays(place, at);
                    row.held.record((5_000.0 + delay + jitter * noise.around()).max(0.0) as u64).unwrap();
                }
            }
            row.delivered += row.duplicated;
            row.offered_bytes = row.offered * 400;
            let limit = here.truth(place, Quantity::Rate, starts_ns + 1).least;
            row.delivered_bytes = limit.map_or(row.delivered * 400, |limit| (limit / 8.0 * 0.99) as u64);
            if let Some(known) = damaged.iter_mut().find(|known| known.0 == to) {
                known.1 += row.corrupted;
            }
            recorder.link(1, &row)?;
        }
        damaged.into_iter().try_for_each(|(host, checksum_errors)| {
            let row = HostCounterRow { starts_ns, length_ns: SECOND, host, checksum_errors, interface_dropped: 0 };
            recorder.host_counters(1, &row)
        })
    }

    /// Delay and half of the range of the jitter beyond a bare packet's, ns.
    fn delays(&self, place: &Subject, at: u64) -> (f64, f64) {
        let spread = self.truth(place, Quantity::DelaySpread, at).sum;
        // p90 − p10 of a uniform range is 0.8 of it.
        let jitter = spread / 1.6;
        // Something has to be overtaken.
        let reordered = self.acting().any(|fault| fault.quantity == Quantity::Reordered);
        let delay = self.truth(place, Quantity::OneWayDelay, at).sum + if reordered { 100e6 } else { 0.0 };
        (delay + jitter + self.base.0 as f64, jitter + self.base.1 as f64)
    }

    fn probe(&self, place: &Subject, starts_ns: u64, at: u64, noise: &mut Noise) -> ProbeSample {
        let sent_ns = starts_ns + at * SECOND / self.probes.max(1);
        let share = |quantity| self.truth(place, quantity, sent_ns).share;
        let (delay, jitter) = self.delays(place, sent_ns);
        let skips = noise.unit() < share(Quantity::Reordered);
        let mut held = if skips { 0.0 } else { delay + jitter * noise.around() };
        let healing = self.next_healing(place, sent_ns).saturating_sub(sent_ns) as f64;
        held = held.min(healing.max(self.base.0 as f64));
        let gone = 1.0 - (1.0 - share(Quantity::Loss)) * (1.0 - share(Quantity::Corruption)) * (1.0 - self.base.2);
        let arrived = noise.unit() >= gone;
        let twice = noise.unit() < share(Quantity::Duplicates);
        ProbeSample {
            seq: starts_ns / SECOND * self.probes + at,
            sent_ns,
            delay_ns: arrived.then_some((60_000.0 + held) as u64),
            copies: u8::from(arrived) * (1 + u8::from(twice)),
            reordered: false,
        }
    }

    fn processors(&self, recorder: &Recorder, starts_ns: u64) -> Done {
        let cores = 2 * SECOND;
        let row = |subject: String, share: f64| {
            let busy_ns = (share * cores as f64) as u64;
            recorder.cpu(1, &CpuRow { starts_ns, length_ns: SECOND, subject, busy_ns })
        };
        row("cores".to_owned(), 1.0)?;
        row("machine".to_owned(), 0.6)?;
        let fault = starts_ns >= self.fault_ns() && starts_ns < self.fault_ns() + self.seconds[1] * SECOND;
        let waited = if fault { self.starved } else { 0 };
        row("emulator-waited".to_owned(), waited as f64 / cores as f64)?;
        for node in self.hosts.iter().filter(|host| *host != "load") {
            let limit = self.truth(&Subject::host(node), Quantity::ProcessorShare, starts_ns + 1).least;
            row(format!("node:{node}"), limit.unwrap_or(1.0).min(WANTED))?;
        }
        Ok(())
    }

    fn witnesses(&self, recorder: &Recorder, noise: &mut Noise) -> Done {
        let wanted: BTreeSet<Quantity> = self.acting().map(|fault| fault.quantity).collect();
        for quantity in wanted {
            for place in self.places(quantity) {
                let here = self.in_place(&place);
                for at in 0..self.end_ns() * self.looks / 10 / SECOND {
                    let at_ns = at * 10 * SECOND / self.looks;
                    for (source, value, error) in here.looked(&place, quantity, at_ns, at, noise) {
                        let seconds = (at_ns as f64 - self.fault_ns() as f64) / 1e9;
                        let absent =
                            |(name, from, to): &(String, f64, f64)| name == source && (*from..*to).contains(&seconds);
                        if self.silent.iter().any(|silent| silent == source) || self.absent.iter().any(absent) {
                            continue;
                        }
                        let quantity = if quantity == Quantity::ClockDrift { Quantity::ClockOffset } else { quantity };
                        let (subject, source) = (place.clone(), source.to_owned());
                        if quantity == Quantity::Answers && self.answer_times {
                            self.answer(recorder, &here, &place, at_ns)?;
                            continue;
                        }
                        recorder.witness(1, &WitnessRow { at_ns, subject, quantity, source, value, error })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A node answers within 2 ms; one that stands still answers when it goes on, and who asked has waited for 400 ms at most.
    fn answer(&self, recorder: &Recorder, here: &Scenario, place: &Subject, at_ns: u64) -> Done {
        let stands = |at_ns| here.truth(place, Quantity::Answers, at_ns).least.is_some();
        let waits = (0..).map(|ms| ms * MS).find(|wait| *wait > 400 * MS || !stands(at_ns + wait)).unwrap();
        let row = |quantity, value| {
            let (subject, source) = (place.clone(), "heartbeat".to_owned());
            recorder.witness(1, &WitnessRow { at_ns, subject, quantity, source, value, error: 0.0 })
        };
        if waits > 400 * MS {
            return row(Quantity::Answers, 0.0);
        }
        row(Quantity::Answers, 1.0)?;
        row(Quantity::AnswerTime, (waits + 2 * MS) as f64)
    }

    fn looked(
        &self,
        place: &Subject,
        quantity: Quantity,
        at_ns: u64,
        look: u64,
        noise: &mut Noise,
    ) -> Vec<(&'static str, f64, f64)> {
        let truth = self.truth(place, quantity, at_ns);
        match quantity {
            Quantity::Rate if look.is_multiple_of(5) => {
                vec![("train", truth.least.unwrap_or(FREE) * (1.0 + 0.01 * noise.around()), 0.0)]
            }
            Quantity::LargestPacket => vec![("sizes", truth.least.unwrap_or(1500.0).min(1500.0), 0.0)],
            Quantity::Answers => vec![("heartbeat", 1.0 + truth.least.unwrap_or(0.0), 0.0)],
            Quantity::Running => vec![("process", 1.0 + truth.least.unwrap_or(0.0), 0.0)],
            Quantity::ProcessorShare => match truth.least {
                Some(limit) if self.held => {
                    vec![("governor", limit, 0.0), ("held", (1.0 - limit / WANTED).max(0.0), 0.0)]
                }
                Some(limit) => vec![("governor", limit, 0.0)],
                None => Vec::new(),
            },
            Quantity::ReadTime | Quantity::WriteTime | Quantity::SyncTime | Quantity::MetadataTime => {
                vec![("disk-probe", 1e6 + 2e5 * noise.around() + truth.sum, 0.0), ("disk", truth.sum, 0.0)]
            }
            Quantity::ReadDelayed | Quantity::WriteDelayed | Quantity::SyncDelayed | Quantity::MetadataDelayed => {
                vec![("disk", f64::from(u8::from(noise.unit() < truth.share)), 0.0)]
            }
            Quantity::ReadErrors | Quantity::WriteErrors | Quantity::SyncErrors | Quantity::MetadataErrors => {
                vec![("disk-probe", f64::from(u8::from(noise.unit() < truth.share)), 0.0)]
            }
            Quantity::ClockOffset | Quantity::ClockDrift => {
                // Now and then a database answers late: its time is then known the less exactly, and proves nothing.
                let late = if self.late_answers && noise.unit() < 0.08 { 150e6 } else { 0.0 };
                vec![
                    ("sntp", truth.sum + 2e4 * noise.around(), 5e4),
                    ("database", truth.sum + 5e5 * noise.around() + late, 1e6 + late),
                ]
            }
            _ => Vec::new(),
        }
    }
}
