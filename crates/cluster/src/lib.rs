//! Systems under test, on hosts.
//!
//! A cluster is real database processes, one per [`Place`] (a host of the lab). This crate provisions the
//! software ([`cassandra::maven`], [`cassandra::tarball`]), writes each node's configuration, starts the
//! processes without privileges ([`Cluster::start`]), tells when the cluster is ready
//! ([`Cluster::wait_ready`]), notices deaths ([`Cluster::deaths`]) and ends everything
//! (by dropping the cluster). Meanwhile anybody may pause, kill, stop, start, throttle and ask the
//! nodes ([`Cluster::control`]).
//!
//! What is Cassandra's own lies under [`cassandra`]; the rest knows only a `System`, so that another
//! database is one more implementation of it.

#![warn(missing_docs)]

pub mod cache;
pub mod cassandra;
mod clock;
mod cluster;
mod confine;
mod control;
mod directories;
mod error;
mod follow;
mod governing;
mod governor;
mod host;
pub mod java;
mod jmx;
mod kernel;
#[cfg(test)]
mod lifecycle_tests;
mod logs;
mod node;
mod parts;
mod process;
mod quota;
mod readiness;
mod signals;
mod state;
mod supervisor;
mod system;

pub use brownout_base::Place;
pub use cassandra::{
    Beat, CassandraSpec, Distribution, Evidence, EvidenceWatch, Heartbeats, Jit, Origin, Question, Site, memory_needed,
};
pub use cluster::Cluster;
pub use confine::Owner;
pub use control::ClusterControl;
pub use directories::{NodeDirectories, Paths, Variables};
pub use error::ClusterError;
pub use governor::CpuLimit;
pub use node::Node;
pub use readiness::Readiness;
pub use signals::Stopped;
pub use state::{Death, NodeState};
pub use system::SystemSettings;
