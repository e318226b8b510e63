//! What can go wrong with a disk, and what to do about it.

use std::{io, path::PathBuf};

use thiserror::Error;

/// A disk could not be mounted, changed or probed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiskError {
    /// This machine, or this process, cannot use FUSE.
    #[error("cannot serve a disk: {0}")]
    Unavailable(String),

    /// A directory is not what it must be.
    #[error("cannot use {path} as {role} of a disk: {reason}", path = path.display())]
    Directory {
        /// Which directory.
        path: PathBuf,
        /// `the source` or `the mount point`.
        role: &'static str,
        /// What is wrong with it, and what to do.
        reason: String,
    },

    /// The kernel refused one of the steps.
    #[error("cannot {action} for the disk at {target}: {source}{remedy}", target = target.display())]
    Mount {
        /// What was tried, as a verb phrase: "open /dev/fuse".
        action: &'static str,
        /// Where the disk was to be mounted, or is.
        target: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What to do, behind a semicolon; empty when there is nothing to say.
        remedy: &'static str,
    },

    /// A fault that cannot be, or that would have no effect.
    #[error("this disk fault cannot be injected: {0}")]
    Fault(String),

    /// A word that is no operation of a disk.
    #[error("'{0}' is no operation of a disk; there are read, write, sync and metadata")]
    NoSuchOperation(String),

    /// A word that is no error of a disk.
    #[error("'{0}' is no error of a disk; there are EIO, ENOSPC and EROFS")]
    NoSuchErrno(String),

    /// The disk is not mounted any more.
    #[error("the disk at {target} is gone: every operation on it fails; stop this trial and mount it anew", target = .0.display())]
    Gone(PathBuf),

    /// The probe could not be started.
    #[error("cannot probe the disk at {directory}: cannot {action}: {source}", directory = directory.display())]
    Probe {
        /// The directory to be probed.
        directory: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}
