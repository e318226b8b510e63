//! `cluster:` of an experiment file where the cluster runs already: where its nodes are, and how one is let in.

use std::net::Ipv4Addr;

use super::check::Check;
use crate::experiment::{CassandraChoice, EtcdChoice, FileError};

/// Keys of `cluster:` that only nodes have which the lab starts.
const OF_OWN_NODES: [&str; 7] = ["nodes", "heap", "jit", "versions", "settings", "settings-of", "encryption"];

impl Check<'_> {
    /// A cluster that runs already: neither nodes nor network are ours.
    pub(super) fn external(&self) -> Result<(), FileError> {
        if self.experiment.found.is_some() {
            // What cannot be chosen of containers was refused when they were found.
            return self.access();
        }
        let section = &self.experiment.cluster;
        for key in OF_OWN_NODES {
            if self.source.node(&format!("cluster.{key}")).is_some() {
                let message = format!(
                    "the nodes of an external cluster run already, so {key} cannot be chosen; leave it out, or leave out \
                     external"
                );
                return self.complain(&format!("cluster.{key}"), message);
            }
        }
        let network = self.source.node("network").and_then(|network| network.as_mapping());
        if let Some((key, _)) = network.and_then(|network| network.iter().next()) {
            let key = key.as_str();
            let message = format!(
                "there is no emulated network between the nodes of an external cluster, so {key} cannot be chosen; leave \
                 network out"
            );
            return self.complain(&format!("network.{key}"), message);
        }
        let named = [
            ("cluster.cassandra.home", matches!(section.cassandra, Some(CassandraChoice::Home(_)))),
            ("cluster.etcd.binary", matches!(section.etcd, Some(EtcdChoice::Binary(_)))),
        ];
        if let Some((key, _)) = named.into_iter().find(|(_, given)| *given) {
            let message = "an external cluster runs already, so no program is chosen for it; write its version, as in \
                           cassandra: \"5.0\" or etcd: \"3\"";
            return self.complain(key, message.to_owned());
        }
        let addresses = section.external.iter().flat_map(|addresses| &addresses.0);
        for (index, address) in addresses.clone().enumerate() {
            let key = format!("cluster.external.{index}");
            if let Err(why) = split_address(address) {
                let port = section.kind().client_port();
                let message = format!("'{address}' {why}; write HOST:PORT, such as 10.0.0.5:{port}");
                return self.complain(&key, message);
            }
            if addresses.clone().take(index).any(|other| other == address) {
                return self.complain(&key, format!("{address} is listed twice; a node is named once"));
            }
        }
        self.access()
    }

    /// What it takes to be let in to nodes that run already.
    fn access(&self) -> Result<(), FileError> {
        if let Some(access) = &self.experiment.cluster.access {
            let lonely = [
                ("certificate", access.certificate.is_some() && access.ca.is_none(), "ca: FILE"),
                ("key", access.key.is_some() && access.certificate.is_none(), "certificate: FILE"),
                ("user", access.user.is_some() && access.password_file.is_none(), "password-file: FILE"),
                ("password-file", access.password_file.is_some() && access.user.is_none(), "user: NAME"),
            ];
            if let Some((key, _, other)) = lonely.into_iter().find(|(_, is_lonely, _)| *is_lonely) {
                let message = format!("{key} has no use without its counterpart; write {other}, too");
                return self.complain(&format!("cluster.access.{key}"), message);
            }
        }
        Ok(())
    }

    /// Faults act on what is ours; of a cluster that runs already nothing is.
    pub(super) fn refuse_faults_of_external(&self) -> Result<(), FileError> {
        let is_only_asked = self.experiment.cluster.is_external() && self.experiment.found.is_none();
        if !is_only_asked || self.experiment.faults.is_empty() {
            return Ok(());
        }
        let message = "a fault needs a network, processes, disks or clocks of the lab, and an external cluster has none of \
                       them; leave faults out (the load and the statistics of trials are the same), let the lab start the \
                       cluster: leave external out, or, where its nodes are containers of this machine, name them: ground: { \
                       containers: { names: […] } }";
        self.complain("faults", message.to_owned())
    }
}

/// Host and port of an address as written; else what is wrong with it.
pub(crate) fn split_address(address: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = address.rsplit_once(':').ok_or("has no port")?;
    if host.is_empty() {
        return Err("names no host");
    }
    if host.contains(':') {
        return Err("is an IPv6 address, and nodes are asked by IPv4");
    }
    // All digits and dots, and yet no address, is a mistake; the rest may be a name.
    if host.chars().all(|c| c.is_ascii_digit() || c == '.') && host.parse::<Ipv4Addr>().is_err() {
        return Err("is not an IPv4 address");
    }
    if !host.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return Err("has a host that cannot be one");
    }
    match port.parse() {
        Ok(0) | Err(_) => Err("has no port"),
        Ok(port) => Ok((host, port)),
    }
}
