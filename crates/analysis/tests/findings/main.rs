//! What runs that were made up must be found to show. One program: what makes the runs is built once for all of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../scenario/mod.rs"]
mod scenario;
#[path = "../watched/mod.rs"]
mod watched;

mod compare;
mod database;
mod dearer;
mod detector_scores;
mod detectors;
mod disturbance;
mod drift;
mod effects;
mod encryption;
mod explained;
mod formats;
mod harm;
mod json;
mod kinds;
mod loads;
mod lost_load;
mod periods;
mod phases;
mod proof;
mod search;
mod stalls;
mod verdict;
mod watches;
