//! `cluster:` of an experiment file, checked: which database, on what, with which settings.

use std::collections::BTreeMap;

use brownout_cluster::{
    ClusterError, DatabaseKind, Encryption, Internode, Site,
    cassandra::{self, tarball},
    etcd,
};
use brownout_units::Bytes;

use super::check::Check;
use crate::{
    experiment::{
        CassandraChoice, ContainersFound, EncryptionSection, EtcdChoice, FileError, InternodeChoice, Setting, one_of,
    },
    hosts::Hosts,
};

/// Nodes in one lab. Links, and the probes on them, grow with the square.
const MAX_NODES: u64 = 50;
/// A network has a thousand hosts, of which one is all that lies outside.
const MOST_CONTAINERS: usize = 999;
/// With less, Cassandra 5.0 ends in OutOfMemoryError sooner or later (64 MiB: while starting).
const MIN_HEAP: Bytes = Bytes(128 << 20);
/// Keys of `cluster:` that only Cassandra has, and why etcd has not.
const OF_CASSANDRA: [(&str, &str); 4] = [
    ("heap", "etcd has no Java heap; leave it out"),
    ("jit", "etcd is not a Java program; leave it out"),
    (
        "versions",
        "nodes of several versions are possible with Cassandra only; leave it out, or write cassandra: \"5.0\"",
    ),
    (
        "encryption",
        "encryption by the lab's own certificates is possible with Cassandra only; leave it out, or write \
      network: { overlay: wireguard }",
    ),
];

impl Check<'_> {
    /// Which database, whose, and what belongs to it.
    pub(super) fn cluster(&self) -> Result<(), FileError> {
        let section = &self.experiment.cluster;
        if section.cassandra.is_some() && section.etcd.is_some() {
            return self
                .complain("cluster.etcd", "a cluster has one database; leave out cassandra, or etcd".to_owned());
        }
        if section.is_external() {
            return self.external();
        }
        if section.access.is_some() {
            let message = "access is for clusters that run already, and the lab makes its own; leave it out, or write \
                           external: [HOST:PORT, …]";
            return self.complain("cluster.access", message.to_owned());
        }
        match section.kind() {
            DatabaseKind::Cassandra => {
                self.cassandra()?;
                let heap = section.heap();
                if heap < MIN_HEAP {
                    return self.complain(
                        "cluster.heap",
                        format!("a heap of {heap} is too small for Cassandra to start; write at least {MIN_HEAP}"),
                    );
                }
            }
            DatabaseKind::Etcd => {
                for (key, why) in OF_CASSANDRA {
                    if self.source.node(&format!("cluster.{key}")).is_some() {
                        return self.complain(&format!("cluster.{key}"), why.to_owned());
                    }
                }
                if let Some(EtcdChoice::Version(version)) = &section.etcd {
                    etcd::check_version(version).or_else(|error| self.complain("cluster.etcd", error.to_string()))?;
                }
                if let Some(EtcdChoice::Binary(path)) = &section.etcd
                    && !path.is_file()
                {
                    let message = format!("there is no program {}; name an etcd, or write etcd: \"3\"", path.display());
                    return self.complain("cluster.etcd.binary", message);
                }
            }
        }
        self.settings("cluster.settings", &section.settings)?;
        for (node, settings) in &section.settings_of {
            self.settings(&format!("cluster.settings-of.{node}"), settings)?;
        }
        Ok(())
    }

    /// Refuses more containers than one network can have.
    pub(super) fn containers(&self, found: &ContainersFound) -> Result<(), FileError> {
        match found.containers.len() {
            1..=MOST_CONTAINERS => Ok(()),
            count => {
                let message = format!("{count} containers cannot be hosts; choose 1 to {MOST_CONTAINERS}");
                self.complain("ground", message)
            }
        }
    }

    /// How many nodes there are, of a lab or of a cluster that is only asked.
    pub(super) fn nodes(&self) -> Result<u8, FileError> {
        let section = &self.experiment.cluster;
        let key = if section.is_external() { "cluster.external" } else { "cluster.nodes" };
        let nodes = section.nodes();
        match u8::try_from(nodes) {
            Ok(count) if (1..=MAX_NODES).contains(&nodes) => Ok(count),
            _ => self.complain(key, format!("{nodes} nodes cannot be run; write 1 to {MAX_NODES}")),
        }
    }

    /// The full version of the cluster's Cassandra; of a cluster that is not ours nobody knows it yet.
    pub(super) fn cassandra(&self) -> Result<String, FileError> {
        match self.experiment.cluster.is_external() {
            true => Ok(String::new()),
            false => self.version("cluster.cassandra", &self.experiment.cluster.cassandra()),
        }
    }

    /// What names nodes or follows from their sites.
    pub(super) fn nodes_settings(&self, hosts: &Hosts) -> Result<(), FileError> {
        let section = &self.experiment.cluster;
        let of_nodes = section.settings_of.keys().map(|node| ("settings-of", node));
        for (key, node) in of_nodes.chain(section.versions.keys().map(|node| ("versions", node))) {
            if !hosts.nodes().any(|host| host.name == *node) {
                let names = one_of("the nodes are", hosts.nodes().map(|host| host.name.as_str()), node);
                return self.complain(&format!("cluster.{key}.{node}"), format!("unknown node '{node}'; {names}"));
            }
        }
        match section.kind() {
            _ if section.is_external() => Ok(()),
            DatabaseKind::Cassandra => self.nodes_of_cassandra(hosts),
            DatabaseKind::Etcd => Ok(()),
        }
    }

    /// Their versions together, the settings that each of them knows, and what they encrypt.
    fn nodes_of_cassandra(&self, hosts: &Hosts) -> Result<(), FileError> {
        let section = &self.experiment.cluster;
        let versions = self.versions(hosts)?;
        cassandra::check_mixed(&versions)
            .or_else(|error: ClusterError| self.complain("cluster.versions", error.to_string()))?;
        let (all, mut of_nodes) = (section.settings(), section.settings_of());
        for (node, version) in &versions {
            let own = of_nodes.remove(node).unwrap_or_default();
            for (key, settings) in [("settings".to_owned(), &all), (format!("settings-of.{node}"), &own)] {
                cassandra::check_setting_names(version, settings).or_else(|error| match &error {
                    ClusterError::Setting { key: setting, .. } => {
                        self.complain(&format!("cluster.{key}.{setting}"), error.to_string())
                    }
                    _ => self.complain(&format!("cluster.{key}"), error.to_string()),
                })?;
            }
        }
        let sites = hosts.nodes().filter_map(|node| {
            let location = node.location.as_ref()?;
            Some((node.name.clone(), Site { dc: location.site.clone(), rack: location.rack.clone() }))
        });
        let encryption = encryption(section.encryption.as_ref());
        encryption
            .check(&sites.collect(), &versions)
            .or_else(|error: ClusterError| self.complain("cluster.encryption", error.to_string()))
    }

    /// The full version of every node.
    fn versions(&self, hosts: &Hosts) -> Result<BTreeMap<String, String>, FileError> {
        let section = &self.experiment.cluster;
        let most = self.cassandra()?;
        let of_node = |name: &String| match section.versions.get(name) {
            Some(choice) => self.version(&format!("cluster.versions.{name}"), choice),
            None => Ok(most.clone()),
        };
        hosts.nodes().map(|node| Ok((node.name.clone(), of_node(&node.name)?))).collect()
    }

    /// What to know of the versions before their results are trusted. `sets_clocks`: a fault makes a node's clock wrong.
    pub(super) fn version_warnings(&self, hosts: &Hosts, sets_clocks: bool) -> Result<Vec<String>, FileError> {
        match self.experiment.cluster.kind() {
            _ if self.experiment.cluster.is_external() => Ok(Vec::new()),
            DatabaseKind::Cassandra => self.warnings_of_cassandra(hosts, sets_clocks),
            DatabaseKind::Etcd => Ok(Vec::new()),
        }
    }

    fn warnings_of_cassandra(&self, hosts: &Hosts, sets_clocks: bool) -> Result<Vec<String>, FileError> {
        let section = &self.experiment.cluster;
        let mut warnings = Vec::new();
        for choice in section.versions.values().cloned().chain([section.cassandra()]) {
            if let CassandraChoice::Version(version) = &choice
                && let Ok(release) = cassandra::release(version)
                && !release.is_pinned()
            {
                let warning = format!(
                    "the jars of Cassandra {} are what Maven fetches: there are no checksums of them here to verify \
                     them by",
                    release.version
                );
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        if sets_clocks && self.versions(hosts)?.values().any(|version| version.starts_with("3.11")) {
            let warning =
                "nodes of Cassandra 3.11 report no clock that goes back: a fault that sets one back cannot be proven";
            warnings.push(warning.to_owned());
        }
        Ok(warnings)
    }

    fn version(&self, key: &str, choice: &CassandraChoice) -> Result<String, FileError> {
        match choice {
            CassandraChoice::Version(version) => cassandra::release(version)
                .map(|release| release.version.to_owned())
                .or_else(|error| self.complain(key, error.to_string())),
            CassandraChoice::Home(home) => tarball::open(home)
                .map(|distribution| distribution.version)
                .or_else(|error| self.complain(&format!("{key}.home"), error.to_string())),
        }
    }

    fn settings(&self, key: &str, settings: &BTreeMap<String, Setting>) -> Result<(), FileError> {
        let texts = settings.iter().map(|(name, setting)| (name.clone(), setting.text.clone())).collect();
        let checked = match self.experiment.cluster.kind() {
            DatabaseKind::Cassandra => cassandra::check_settings(&texts),
            DatabaseKind::Etcd => {
                if let Some((flag, _)) = settings.iter().find(|(_, setting)| !setting.is_plain) {
                    let message = "a flag of etcd's command line takes one word or number; write it as text".to_owned();
                    return self.complain(&format!("{key}.{flag}"), message);
                }
                etcd::check_settings(&texts)
            }
        };
        checked.or_else(|error| match &error {
            ClusterError::Setting { key: setting, .. } => self.complain(&format!("{key}.{setting}"), error.to_string()),
            _ => self.complain(key, error.to_string()),
        })
    }
}

/// What nodes encrypt, as the cluster takes it.
pub(crate) fn encryption(section: Option<&EncryptionSection>) -> Encryption {
    let Some(section) = section else { return Encryption::default() };
    Encryption {
        internode: match section.internode {
            InternodeChoice::None => Internode::None,
            InternodeChoice::Rack => Internode::Rack,
            InternodeChoice::Dc => Internode::Dc,
            InternodeChoice::All => Internode::All,
        },
        clients: section.clients,
        optional: section.optional,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Plan, experiment::Source, plan::Work};

    const REST: &str = "\nload: { rate: 400/s }\nphases: { warm-up: 20s, baseline: 5s }\nobjective: { p99: 1s }\n";

    fn plan(cluster: &str) -> Result<Plan, FileError> {
        Plan::new(&Source::from_text(Path::new("e.yaml"), format!("cluster: {cluster}{REST}")).unwrap())
    }

    #[test]
    fn a_cluster_has_one_database_and_what_the_other_has_is_refused_with_a_remedy() {
        for (cluster, words) in [
            ("{ cassandra: '5.0', etcd: '3' }", "one database"),
            ("{ etcd: '3', heap: 1GiB }", "no Java heap"),
            ("{ etcd: '3', jit: c1 }", "not a Java program"),
            ("{ etcd: '3', versions: { n1: '4.1' } }", "Cassandra only"),
            ("{ etcd: '3', encryption: { clients: true } }", "wireguard"),
            ("{ etcd: '3', settings: { heartbeat-interval: [1, 2] } }", "one word or number"),
            ("{ etcd: { binary: /no/such/etcd } }", "there is no program /no/such/etcd"),
            ("{ versions: { n9: '4.1' } }", "unknown node 'n9'"),
            ("{ versions: { n2: '3.11' } }", "nodes of 3.11 take no schema"),
            ("{ cassandra: '4.0', settings: { read_request_timeout: 1s } }", "read_request_timeout_in_ms"),
            ("{ versions: { n2: '4.0' }, settings-of: { n2: { max_hint_window: 1h } } }", "max_hint_window_in_ms"),
            ("{ encryption: { internode: rack } }", "there are not two"),
            ("{ settings-of: { load: { concurrent_reads: 2 } } }", "unknown node 'load'"),
            ("{ versions: { n1: '9.9' } }", "'9.9'"),
            ("{ access: { user: u } }", "the lab makes its own"),
            ("{ heap: 64MiB }", "at least 128MiB"),
            ("{ nodes: 0 }", "0 nodes cannot be run"),
        ] {
            let error = plan(cluster).err().unwrap_or_else(|| panic!("{cluster} was taken")).to_string();
            assert!(error.contains(words), "{cluster}: {error}");
        }
        let old = plan("{ cassandra: '3.11', encryption: { internode: all } }").unwrap();
        let Work::KeyValue(work) = &old.load.work else { panic!("it is a load of keys and values") };
        let only = BTreeMap::from([("datacenter1".to_owned(), 3)]);
        assert_eq!(work.data_centres, only, "its schema has to name the data centre");
        let new = plan("{ versions: { n3: '4.1' }, encryption: { clients: true } }").unwrap();
        assert!(
            !new.warnings.iter().any(|warning| warning.contains("checksums")),
            "all are pinned: {:?}",
            new.warnings
        );
        let etcd = plan("{ etcd: '3', nodes: 5, settings: { heartbeat-interval: 200 } }").unwrap();
        assert_eq!((etcd.layout.kind(), etcd.layout.hosts.nodes().count()), (DatabaseKind::Etcd, 5));
    }

    #[test]
    fn nothing_can_be_chosen_of_what_runs_already() {
        for (cluster, words) in [
            ("{ external: ['10.0.0.5'] }", "has no port"),
            ("{ external: [':9042'] }", "names no host"),
            ("{ external: ['10.0.0.555:9042'] }", "is not an IPv4 address"),
            ("{ external: ['[::1]:9042'] }", "IPv6"),
            ("{ external: ['a:1', 'a:1'] }", "listed twice"),
            ("{ external: [] }", "0 nodes"),
            ("{ external: ['a:1'], nodes: 3 }", "nodes cannot be chosen"),
            ("{ external: ['a:1'], settings: { concurrent_reads: 2 } }", "settings cannot be chosen"),
            ("{ external: ['a:1'], cassandra: { home: /x } }", "no program is chosen"),
            ("{ external: ['a:1'], access: { user: u } }", "password-file"),
            ("{ external: ['a:1'], access: { key: k } }", "certificate: FILE"),
            ("{ external: ['a:1'] }\nnetwork: { mtu: 9000 }", "mtu cannot be chosen"),
        ] {
            let error = plan(cluster).err().unwrap_or_else(|| panic!("{cluster} was taken")).to_string();
            assert!(error.contains(words), "{cluster}: {error}");
        }
        let faults = "{ external: ['a:1'] }\nfaults: [{ slow: { host: n1, delay: 1ms } }]";
        let error = plan(faults).unwrap_err().to_string();
        assert!(error.contains("external cluster has none of them"), "{error}");
        let text = format!("cluster: {{ external: ['a:1', 'b:1', 'c:1'], etcd: '3' }}{REST}");
        let plan = Plan::new(&Source::from_text(Path::new("e.yaml"), text).unwrap()).unwrap();
        assert!(plan.layout.is_external() && plan.layout.distances.is_empty());
        assert_eq!(plan.layout.hosts.nodes().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["n1", "n2", "n3"]);
    }
}
