//! What a lab is built from: the layout of the plan, and the software and directories provided for it.

use std::{fs::File, path::PathBuf};

use brownout_cluster::{CassandraSpec, Distribution, Jit, Owner, Paths, Site, java::Java};
use brownout_network::{HostSpec, NetworkSpec};

use crate::{
    experiment::JitChoice,
    ground::Privilege,
    plan::{Layout, to_u16},
};

/// What a lab is made of; the same for all trials of the same layout.
pub struct LabSpec {
    /// Hosts, distances, cluster.
    pub layout: Layout,
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
    /// The machine's `/proc`, as it is seen from outside of the lab.
    pub proc: File,
    /// Its share of the machine's memory, in bytes; none: all that is available.
    pub memory: Option<u64>,
    /// How the lab got its rights.
    pub privilege: Privilege,
}

impl LabSpec {
    /// The network of a lab with this layout.
    pub fn network(&self, seed: u64) -> NetworkSpec {
        let section = &self.layout.network;
        let host = |host: &crate::hosts::HostPlan| {
            let congestion_control = section.congestion_control_of.get(&host.name).cloned();
            HostSpec { congestion_control, ..HostSpec::new(host.name.clone(), host.address) }
        };
        NetworkSpec {
            hosts: self.layout.hosts.iter().map(host).collect(),
            mtu: to_u16(section.mtu.0),
            congestion_control: Some(section.congestion_control.clone()),
            seed,
            realtime: self.privilege == Privilege::Root,
        }
    }

    /// Where the files of a stand's nodes go.
    pub fn paths(&self, stand: u32) -> Paths {
        let part = format!("stand-{stand}");
        Paths { scratch: self.scratch.join(&part), logs: self.logs.join(&part), owner: self.owner }
    }

    /// How the nodes are to be.
    pub fn cassandra(&self) -> CassandraSpec {
        let section = &self.layout.cluster;
        let nodes = self.layout.hosts.nodes();
        let sites = nodes.filter_map(|node| {
            let location = node.location.as_ref()?;
            Some((node.name.clone(), Site { dc: location.site.clone(), rack: location.rack.clone() }))
        });
        CassandraSpec {
            heap: section.heap,
            jit: match section.jit {
                JitChoice::C1 => Jit::C1,
                JitChoice::Default => Jit::Default,
            },
            sites: sites.collect(),
            ..CassandraSpec::default()
        }
    }
}
