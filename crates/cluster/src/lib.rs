//! Systems under test, on hosts.
//!
//! A cluster is real database processes, one per [`EnterableHost`] (a host of the lab). This crate provisions the
//! software ([`cassandra::maven`], [`cassandra::tarball`], [`etcd`]), writes each node's configuration, starts the
//! processes without privileges ([`Cluster::start`]), tells when the cluster is ready
//! ([`Cluster::wait_ready`]), notices deaths ([`Cluster::deaths`]) and ends everything
//! (by dropping the cluster). Meanwhile anybody may pause, kill, stop, start, throttle and ask the
//! nodes ([`Cluster::control`]). A cluster that runs already is attached instead ([`Cluster::attach`]), and only
//! asked, except through [`Hands`].
//!
//! What is a database's own lies under [`cassandra`], [`etcd`] and [`external`]; the rest knows only a [`Database`], so that
//! another one is one more implementation of it (docs/adding-a-database.md).

#![warn(missing_docs)]

#[cfg(test)]
mod attached_tests;
pub mod cache;
pub mod cassandra;
mod clock;
mod cluster;
mod confine;
mod control;
mod database;
mod directories;
mod election;
mod error;
pub mod etcd;
mod evidence;
pub mod external;
mod follow;
mod governing;
mod governor;
pub mod hands;
mod heartbeat;
mod host;
pub mod java;
mod jmx;
mod kernel;
mod kind;
mod last_told;
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
mod stream;
mod supervisor;

pub use brownout_base::EnterableHost;
pub use cassandra::{
    Cassandra, CassandraSpec, DEFAULT_HEAP, Distribution, Encryption, Internode, Jit, Origin, Site, memory_needed,
};
pub use cluster::Cluster;
pub use confine::Owner;
pub use control::ClusterControl;
pub use database::{
    Access, Answer, Clock, ClusterView, Connection, Database, Heartbeat, Led, Looker, Member, Program, Question, Roles,
    Shown, Start, SystemSettings, version_words,
};
pub use directories::{NodeDirectories, Paths, Variables};
pub use error::ClusterError;
pub use evidence::{Evidence, EvidenceWatch};
pub use hands::{AttachedNode, CpuHold, CpuLimit, Hands, Restart};
pub use heartbeat::{Beat, Heartbeats};
pub use kind::DatabaseKind;
pub use node::Node;
pub use readiness::Readiness;
pub use signals::Stopped;
pub use state::{Death, NodeState};
