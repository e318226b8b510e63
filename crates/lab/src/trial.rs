//! One trial: a new network, a new cluster, the load, and the faults on their time line.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use brownout_cluster::{CassandraSpec, Cluster, Distribution, Jit, Owner, Paths, Place, java::Java};
use brownout_load::{Arrivals, Balancing, Coordinator, Engine, EngineConfig, Pace, ThreadStart, control};
use brownout_network::{Host, HostSpec, Link, LinkControl, Network, NetworkSpec, Probes, Scheduling};
use brownout_record::{PhaseRow, Recorder, TrialRow, TrialState};
use brownout_units::Rate;

use crate::{
    LabError,
    experiment::{ArrivalsChoice, CoordinatorsChoice, JitChoice, RateChoice},
    faults::Links,
    ground::Privilege,
    hosts::Hosts,
    observer::{Observer, Seen},
    plan::{Phase, Plan, PlannedPhase},
    progress::{Progress, Tick},
    schedule::Schedule,
    timeline::TimeLine,
    warmup::{self, Second},
};

/// Where CQL is answered.
const CQL_PORT: u16 = 9042;
/// A cluster that is not ready by then will not be: ten times what it takes on a small machine.
const READY_WITHIN: Duration = Duration::from_secs(180);
/// For schema changes and the like.
const CONTROL_WITHIN: Duration = Duration::from_secs(60);
/// Probes on each pair are this far apart, unless there are too many pairs.
const PROBE_EVERY: Duration = Duration::from_millis(20);
/// Probes per second on all pairs together, at most: each costs the instrument some microseconds.
const PROBE_BUDGET: u64 = 2_000;
/// `SCHED_FIFO` priority of the load's thread: below the emulator's, so that packets come first.
const LOAD_PRIORITY: u8 = 10;

/// What a trial is made of; the same for all trials of a run.
pub struct Bench {
    /// The plan.
    pub plan: Plan,
    /// Cassandra, where the lab sees it.
    pub distribution: Distribution,
    /// Java, where the lab sees it.
    pub java: Java,
    /// The class-data archive, if there is one.
    pub archive: Option<PathBuf>,
    /// What is kept between runs, where the lab sees it.
    pub cache: PathBuf,
    /// Where nodes keep their data.
    pub scratch: PathBuf,
    /// Where nodes log.
    pub logs: PathBuf,
    /// Who nodes run as; none: as this process.
    pub owner: Option<Owner>,
    /// How the lab got its rights.
    pub privilege: Privilege,
    /// Faults are accepted but not put in force: a test of the proof.
    pub sabotage: bool,
}

/// What is learned when the first trial stands: for the record's environment.
pub struct Standing {
    /// "SCHED_FIFO 50".
    pub emulator_scheduling: String,
    /// As read back from the hosts.
    pub congestion_control: String,
    /// The system's settings in force, as JSON.
    pub system_settings: String,
}

impl Bench {
    /// The network of a lab with this plan.
    pub fn network(&self, seed: u64) -> Result<Network, LabError> {
        let section = &self.plan.experiment.network;
        let network = Network::start(NetworkSpec {
            hosts: self
                .plan
                .hosts
                .iter()
                .map(|host| HostSpec { name: host.name.clone(), address: host.address })
                .collect(),
            mtu: u16::try_from(section.mtu.0).unwrap_or(u16::MAX),
            congestion_control: Some(section.congestion_control.clone()),
            seed,
            realtime: self.privilege == Privilege::Root,
        })?;
        if self.sabotage {
            network.control().sabotage(true)?;
        }
        Ok(network)
    }

    /// Where the files of a trial's nodes go.
    pub fn paths(&self, trial: u32) -> Paths {
        let part = format!("trial-{trial}");
        Paths { scratch: self.scratch.join(&part), logs: self.logs.join(&part), owner: self.owner }
    }

    fn cluster(&self, network: &Network, trial: u32) -> Result<Cluster, LabError> {
        let section = &self.plan.experiment.cluster;
        let spec = CassandraSpec {
            heap: section.heap,
            jit: match section.jit {
                JitChoice::C1 => Jit::C1,
                JitChoice::Default => Jit::Default,
            },
            ..CassandraSpec::default()
        };
        let places: Vec<&dyn Place> = self
            .plan
            .hosts
            .nodes()
            .filter_map(|node| network.host(&node.name))
            .map(|host| host as &dyn Place)
            .collect();
        let archive = self.archive.as_deref();
        Ok(Cluster::start(&spec, &self.distribution, &self.java, &places, &self.paths(trial), archive)?)
    }
}

/// Runs one trial and records it. The record says how it ended, also when this returns an error.
pub fn run(
    bench: &Bench,
    number: u32,
    seed: u64,
    time_line: TimeLine,
    recorder: &mut Recorder,
    progress: &mut dyn Progress,
    stands: &mut dyn FnMut(&mut Recorder, Standing) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mut row = TrialRow {
        trial: number,
        seed,
        starts_ns: recorder.at(time_line.epoch_ns),
        ends_ns: None,
        state: TrialState::Running,
    };
    recorder.batch(|recorder| recorder.trial(&row))?;
    let result = build_and_drive(bench, number, seed, time_line, recorder, progress, stands);
    row.ends_ns = Some(recorder.at(brownout_network::monotonic_ns()));
    row.state = match &result {
        Ok(()) => TrialState::Done,
        Err(LabError::Interrupted) => TrialState::Interrupted,
        Err(_) => TrialState::Failed,
    };
    let recorded = recorder.batch(|recorder| recorder.trial(&row));
    // What went wrong first is what a person has to know.
    result.and(recorded.map_err(LabError::from))
}

fn build_and_drive(
    bench: &Bench,
    number: u32,
    seed: u64,
    time_line: TimeLine,
    recorder: &mut Recorder,
    progress: &mut dyn Progress,
    stands: &mut dyn FnMut(&mut Recorder, Standing) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let plan = &bench.plan;
    let trials = plan.experiment.trials;
    let set_up = PhaseRow {
        trial: number,
        name: "set-up".to_owned(),
        starts_ns: recorder.at(time_line.epoch_ns),
        ends_ns: None,
        ended_by: None,
    };
    recorder.batch(|recorder| recorder.phase(&set_up))?;
    progress.step(&format!("trial {number} of {trials}: network of {} hosts", plan.hosts.iter().count()));
    let network = bench.network(seed)?;
    progress.step(&format!("trial {number} of {trials}: starting {} nodes", plan.hosts.nodes().count()));
    let mut cluster = bench.cluster(&network, number)?;
    let ready = cluster
        .wait_ready(READY_WITHIN, &|| time_line.interrupted(), &mut |missing| {
            progress.step(&format!("trial {number} of {trials}: {missing}"));
        })
        .map_err(|error| if time_line.interrupted() { LabError::Interrupted } else { error.into() })?;
    progress.note(&format!("cluster ready after {:.1}s", ready.took.as_secs_f64()));
    stands(recorder, standing(&network, &cluster))?;

    let load_host = network.host(Hosts::LOAD).ok_or_else(|| LabError::Trial("the lab has no load host".to_owned()))?;
    let coordinators: Vec<Coordinator> = plan
        .hosts
        .nodes()
        .map(|node| Coordinator { name: node.name.clone(), address: SocketAddr::new(node.address.into(), CQL_PORT) })
        .collect();
    let workload = plan.workload();
    progress.step(&format!("trial {number} of {trials}: making the schema"));
    control::run_ddl(&coordinators, &entering(load_host, None), &workload.schema(), CONTROL_WITHIN)?;

    let probes = Probes::start(&network, probe_interval(network.links().len()))?;
    let load = &plan.experiment.load;
    let mut config = EngineConfig::new(coordinators);
    config.balancing = match load.coordinators {
        CoordinatorsChoice::TokenAware => Balancing::TokenAware,
        CoordinatorsChoice::RoundRobin => Balancing::RoundRobin,
    };
    config.connections = usize::try_from(load.connections.0).unwrap_or(1);
    config.timeout = load.timeout.duration();
    config.seed = seed;
    config.epoch_ns = time_line.epoch_ns;
    config.bucket = crate::plan::INTERVAL;
    config.thread_start = entering(load_host, Some(LOAD_PRIORITY));
    let engine = Engine::start(config, workload)?;
    let observer = Observer::new(number, recorder, &network, &mut cluster, &probes, time_line.epoch_ns)?;
    let links = NetworkLinks { network: &network, control: network.control() };
    let schedule = Schedule::new(&plan.faults, &plan.hosts, &links);
    let driver = Driver { bench, number, time_line, engine, observer, schedule, progress, set_up };
    driver.run()
}

/// The trial once everything stands.
struct Driver<'a> {
    bench: &'a Bench,
    number: u32,
    time_line: TimeLine,
    engine: Engine,
    observer: Observer<'a>,
    schedule: Schedule<'a>,
    progress: &'a mut dyn Progress,
    set_up: PhaseRow,
}

/// How a phase ended, as the record says it.
#[derive(Clone, Copy)]
enum EndedBy {
    Time,
    Stationary,
    Limit,
    Interrupt,
}

impl EndedBy {
    fn name(self) -> &'static str {
        match self {
            EndedBy::Time => "time",
            EndedBy::Stationary => "stationary",
            EndedBy::Limit => "limit",
            EndedBy::Interrupt => "interrupt",
        }
    }
}

impl Driver<'_> {
    fn run(mut self) -> Result<(), LabError> {
        let result = self.phases();
        // Whatever happened: heal, let every open operation end, and keep what was seen.
        let ended = self.end(matches!(result, Err(LabError::Interrupted)));
        result.and(ended)
    }

    fn phases(&mut self) -> Result<(), LabError> {
        let mut mark = self.time_line.next_mark(brownout_network::monotonic_ns());
        self.time_line.wait_until(mark)?;
        self.observer.look(None)?;
        let mut set_up = self.set_up.clone();
        self.phase_row(&mut set_up, mark, EndedBy::Time)?;
        for phase in self.bench.plan.phases.clone() {
            let mut row = PhaseRow {
                trial: self.number,
                name: phase.phase.name().to_owned(),
                starts_ns: self.observer.recorder().at(mark),
                ends_ns: None,
                ended_by: None,
            };
            self.observer.recorder().batch(|recorder| recorder.phase(&row))?;
            let ended = match phase.phase {
                Phase::WarmUp => self.warm_up(mark, phase),
                _ => self.measure(mark, phase).map(|ends| (ends, EndedBy::Time)),
            };
            match ended {
                Ok((ends, by)) => {
                    self.phase_row(&mut row, ends, by)?;
                    mark = ends;
                }
                Err(error) => {
                    let now = brownout_network::monotonic_ns();
                    self.phase_row(&mut row, now, EndedBy::Interrupt)?;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn phase_row(&mut self, row: &mut PhaseRow, ends: u64, by: EndedBy) -> Result<(), LabError> {
        row.ends_ns = Some(self.observer.recorder().at(ends));
        row.ended_by = Some(by.name().to_owned());
        Ok(self.observer.recorder().batch(|recorder| recorder.phase(row))?)
    }

    /// A phase of fixed length, with the faults' actions where the schedule has them. Returns its end.
    fn measure(&mut self, starts: u64, phase: PlannedPhase) -> Result<u64, LabError> {
        let ends = starts + phase.length.ns();
        if phase.phase == Phase::Fault {
            self.schedule.begin(starts);
        }
        loop {
            let mark = self.time_line.next_mark(brownout_network::monotonic_ns());
            let due = self.schedule.next_action().filter(|at| *at <= mark);
            self.time_line.wait_until(due.unwrap_or(mark))?;
            for told in self.schedule.act(self.number, &mut self.observer)? {
                self.progress.note(&told);
            }
            if due.is_none() || due == Some(mark) {
                self.tick(phase.phase.name(), ends)?;
                if mark >= ends {
                    return Ok(ends);
                }
            }
        }
    }

    /// Fills the table, floods, settles; returns the end and why.
    fn warm_up(&mut self, starts: u64, phase: PlannedPhase) -> Result<(u64, EndedBy), LabError> {
        let limit = starts + phase.length.ns();
        self.engine.set_pace(Pace::Populate { in_flight: warmup::POPULATE_IN_FLIGHT })?;
        let flood_until = starts + (phase.length.ns() as f64 * warmup::FLOOD_SHARE) as u64;
        loop {
            let (mark, _) = self.next_tick("warm-up (filling)", limit)?;
            let filled = self.engine.populated();
            if filled.done >= filled.total {
                break;
            }
            if mark >= limit {
                return Err(LabError::Trial(format!(
                    "the warm-up's {} were too short to write {} rows ({} written); write a longer phases.warm-up \
                     or a smaller load.population",
                    phase.length, filled.total, filled.done
                )));
            }
        }
        self.engine.set_pace(Pace::Closed { threads: warmup::FLOOD_THREADS })?;
        let mut flood = Vec::new();
        loop {
            let (mark, seen) = self.next_tick("warm-up (flood)", limit)?;
            flood.extend(seen.live.map(|live| live.delivered as f64 / seen.seconds));
            // At least two whole seconds: without them there is no capacity to take a share of.
            if mark >= flood_until && flood.len() >= 2 {
                break;
            }
        }
        let newer = &flood[flood.len() / 2..];
        let capacity = newer.iter().sum::<f64>() / newer.len() as f64;
        let pace = self.pace(capacity)?;
        self.engine.set_pace(pace)?;
        let mut seconds = Vec::new();
        loop {
            let (mark, seen) = self.next_tick("warm-up (settling)", limit)?;
            seconds.extend(seen.live.map(|live| Second {
                offered: live.offered,
                delivered: live.delivered,
                p50_ns: live.response.value_at_quantile(0.5),
            }));
            if warmup::stationary(&seconds) {
                return Ok((mark, EndedBy::Stationary));
            }
            if mark >= limit {
                let text = format!(
                    "the warm-up ended at its limit of {} before latency was stationary; give phases.warm-up more time",
                    phase.length
                );
                let now = brownout_network::monotonic_ns();
                self.observer.event("warning", "warm-up", &text, now, 0)?;
                self.progress.note(&text);
                return Ok((mark, EndedBy::Limit));
            }
        }
    }

    fn pace(&mut self, capacity: f64) -> Result<Pace, LabError> {
        let load = &self.bench.plan.experiment.load;
        let arrivals = match load.arrivals {
            ArrivalsChoice::Constant => Arrivals::Constant,
            ArrivalsChoice::Poisson => Arrivals::Poisson,
        };
        let (pace, target) = match (load.rate, load.threads) {
            (Some(RateChoice::Fixed(rate)), _) => (Pace::Open { rate, arrivals }, rate.to_string()),
            (Some(RateChoice::OfCapacity(share)), _) => {
                let rate = Rate::per_second((capacity * share.fraction()).round().max(1.0)).ok_or_else(|| {
                    LabError::Trial("the flood of the warm-up delivered nothing, so there is no capacity".to_owned())
                })?;
                (Pace::Open { rate, arrivals }, format!("{rate}, which is {share} of it"))
            }
            (None, threads) => {
                let threads = threads.map_or(1, |threads| u32::try_from(threads.0).unwrap_or(u32::MAX));
                (Pace::Closed { threads }, format!("a closed loop of {threads} threads"))
            }
        };
        let text = format!("the flood was answered at {capacity:.0}/s; the load from here on is {target}");
        self.observer.event("capacity", "load", &text, brownout_network::monotonic_ns(), 0)?;
        self.progress.note(&text);
        Ok(pace)
    }

    fn next_tick(&mut self, phase: &str, ends: u64) -> Result<(u64, Seen), LabError> {
        let mark = self.time_line.next_mark(brownout_network::monotonic_ns());
        self.time_line.wait_until(mark)?;
        Ok((mark, self.tick(phase, ends)?))
    }

    fn tick(&mut self, phase: &str, ends: u64) -> Result<Seen, LabError> {
        let seen = self.observer.look(Some(&self.engine))?;
        for death in &seen.deaths {
            self.progress.note(death);
        }
        if self.observer.dead().len() >= self.bench.plan.hosts.nodes().count() {
            return Err(LabError::Trial("every node has died; their logs are in the run's folder".to_owned()));
        }
        if let Some(live) = &seen.live {
            let left = ends.saturating_sub(brownout_network::monotonic_ns());
            let median = |histogram: &brownout_record::Histogram| histogram.value_at_quantile(0.5);
            self.progress.tick(&Tick {
                trial: self.number,
                trials: u32::try_from(self.bench.plan.experiment.trials.0).unwrap_or(u32::MAX),
                phase: phase.to_owned(),
                left: Duration::from_nanos(left),
                offered: live.offered as f64 / seen.seconds,
                delivered: live.delivered as f64 / seen.seconds,
                failed: live.failed + live.timed_out + live.never_sent,
                p50_ns: median(&live.response),
                p99_ns: live.response.value_at_quantile(0.99),
                coordinators: live.coordinators.iter().map(|(name, latency)| (name.clone(), median(latency))).collect(),
                faults: self.schedule.in_force(),
                busy: seen.busy,
            });
        }
        Ok(seen)
    }

    /// Heals, stops the load, and records what is left. After an interrupt, nothing is waited for.
    fn end(mut self, interrupted: bool) -> Result<(), LabError> {
        let healed = self.schedule.heal_all(self.number, &mut self.observer);
        let timeout = self.bench.plan.experiment.load.timeout.duration();
        let grace = if interrupted { Duration::ZERO } else { timeout + Duration::from_millis(200) };
        let (buckets, balance) = self.engine.stop(grace);
        if !interrupted {
            std::thread::sleep(Probes::LOST_AFTER + Duration::from_millis(200));
        }
        self.observer.look(None)?;
        self.observer.buckets(&buckets)?;
        self.observer.last_probes()?;
        if !balance.balances() {
            let text = format!("the balance sheet of the load does not balance: {balance:?}");
            self.observer.event("balance", "load", &text, brownout_network::monotonic_ns(), 0)?;
        }
        healed
    }
}

struct NetworkLinks<'a> {
    network: &'a Network,
    control: brownout_network::Emulator,
}

impl Links for NetworkLinks<'_> {
    fn control(&self) -> &dyn LinkControl {
        &self.control
    }

    fn link(&self, from: &str, to: &str) -> Option<Link> {
        self.network.link(from, to)
    }
}

fn probe_interval(pairs: usize) -> Duration {
    let needed = Duration::from_nanos(pairs as u64 * 1_000_000_000 / PROBE_BUDGET);
    PROBE_EVERY.max(needed)
}

/// Moves each thread of the load into its host, and lets it be on time if the machine allows.
fn entering(host: &Host, priority: Option<u8>) -> ThreadStart {
    let host = host.clone();
    Arc::new(move || {
        host.enter()?;
        if let Some(priority) = priority {
            // Whatever it gets: the generator's lateness is measured either way.
            brownout_network::run_urgently(priority);
        }
        Ok(())
    })
}

fn standing(network: &Network, cluster: &Cluster) -> Standing {
    let congestion_control = network.hosts().first().map(Host::congestion_control).unwrap_or_default().to_owned();
    let settings = serde_json::to_string_pretty(&cluster.in_force()).unwrap_or_default();
    Standing { emulator_scheduling: scheduling_name(network.realtime()), congestion_control, system_settings: settings }
}

/// For people.
pub(crate) fn scheduling_name(scheduling: Scheduling) -> String {
    match scheduling {
        Scheduling::Fifo(priority) => format!("SCHED_FIFO {priority}"),
        Scheduling::Default => "SCHED_OTHER".to_owned(),
    }
}
