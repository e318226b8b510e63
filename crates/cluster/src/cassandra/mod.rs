//! Apache Cassandra as a system under test.

pub mod archive;
mod conf;
mod cql;
mod distribution;
mod evidence;
mod forget;
mod heartbeat;
mod jvm;
mod manifest;
pub mod maven;
mod rest;
mod ring;
mod sites;
mod spec;
mod system;
pub mod tarball;
mod tool;
mod view;
mod yaml;

pub use distribution::{DEFAULT, Distribution, Origin, ProvisionError, Release, known, release};
pub use evidence::{Evidence, EvidenceWatch};
pub use heartbeat::{Beat, Heartbeats, Question};
pub use rest::is_own_keyspace;
pub use ring::tokens_of;
pub use spec::{CassandraSpec, Jit, Site, memory_needed};
pub(crate) use system::Cassandra;
pub use view::CQL_PORT;
pub use yaml::largest_value;
