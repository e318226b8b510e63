//! Taking away what was made for experiments.

use std::fmt::Debug;

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{DaemonSet, StatefulSet},
        batch::v1::Job,
        core::v1::{PersistentVolumeClaim, Service},
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde::de::DeserializeOwned;

use crate::{Kubernetes, KubernetesError, LABEL, NAMESPACE, agents::of_runs, manifests};

/// Something that was removed: "DaemonSet/agent".
pub type Removed = String;

impl Kubernetes {
    /// Removes the agents that runs have made; they heal what they have put in force. What there was.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn remove_agents(&self) -> Result<Vec<Removed>, KubernetesError> {
        self.remove_each::<DaemonSet>(&of_runs(), &DeleteParams::foreground())
    }

    /// Removes the pods of a run that send operations. What there was.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn remove_loads(&self, run: &str) -> Result<Vec<Removed>, KubernetesError> {
        self.remove_each::<Job>(&format!("{}={run}", manifests::RUN), &DeleteParams::foreground())
    }

    /// Removes the cluster that was made for an experiment, with its data. What there was.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn remove_cluster(&self) -> Result<Vec<Removed>, KubernetesError> {
        let members = format!("app=brownout-{}", manifests::MEMBER);
        let mut removed = self.remove_each::<StatefulSet>(&members, &DeleteParams::foreground())?;
        removed.extend(self.remove_each::<Service>(&members, &DeleteParams::default())?);
        removed.extend(self.remove_each::<PersistentVolumeClaim>(&members, &DeleteParams::default())?);
        Ok(removed)
    }

    /// Removes all that runs have made, whichever they were: what that was, and why not all of it could be removed. The namespace and the
    /// rights stay, as agents do that were made by hand: they are an administrator's.
    pub fn remove_all(&self) -> (Vec<Removed>, Vec<KubernetesError>) {
        let jobs = self.remove_each::<Job>(&format!("{LABEL}=brownout"), &DeleteParams::foreground());
        let (mut removed, mut failed) = (Vec::new(), Vec::new());
        for result in [self.remove_agents(), jobs, self.remove_cluster()] {
            match result {
                Ok(some) => removed.extend(some),
                Err(error) => failed.push(error),
            }
        }
        (removed, failed)
    }

    fn remove_each<K>(&self, labels: &str, how: &DeleteParams) -> Result<Vec<Removed>, KubernetesError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), NAMESPACE);
        let kind = K::kind(&());
        let known = ListParams::default().labels(labels);
        let mut removed = Vec::new();
        for one in self.wait(format!("list what there is of {kind} in {NAMESPACE}"), api.list(&known))?.items {
            let name = one.name_any();
            let gone = async {
                match api.delete(&name, how).await {
                    // Somebody else was as quick.
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    other => other.map(drop),
                }
            };
            self.wait(format!("remove {kind}/{name}"), gone)?;
            removed.push(format!("{kind}/{name}"));
        }
        Ok(removed)
    }
}
