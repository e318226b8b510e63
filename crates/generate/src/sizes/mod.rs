//! Partition sizes that follow a target.
