//! A disk probe: small operations on a mounted disk, each timed, all the time.

use std::{path::Path, time::Duration};

use crate::{
    error::DiskError,
    operation::{Operation, Operations},
};

/// How long one operation of the probe took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSample {
    /// When it was begun, on `CLOCK_MONOTONIC`, in nanoseconds.
    pub at_ns: u64,
    /// Which it was.
    pub operation: Operation,
    /// How long it took, in nanoseconds, or the `errno` with which it failed.
    pub took_ns: Result<u64, i32>,
}

/// A probe that runs until this is dropped.
#[derive(Debug)]
pub struct Probe {}

impl Probe {
    /// Starts to probe the disk on which `folder` lies: every `every`, one of each of `operations`.
    ///
    /// # Errors
    /// [`DiskError::Probe`] when its thread cannot be started.
    pub fn start(folder: &Path, every: Duration, operations: Operations) -> Result<Probe, DiskError> {
        let _ = (folder, every, operations);
        Ok(Probe {})
    }

    /// The samples that were completed since this was last called, oldest first.
    pub fn drain(&self) -> Vec<DiskSample> {
        Vec::new()
    }

    /// The operation that is under way, and when it was begun: on a disk that hangs there are no samples.
    pub fn under_way(&self) -> Option<(Operation, u64)> {
        None
    }
}
