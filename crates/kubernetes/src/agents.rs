//! Agents: one on each node, in which parts of runs are started.

use std::{
    thread,
    time::{Duration, Instant},
};

use k8s_openapi::api::{apps::v1::DaemonSet, core::v1};
use kube::{
    Api,
    api::{ListParams, PostParams},
};

use crate::{Kubernetes, KubernetesError, NAMESPACE, Pod, manifests};

/// Images are fetched by then.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(180);
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// An agent that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its pod.
    pub pod: String,
    /// Its node.
    pub node: String,
}

impl Kubernetes {
    /// Makes agents where there are none, and waits until one runs on each of these nodes. Whether they were made.
    ///
    /// # Errors
    /// The API server refuses, or an agent does not run: with what is known of it.
    pub fn make_agents(&self, image: &str, nodes: &[String]) -> Result<bool, KubernetesError> {
        let api: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let set: DaemonSet = parsed(&manifests::agents(image))?;
        let mut made = false;
        let until = Instant::now() + READY_WITHIN;
        loop {
            // Those of a run before this one may be about to go: they are waited for.
            let known = self.wait("look for agents", api.get_opt(manifests::AGENT))?;
            let is_going = known.as_ref().is_some_and(|known| known.metadata.deletion_timestamp.is_some());
            if known.is_none() {
                self.wait("make agents", api.create(&PostParams::default(), &set))?;
                made = true;
            }
            let agents = self.agents()?;
            let is_missing = |node: &&String| !agents.iter().any(|agent| agent.node == **node);
            let missing: Vec<&str> = nodes.iter().filter(is_missing).map(String::as_str).collect();
            if missing.is_empty() && !is_going {
                return Ok(made);
            }
            if Instant::now() > until {
                return Err(KubernetesError::Lacking(format!(
                    "no agent runs on {} after {} s: {}",
                    missing.join(", "),
                    READY_WITHIN.as_secs(),
                    self.why_not(manifests::AGENT)?
                )));
            }
            thread::sleep(LOOK);
        }
    }

    /// Those that are ready.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn agents(&self) -> Result<Vec<Agent>, KubernetesError> {
        let pods = self.own_pods(manifests::AGENT)?;
        let ready = pods.iter().filter_map(Pod::running).filter(|pod| pod.is_ready);
        Ok(ready.map(|pod| Agent { pod: pod.name, node: pod.node }).collect())
    }

    /// Pods that were made for experiments, of one kind.
    pub(crate) fn own_pods(&self, kind: &str) -> Result<Vec<v1::Pod>, KubernetesError> {
        let api: Api<v1::Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let parameters = ListParams::default().labels(&format!("app=brownout-{kind}"));
        Ok(self.wait(format!("list the pods of namespace {NAMESPACE}"), api.list(&parameters))?.items)
    }

    /// What Kubernetes says of those that do not run.
    pub(crate) fn why_not(&self, kind: &str) -> Result<String, KubernetesError> {
        let mut told: Vec<String> = Vec::new();
        for pod in self.own_pods(kind)? {
            let name = pod.metadata.name.unwrap_or_default();
            let status = pod.status.unwrap_or_default();
            let waiting =
                status.container_statuses.iter().flatten().filter_map(|one| one.state.as_ref()?.waiting.as_ref());
            let waiting = waiting.map(|waiting| (&waiting.reason, &waiting.message));
            let refused =
                status.conditions.iter().flatten().filter(|one| one.type_ == "PodScheduled" && one.status == "False");
            let refused = refused.map(|refused| (&refused.reason, &refused.message));
            told.extend(waiting.chain(refused).map(|(reason, message)| {
                let [reason, message] = [reason, message].map(|text| text.as_deref().unwrap_or_default());
                format!("{name}: {reason} {message}").trim_end().to_owned()
            }));
        }
        if told.is_empty() {
            told.push(format!("`kubectl describe pods --namespace {NAMESPACE}` says more"));
        }
        Ok(told.join("; "))
    }
}

/// A manifest of ours.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, KubernetesError> {
    let senseless = |error| KubernetesError::Lacking(format!("a manifest of this program cannot be read: {error}"));
    serde_saphyr::from_str(text).map_err(senseless)
}
