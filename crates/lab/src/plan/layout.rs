//! What a lab is made of.

use brownout_network::Impairment;
use brownout_record::Subject;

use super::check::Check;
use crate::{
    experiment::{ClusterSection, Experiment, FileError, NetworkSection, Source},
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
    pub(super) fn bottlenecks(&self) -> Vec<Subject> {
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
