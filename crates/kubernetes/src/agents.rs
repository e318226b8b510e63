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
const LOOK: Duration = Duration::from_millis(500);

/// An agent that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its pod.
    pub pod: String,
    /// Its node.
    pub node: String,
}

/// Agents that a run has made have it; those that were made by hand have not.
const MADE_BY: (&str, &str) = ("brownout-made-by", "run");

impl Kubernetes {
    /// Makes agents where there are none; those of a run before this one may be about to go, and are waited for. Whether a run has made
    /// those that there are: then they go with the last one.
    ///
    /// # Errors
    /// The API server refuses, there are agents of another image, or the user wants the end.
    pub fn make_agents(&self, image: &str, is_over: &dyn Fn() -> bool) -> Result<bool, KubernetesError> {
        let api: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut set: DaemonSet = parsed(&manifests::agents(image))?;
        let made_by = (MADE_BY.0.to_owned(), MADE_BY.1.to_owned());
        set.metadata.labels.get_or_insert_default().extend([made_by]);
        let until = Instant::now() + READY_WITHIN;
        loop {
            match self.wait("look for agents", api.get_opt(manifests::AGENT))? {
                None => {
                    self.wait("make agents", api.create(&PostParams::default(), &set))?;
                    return Ok(true);
                }
                Some(known) if known.metadata.deletion_timestamp.is_none() => {
                    let own = image_of(&known).unwrap_or_default();
                    if own != image {
                        return Err(KubernetesError::Lacking(format!(
                            "there are agents of the image {own}, and {image} is asked for; `brownout destroy --ground kubernetes` \
                             removes those of runs"
                        )));
                    }
                    return Ok(is_of_a_run(&known));
                }
                Some(_) if Instant::now() > until => {
                    let message =
                        "the agents of a run before this one do not go; `kubectl describe daemonset` says why";
                    return Err(KubernetesError::Lacking(message.to_owned()));
                }
                Some(_) => pause(is_over, "agents of a run before this one were to go")?,
            }
        }
    }

    /// Waits until an agent runs on each of these nodes.
    ///
    /// # Errors
    /// The API server refuses, an agent does not run (with what is known of it), or the user wants the end.
    pub fn wait_for_agents(&self, nodes: &[String], is_over: &dyn Fn() -> bool) -> Result<(), KubernetesError> {
        self.wait_until_ready(manifests::AGENT, READY_WITHIN, (is_over, "agents were to start"), || {
            let agents = self.agents()?;
            let is_missing = |node: &&String| !agents.iter().any(|agent| agent.node == **node);
            let missing: Vec<&str> = nodes.iter().filter(is_missing).map(String::as_str).collect();
            Ok((!missing.is_empty()).then(|| format!("no agent runs on {}", missing.join(", "))))
        })
    }

    /// Looks until nothing is lacking (`look` says what is, in words) of pods of ours of a kind.
    pub(crate) fn wait_until_ready(
        &self,
        kind: &str,
        within: Duration,
        (is_over, waiting): (&dyn Fn() -> bool, &'static str),
        mut look: impl FnMut() -> Result<Option<String>, KubernetesError>,
    ) -> Result<(), KubernetesError> {
        let until = Instant::now() + within;
        while let Some(lacking) = look()? {
            if Instant::now() > until {
                let why = self.why_not(kind)?;
                return Err(KubernetesError::Lacking(format!("{lacking} after {} s: {why}", within.as_secs())));
            }
            pause(is_over, waiting)?;
        }
        Ok(())
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
    fn why_not(&self, kind: &str) -> Result<String, KubernetesError> {
        let mut told: Vec<String> = Vec::new();
        for pod in self.own_pods(kind)? {
            let name = pod.metadata.name.unwrap_or_default();
            let status = pod.status.unwrap_or_default();
            let states = || status.container_statuses.iter().flatten().filter_map(|one| one.state.as_ref());
            let waiting = states().filter_map(|state| state.waiting.as_ref());
            let waiting = waiting.map(|waiting| (&waiting.reason, &waiting.message));
            let ended = states().filter_map(|state| state.terminated.as_ref());
            let ended = ended.map(|ended| (&ended.reason, &ended.message));
            let refused =
                status.conditions.iter().flatten().filter(|one| one.type_ == "PodScheduled" && one.status == "False");
            let refused = refused.map(|refused| (&refused.reason, &refused.message));
            told.extend(waiting.chain(ended).chain(refused).map(|(reason, message)| {
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

fn image_of(set: &DaemonSet) -> Option<&str> {
    set.spec.as_ref()?.template.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// Whether a run has made it.
fn is_of_a_run(set: &DaemonSet) -> bool {
    set.metadata.labels.as_ref().and_then(|labels| labels.get(MADE_BY.0)).is_some_and(|by| by == MADE_BY.1)
}

/// Of agents that runs have made.
pub(crate) fn of_runs() -> String {
    format!("{}={}", MADE_BY.0, MADE_BY.1)
}

/// Between two looks; an error if the user wants the end.
pub(crate) fn pause(is_over: &dyn Fn() -> bool, waiting: &'static str) -> Result<(), KubernetesError> {
    thread::sleep(LOOK);
    if is_over() { Err(KubernetesError::Interrupted(waiting)) } else { Ok(()) }
}

/// A manifest of ours.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, KubernetesError> {
    let senseless = |error| KubernetesError::Lacking(format!("a manifest of this program cannot be read: {error}"));
    serde_saphyr::from_str(text).map_err(senseless)
}
