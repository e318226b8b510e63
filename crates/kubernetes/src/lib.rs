//! Kubernetes, as far as an experiment on pods needs it: which pods there are, agents on their nodes, pods that send operations, what
//! the cluster says that happened, and nothing left of all that in the end.
//!
//! Everything goes over the API server of a kubeconfig, by the rights that [`manifests`] list and nothing more. This program speaks to
//! what it has started in pods over the input and output of commands there ([`Kubernetes::exec`]): no port is opened for it.

mod agents;
#[cfg(test)]
mod api_tests;
mod client;
mod error;
mod events;
mod exec;
mod loads;
pub mod manifests;
mod members;
mod pods;
mod removal;
mod services;

pub use agents::Agent;
pub use client::Kubernetes;
pub use error::KubernetesError;
pub use events::Happened;
pub use exec::Executed;
pub use members::Members;
pub use pods::{Pod, PodContainer, PodSelection};
pub use removal::Removed;

/// The namespace of all that is made for experiments.
pub const NAMESPACE: &str = "brownout";
/// The label of all that is made for experiments.
pub const LABEL: &str = "app.kubernetes.io/part-of";
