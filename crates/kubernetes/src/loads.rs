//! Pods that send operations.

use std::{collections::BTreeMap, time::Instant};

use k8s_openapi::api::{batch::v1::Job, core::v1};
use kube::{Api, api::PostParams};

use crate::{
    Kubernetes, KubernetesError, NAMESPACE, Pod,
    agents::{READY_WITHIN, parsed, pause},
    manifests,
};

/// The label by which Kubernetes numbers the pods of an indexed job.
const NUMBER: &str = "batch.kubernetes.io/job-completion-index";

impl Kubernetes {
    /// Makes so many pods that send operations, for a run, and waits until they run. Those of an earlier session of it are removed first.
    ///
    /// # Errors
    /// The API server refuses, they do not run in time, or the user wants the end.
    pub fn make_loads(
        &self,
        run: &str,
        image: &str,
        count: u32,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), KubernetesError> {
        let until = Instant::now() + READY_WITHIN;
        while !self.remove_loads(run)?.is_empty() && Instant::now() < until {
            pause(is_over, "pods of an earlier session were to go")?;
        }
        let api: Api<Job> = Api::namespaced(self.client.clone(), NAMESPACE);
        let job: Job = parsed(&manifests::loads(run, image, count))?;
        self.wait("make pods that send operations", api.create(&PostParams::default(), &job))?;
        let waiting = (is_over, "pods that send operations were to start");
        self.wait_until_ready(manifests::LOAD, READY_WITHIN, waiting, || {
            let ready = self.loads(run)?.len();
            let lacks = ready < count as usize;
            Ok(lacks.then(|| format!("{ready} of {count} pods that are to send operations run")))
        })
    }

    /// The pods of a run that send operations and are ready: each with its number, in order. One that is lost is replaced by another of
    /// its number.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn loads(&self, run: &str) -> Result<BTreeMap<u32, String>, KubernetesError> {
        let known = |pod: &v1::Pod| {
            let labels = pod.metadata.labels.as_ref()?;
            let number = labels.get(NUMBER)?.parse().ok()?;
            let running = Pod::running(pod).filter(|pod| pod.is_ready)?;
            (labels.get(manifests::RUN)? == run).then_some((number, running.name))
        };
        Ok(self.own_pods(manifests::LOAD)?.iter().filter_map(known).collect())
    }
}
