//! A scenario becomes a file, through the real recorder.

use std::{collections::BTreeSet, path::Path};

use brownout_record::{
    Arm, CpuRow, Description, EncodedTimes, Event, Histogram, HostCounterRow, HostDescription, LatencyRow, LinkRow,
    LoadDescription, LoadRow, Objective, PhaseDescription, PhaseRow, ProbeRow, ProbeSample, RecordError, Recorder, Run,
    TrialRow, TrialState, WitnessRow,
};

use super::*;
use brownout_base::random::Random;

type Done = Result<(), RecordError>;

/// Packets per second and pair.
const PACKETS: u64 = 400;
/// Looks at the truth in each second.
const STEPS: u64 = 20;
/// A shorter period has readings of the counters of its own, s …
const BRIEF: f64 = 1.0;
/// … this long before and after each change, ns.
const READ_NS: u64 = 100_000;
/// p90 − p10 of a quarter of a normal and three quarters of a Pareto variable, as found from a million of them.
const PARETO_NORMAL: f64 = 1.2056;
/// What a node takes of the processors if it may.
const WANTED: f64 = 0.5;
/// What a train shows without a limit, bit/s.
const FREE: f64 = 800e6;

/// A small repeatable stream of numbers.
pub struct Noise {
    state: Random,
    /// The last normal number.
    last: f64,
}

impl Noise {
    /// Uniform from 0 to 1.
    fn unit(&mut self) -> f64 {
        self.state.fraction()
    }

    /// Uniform from −1 to 1.
    fn around(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    /// How far a packet lies from where it would be without jitter, in units of p90 − p10.
    fn jitter(&mut self, jitter: Jitter, escapes: bool) -> f64 {
        let correlation = if let Jitter::Correlated(correlation) = jitter { correlation } else { 0.0 };
        let (one, other) = (self.state.open_fraction(), self.unit());
        let alone = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
        let normal = correlation * self.last + (1.0 - correlation * correlation).sqrt() * alone;
        self.last = normal;
        let pareto = self.state.open_fraction().powf(-1.0 / 3.0) - 1.5;
        match jitter {
            _ if escapes => 0.0,
            Jitter::Uniform => (other * 2.0 - 1.0) / 1.6,
            Jitter::Normal | Jitter::Correlated(_) => normal / 2.563,
            Jitter::Pareto => pareto / 1.1187,
            Jitter::ParetoNormal => (0.25 * normal + 0.75 * pareto / 0.866) / PARETO_NORMAL,
        }
    }
}

/// What is true of a pair at a moment: shares of packets, and delay and p90 − p10 of the jitter in ns.
struct Moment {
    loss: f64,
    duplicates: f64,
    corruption: f64,
    reordered: f64,
    dropped: f64,
    delay: f64,
    spread: f64,
}

fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new(3).unwrap();
    for value in values {
        histogram.record(value).unwrap();
    }
    histogram
}

fn times(values: impl IntoIterator<Item = u64>) -> EncodedTimes {
    (&histogram(values)).into()
}

fn names(subject: &Subject) -> (String, String) {
    match subject {
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
        for (node, seconds) in &self.ended {
            recorder.event(&Event {
                trial: Some(1),
                at_ns: self.fault_ns() + (seconds * SECOND as f64) as u64,
                error_ns: 0,
                kind: "node-ended".to_owned(),
                subject: node.clone(),
                text: format!("{node} died"),
            })?;
        }
        let mut noise = Noise { state: Random::new(7), last: 0.0 };
        let subjects: Vec<(Subject, Scenario)> =
            self.pairs().into_iter().map(|subject| (subject.clone(), self.of_subject(&subject))).collect();
        for second in 0..self.end_ns() / SECOND {
            self.load(recorder, second * SECOND)?;
            self.links(recorder, &subjects, second * SECOND, &mut noise)?;
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
            ground: String::new(),
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
                let times_of_all = || times((0..count).map(|at| took + at % 100 * 1_000));
                recorder.latency(
                    1,
                    &LatencyRow {
                        starts_ns,
                        statement: part.operation.clone(),
                        coordinator: (*node).clone(),
                        outcome: "ok".to_owned(),
                        count,
                        wait: times((0..count).map(|_| 10_000)),
                        service: times_of_all(),
                        response: times_of_all(),
                    },
                )?;
            }
        }
        recorder
            .load(1, &LoadRow { scheduled: sent, sent, lateness: times([10_000]), ..LoadRow::empty(starts_ns, SECOND) })
    }

    fn links(&self, recorder: &Recorder, subjects: &[(Subject, Scenario)], starts_ns: u64, noise: &mut Noise) -> Done {
        let mut damaged: Vec<(String, u64)> = self.hosts.iter().map(|host| (host.clone(), 0)).collect();
        for (subject, here) in subjects {
            let (from, to) = names(subject);
            let mut samples: Vec<ProbeSample> =
                (0..self.probes).map(|at| here.probe(subject, starts_ns, at, noise)).collect();
            samples.retain(|sample| !self.is_absent("probes", subject, sample.sent_ns));
            recorder.probe(1, &ProbeRow { starts_ns, from: from.clone(), to: to.clone(), samples })?;
            if !self.counted {
                continue;
            }
            for (starts_ns, ends_ns) in self.readings(starts_ns) {
                let row = here.reading(subject, starts_ns, ends_ns, noise);
                if let Some(known) = damaged.iter_mut().find(|known| known.0 == to) {
                    known.1 += row.corrupted;
                }
                recorder.link(1, &row)?;
            }
        }
        damaged.into_iter().try_for_each(|(host, checksum_errors)| {
            let row = HostCounterRow { starts_ns, length_ns: SECOND, host, checksum_errors, interface_dropped: 0 };
            recorder.host_counters(1, &row)
        })
    }

    /// When the emulator's counters are read in a second: at its ends, and right before and right after each change of a brief fault of
    /// links, as the lab does.
    fn readings(&self, starts_ns: u64) -> Vec<(u64, u64)> {
        let changes = self.brief().flat_map(|(_, from, to)| [self.at(*from), self.at(*to)]);
        let mut cuts: Vec<u64> = changes.flat_map(|at| [at - READ_NS, at + READ_NS]).collect();
        cuts.retain(|at| (starts_ns + 1..starts_ns + SECOND).contains(at));
        cuts.extend([starts_ns, starts_ns + SECOND]);
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// The periods of links' faults that last less than a second: which severity, and from when to when, s.
    fn brief(&self) -> impl Iterator<Item = &(u32, f64, f64)> {
        let of_links = |made: &&Made| matches!(made.hits[0], Subject::Pair { .. });
        let periods = self.faults.iter().filter(of_links).flat_map(|made| &made.periods);
        periods.filter(|(_, from, to)| to - from < BRIEF)
    }

    /// What the emulator counts between two moments.
    fn reading(&self, subject: &Subject, starts_ns: u64, ends_ns: u64, noise: &mut Noise) -> LinkRow {
        let seen = if self.unseen { &Scenario { outside: Vec::new(), ..self.clone() } } else { self };
        seen.counters(subject, starts_ns, ends_ns, noise)
    }

    fn counters(&self, subject: &Subject, starts_ns: u64, ends_ns: u64, noise: &mut Noise) -> LinkRow {
        let (from, to) = names(subject);
        let mut row = LinkRow {
            starts_ns,
            length_ns: ends_ns - starts_ns,
            from,
            to,
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
            release_error: histogram([self.released_late]),
            held: histogram([]),
        };
        let mut carried = [0.0; 5];
        let every = SECOND / PACKETS;
        // Only what lasts less than a second has to be met by each packet.
        let stride = if self.brief().next().is_some() { 1 } else { PACKETS / STEPS };
        let mut now = self.moment(subject, starts_ns);
        for packet in starts_ns.div_ceil(every)..ends_ns.div_ceil(every) {
            if packet.is_multiple_of(stride) {
                now = self.moment(subject, packet * every);
            }
            // Fractions of packets are carried on, so that shares are exact over time.
            let mut hits = |at: usize, share: f64| {
                carried[at] += share;
                let hit = carried[at] > 1.0 - 1e-9;
                carried[at] -= f64::from(u8::from(hit));
                hit
            };
            row.offered += 1;
            if hits(0, now.loss) {
                if now.loss >= 1.0 {
                    row.cut += 1;
                } else {
                    row.lost += 1;
                }
                continue;
            }
            if hits(4, now.dropped) {
                row.dropped_queue += 1;
                continue;
            }
            row.duplicated += u64::from(hits(1, now.duplicates));
            row.corrupted += u64::from(hits(2, now.corruption));
            row.reordered += u64::from(hits(3, now.reordered));
            row.delivered += 1;
            let held = 5_000.0 + self.took(&now, noise);
            row.held.record(held.max(0.0) as u64).unwrap();
        }
        row.delivered += row.duplicated;
        row.offered_bytes = row.offered * 400;
        let limit = self.truth(subject, Quantity::Rate, starts_ns + 1).least;
        let most = limit.map(|limit| (limit / 8.0 * 0.99 * (ends_ns - starts_ns) as f64 / SECOND as f64) as u64);
        row.delivered_bytes = most.unwrap_or(row.delivered * 400);
        row
    }

    /// The share that a full queue drops at a moment.
    fn dropped(&self, subject: &Subject, at_ns: u64) -> f64 {
        let fault = self.fault_ns()..self.fault_ns() + self.seconds[1] * SECOND;
        let own = self.queues.iter().find(|(queued, _)| queued == subject);
        own.filter(|_| fault.contains(&at_ns)).map_or(0.0, |(_, share)| *share)
    }

    fn moment(&self, subject: &Subject, at_ns: u64) -> Moment {
        let share = |quantity| self.truth(subject, quantity, at_ns).share;
        // Something has to be overtaken.
        let overtaken = self.acting().any(|fault| fault.quantity == Quantity::Reordered);
        Moment {
            loss: share(Quantity::Loss),
            duplicates: share(Quantity::Duplicates),
            corruption: share(Quantity::Corruption),
            reordered: share(Quantity::Reordered),
            dropped: self.dropped(subject, at_ns),
            delay: self.truth(subject, Quantity::OneWayDelay, at_ns).sum + if overtaken { 100e6 } else { 0.0 },
            spread: self.truth(subject, Quantity::DelaySpread, at_ns).sum,
        }
    }

    /// What a packet takes beyond a bare one, ns.
    fn took(&self, now: &Moment, noise: &mut Noise) -> f64 {
        let escapes = now.spread > 0.0 && noise.unit() < self.escaping;
        // No packet is faster than without the jitter.
        let around = if self.jitter == Jitter::Uniform { 0.625 } else { 2.0 };
        let jitter = if now.spread > 0.0 { now.spread * (around + noise.jitter(self.jitter, escapes)) } else { 0.0 };
        now.delay + jitter + self.base.0 as f64 + self.base.1 as f64 * noise.around()
    }

    fn probe(&self, subject: &Subject, starts_ns: u64, at: u64, noise: &mut Noise) -> ProbeSample {
        let sent_ns = starts_ns + at * SECOND / self.probes.max(1);
        let now = self.moment(subject, sent_ns);
        let took = self.took(&now, noise);
        let skips = noise.unit() < now.reordered;
        let mut held = if skips { 0.0 } else { took };
        let healing = self.next_healing(subject, sent_ns).saturating_sub(sent_ns) as f64;
        held = held.min(healing.max(self.base.0 as f64));
        let stays = (1.0 - now.loss) * (1.0 - now.corruption) * (1.0 - self.base.2);
        let gone = 1.0 - stays * (1.0 - now.dropped);
        let arrived = noise.unit() >= gone;
        let twice = noise.unit() < now.duplicates;
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
        row("programs".to_owned(), 0.0)?;
        if let Some(waited) = self.starved {
            let waited = if fault { waited } else { 0 };
            row("emulator-waited".to_owned(), waited as f64 / cores as f64)?;
        }
        for node in self.hosts.iter().filter(|host| *host != "load") {
            let limit = self.truth(&Subject::host(node), Quantity::ProcessorShare, starts_ns + 1).least;
            row(format!("node:{node}"), limit.unwrap_or(1.0).min(WANTED))?;
        }
        Ok(())
    }

    /// Whether a source sees nothing of a subject at a moment.
    fn is_absent(&self, source: &str, subject: &Subject, at_ns: u64) -> bool {
        let seconds = (at_ns as f64 - self.fault_ns() as f64) / 1e9;
        let is_meant = |name: &str| name == source || name == format!("{source} {subject}");
        self.absent.iter().any(|(name, from, to)| (*from..*to).contains(&seconds) && is_meant(name))
    }

    fn witnesses(&self, recorder: &Recorder, noise: &mut Noise) -> Done {
        let wanted: BTreeSet<Quantity> = self.acting().map(|fault| fault.quantity).collect();
        for quantity in wanted {
            for subject in self.subjects(quantity) {
                let here = self.of_subject(&subject);
                for at in 0..self.end_ns() * self.looks / 10 / SECOND {
                    let at_ns = at * 10 * SECOND / self.looks;
                    for (source, value, error) in here.looked(&subject, quantity, at_ns, at, noise) {
                        let silent = self.silent.iter().any(|silent| silent == source);
                        if silent || self.is_absent(source, &subject, at_ns) {
                            continue;
                        }
                        let quantity = if quantity == Quantity::ClockDrift { Quantity::ClockOffset } else { quantity };
                        let (subject, source) = (subject.clone(), source.to_owned());
                        if quantity == Quantity::Answers && self.answer_times {
                            self.answer(recorder, &here, &subject, at_ns)?;
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
    fn answer(&self, recorder: &Recorder, here: &Scenario, subject: &Subject, at_ns: u64) -> Done {
        let stands = |at_ns| here.truth(subject, Quantity::Answers, at_ns).least.is_some();
        let waits = (0..).map(|ms| ms * MS).find(|wait| *wait > 400 * MS || !stands(at_ns + wait)).unwrap();
        let row = |quantity, value| {
            let (subject, source) = (subject.clone(), "heartbeat".to_owned());
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
        subject: &Subject,
        quantity: Quantity,
        at_ns: u64,
        look: u64,
        noise: &mut Noise,
    ) -> Vec<(&'static str, f64, f64)> {
        let truth = self.truth(subject, quantity, at_ns);
        match quantity {
            Quantity::Rate if look.is_multiple_of(5) => {
                vec![("train", truth.least.unwrap_or(FREE) * (1.0 + 0.01 * noise.around()), 0.0)]
            }
            Quantity::LargestPacket => vec![("sizes", truth.least.unwrap_or(1500.0).min(1500.0), 0.0)],
            Quantity::Answers => vec![("heartbeat", 1.0 + truth.least.unwrap_or(0.0), 0.0)],
            Quantity::Running => vec![("process", 1.0 + truth.least.unwrap_or(0.0), 0.0)],
            Quantity::ProcessorShare => match truth.least {
                Some(limit) if self.held => {
                    // A governor says what it was told.
                    let told = self.faults.iter().find(|made| matches!(made.does, Does::Otherwise(..)));
                    let told = told.map_or(limit, |made| made.asked[0]);
                    vec![("governor", told, 0.0), ("held", (1.0 - limit / WANTED).max(0.0), 0.0)]
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
