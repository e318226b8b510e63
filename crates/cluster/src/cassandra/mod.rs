//! Apache Cassandra as a system under test.

pub mod archive;
mod certificates;
mod conf;
mod connections;
mod cql;
mod dialect;
mod distribution;
mod encryption;
mod evidence;
pub(crate) mod external;
mod forget;
mod heartbeat;
mod jvm;
mod manifest;
pub mod maven;
mod rest;
mod ring;
mod scalar;
mod site;
mod sites;
mod spec;
mod system;
pub mod tarball;
mod tool;
mod view;
mod yaml;

pub use connections::{Logged, LoggedPeer, logged_connections};
pub use dialect::{check_mixed, check_setting_names};
pub use distribution::{DEFAULT, Distribution, Origin, ProvisionError, Release, known, release};
pub use encryption::{Encryption, Internode};
pub use ring::tokens_of;
pub use site::Site;
pub use spec::{CassandraSpec, DEFAULT_HEAP, Jit, memory_needed};
pub use system::{Cassandra, Installed};
pub use view::is_own_keyspace;
pub use yaml::{check as check_settings, largest_value};
