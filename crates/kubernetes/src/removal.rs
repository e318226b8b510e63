//! Taking away what was made for experiments.

use k8s_openapi::api::{apps::v1::DaemonSet, batch::v1::Job};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};

use crate::{Kubernetes, KubernetesError, LABEL, NAMESPACE, manifests};

/// Something that was removed: "DaemonSet/agent".
pub type Removed = String;

impl Kubernetes {
    /// Removes the agents; they heal what they have put in force. That there are none is no error.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn remove_agents(&self) -> Result<(), KubernetesError> {
        let sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let removed = async {
            match sets.delete(manifests::AGENT, &DeleteParams::foreground()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                other => other.map(drop),
            }
        };
        self.wait("remove the agents", removed)
    }

    /// Removes the agents and all pods that send operations, of whichever run, and says what there was. The namespace and the rights
    /// stay: they are an administrator's.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn remove_all(&self) -> Result<Vec<Removed>, KubernetesError> {
        let ours = ListParams::default().labels(&format!("{LABEL}=brownout"));
        let sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut removed = Vec::new();
        for set in self.wait("list the agents", sets.list(&ours))?.items {
            let name = set.metadata.name.unwrap_or_default();
            self.wait(format!("remove the agents {name}"), sets.delete(&name, &DeleteParams::foreground()))?;
            removed.push(format!("DaemonSet/{name}"));
        }
        for job in self.wait("list the jobs", jobs.list(&ours))?.items {
            let name = job.metadata.name.unwrap_or_default();
            self.wait(format!("remove the job {name}"), jobs.delete(&name, &DeleteParams::background()))?;
            removed.push(format!("Job/{name}"));
        }
        Ok(removed)
    }
}
