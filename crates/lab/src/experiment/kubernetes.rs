//! `ground.kubernetes:` of an experiment file: pods that run already, on however many nodes.

use std::path::PathBuf;

use brownout_kubernetes::{PodSelection, manifests::IMAGE};
use brownout_units::Count;
use serde::Deserialize;

use super::{
    Complaint, ContainersFound,
    machines::{Machine, Start},
};

/// `ground.kubernetes:` — the pods of a namespace with labels. All that run are nodes of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct KubernetesSection {
    /// Their namespace. Default: default.
    pub namespace: Option<String>,
    /// Their labels, as `kubectl get pods --selector` takes them: `app=cassandra`. Required.
    pub selector: String,
    /// Which of their containers is the node. Default: the only one.
    pub container: Option<String>,
    /// Pods from which operations are sent, a share from each: 1 to 1000. Default: 1.
    pub loads: Option<Count>,
    /// The image of this program, as nodes can have it. Default: `brownout:` and its version.
    pub image: Option<String>,
    /// The socket of the nodes' container runtime. Default: the first of the usual ones that answers.
    pub socket: Option<PathBuf>,
}

/// The pods of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pods {
    /// Which are meant.
    pub selection: PodSelection,
    /// Which of their containers is the node; none: the only one.
    pub container: Option<String>,
    /// How many pods send operations.
    pub loads: u32,
    /// The image of this program.
    pub image: String,
    /// Where the nodes' container runtime listens; none: where one usually does.
    pub socket: Option<PathBuf>,
}

const MOST_LOADS: u64 = 1000;

impl KubernetesSection {
    /// Which pods are meant.
    ///
    /// # Errors
    /// When nothing selects them, or a value is none that can be.
    pub(super) fn pods(&self) -> Result<Pods, Complaint> {
        let selector = self.selector.trim();
        if selector.is_empty() {
            let message = "which pods are meant is missing; write selector: KEY=VALUE, as kubectl takes it";
            return Err(Complaint::at("selector", message));
        }
        let text = |key: &'static str, text: &Option<String>| match text.as_deref().map(str::trim) {
            Some("") => Err(Complaint::at(key, "its value is missing; write one, or leave the key out")),
            text => Ok(text.map(str::to_owned)),
        };
        let loads = self.loads.map_or(1, |loads| loads.0);
        if !(1..=MOST_LOADS).contains(&loads) {
            return Err(Complaint::at(
                "loads",
                format!("{loads} pods cannot send operations; write 1 to {MOST_LOADS}"),
            ));
        }
        Ok(Pods {
            selection: PodSelection {
                namespace: text("namespace", &self.namespace)?.unwrap_or_else(|| "default".to_owned()),
                selector: selector.to_owned(),
            },
            container: text("container", &self.container)?,
            loads: loads as u32,
            image: text("image", &self.image)?.unwrap_or_else(|| IMAGE.to_owned()),
            socket: self.socket.clone(),
        })
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
        serde_json::from_str::<KubernetesSection>(json).unwrap().pods()
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
        ] {
            assert_eq!(of(json).unwrap_err().key, key, "{json}");
        }
    }
}
