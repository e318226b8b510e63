//! etcd as a system under test.
//!
//! Its servers are asked by the JSON gateway and the metrics that they serve at their clients' port (`ask`,
//! `metrics`, `http`): a handful of questions, for which HTTP/1.1 and JSON take less of a small machine than another client of gRPC.

pub(crate) mod ask;
mod calendar;
mod error;
mod evidence;
mod flags;
mod go;
mod heartbeat;
mod http;
mod log;
mod metrics;
mod program;
mod provision;
mod system;

pub use error::ProvisionError;
pub(crate) use evidence::Watcher;
pub use flags::check as check_settings;
pub(crate) use heartbeat::Beating;
pub(crate) use http::{Dial, Door, Plain};
pub use provision::{DEFAULT, Installed, Wanted, check_version, known, provide, refuse};
pub use system::{Etcd, EtcdSpec, memory_needed};
