//! What goes through the `scylla` driver: control work, and load on its data path. One program, because the driver is
//! compiled for each that uses it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says by panicking that something is wrong")]

#[path = "../common/mod.rs"]
mod common;
mod control;
mod driver;
