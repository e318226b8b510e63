//! The plan: an experiment file, checked and resolved. Nothing is started before there is one.

mod check;
mod faults;
mod load;
mod network;
mod overlaps;
mod profiles;
mod windows;

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use brownout_network::Impairment;
use brownout_probe::Probes;
use brownout_record::{Description, HostDescription, LoadDescription, Objective, PhaseDescription, Subject};
use brownout_units::Delay;

use self::check::Check;
pub use self::{
    load::{PlannedLoad, Work},
    profiles::ProfileWork,
};
use crate::{
    experiment::{ClusterSection, Experiment, FileError, NetworkSection, Source},
    faults::Fault,
    hosts::Hosts,
};

/// All series are kept in intervals of this length; phases are whole multiples of it.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// The same in nanoseconds.
pub const INTERVAL_NS: u64 = INTERVAL.as_nanos() as u64;
/// Probes on each pair are this far apart, unless there are too many pairs.
const PROBE_EVERY: Duration = Duration::from_millis(20);
/// What a trial takes beside its phases: a cluster that becomes ready, and the last probes. Only for the expected duration.
const BESIDE_PHASES: Duration = Duration::from_secs(15);

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
    /// How many trials.
    pub trials: u32,
    /// Things to check before trusting the result.
    pub warnings: Vec<String>,
}

/// What a lab is made of, before anything happens in it.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Every host.
    pub hosts: Hosts,
    /// What lies between hosts all the time.
    pub distances: Vec<Distance>,
    /// The network as written.
    pub network: NetworkSection,
    /// The cluster as written.
    pub cluster: ClusterSection,
}

impl Layout {
    /// Checks the sections `network:` and `cluster:` of a file.
    pub fn new(source: &Source, experiment: &Experiment) -> Result<Layout, FileError> {
        let check = Check { source, experiment };
        check.cassandra()?;
        let (hosts, distances) = check.network(check.nodes()?)?;
        Ok(Layout { hosts, distances, network: experiment.network.clone(), cluster: experiment.cluster.clone() })
    }

    /// The ordered pairs of hosts with a limit of rate between them.
    fn bottlenecks(&self) -> Vec<Subject> {
        let limited = self.distances.iter().filter(|distance| distance.impairment.rate.is_some());
        limited.flat_map(|distance| &distance.pairs).map(|(from, to)| Subject::pair(from, to)).collect()
    }

    /// Sites and distances, one line each.
    pub fn network_words(&self) -> Vec<String> {
        let sites = self.hosts.sites();
        let load = self.hosts.load_site();
        let mut words: Vec<String> = sites
            .into_iter()
            .map(|(site, nodes)| {
                let load = if Some(site) == load { " and the load" } else { "" };
                format!("{site}: {}{load}", nodes.join(", "))
            })
            .collect();
        words.extend(self.distances.iter().map(|distance| format!("{}: {}", distance.words, distance.impairment)));
        words
    }
}

/// One phase of each trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedPhase {
    /// Its kind.
    pub phase: Phase,
    /// Its length; the longest for the warm-up.
    pub length: Delay,
}

/// The phases of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Flood, settle, wait for stationary latency.
    WarmUp,
    /// Measured without fault.
    Baseline,
    /// Measured with the faults.
    Fault,
    /// Measured after healing.
    Recovery,
}

impl Phase {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::WarmUp => "warm-up",
            Phase::Baseline => "baseline",
            Phase::Fault => "fault",
            Phase::Recovery => "recovery",
        }
    }
}

/// One fault, with the stretches of time in which it is in force.
#[derive(Debug, Clone)]
pub struct PlannedFault {
    /// What it does: once, or in the growing steps of a ramp, of which the last is what was asked.
    pub severities: Vec<Arc<dyn Fault>>,
    /// When it is in force, in order.
    pub periods: Vec<PlannedPeriod>,
}

/// A stretch of time in which a fault is in force, from the start of the phase `fault`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedPeriod {
    /// Which of the fault's severities.
    pub severity: usize,
    /// Its beginning.
    pub starts: Delay,
    /// Its end; the next one may begin there.
    pub ends: Delay,
}

impl PlannedFault {
    /// What was asked: its highest severity.
    pub fn fault(&self) -> Option<&dyn Fault> {
        self.severities.last().map(AsRef::as_ref)
    }

    /// What it needs of the lab from its start.
    pub fn needs(&self) -> crate::faults::Needs {
        let all = self.severities.iter().map(|fault| fault.needs());
        let needs = all.fold(crate::faults::Needs::default(), crate::faults::Needs::and);
        crate::faults::Needs { shortest_stall: self.shortest_stall(), ..needs }
    }

    /// The shortest of its periods, if in them processes stand still.
    fn shortest_stall(&self) -> Option<Delay> {
        let lengths = self.periods.iter().map(|period| Delay::from_ns(period.ends.ns() - period.starts.ns()));
        lengths.min().filter(|_| self.fault().is_some_and(Fault::is_stall))
    }

    /// What of it nobody judges, in words.
    fn unjudged(&self) -> Option<String> {
        let fault = self.fault()?;
        let parts = fault.unjudged();
        (!parts.is_empty()).then(|| format!("of '{}' the proof does not judge {}", fault.text(), parts.join(", ")))
    }

    /// When it first comes into force.
    pub fn starts(&self) -> Delay {
        self.periods.first().map_or(Delay::ZERO, |period| period.starts)
    }

    /// When it is healed for good.
    pub fn ends(&self) -> Delay {
        self.periods.last().map_or(Delay::ZERO, |period| period.ends)
    }

    /// When, in words: "from 0s to 30s", "from 0s to 30s, 2s of every 5s", "from 0s to 30s, in 5 steps".
    pub fn when(&self) -> String {
        let span = format!("from {} to {} of the phase 'fault'", self.starts(), self.ends());
        match (self.severities.len(), &self.periods[..]) {
            (steps @ 2.., _) => format!("{span}, in {steps} steps"),
            (_, [first, second, ..]) => {
                let (on, every) = (first.ends.ns() - first.starts.ns(), second.starts.ns() - first.starts.ns());
                format!("{span}, {} of every {}", Delay::from_ns(on), Delay::from_ns(every))
            }
            _ => span,
        }
    }
}

/// What lies between hosts all the time.
#[derive(Debug, Clone)]
pub struct Distance {
    /// From → to, in words: "us-east → eu-west".
    pub words: String,
    /// The ordered pairs of hosts.
    pub pairs: Vec<(String, String)>,
    /// On each of them.
    pub impairment: Impairment,
}

impl Plan {
    /// Checks an experiment file.
    pub fn new(source: &Source) -> Result<Plan, FileError> {
        let experiment = source.experiment()?;
        let check = Check { source, experiment: &experiment };
        let layout = Layout::new(source, &experiment)?;
        let hosts = &layout.hosts;
        let load = check.load(hosts, &check.cassandra()?)?;
        let phases = check.phases()?;
        check.mtus()?;
        let faults = check.faults(hosts, &phases)?;
        let objective = check.objective(&phases, &load)?;
        let trials = check.trials()?;
        let mut warnings = load.warnings.clone();
        warnings.extend(faults.iter().filter_map(PlannedFault::unjudged));
        warnings.extend(windows::faint(hosts, &phases, &faults));
        let name = source.file().file_stem().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into());
        Ok(Plan { name, layout, load, faults, phases, objective, trials, warnings, experiment })
    }

    /// How long all trials take, without provisioning; the warm-up at its longest.
    pub fn expected_duration(&self) -> Duration {
        let trial: u64 = self.phases.iter().map(|phase| phase.length.ns()).sum();
        (BESIDE_PHASES + Duration::from_nanos(trial)) * self.trials
    }

    /// The plan as the record keeps it.
    pub fn description(&self, system: &str) -> Description {
        let load = &self.experiment.load;
        Description {
            name: self.name.clone(),
            question: self.experiment.question.clone(),
            hosts: self
                .layout
                .hosts
                .iter()
                .map(|host| HostDescription {
                    name: host.name.clone(),
                    address: host.address.to_string(),
                    role: if host.name == Hosts::LOAD { "load" } else { "node" }.to_owned(),
                })
                .collect(),
            system: system.to_owned(),
            load: LoadDescription {
                text: self.load.text(load),
                rate: self.load.rate(load),
                threads: load.threads.map(|threads| to_u32(threads.0)),
                consistency: self.load.consistency.to_string(),
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
            bottlenecks: self.layout.bottlenecks(),
            trials: self.trials,
            objective: self.objective.clone(),
            interval_ns: INTERVAL_NS,
            warnings: self.warnings.clone(),
        }
    }

    /// What the faults need of the lab from its start.
    pub fn needs(&self) -> crate::faults::Needs {
        let all = self.faults.iter().map(PlannedFault::needs);
        all.fold(crate::faults::Needs::default(), crate::faults::Needs::and)
    }
}

/// Between two probes on each pair: as close as the prober's budget for all pairs together allows.
pub fn probe_interval(hosts: &Hosts) -> Duration {
    PROBE_EVERY.max(Probes::shortest_interval(hosts.pairs().count()))
}

pub(crate) fn to_u16(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn to_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The address of the `index`-th host (from 1) of a lab; the lab's network is its own, so it cannot collide.
pub(crate) const fn address(index: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, index)
}
