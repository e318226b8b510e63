//! What every trial of a run is made of, and how its parts are built from the plan.

use std::path::PathBuf;

use brownout_cluster::{CassandraSpec, Cluster, Distribution, Jit, Owner, Paths, Place, java::Java};
use brownout_network::{Host, HostSpec, Network, NetworkSpec, Scheduling};

use crate::{LabError, experiment::JitChoice, ground::Privilege, plan::Plan};

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
                .map(|host| HostSpec::new(host.name.clone(), host.address))
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

    /// The nodes of a trial, started.
    pub fn cluster(&self, network: &Network, trial: u32) -> Result<Cluster, LabError> {
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

/// What there is to tell of a trial that stands.
pub fn standing(network: &Network, cluster: &Cluster) -> Standing {
    let congestion_control = network.hosts().first().map(Host::congestion_control).unwrap_or_default().to_owned();
    let settings = serde_json::to_string_pretty(&cluster.in_force()).unwrap_or_default();
    Standing { emulator_scheduling: scheduling_name(network.realtime()), congestion_control, system_settings: settings }
}

/// For people.
pub fn scheduling_name(scheduling: Scheduling) -> String {
    match scheduling {
        Scheduling::Fifo(priority) => format!("SCHED_FIFO {priority}"),
        Scheduling::Default => "SCHED_OTHER".to_owned(),
    }
}
