//! Systems under test, on hosts.
//!
//! A cluster is real database processes, one per [`Place`] (a host of the lab). This crate provisions the
//! software ([`cassandra::maven`], [`cassandra::tarball`]), writes each node's configuration, starts the
//! processes without privileges ([`Cluster::start`]), tells when the cluster is ready
//! ([`Cluster::wait_ready`]), notices deaths ([`Cluster::deaths`]) and ends everything
//! ([`Cluster::kill`], or dropping the cluster).
//!
//! What is Cassandra's own lies under [`cassandra`]; the rest knows only a `System`, so that another
//! database is one more implementation of it.

#![warn(missing_docs)]

pub mod cache;
pub mod cassandra;
mod clock;
mod cluster;
mod confine;
mod error;
pub mod java;
mod logs;
mod node;
mod place;
mod readiness;
mod system;

pub use cassandra::{CassandraSpec, Distribution, How, Jit, memory_needed};
pub use cluster::{Cluster, Paths};
pub use confine::Owner;
pub use error::ClusterError;
pub use node::{Death, Node};
pub use place::Place;
pub use readiness::Readiness;
pub use system::InForce;
