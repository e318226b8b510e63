//! Pods of a real Kubernetes: faults on them are proven and refuted as in a lab, by somebody with few rights, and of all that an
//! experiment adds nothing is left, whoever is killed. `make test-kubernetes` runs these beside a cluster of their own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod cassandra;
mod cluster;
mod left;
mod rights;
mod runs;
