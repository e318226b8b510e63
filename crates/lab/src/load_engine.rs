//! The load of a trial: which nodes it asks, how it is connected, what it writes to, and its engine.

use std::time::Duration;

use brownout_load::{Balancing, Coordinator, Engine, EngineConfig, LoadError, control};

use crate::{
    LabError,
    experiment::CoordinatorsChoice,
    hosts::HostPlan,
    plan::{Plan, Work},
    testbed::Testbed,
};

/// For schema changes and the like.
pub(crate) const CONTROL_WITHIN: Duration = Duration::from_secs(60);
/// `SCHED_FIFO` priority of the load's thread: below the emulator's, so that packets come first.
const LOAD_PRIORITY: u8 = 10;

/// The nodes that are asked: those of the load's own site, where that is wanted.
pub(crate) fn coordinators(plan: &Plan, testbed: &Testbed) -> Result<Vec<Coordinator>, LabError> {
    let layout = &plan.layout;
    let near = plan.experiment.load.coordinators(layout.kind()) == CoordinatorsChoice::Local;
    let is_near =
        |node: &HostPlan| node.location.as_ref().map(|location| location.site.as_str()) == layout.hosts.load_site();
    testbed.coordinators(layout.hosts.nodes().filter(|node| !near || is_near(node)))
}

/// How it is connected. `epoch_ns`: when intervals begin, `CLOCK_MONOTONIC`.
pub(crate) fn config(
    plan: &Plan,
    testbed: &Testbed,
    coordinators: Vec<Coordinator>,
    seed: u64,
    epoch_ns: u64,
) -> EngineConfig {
    let load = &plan.experiment.load;
    EngineConfig {
        balancing: match load.coordinators(plan.layout.kind()) {
            CoordinatorsChoice::TokenAware | CoordinatorsChoice::Local => Balancing::TokenAware,
            CoordinatorsChoice::RoundRobin => Balancing::RoundRobin,
            CoordinatorsChoice::Leader => Balancing::Leader,
        },
        connections: usize::try_from(load.connections.0).unwrap_or(1),
        timeout: load.timeout.duration(),
        seed,
        epoch_ns,
        bucket: crate::plan::INTERVAL,
        wire: testbed.wire.clone(),
        thread_start: testbed.enters_load(Some(LOAD_PRIORITY)),
        ..EngineConfig::new(coordinators)
    }
}

/// Makes what it writes to, but for profiles, which make their own.
pub(crate) fn make_schema(
    plan: &Plan,
    testbed: &Testbed,
    coordinators: &[Coordinator],
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(), LabError> {
    let Work::KeyValue(workload) = &plan.load.work else { return Ok(()) };
    let limit = control::Limit { time: CONTROL_WITHIN, interrupted };
    control::run_ddl(&testbed.wire, coordinators, &testbed.enters_load(None), &workload.schema(), limit)
        .map_err(|error| unless(interrupted, error))
}

/// Connects it, but for profiles.
pub(crate) fn start(
    plan: &Plan,
    config: EngineConfig,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Engine, LabError> {
    let started = match &plan.load.work {
        Work::KeyValue(workload) => Engine::start_unless(config, workload.clone(), interrupted),
        Work::Etcd(load) => Engine::start_etcd_unless(config, load.clone(), interrupted),
        Work::Profiles(_) => {
            return Err(LabError::Trial("loads of profiles are made on one machine alone".to_owned()));
        }
    };
    started.map_err(|error| unless(interrupted, error))
}

fn unless(interrupted: &(dyn Fn() -> bool + Sync), error: LoadError) -> LabError {
    if interrupted() { LabError::Interrupted } else { error.into() }
}
