//! A cluster that is made for an experiment: a StatefulSet, whose pods find each other by the names of a Service.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1};
use kube::{Api, api::PostParams};

use crate::{
    Kubernetes, KubernetesError, NAMESPACE,
    agents::{parsed, pause},
    manifests,
};

/// Images are fetched, and volumes made, by then.
const READY_WITHIN: Duration = Duration::from_secs(300);
/// A member has joined by then, one after the other.
const JOINS_WITHIN: Duration = Duration::from_secs(180);

/// Members of a database that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// What they are called: NAME-0, NAME-1, …; reached as `NAME-0.NAME.brownout.svc`.
    pub name: String,
    /// How many.
    pub count: u32,
    /// What they run.
    pub image: String,
    /// How; empty: as the image says. `$(POD)` stands for the member's own name.
    pub command: Vec<String>,
    /// Their environment.
    pub environment: BTreeMap<String, String>,
    /// Where they are ready when they listen.
    pub port: u16,
    /// Where they keep their data.
    pub data: &'static str,
    /// One begins when the one before it is ready; else all at once.
    pub in_order: bool,
    /// What each is given and may use at most, as Kubernetes writes it ("2Gi"); none: what there is.
    pub memory: Option<String>,
    /// The same of processors ("2", "500m").
    pub cpu: Option<String>,
    /// The size of the volume that each claims; none: its data goes with its pod.
    pub storage: Option<String>,
    /// The class of that; none: the default.
    pub storage_class: Option<String>,
}

impl Kubernetes {
    /// Makes the names by which the members of a cluster will find each other: from here on it is this one's.
    ///
    /// # Errors
    /// The API server refuses, or there is such a cluster.
    pub fn make_names(&self, cluster: &str) -> Result<(), KubernetesError> {
        let services: Api<v1::Service> = Api::namespaced(self.client.clone(), NAMESPACE);
        let service = parsed(&manifests::names_of(cluster))?;
        self.wait(format!("make the service {cluster}"), services.create(&PostParams::default(), &service)).map(drop)
    }

    /// Makes the members, and waits until all are ready.
    ///
    /// # Errors
    /// The API server refuses, they are not ready in time (with what is known of them), or the user wants the end.
    pub fn make_members(&self, members: &Members, is_over: &dyn Fn() -> bool) -> Result<(), KubernetesError> {
        let Members { name, count, .. } = members;
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let set = parsed(&manifests::members(members))?;
        let within = READY_WITHIN + JOINS_WITHIN * if members.in_order { *count } else { 1 };
        let until = Instant::now() + within;
        // Those of a run before this one may be about to go: they are waited for.
        while Instant::now() < until
            && let Some(known) = self.wait(format!("look for members of {name}"), sets.get_opt(name))?
            && known.metadata.deletion_timestamp.is_some()
        {
            pause(is_over, "members of a run before this one were to go")?;
        }
        self.wait(format!("make the members of {name}"), sets.create(&PostParams::default(), &set))?;
        self.wait_until_ready(manifests::MEMBER, within, (is_over, "members were to become ready"), || {
            let set = self.wait(format!("look at the members of {name}"), sets.get(name))?;
            let ready = set.status.and_then(|status| status.ready_replicas).unwrap_or(0);
            let are_all = u32::try_from(ready).is_ok_and(|ready| ready >= *count);
            Ok((!are_all).then(|| format!("{ready} of {count} members of {name} are ready")))
        })
    }
}
