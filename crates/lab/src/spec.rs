//! What a lab is built from: the layout of the plan, and the software and directories provided for it.

use std::{collections::BTreeMap, fs::File, net::SocketAddr, path::PathBuf};

use brownout_cluster::{
    Access, Cassandra, CassandraSpec, Database, Jit, Owner, Paths, Site,
    cassandra::Installed,
    etcd::{self, Etcd, EtcdSpec},
    external::External,
};
use brownout_network::{HostSpec, NetworkSpec};

use crate::{
    LabError,
    experiment::{ContainersFound, JitChoice},
    ground::Privilege,
    plan::{Layout, encryption, to_u16},
};

/// What a lab is made of; the same for all trials of the same layout.
pub struct LabSpec {
    /// Hosts, distances, cluster.
    pub layout: Layout,
    /// What its nodes run, where the lab sees it.
    pub runs: Runs,
    /// What is kept between runs, where the lab sees it.
    pub cache: PathBuf,
    /// Where nodes keep their data.
    pub scratch: PathBuf,
    /// Where nodes log.
    pub logs: PathBuf,
    /// Who nodes run as; none: as this process.
    pub owner: Option<Owner>,
    /// The machine's `/proc`, as it is seen from outside of the lab.
    pub proc: File,
    /// Its share of the machine's memory, in bytes; none: all that is available.
    pub memory: Option<u64>,
    /// How the lab got its rights.
    pub privilege: Privilege,
}

/// What the nodes of a cluster run.
#[derive(Debug, Clone)]
pub enum Runs {
    /// Cassandra.
    Cassandra {
        /// Most nodes.
        installed: Installed,
        /// Single nodes, by name.
        others: BTreeMap<String, Installed>,
    },
    /// Etcd.
    Etcd(etcd::Installed),
    /// Whatever they do: they run already.
    External {
        /// Where they answer clients, by name.
        nodes: Vec<(String, SocketAddr)>,
        /// What else a client needs.
        access: Access,
        /// The containers that they are, if those are attached; none: they are only asked.
        ground: Option<ContainersFound>,
    },
}

impl LabSpec {
    /// The database of its clusters.
    ///
    /// # Errors
    /// When a setting is not allowed, or a file of an external cluster's access cannot be used.
    pub fn database(&self) -> Result<Box<dyn Database>, LabError> {
        let database: Box<dyn Database> = match &self.runs {
            Runs::Cassandra { installed, others } => Box::new(Cassandra::new(&self.cassandra(), installed, others)?),
            Runs::Etcd(installed) => Box::new(Etcd::new(&self.etcd(), installed)?),
            Runs::External { access, .. } => Box::new(External::new(self.layout.kind(), access.clone())?),
        };
        Ok(database)
    }

    /// The network of a lab with this layout.
    pub fn network(&self, seed: u64) -> NetworkSpec {
        let section = &self.layout.network;
        let host = |host: &crate::hosts::HostPlan| {
            let congestion_control = section.congestion_control_of.get(&host.name).cloned();
            let service = Some(host.service());
            HostSpec { congestion_control, service, ..HostSpec::new(host.name.clone(), host.address) }
        };
        NetworkSpec {
            hosts: self.layout.hosts.iter().map(host).collect(),
            mtu: to_u16(section.mtu.0),
            congestion_control: Some(section.congestion_control.clone()),
            seed,
            realtime: self.privilege == Privilege::Root,
            overlay: self.layout.hosts.overlay(),
        }
    }

    /// Where the files of a stand's nodes go.
    pub fn paths(&self, stand: u32) -> Paths {
        let part = format!("stand-{stand}");
        Paths { scratch: self.scratch.join(&part), logs: self.logs.join(&part), owner: self.owner }
    }

    fn etcd(&self) -> EtcdSpec {
        let section = &self.layout.cluster;
        EtcdSpec { settings: section.settings(), settings_of: section.settings_of() }
    }

    fn cassandra(&self) -> CassandraSpec {
        let section = &self.layout.cluster;
        let nodes = self.layout.hosts.nodes();
        let sites = nodes.filter_map(|node| {
            let location = node.location.as_ref()?;
            Some((node.name.clone(), Site { dc: location.site.clone(), rack: location.rack.clone() }))
        });
        CassandraSpec {
            heap: section.heap(),
            jit: match section.jit() {
                JitChoice::C1 => Jit::C1,
                JitChoice::Default => Jit::Default,
            },
            settings: section.settings(),
            settings_of: section.settings_of(),
            encryption: encryption(section.encryption.as_ref()),
            sites: sites.collect(),
            ..CassandraSpec::default()
        }
    }
}
