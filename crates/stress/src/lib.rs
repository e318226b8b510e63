//! cassandra-stress's language, profiles, operations and outputs on an open-loop engine.
//!
//! A command line becomes [`settings::Settings`]; a YAML file becomes a [`profile::Profile`]; [`schema`] creates the
//! tables, [`operations`] makes the requests, [`run`] drives them, [`output`] writes what people and scripts read.

#![allow(unexpected_cfgs, reason = "cargo-fuzz sets cfg(fuzzing), which cargo does not know")]

#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod operations;
pub mod output;
pub mod profile;
pub mod run;
pub mod schema;
pub mod settings;
