//! Made-up series of what a monitoring system sees, of which the truth is known.

#![allow(dead_code)] // Each test binary uses its part.

use brownout_analysis::detectors::{Alarm, DETECTORS, Ended, Heartbeats, Limit, Step, Stream, Watched};
use brownout_base::random::Random;

pub const SECOND: u64 = 1_000_000_000;
pub const MS: u64 = 1_000_000;

/// What nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Every operation for itself.
    Independent,
    /// All nodes become slower and faster together (sd 20 %, correlated over ten seconds), each a little for itself (5 %, over two).
    Correlated,
    /// In one second of a hundred a node stands still for a fifth of it; one heartbeat of twenty waits for a processor.
    Hiccups,
    /// One heartbeat of fifty is lost, on every pair.
    Lossy,
}

impl Noise {
    pub const ALL: [Noise; 4] = [Noise::Independent, Noise::Correlated, Noise::Hiccups, Noise::Lossy];
}

/// A series; n1, n2 and n3 are asked by `load`.
pub struct Series {
    pub seed: u64,
    pub seconds: usize,
    pub learnt: usize,
    pub noise: Noise,
    /// Operations of each kind at each coordinator in a second, on average.
    pub operations: fn(usize, usize) -> f64,
    /// Second and coordinator (0 is n1) → so many ns more for its operations.
    pub slower: fn(usize, usize) -> u64,
    /// Second and pair of hosts (3 is `load`) → so many ns more for a round trip, and the share that is lost.
    pub farther: fn(usize, [usize; 2]) -> (u64, f64),
}

impl Default for Series {
    fn default() -> Self {
        Series {
            seed: 1,
            seconds: 120,
            learnt: 15,
            noise: Noise::Independent,
            operations: |_, _| 40.0,
            slower: |_, _| 0,
            farther: |_, _| (0, 0.0),
        }
    }
}

/// Standard normal, by Box and Muller.
fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.open_fraction().ln()).sqrt() * (std::f64::consts::TAU * random.fraction()).cos()
}

/// A value that remembers a share of the last one; its deviation is 1.
struct Remembers(f64, f64);

impl Remembers {
    fn next(&mut self, random: &mut Random) -> f64 {
        self.0 = self.1 * self.0 + (1.0 - self.1 * self.1).sqrt() * normal(random);
        self.0
    }
}

impl Series {
    pub fn watched(&self) -> Watched {
        let coordinators = ["n1", "n2", "n3"].map(str::to_owned).to_vec();
        let operations = ["read", "write"];
        let streams = (0..3).flat_map(|coordinator| {
            operations.map(|operation| Stream { coordinator, operation: operation.to_owned() })
        });
        let mut random = Random::new(self.seed);
        let mut common = Remembers(0.0, 0.9);
        let mut own = [0.0; 3].map(|start| Remembers(start, 0.5));
        let pairs = vec![[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        let mut watched = Watched {
            starts_ns: 100 * SECOND,
            step_ns: SECOND,
            learnt: self.learnt,
            timeout_ns: 2 * SECOND,
            limit: Limit { response_ns: 50 * MS, bad_share: 0.01, operation: None },
            coordinators,
            streams: streams.collect(),
            hosts: ["n1", "n2", "n3", "load"].map(str::to_owned).to_vec(),
            pairs: pairs.clone(),
            steps: Vec::new(),
        };
        for second in 0..self.seconds {
            let mut step = Step::default();
            let all = if self.noise == Noise::Correlated { 0.2 * common.next(&mut random) } else { 0.0 };
            for (coordinator, own) in own.iter_mut().enumerate() {
                let one = if self.noise == Noise::Correlated { 0.05 * own.next(&mut random) } else { 0.0 };
                let stall = self.noise == Noise::Hiccups && random.chance(0.01);
                for operation in 0..operations.len() {
                    let mean = (self.operations)(second, coordinator);
                    let count = (mean + mean.sqrt() * normal(&mut random)).round().max(0.0) as usize;
                    let mut ended = Ended::default();
                    for _ in 0..count {
                        let usual = if operation == 0 { 2.0 * MS as f64 } else { MS as f64 };
                        let mut took = usual * (0.4 * normal(&mut random) + all + one).exp();
                        if stall && random.chance(0.2) {
                            took += random.fraction() * 200.0 * MS as f64;
                        }
                        ended.ok.add(took as u64 + (self.slower)(second, coordinator), 1.0);
                    }
                    step.ended.push(ended);
                }
            }
            step.heartbeats = pairs.iter().map(|pair| self.heartbeats(second, *pair, all, &mut random)).collect();
            watched.steps.push(step);
        }
        watched
    }

    fn heartbeats(&self, second: usize, pair: [usize; 2], all: f64, random: &mut Random) -> Heartbeats {
        let mut heartbeats = Heartbeats::default();
        let (more, lost) = (self.farther)(second, pair);
        for _ in 0..10 {
            if random.chance(if self.noise == Noise::Lossy { lost.max(0.02) } else { lost }) {
                heartbeats.lost += 1;
                continue;
            }
            let mut took = 200_000.0 * (0.1 * normal(random) + all).exp();
            if self.noise == Noise::Hiccups && random.chance(0.05) {
                took += random.fraction() * 10.0 * MS as f64;
            }
            heartbeats.round_trips.push(took as u64 + more);
        }
        heartbeats
    }
}

/// The alarms of a detector, by its name.
pub fn alarms(detector: &str, watched: &Watched) -> Vec<Alarm> {
    let found = DETECTORS.iter().find(|one| one.name == detector);
    (found.unwrap_or_else(|| panic!("there is no detector {detector}")).alarms)(watched)
}

/// The second, from the start of the series, at the end of which an alarm was raised, and whom it accuses.
pub fn told(watched: &Watched, alarms: &[Alarm]) -> Vec<(u64, String)> {
    let accused = |alarm: &Alarm| alarm.accused.as_ref().map_or("nobody".to_owned(), ToString::to_string);
    alarms.iter().map(|alarm| ((alarm.at_ns - watched.starts_ns) / SECOND, accused(alarm))).collect()
}
