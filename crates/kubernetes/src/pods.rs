//! Pods that run.

use brownout_base::natural;
use k8s_openapi::api::core::v1;
use kube::{Api, api::ListParams};

use crate::{Kubernetes, KubernetesError};

/// Which pods are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSelection {
    /// Their namespace.
    pub namespace: String,
    /// Their labels, as `kubectl get pods --selector` takes them.
    pub selector: String,
}

/// A pod that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// The node that it runs on.
    pub node: String,
    /// Its containers that run, in the order of its specification.
    pub containers: Vec<PodContainer>,
    /// Whether it uses the network of its node.
    pub is_in_hosts_network: bool,
    /// Whether all its containers say that they are ready.
    pub is_ready: bool,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodContainer {
    /// Its name.
    pub name: String,
    /// By which its runtime knows it.
    pub id: String,
}

impl Kubernetes {
    /// The pods of a selection that run, by name as people count (db-9 before db-10).
    ///
    /// # Errors
    /// The API server refuses, or there are none.
    pub fn pods(&self, selection: &PodSelection) -> Result<Vec<Pod>, KubernetesError> {
        let PodSelection { namespace, selector } = selection;
        let api: Api<v1::Pod> = Api::namespaced(self.client.clone(), namespace);
        let parameters = ListParams::default().labels(selector);
        let list = self.wait(format!("list the pods of namespace {namespace}"), api.list(&parameters))?;
        let mut pods: Vec<Pod> = list.items.iter().filter_map(Pod::running).collect();
        if pods.is_empty() {
            return Err(KubernetesError::Lacking(format!(
                "no pod with the labels {selector} runs in namespace {namespace}; `kubectl get pods --namespace {namespace} \
                 --show-labels` lists those that do"
            )));
        }
        pods.sort_by_key(|pod| natural(&pod.name));
        Ok(pods)
    }
}

impl Pod {
    /// What there is to know of one that runs; none of others.
    pub(crate) fn running(pod: &v1::Pod) -> Option<Pod> {
        let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref()?);
        if status.phase.as_deref() != Some("Running") || pod.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
        let known = |name: &str| {
            let mut all = status.container_statuses.iter().flatten();
            let id = all.find(|container| container.name == name)?.container_id.as_deref()?;
            // "containerd://3f2a…"
            Some(id.rsplit_once("://").map_or(id, |(_, id)| id).to_owned())
        };
        let container = |container: &v1::Container| {
            Some(PodContainer { name: container.name.clone(), id: known(&container.name)? })
        };
        Some(Pod {
            name: pod.metadata.name.clone()?,
            node: spec.node_name.clone()?,
            containers: spec.containers.iter().filter_map(container).collect(),
            is_in_hosts_network: spec.host_network == Some(true),
            is_ready: ready.is_some_and(|ready| ready.status == "True"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_runs_is_known_by_its_containers() {
        let pod = |phase: &str| -> v1::Pod {
            serde_saphyr::from_str(&format!(
                "metadata: {{ name: db-0, namespace: db }}
spec:
  nodeName: node1
  containers: [{{ name: etcd }}, {{ name: sidecar }}]
status:
  phase: {phase}
  conditions: [{{ type: Ready, status: 'True' }}]
  containerStatuses:
  - {{ name: sidecar, containerID: 'containerd://aaa', image: x, imageID: x, ready: true, restartCount: 0 }}
  - {{ name: etcd, containerID: 'cri-o://bbb', image: x, imageID: x, ready: true, restartCount: 0 }}
"
            ))
            .unwrap()
        };
        let running = Pod::running(&pod("Running")).unwrap();
        let ids: Vec<(&str, &str)> = running.containers.iter().map(|one| (&*one.name, &*one.id)).collect();
        assert_eq!(ids, [("etcd", "bbb"), ("sidecar", "aaa")]);
        assert!(running.is_ready && !running.is_in_hosts_network && running.node == "node1");
        assert_eq!(Pod::running(&pod("Pending")), None);
    }
}
