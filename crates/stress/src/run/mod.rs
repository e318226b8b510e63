//! Runs: phases, rates, ends.

pub mod disk;
pub mod nodetool;
pub mod steps;
pub mod threshold;
