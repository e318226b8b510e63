//! What a load writes and reads: distributions, seeds, values and rows of CQL tables.
//!
//! All of it is pure: no clock, no file, no socket. A row is a function of its partition's seed, the
//! names of its columns and the distributions asked for, so that whoever reads it later, in another
//! process or on another machine, can make it again and compare.
//!
//! Two flavours live side by side. *Compat* is cassandra-stress bit for bit, faults included, because
//! data written by one tool must be found valid by the other; it is held to vectors that its own
//! classes printed (`golden/`). *v2* is what new profiles get.

pub mod compress;
pub mod distribution;
pub mod java;
mod permute;
pub mod rows;
pub mod seeds;
pub mod sizes;
pub mod types;
pub mod values;
