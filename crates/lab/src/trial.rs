//! One trial: a new network, a new cluster, the load, and the faults on their time line.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use brownout_cluster::cassandra::CQL_PORT;
use brownout_load::{Balancing, Coordinator, Engine, EngineConfig, LoadError, ThreadStart, control};
use brownout_network::Host;
use brownout_probe::Probes;
use brownout_record::{PhaseRow, Recorder, TrialRow, TrialState};

use crate::{
    LabError,
    evidence::DatabaseEvidence,
    experiment::CoordinatorsChoice,
    faults::sabotage::sabotaged,
    filling::Filling,
    hosts::{HostPlan, Hosts},
    observer::{Observer, Sources},
    phases::PhaseRunner,
    plan::{Plan, Work, to_u16},
    progress::Progress,
    schedule::Schedule,
    spec::LabSpec,
    testbed::{READY_WITHIN, Testbed, TestbedSettings, settings},
    timeline::TimeLine,
    witness::Witnesses,
};

/// For schema changes and the like.
const CONTROL_WITHIN: Duration = Duration::from_secs(60);
/// `SCHED_FIFO` priority of the load's thread: below the emulator's, so that packets come first.
const LOAD_PRIORITY: u8 = 10;

/// One trial of a run.
pub struct Trial<'a> {
    /// What it is made of.
    pub spec: &'a LabSpec,
    /// What is to happen.
    pub plan: &'a Plan,
    /// From 1.
    pub number: u32,
    /// All its randomness is drawn from this.
    pub seed: u64,
    /// Faults are acknowledged and not put in force: the negative control.
    pub sabotage: bool,
    /// Its marks.
    pub time_line: TimeLine,
}

/// Told once, when network and cluster stand.
pub type OnReady<'a> = dyn FnMut(&mut Recorder, TestbedSettings) -> Result<(), LabError> + 'a;

impl Trial<'_> {
    /// Runs it and records it. The record says how it ended, also when this returns an error.
    pub fn run(
        &self,
        recorder: &mut Recorder,
        progress: &mut dyn Progress,
        on_ready: &mut OnReady<'_>,
    ) -> Result<(), LabError> {
        let mut row = TrialRow {
            trial: self.number,
            seed: self.seed,
            starts_ns: recorder.at(self.time_line.epoch_ns),
            ends_ns: None,
            state: TrialState::Running,
        };
        recorder.batch(|recorder| recorder.trial(&row))?;
        let result = self.build_and_drive(recorder, progress, on_ready);
        row.ends_ns = Some(recorder.at(brownout_base::clock::monotonic_ns()));
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
        &self,
        recorder: &mut Recorder,
        progress: &mut dyn Progress,
        on_ready: &mut OnReady<'_>,
    ) -> Result<(), LabError> {
        let Trial { spec, plan, number, seed, sabotage, time_line } = *self;
        let hosts = &plan.layout.hosts;
        let title = format!("trial {number} of {}", plan.trials);
        let set_up = PhaseRow {
            trial: number,
            name: "set-up".to_owned(),
            starts_ns: recorder.at(time_line.epoch_ns),
            ends_ns: None,
            ended_by: None,
        };
        recorder.batch(|recorder| recorder.phase(&set_up))?;
        let (all, nodes) = (hosts.iter().count(), hosts.nodes().count());
        let s = if nodes == 1 { "" } else { "s" };
        progress.step(&format!("{title}: {all} hosts, starting {nodes} node{s}"));
        let needs = plan.needs();
        let mut testbed = Testbed::build(spec, number, seed, &needs)?;
        let ready = testbed
            .cluster
            .wait_ready(READY_WITHIN, &|| time_line.interrupted(), &mut |missing| {
                progress.step(&format!("{title}: {missing}"));
            })
            .map_err(|error| if time_line.interrupted() { LabError::Interrupted } else { error.into() })?;
        progress.note(&format!("cluster ready after {:.1}s", ready.took.as_secs_f64()));
        on_ready(recorder, settings(&testbed))?;

        let host = testbed
            .network
            .host(Hosts::LOAD)
            .ok_or_else(|| LabError::Trial("the lab has no host for the load".into()))?;
        progress.step(&format!("{title}: making the schema"));
        let interrupted = || time_line.interrupted();
        let unless_interrupted = |error: LoadError| if interrupted() { LabError::Interrupted } else { error.into() };
        let limit = control::Limit { time: CONTROL_WITHIN, interrupted: &interrupted };
        let (engine, filling) = match &plan.load.work {
            Work::KeyValue(workload) => {
                control::run_ddl(&self.coordinators(), &entering(host, None), &workload.schema(), limit)
                    .map_err(unless_interrupted)?;
                let config = self.engine(host);
                (Engine::start_unless(config, workload.clone(), &interrupted).map_err(unless_interrupted)?, None)
            }
            Work::Profiles(work) => {
                let coordinators = self.coordinators();
                let made = host
                    .run(|| work.load.make(&coordinators, seed, &interrupted))
                    .map_err(|source| LabError::Ground { doing: "enter the host of the load", source })?
                    .map_err(|error| match interrupted() {
                        true => LabError::Interrupted,
                        false => LabError::Trial(error.to_string()),
                    })?;
                made.notes.iter().for_each(|note| progress.note(note));
                let filling = Filling::start(self.engine(host), &made, &interrupted).map_err(unless_interrupted)?;
                let engine = Engine::launch_unless(self.engine(host), made.load, &interrupted);
                (engine.map_err(unless_interrupted)?, Some(filling))
            }
        };
        let Testbed { network, cluster, capabilities, controls, .. } = &mut testbed;
        let probes = Probes::start(network, crate::plan::probe_interval(hosts))?;
        let mtu = to_u16(plan.layout.network.mtu.0);
        let witnesses = Witnesses::start(&needs, network, mtu, controls)?;
        let evidence = DatabaseEvidence::start(&controls.nodes, spec, &needs, time_line.epoch_ns)?;
        let sources =
            Sources { network, probes: &probes, witnesses: &witnesses, evidence: &evidence, proc: &spec.proc };
        let observer = Observer::new(number, recorder, cluster, sources, time_line.epoch_ns)?;
        let capabilities = if sabotage { sabotaged(capabilities) } else { capabilities.clone() };
        let schedule = Schedule::new(&plan.faults, hosts, &capabilities);
        PhaseRunner { plan, number, time_line, engine, filling, observer, schedule, progress, set_up }.run()
    }

    fn coordinators(&self) -> Vec<Coordinator> {
        let hosts = &self.plan.layout.hosts;
        let near = self.plan.experiment.load.coordinators == CoordinatorsChoice::Local;
        let is_near =
            |node: &HostPlan| node.location.as_ref().map(|location| location.site.as_str()) == hosts.load_site();
        let nodes = hosts.nodes().filter(|node| !near || is_near(node));
        nodes
            .map(|node| Coordinator {
                name: node.name.clone(),
                address: SocketAddr::new(node.address.into(), CQL_PORT),
            })
            .collect()
    }

    fn engine(&self, host: &Host) -> EngineConfig {
        let load = &self.plan.experiment.load;
        EngineConfig {
            balancing: match load.coordinators {
                CoordinatorsChoice::TokenAware | CoordinatorsChoice::Local => Balancing::TokenAware,
                CoordinatorsChoice::RoundRobin => Balancing::RoundRobin,
            },
            connections: usize::try_from(load.connections.0).unwrap_or(1),
            timeout: load.timeout.duration(),
            seed: self.seed,
            epoch_ns: self.time_line.epoch_ns,
            bucket: crate::plan::INTERVAL,
            thread_start: entering(host, Some(LOAD_PRIORITY)),
            ..EngineConfig::new(self.coordinators())
        }
    }
}

/// Moves each thread of the load into its host, and lets it be on time if the machine allows.
fn entering(host: &Host, priority: Option<u8>) -> ThreadStart {
    let host = host.clone();
    Arc::new(move || {
        host.enter()?;
        if let Some(priority) = priority {
            // Whatever it gets: the generator's lateness is measured either way.
            brownout_machine::run_urgently(priority);
        }
        Ok(())
    })
}
