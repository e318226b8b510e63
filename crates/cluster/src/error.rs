use std::{io, path::PathBuf, time::Duration};

use thiserror::Error;

use crate::{Death, cache::CacheError};

/// Why a cluster could not be started or did not become ready.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// A cluster was asked for on no host at all.
    #[error("a cluster needs at least one host to run on")]
    NoPlaces,
    /// Two hosts share a name or an address, so their nodes could not be told apart.
    #[error("two hosts of the cluster share {0}: give each a name and an address of its own")]
    SamePlace(String),
    /// A host's name cannot be a folder and a host name.
    #[error("'{0}' cannot be a node's name: use up to 63 letters, digits, - and _")]
    Name(String),
    /// The user that the nodes run as cannot get at something that they need.
    #[error(
        "user {uid} (whom the nodes run as) cannot get at {path}: {at} is closed to it; \
         bind-mount the path to where it is reachable, or open it: chmod o+rx {at}"
    )]
    OutOfReach {
        /// The user id.
        uid: u32,
        /// What is needed.
        path: PathBuf,
        /// What on the way there is closed.
        at: PathBuf,
    },
    /// A setting that Brownout must own, or that is no setting.
    #[error("the cassandra setting '{key}' cannot be given: {why}")]
    Setting {
        /// The key of cassandra.yaml.
        key: String,
        /// Why not, and what to do instead.
        why: String,
    },
    /// A folder or file of a node could not be made.
    #[error("cannot {action} {path}: {source}")]
    Files {
        /// What was tried: "create", "write", "give to user 65534".
        action: String,
        /// On what.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// A host's network could not be entered.
    #[error("cannot enter the network of {node}: {source}")]
    Network {
        /// The node of that host.
        node: String,
        /// What happened.
        source: io::Error,
    },
    /// The process of a node could not be started.
    #[error(
        "cannot start {node} ({program}): {source}; \
         starting a node takes root, or root in a user namespace, and read access to the program for the user it runs as"
    )]
    Spawn {
        /// The node.
        node: String,
        /// The program that was to be run.
        program: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// A node's process ended while the cluster was awaited.
    #[error("{} died: {}; the last lines of its log:\n{}", .0.node, .0.status, .0.log_tail)]
    NodeDied(Death),
    /// The deadline passed.
    #[error(
        "the cluster is not ready after {:.0} s: {}; the logs are in {logs}; \
         give the machine less to do, or the nodes more time",
        after.as_secs_f64(), missing.join("; ")
    )]
    NotReady {
        /// How long was waited.
        after: Duration,
        /// What was missing at the end, one half sentence each.
        missing: Vec<String>,
        /// Where the nodes' logs lie.
        logs: String,
    },
    /// The caller asked to stop.
    #[error("interrupted while waiting for the cluster")]
    Interrupted,
    /// A class-data archive could not be made; nodes start without one, only slower.
    #[error("cannot make the class-data archive: {0}")]
    Archive(String),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl ClusterError {
    /// For `map_err` on file work.
    pub(crate) fn files(action: impl Into<String>, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ClusterError {
        let (action, path) = (action.into(), path.into());
        move |source| ClusterError::Files { action, path, source }
    }
}
