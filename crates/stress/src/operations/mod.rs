//! Operations: what is asked of the database, and what its answers mean.

pub mod complaints;
pub mod permits;
