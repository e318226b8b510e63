use std::path::PathBuf;

use thiserror::Error;

use crate::cache::CacheError;

/// Why no etcd could be had.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// A version of no series that is known.
    #[error("etcd '{asked}' is not known; known are: 3, {known}, and full versions of these series")]
    UnknownVersion {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// Neither Go nor an installed etcd will do.
    #[error(
        "there is no etcd {asked} on this machine: {why}; install {remedy}, or give a program (etcd: {{ binary: PATH }})"
    )]
    None {
        /// What was asked for.
        asked: String,
        /// What was looked for, and found instead.
        why: String,
        /// What to install.
        remedy: &'static str,
    },
    /// Go failed.
    #[error("Go could not build etcd {version}: {what}{}", .remedy.map(|remedy| format!("\n{remedy}")).unwrap_or_default())]
    Build {
        /// What it was to build.
        version: String,
        /// Its own words.
        what: String,
        /// What to do about it, when its words are known.
        remedy: Option<&'static str>,
    },
    /// The program that was given is no etcd, or one that is not known.
    #[error("{program} is not a usable etcd: {why}; give the server's program, of a version from 3.4 to 3.7")]
    NotEtcd {
        /// The program.
        program: PathBuf,
        /// What it does instead.
        why: String,
    },
    /// The caller asked to stop; nothing half-made remains.
    #[error("interrupted while building etcd")]
    Interrupted,
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}
