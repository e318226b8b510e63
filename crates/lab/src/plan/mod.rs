//! The plan: an experiment file, checked and resolved. Nothing is started before there is one.

mod amounts;
mod check;
mod cluster;
mod etcd;
mod external;
mod faults;
mod ground;
mod layout;
mod load;
mod narrow;
mod network;
mod objective;
mod overlaps;
mod period;
mod phase;
mod placement;
mod profiles;
mod roles;
mod windows;

use std::time::Duration;

use brownout_record::{Description, HostDescription, LoadDescription, LoadPart, Objective, PhaseDescription};
use brownout_units::Share;

use self::check::Check;
use self::narrow::to_u32;
pub(crate) use self::{amounts::words, cluster::encryption, etcd::PREFIX as ETCD_PREFIX, external::split_address};
pub use self::{
    layout::Layout,
    load::{PlannedLoad, Work},
    network::Distance,
    period::{PlannedFault, PlannedPeriod},
    phase::{INTERVAL, INTERVAL_NS, Phase, PlannedPhase},
    windows::probe_interval,
};
pub(crate) use self::{narrow::to_u16, network::limits_packets, windows::BRIEF};
use crate::{
    experiment::{Amount, ContainersFound, Experiment, FileError, ParallelChoice, Source},
    hosts::Hosts,
};

/// Trials of one cell; a mistyped number should not run for a year.
const MAX_TRIALS: u32 = 10_000;
/// Of those in a block, the median is compared with; more than a few add little.
const MOST_WITHOUT: u32 = 20;
/// Labs at once. More than the processors of a large machine are a mistake.
const MOST_LABS: u32 = 256;
/// What has failed so often will fail again.
const MOST_ATTEMPTS: u32 = 20;
/// What a trial takes beside its phases: a cluster that becomes ready, and the last probes. Only for the expected duration.
const ON_A_NEW_STAND: Duration = Duration::from_secs(15);
/// The same where a cluster goes on.
const ON_THE_SAME_STAND: Duration = Duration::from_secs(5);

/// An experiment that can be run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The file's name without its ending.
    pub name: String,
    /// The file, as parsed.
    pub experiment: Experiment,
    /// What the lab is made of.
    pub layout: Layout,
    /// The load.
    pub load: PlannedLoad,
    /// The faults, in the file's order; those of a chaos in the order in which they come.
    pub faults: Vec<PlannedFault>,
    /// The phases, in order.
    pub phases: Vec<PlannedPhase>,
    /// What counts as good.
    pub objective: Objective,
    /// How many trials of each cell.
    pub trials: u32,
    /// How many without a fault beside each of them; none: as many as a design needs.
    pub without_fault: Option<u32>,
    /// A change that is smaller is none.
    pub margin: Share,
    /// How often a trial is tried.
    pub attempts: u32,
    /// How many trials a cluster serves.
    pub fresh_every: u32,
    /// How many labs work at once while it is run; none: as many as there is room for.
    pub parallel: Option<u32>,
    /// Things to check before trusting the result.
    pub warnings: Vec<String>,
}

impl Plan {
    /// Checks an experiment file.
    pub fn new(source: &Source) -> Result<Plan, FileError> {
        let experiment = source.experiment()?;
        let check = Check { source, experiment: &experiment };
        let mut layout = Layout::new(source, &experiment)?;
        check.refuse_faults_of_external()?;
        let load = check.load(&layout.hosts)?;
        let phases = check.phases()?;
        let (faults, hosts) = check.faults(&layout.hosts, &phases)?;
        layout.hosts = hosts;
        let hosts = &layout.hosts;
        let objective = check.objective(&phases, &load)?;
        let trials = check.count("trials", experiment.trials, 1..=MAX_TRIALS)?;
        let without_fault = experiment.without_fault.map(|count| check.count("without-fault", count, 0..=MOST_WITHOUT));
        let margin = check.margin()?;
        let attempts = check.count("attempts", experiment.attempts, 1..=MOST_ATTEMPTS)?;
        let fresh_every = check.count("fresh-every", experiment.fresh_every, 1..=MAX_TRIALS)?;
        let parallel = match experiment.parallel {
            ParallelChoice::Auto => None,
            ParallelChoice::Labs(labs) => Some(check.count("parallel", labs, 1..=MOST_LABS)?),
        };
        let mut warnings = experiment.ignored.clone();
        warnings.extend(load.warnings.clone());
        warnings.extend(hosts.unwatched());
        warnings.extend(faults.iter().filter_map(PlannedFault::unjudged));
        warnings.extend(windows::faint(hosts, &phases, &faults));
        warnings.extend(windows::brief(hosts, &faults));
        warnings.extend(roles::chance(hosts, &faults));
        warnings.extend(windows::unscored(&phases, &faults));
        let sets_clocks = faults.iter().any(|fault| !fault.needs().clocks.is_empty());
        warnings.extend(check.version_warnings(hosts, sets_clocks)?);
        let name = source.file().file_stem().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into());
        Ok(Plan {
            name,
            layout,
            load,
            faults,
            phases,
            objective,
            trials,
            without_fault: without_fault.transpose()?,
            margin,
            attempts,
            fresh_every,
            parallel,
            warnings,
            experiment,
        })
    }

    /// The plan as the record keeps it.
    pub fn description(&self, database: &str) -> Description {
        let load = &self.experiment.load;
        Description {
            name: self.name.clone(),
            question: self.experiment.question.clone(),
            hosts: self
                .layout
                .hosts
                .iter()
                .enumerate()
                .map(|(place, host)| HostDescription {
                    name: host.name.clone(),
                    address: match &self.layout.cluster.external {
                        // Where the load runs has none, but for containers, who know this machine by one.
                        Some(_) if host.name == Hosts::LOAD && self.layout.is_attached() => host.address.to_string(),
                        Some(addresses) => addresses.0.get(place).cloned().unwrap_or_default(),
                        None => host.address.to_string(),
                    },
                    role: if host.name == Hosts::LOAD { "load" } else { "node" }.to_owned(),
                })
                .collect(),
            database: database.to_owned(),
            external: self.layout.is_external(),
            ground: self.layout.containers.as_ref().map(ContainersFound::words).unwrap_or_default(),
            load: LoadDescription {
                text: self.load.text(load),
                rate: self.load.rate(load),
                threads: self.load.threads(load),
                parts: self.load.parts().map(part).collect(),
                consistency: self.load.consistency_words(),
                replication: self.load.replication,
                timeout_ns: load.timeout.ns(),
            },
            phases: self
                .phases
                .iter()
                .map(|phase| PhaseDescription { name: phase.phase.name().to_owned(), length_ns: phase.length.ns() })
                .collect(),
            faults: self
                .faults
                .iter()
                .filter_map(|fault| Some((fault.when(), fault.fault()?)))
                .map(|(when, fault)| format!("{}; {}; {when}", fault.text(), fault.effect()))
                .collect(),
            network: self.layout.network_words(),
            overlay: self.layout.hosts.overlay().map(|overlay| overlay.to_string()).unwrap_or_default(),
            encryption: self.layout.encryption_words(),
            bottlenecks: Some(self.layout.bottlenecks()),
            // Who laid out an external cluster, and how, nobody tells.
            placement: (!self.layout.is_external())
                .then(|| placement::placement(&self.layout, &self.load, load.coordinators(self.layout.kind()))),
            trials: self.trials,
            objective: self.objective.clone(),
            interval_ns: INTERVAL_NS,
            warnings: self.warnings.clone(),
        }
    }

    /// How long a trial takes, about: a cluster that is warm is flooded briefly at most, so that its warm-up takes half of its
    /// limit at most.
    pub fn expected(&self, is_fresh: bool) -> Duration {
        let length = |planned: &PlannedPhase| match planned.phase {
            Phase::WarmUp if !is_fresh => planned.length.duration() / 2,
            _ => planned.length.duration(),
        };
        let beside = if is_fresh { ON_A_NEW_STAND } else { ON_THE_SAME_STAND };
        self.phases.iter().map(length).sum::<Duration>() + beside
    }

    /// Whether a process is started anew in a trial: it is as slow then as at first, and another trial needs another stand.
    pub fn restarts(&self) -> bool {
        self.faults.iter().flat_map(|fault| &fault.severities).any(|fault| fault.restarts())
    }

    /// What the faults, and what is to be watched beside them, need of the lab from its start.
    pub fn needs(&self) -> crate::faults::Needs {
        let all = self.faults.iter().map(PlannedFault::needs);
        let own = crate::faults::Needs { clock_matrix: self.layout.network.clock_matrix, ..Default::default() };
        all.fold(own, crate::faults::Needs::and)
    }
}

/// An operation that is a load of its own, as the record keeps it.
fn part((operation, amount): (&str, Amount)) -> LoadPart {
    let (rate, threads) = match amount {
        Amount::Rate(rate) => (Some(rate.get()), None),
        Amount::Threads(threads) => (None, Some(to_u32(threads.0))),
    };
    LoadPart { operation: operation.to_owned(), rate, threads }
}
