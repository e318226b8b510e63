//! What of an experiment file means nothing on containers that run already: their network, programs and settings are their own.

use super::{CassandraChoice, EtcdChoice, Experiment, FileError, NetworkSection, Source};

/// Keys of `cluster:` that only nodes have which a lab starts.
const OF_OWN_NODES: [&str; 6] = ["heap", "jit", "versions", "settings", "settings-of", "encryption"];

impl Source {
    /// Refuses such keys by name; or, where the ground was named on the command line, leaves them out of the experiment and
    /// tells so.
    pub(super) fn leave_out(&self, experiment: &mut Experiment) -> Result<(), FileError> {
        let (is_moved, makes_own) = (self.is_moved(), makes_own(experiment));
        let mut ignored = Vec::new();
        for (key, remedy) in self.foreign(experiment, is_moved) {
            if !is_moved {
                let message = format!("{key} is the containers' own, so it cannot be chosen; {remedy}");
                return Err(self.complain(&key, message));
            }
            ignored.push(format!("{key} is the containers' own; what the file says of it is not used"));
        }
        if is_moved {
            let cluster = &mut experiment.cluster;
            (cluster.heap, cluster.jit, cluster.encryption, cluster.external) = (None, None, None, None);
            cluster.versions.clear();
            cluster.settings.clear();
            cluster.settings_of.clear();
            if !makes_own || matches!(cluster.cassandra, Some(CassandraChoice::Home(_))) {
                cluster.cassandra = None;
            }
            if matches!(cluster.etcd, Some(EtcdChoice::Binary(_))) {
                // Which database it is has to stay; which version, the nodes say.
                cluster.etcd = Some(EtcdChoice::Version(LINE_OF_ETCD.to_owned()));
            }
            experiment.network = NetworkSection::default();
        }
        experiment.ignored = ignored;
        Ok(())
    }

    /// The keys that the file has of them, each with what to do instead. `is_moved`: it may have been made for a lab.
    fn foreign(&self, experiment: &Experiment, is_moved: bool) -> Vec<(String, &'static str)> {
        const OUT: &str = "leave it out, or leave ground out for a lab that has its own";
        let mut keys: Vec<(String, &'static str)> = Vec::new();
        let network = self.node("network").and_then(|network| network.as_mapping());
        let of_network = network.into_iter().flat_map(|network| network.iter());
        keys.extend(of_network.map(|(key, _)| (format!("network.{}", key.as_str()), OUT)));
        let of_nodes = OF_OWN_NODES.map(|key| format!("cluster.{key}"));
        keys.extend(of_nodes.into_iter().filter(|key| self.node(key).is_some()).map(|key| (key, OUT)));
        if experiment.cluster.external.is_some() {
            let remedy = "the containers are the nodes; leave external out, or leave ground out for a cluster that can \
                          only be asked";
            keys.push(("cluster.external".to_owned(), remedy));
        }
        let named = "write its version, as in cassandra: \"5.0\" or etcd: \"3\", or leave it out";
        if matches!(experiment.cluster.cassandra, Some(CassandraChoice::Home(_))) {
            keys.push(("cluster.cassandra.home".to_owned(), named));
        } else if is_moved && experiment.cluster.cassandra.is_some() && !makes_own(experiment) {
            // A version that the file names for a lab is not what runs there already.
            keys.push(("cluster.cassandra".to_owned(), named));
        }
        if matches!(experiment.cluster.etcd, Some(EtcdChoice::Binary(_))) {
            keys.push(("cluster.etcd.binary".to_owned(), named));
        }
        keys
    }
}

/// Whether pods are made for it, of the version that the file names.
fn makes_own(experiment: &Experiment) -> bool {
    let kubernetes = experiment.ground.as_ref().and_then(|ground| ground.kubernetes.as_ref());
    kubernetes.is_some_and(|kubernetes| kubernetes.own.is_some())
}

/// Any etcd that there is today.
const LINE_OF_ETCD: &str = "3";
