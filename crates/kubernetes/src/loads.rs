//! Pods that send operations.

use std::{thread, time::Instant};

use brownout_base::natural;
use k8s_openapi::api::{batch::v1::Job, core::v1};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};

use crate::{
    Kubernetes, KubernetesError, NAMESPACE, Pod,
    agents::{LOOK, READY_WITHIN, parsed},
    manifests,
};

impl Kubernetes {
    /// Makes so many pods that send operations, for a run, and waits until they run.
    ///
    /// # Errors
    /// The API server refuses, or they do not run in time.
    pub fn make_loads(&self, run: &str, image: &str, count: u32) -> Result<(), KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client.clone(), NAMESPACE);
        let job: Job = parsed(&manifests::loads(run, image, count))?;
        self.wait("make pods that send operations", api.create(&PostParams::default(), &job))?;
        let until = Instant::now() + READY_WITHIN;
        loop {
            let ready = self.loads(run)?.len();
            if ready >= count as usize {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(KubernetesError::Lacking(format!(
                    "{ready} of {count} pods that are to send operations run after {} s: {}",
                    READY_WITHIN.as_secs(),
                    self.why_not(manifests::LOAD)?
                )));
            }
            thread::sleep(LOOK);
        }
    }

    /// The pods of a run that send operations and are ready, in order.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn loads(&self, run: &str) -> Result<Vec<String>, KubernetesError> {
        let pods = self.own_pods(manifests::LOAD)?;
        let of_run = |pod: &&v1::Pod| {
            let labels = pod.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(manifests::RUN)).is_some_and(|own| own == run)
        };
        let ready = pods.iter().filter(of_run).filter_map(Pod::running).filter(|pod| pod.is_ready);
        let mut names: Vec<String> = ready.map(|pod| pod.name).collect();
        names.sort_by_key(|name| natural(name));
        Ok(names)
    }

    /// Removes the pods of a run that send operations. That there are none is no error.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn remove_loads(&self, run: &str) -> Result<(), KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client.clone(), NAMESPACE);
        let name = manifests::job(run);
        let removed = async {
            match api.delete(&name, &DeleteParams::background()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                other => other.map(drop),
            }
        };
        self.wait(format!("remove the job {name}"), removed)
    }
}
