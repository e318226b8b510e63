//! What `up` asks of a lab's keeper and of its first process.

use std::{os::fd::RawFd, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::provided::Provided;

/// What a lab's keeper and its first process are asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LabRequest {
    pub(super) name: String,
    /// Where its directory lies.
    pub(super) registry: PathBuf,
    pub(super) provided: Provided,
    /// The lab file, its text, and what was set in it.
    pub(super) file: PathBuf,
    pub(super) text: String,
    pub(super) set: Vec<String>,
    /// Why there are no disks that can be slow; none: there are.
    pub(super) no_disk: Option<String>,
    pub(super) started_unix_ms: u64,
    pub(super) who: String,
    /// Inherited; each is the same in the keeper and in the first process.
    pub(super) lock: RawFd,
    pub(super) listener: RawFd,
    pub(super) birth: RawFd,
}
