//! What a lab is made of.

use brownout_cluster::{DatabaseKind, etcd, memory_needed};
use brownout_record::Subject;

use super::{
    check::Check,
    cluster::encryption,
    network::{Distance, overlay_words},
    to_u16,
};
use crate::{
    experiment::{ClusterSection, ContainersFound, Experiment, FileError, Machine, NetworkSection, Pods, Source},
    hosts::Hosts,
};

/// What a lab is made of, before anything happens in it.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Every host.
    pub hosts: Hosts,
    /// What lies between hosts all the time.
    pub distances: Vec<Distance>,
    /// The network as written.
    pub network: NetworkSection,
    /// The cluster as written; on containers it is an external one, whose nodes they are.
    pub cluster: ClusterSection,
    /// The containers that are its hosts; none: it has hosts of its own, or only asks those of others.
    pub containers: Option<ContainersFound>,
    /// The machines that those are on, and those that send operations; none: all is on this one.
    pub machines: Vec<Machine>,
    /// The pods that its hosts are; none: it is no Kubernetes.
    pub pods: Option<Pods>,
}

impl Layout {
    /// Checks the sections `network:` and `cluster:` of a file.
    pub fn new(source: &Source, experiment: &Experiment) -> Result<Layout, FileError> {
        let check = Check { source, experiment };
        check.cluster()?;
        let (hosts, distances) = match (&experiment.found, experiment.cluster.is_external()) {
            (Some(found), _) => {
                check.containers(found)?;
                (check.hosts_of(found)?, Vec::new())
            }
            // Its network is not ours, and nothing is known of it.
            (None, true) => (Hosts::new(check.nodes()?), Vec::new()),
            (None, false) => {
                check.mtu()?;
                check.network(check.nodes()?)?
            }
        };
        let hosts = hosts.running(experiment.cluster.kind());
        check.nodes_settings(&hosts)?;
        Ok(Layout {
            hosts,
            distances,
            network: experiment.network.clone(),
            cluster: experiment.cluster.clone(),
            containers: experiment.found.clone(),
            machines: experiment.machines.clone(),
            pods: experiment.pods.clone(),
        })
    }

    /// Which database its nodes run.
    pub fn kind(&self) -> DatabaseKind {
        self.cluster.kind()
    }

    /// Whether the cluster runs already, and neither its nodes nor its network were made by us.
    pub fn is_external(&self) -> bool {
        self.cluster.is_external()
    }

    /// Whether its hosts are containers of others: what they send each other goes through an emulator of ours, and they can be entered.
    pub fn is_attached(&self) -> bool {
        self.containers.is_some()
    }

    /// Whether its hosts are on several machines: each of them makes a part of every trial.
    pub fn is_over_machines(&self) -> bool {
        !self.machines.is_empty()
    }

    /// Memory that its nodes take on this machine, in bytes.
    pub fn memory_needed(&self) -> u64 {
        let nodes = self.hosts.nodes().count();
        match self.kind() {
            _ if self.is_external() => 0,
            DatabaseKind::Cassandra => memory_needed(nodes, self.cluster.heap()),
            DatabaseKind::Etcd => etcd::memory_needed(nodes),
        }
    }

    /// The ordered pairs of hosts with a limit of rate between them.
    pub(super) fn bottlenecks(&self) -> Vec<Subject> {
        let limited = self.distances.iter().filter(|distance| distance.impairment.rate.is_some());
        limited.flat_map(|distance| &distance.pairs).map(|(from, to)| Subject::pair(from, to)).collect()
    }

    /// What the database itself encrypts, one line each. Of an external cluster only what the load itself does.
    pub fn encryption_words(&self) -> Vec<String> {
        if self.is_external() {
            let is_encrypted = self.cluster.access.as_ref().is_some_and(|access| access.ca.is_some());
            return is_encrypted.then(|| "to clients".to_owned()).into_iter().collect();
        }
        encryption(self.cluster.encryption.as_ref()).words()
    }

    /// Sites and distances, one line each.
    pub fn network_words(&self) -> Vec<String> {
        if let Some(found) = &self.containers {
            return vec![format!(
                "{}: all that they send and are sent goes through the emulator as long as the run lasts",
                found.words()
            )];
        }
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

    /// What the overlay means for what happens below it, one line each; empty if there is none.
    pub fn overlay_words(&self) -> Vec<String> {
        let mtu = to_u16(self.network.mtu.0);
        self.hosts.overlay().map(|overlay| overlay_words(overlay, mtu)).unwrap_or_default()
    }
}
