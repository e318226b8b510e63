//! Ground that is not ours: clusters that run in network namespaces or in containers, which others have made. Faults on them
//! are proven and refuted as in a lab, and of all that attaching adds nothing is left, whoever is killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod apart;
mod checked;
mod compose;
mod docker;
mod engine;
mod findings;
mod hand;
mod hosts;
mod look;
mod machines;
mod podman;
mod restarted;
mod runs;
