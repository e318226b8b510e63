//! `ground.kubernetes:` of an experiment file: pods that run already, on however many nodes.

use std::{collections::BTreeMap, path::PathBuf};

use brownout_cluster::DatabaseKind;
use brownout_kubernetes::{
    Members, NAMESPACE, PodSelection,
    manifests::{IMAGE, MEMBER},
};
use brownout_units::Count;
use serde::Deserialize;

use super::{
    CassandraChoice, ClusterSection, Complaint, ContainersFound, EtcdChoice,
    machines::{Machine, Start},
};

/// `ground.kubernetes:` — the pods of a namespace with labels. All that run are nodes of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct KubernetesSection {
    /// Their namespace. Default: default.
    pub namespace: Option<String>,
    /// Their labels, as `kubectl get pods --selector` takes them: `app=cassandra`. Required, or `own`.
    pub selector: Option<String>,
    /// Pods that are made for this experiment, as many as `cluster.nodes` says (3), and removed with their data at the end.
    pub own: Option<OwnSection>,
    /// Which of their containers is the node. Default: the only one.
    pub container: Option<String>,
    /// Pods from which operations are sent, a share from each: 1 to 1000. Default: 1.
    pub loads: Option<Count>,
    /// The image of this program, as nodes can have it. Default: `brownout:` and its version.
    pub image: Option<String>,
    /// The socket of the nodes' container runtime. Default: the first of the usual ones that answers.
    pub socket: Option<PathBuf>,
}

/// `ground.kubernetes.own:` — what members of a cluster are given that is made in Kubernetes. Amounts are as Kubernetes writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct OwnSection {
    /// The image of the database. Default: `cassandra:VERSION`, of etcd `etcd:vVERSION`.
    pub image: Option<String>,
    /// Its environment, beside what makes a cluster of it: `MAX_HEAP_SIZE: 1G`.
    pub environment: BTreeMap<String, String>,
    /// Memory of each, at least and at most: `2Gi`. Default: what there is.
    pub memory: Option<String>,
    /// Processors of each, likewise: `2`, `500m`. Default: what there is.
    pub cpu: Option<String>,
    /// The size of a volume that each claims: `10Gi`. Default: none, data goes with its pod.
    pub storage: Option<String>,
    /// The class of that. Default: the cluster's own.
    pub storage_class: Option<String>,
}

/// The pods of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pods {
    /// Which are meant; of a cluster of the experiment's own all that are made.
    pub selection: PodSelection,
    /// The cluster that is made for the experiment; none: it runs already.
    pub own: Option<OwnCluster>,
    /// Which of their containers is the node; none: the only one.
    pub container: Option<String>,
    /// How many pods send operations.
    pub loads: u32,
    /// The image of this program.
    pub image: String,
    /// Where the nodes' container runtime listens; none: where one usually does.
    pub socket: Option<PathBuf>,
}

/// A cluster that is made for an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCluster {
    /// Which database.
    pub kind: DatabaseKind,
    /// How many members.
    pub nodes: u32,
    /// What they are given; the image is known.
    pub given: OwnSection,
    /// That image.
    pub image: String,
}

const MOST_LOADS: u64 = 1000;
/// As of a lab.
const MOST_NODES: u64 = 50;
/// What etcd's images are called, of a line of versions by the newest that this program was tried with.
const ETCD_IMAGES: &str = "etcd";
const ETCD: &str = "3.6.5";

impl KubernetesSection {
    /// Which pods are meant.
    ///
    /// # Errors
    /// When nothing selects them, or a value is none that can be.
    pub(super) fn pods(&self, cluster: &ClusterSection) -> Result<Pods, Complaint> {
        let selector = self.selector.as_deref().map(str::trim).filter(|selector| !selector.is_empty());
        let selection = match (selector, &self.own) {
            (Some(_), Some(_)) => {
                let message = "pods are those that run already, or the experiment's own; leave selector or own out";
                return Err(Complaint::at("own", message));
            }
            (None, None) => {
                let message = "which pods are meant is missing; write selector: KEY=VALUE, as kubectl takes it, or own: {} for pods \
                               of the experiment's own";
                return Err(Complaint::at("selector", message));
            }
            (Some(selector), None) => PodSelection {
                namespace: self.namespace.clone().unwrap_or_else(|| "default".to_owned()),
                selector: selector.to_owned(),
            },
            (None, Some(_)) if self.namespace.is_some() || self.container.is_some() => {
                let message = format!(
                    "pods of the experiment's own are in namespace {NAMESPACE}; leave namespace and container out"
                );
                return Err(Complaint::at("own", message));
            }
            (None, Some(_)) => {
                PodSelection { namespace: NAMESPACE.to_owned(), selector: format!("app=brownout-{MEMBER}") }
            }
        };
        let text = |key: &'static str, text: &Option<String>| match text.as_deref().map(str::trim) {
            Some("") => Err(Complaint::at(key, "its value is missing; write one, or leave the key out")),
            text => Ok(text.map(str::to_owned)),
        };
        text("namespace", &self.namespace)?;
        let loads = self.loads.map_or(1, |loads| loads.0);
        if !(1..=MOST_LOADS).contains(&loads) {
            return Err(Complaint::at(
                "loads",
                format!("{loads} pods cannot send operations; write 1 to {MOST_LOADS}"),
            ));
        }
        Ok(Pods {
            own: self.own.as_ref().map(|own| own.cluster(cluster)).transpose()?,
            selection,
            container: text("container", &self.container)?,
            loads: loads as u32,
            image: text("image", &self.image)?.unwrap_or_else(|| IMAGE.to_owned()),
            socket: self.socket.clone(),
        })
    }
}

impl OwnSection {
    fn cluster(&self, cluster: &ClusterSection) -> Result<OwnCluster, Complaint> {
        let image = match (&self.image, &cluster.etcd, &cluster.cassandra) {
            (Some(image), ..) => image.clone(),
            (None, Some(EtcdChoice::Version(version)), _) if version.split('.').count() == 3 => {
                format!("{ETCD_IMAGES}:v{version}")
            }
            (None, Some(EtcdChoice::Version(version)), _) if !ETCD.starts_with(version.as_str()) => {
                let message =
                    format!("of etcd {version} there are several images; write a full version, or name one: image: …");
                return Err(Complaint::at("own.image", message));
            }
            (None, Some(_), _) => format!("{ETCD_IMAGES}:v{ETCD}"),
            (None, None, Some(CassandraChoice::Version(version))) => format!("cassandra:{version}"),
            (None, None, _) => "cassandra:5.0".to_owned(),
        };
        let nodes = cluster.nodes.map_or(3, |nodes| nodes.0);
        if !(1..=MOST_NODES).contains(&nodes) {
            return Err(Complaint::at(
                "own",
                format!("a cluster of {nodes} nodes cannot be made; nodes: 1 to {MOST_NODES}"),
            ));
        }
        Ok(OwnCluster { kind: cluster.kind(), nodes: nodes as u32, image, given: self.clone() })
    }
}

impl OwnCluster {
    /// Its members, under a name.
    pub(crate) fn members(&self, name: &str) -> Members {
        let peer = |number: u32| format!("{name}-{number}.{name}.{NAMESPACE}.svc");
        let mut environment = self.given.environment.clone();
        let (command, port, data) = match self.kind {
            DatabaseKind::Cassandra => {
                for (key, value) in [("CASSANDRA_CLUSTER_NAME", name.to_owned()), ("CASSANDRA_SEEDS", peer(0))] {
                    environment.entry(key.to_owned()).or_insert(value);
                }
                (Vec::new(), 9042, "/var/lib/cassandra")
            }
            DatabaseKind::Etcd => {
                let all: Vec<String> =
                    (0..self.nodes).map(|number| format!("{name}-{number}=http://{}:2380", peer(number))).collect();
                let own = format!("$(POD).{name}.{NAMESPACE}.svc");
                let command = [
                    "/usr/local/bin/etcd".to_owned(),
                    "--name=$(POD)".to_owned(),
                    "--data-dir=/var/lib/etcd/data".to_owned(),
                    "--listen-client-urls=http://0.0.0.0:2379".to_owned(),
                    format!("--advertise-client-urls=http://{own}:2379"),
                    "--listen-peer-urls=http://0.0.0.0:2380".to_owned(),
                    format!("--initial-advertise-peer-urls=http://{own}:2380"),
                    format!("--initial-cluster={}", all.join(",")),
                ];
                (command.to_vec(), 2379, "/var/lib/etcd")
            }
        };
        let OwnSection { memory, cpu, storage, storage_class, .. } = self.given.clone();
        Members {
            name: name.to_owned(),
            count: self.nodes,
            image: self.image.clone(),
            command,
            environment,
            port,
            data,
            // Members of Cassandra join one after the other; those of etcd need a majority to begin.
            in_order: self.kind == DatabaseKind::Cassandra,
            memory,
            cpu,
            storage,
            storage_class,
        }
    }
}

impl Pods {
    /// What the pod of this number of those that send operations is called among the machines; no node is called so.
    pub fn load(number: u32) -> String {
        format!("load_{number}")
    }

    /// The nodes that they are on, in the order of the pods, and the pods that send operations.
    pub(super) fn machines(&self, found: &ContainersFound) -> Vec<Machine> {
        let mut all: Vec<Machine> = Vec::new();
        for node in found.containers.iter().filter_map(|container| container.machine.as_ref()) {
            if !all.iter().any(|known| known.name == *node) {
                all.push(Machine { name: node.clone(), start: Start::Agent, has_hosts: true });
            }
        }
        let load = |number| Machine { name: Pods::load(number), start: Start::Load(number), has_hosts: false };
        all.extend((0..self.loads).map(load));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Pods, Complaint> {
        serde_json::from_str::<KubernetesSection>(json).unwrap().pods(&ClusterSection::default())
    }

    #[test]
    fn pods_are_meant_by_their_labels_and_all_else_has_a_default() {
        let pods = of(r#"{"selector":"app=cassandra"}"#).unwrap();
        assert_eq!((pods.selection.namespace.as_str(), pods.loads, pods.container), ("default", 1, None));
        assert_eq!(pods.image, concat!("brownout:", env!("CARGO_PKG_VERSION")));
        for (json, key) in [
            ("{}", "selector"),
            (r#"{"selector":"a=b","loads":"0"}"#, "loads"),
            (r#"{"selector":"a=b","image":" "}"#, "image"),
            (r#"{"selector":"a=b","namespace":""}"#, "namespace"),
            (r#"{"selector":"a=b","own":{}}"#, "own"),
            (r#"{"own":{},"namespace":"db"}"#, "own"),
        ] {
            assert_eq!(of(json).unwrap_err().key, key, "{json}");
        }
    }

    #[test]
    fn a_cluster_of_its_own_knows_its_members_by_their_names() {
        let of = |cluster: &str, own: &str| {
            let cluster: ClusterSection = serde_json::from_str(cluster).unwrap();
            serde_json::from_str::<OwnSection>(own).unwrap().cluster(&cluster)
        };
        let refused = |cluster: &str| of(cluster, "{}").unwrap_err().message;
        assert!(refused(r#"{"etcd":"3.5"}"#).contains("write a full version"));
        assert!(refused(r#"{"nodes":"51"}"#).contains("1 to 50") && refused(r#"{"nodes":"0"}"#).contains("0 nodes"));
        let of = |cluster: &str, own: &str| of(cluster, own).unwrap();
        let cassandra =
            of(r#"{"cassandra":"4.1"}"#, r#"{"environment":{"MAX_HEAP_SIZE":"1G"},"storage":"2Gi"}"#).members("db-1");
        assert_eq!((cassandra.image.as_str(), cassandra.count, cassandra.in_order), ("cassandra:4.1", 3, true));
        assert_eq!(cassandra.environment["CASSANDRA_SEEDS"], "db-1-0.db-1.brownout.svc");
        assert_eq!(
            (cassandra.environment["MAX_HEAP_SIZE"].as_str(), cassandra.storage.as_deref()),
            ("1G", Some("2Gi"))
        );
        let etcd = of(r#"{"etcd":"3","nodes":"2"}"#, "{}").members("db-1");
        assert_eq!((etcd.image.as_str(), etcd.in_order), ("etcd:v3.6.5", false));
        let all =
            "--initial-cluster=db-1-0=http://db-1-0.db-1.brownout.svc:2380,db-1-1=http://db-1-1.db-1.brownout.svc:2380";
        assert!(etcd.command.iter().any(|word| word == all), "{:?}", etcd.command);
        assert_eq!(of(r#"{"etcd":"3.5.21"}"#, "{}").image, "etcd:v3.5.21");
        assert_eq!(of("{}", r#"{"image":"here/cassandra:x"}"#).image, "here/cassandra:x");
    }
}
