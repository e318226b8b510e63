use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use thiserror::Error;

use crate::{Death, cache::CacheError, kind::DatabaseKind};

/// Least similarity of a name to one that was meant, from 0 to 1.
const SIMILAR: f64 = 0.4;

/// Why a cluster could not be started or did not become ready, or something could not be done to a node of it.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// A cluster was asked for on no host at all.
    #[error("a cluster needs at least one host to run on")]
    NoHosts,
    /// Two hosts share a name or an address, so their nodes could not be distinguished.
    #[error("two hosts of the cluster share {0}: give each a name and an address of its own")]
    SameHost(String),
    /// A host's name cannot be a directory and a host name.
    #[error("'{0}' cannot be a node's name: use up to 63 letters, digits, - and _")]
    Name(String),
    /// The user that the nodes run as cannot get at something that they need.
    #[error(
        "user {uid} (whom the nodes run as) cannot access {path}: {at} is closed to that user; bind-mount the \
         path to where it is reachable, or open it: chmod o+rx {at}"
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
    #[error("the {database} setting '{key}' cannot be given: {why}")]
    Setting {
        /// Whose it would be.
        database: DatabaseKind,
        /// The key of cassandra.yaml, or the flag of etcd's command line.
        key: String,
        /// Why not, and what to do instead.
        why: String,
    },
    /// A directory or file of a node could not be made.
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
    /// What the caller does with a node's directories before its start went wrong.
    #[error("cannot prepare the directories of {node}: {source}")]
    Prepare {
        /// The node.
        node: String,
        /// What happened.
        source: io::Error,
    },
    /// A data centre or rack that cannot be one, or that a node lacks.
    #[error("the sites of the cluster: {0}")]
    Site(String),
    /// Versions that cannot be in one cluster.
    #[error("the versions of the cluster: {0}")]
    Mixed(String),
    /// Encryption that would encrypt nothing, or that a version does not have.
    #[error("the encryption of the cluster: {0}")]
    Encryption(String),
    /// Keys and certificates could not be made, or are not understood.
    #[error("cannot make the certificates of the cluster: {0}")]
    Certificates(String),
    /// Connections to a cluster that is not ours cannot be encrypted as asked.
    #[error("connections to the cluster cannot be encrypted: {why}; look at cluster.access")]
    Access {
        /// What is wrong with which file.
        why: String,
    },
    /// A node that is not ours does not answer.
    #[error(
        "{node} ({address}) does not answer as a node of {database} does: {why}; it has to run and to be reachable from \
         this machine: look at cluster.external, and for encryption and a login at cluster.access"
    )]
    Unreachable {
        /// What it should be.
        database: DatabaseKind,
        /// The node.
        node: String,
        /// Where it was asked.
        address: SocketAddr,
        /// What it did instead.
        why: String,
    },
    /// A node that is not ours was named twice.
    #[error("{one} and {other} are the same node; name each node in cluster.external once")]
    SameNode {
        /// Its first name.
        one: String,
        /// Its second.
        other: String,
    },
    /// A name that no node bears.
    #[error("there is no node '{asked}'{}; the nodes are {}", meant(nearest.as_deref()), known.join(", "))]
    UnknownNode {
        /// What was asked for.
        asked: String,
        /// The most similar name, when one is similar.
        nearest: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// Something that cannot be done to a node in the state it is in.
    #[error("cannot {doing} {node}: it {state}; {remedy}")]
    NotNow {
        /// The node.
        node: String,
        /// What was asked for: "pause".
        doing: &'static str,
        /// What the node is: "is paused already".
        state: String,
        /// What to do.
        remedy: String,
    },
    /// Something that is done to nodes alone that were started here.
    #[error(
        "{node} is not ours: it ran before and goes on running, so it is only asked; start, stop and change it where it was \
         started"
    )]
    NotOurs {
        /// The node.
        node: String,
    },
    /// Something that could not be done to a node of others.
    #[error("cannot {doing} {node}: {why}")]
    Hands {
        /// The node.
        node: String,
        /// What was asked for: "pause".
        doing: &'static str,
        /// Why not, and what to do instead.
        why: String,
    },
    /// Nobody is known to lead.
    #[error("no node leads at this moment: {why}; wait for an election to end, and try again")]
    NoLeader {
        /// What the nodes said.
        why: String,
    },
    /// A part that nodes of this database do not have.
    #[error("no node of {database} leads: all are alike; name one")]
    NoRoles {
        /// Which.
        database: DatabaseKind,
    },
    /// A tool that is not there.
    #[error("there is no tool to administer {node} with: {why}")]
    NoTool {
        /// The node.
        node: String,
        /// What is missing.
        why: String,
    },
    /// The cluster was stopped or killed: its nodes can no longer be controlled.
    #[error("the cluster of {node} has ended; start another")]
    Ended {
        /// The node asked for.
        node: String,
    },
    /// The kernel refused a signal.
    #[error("cannot send signal {signal} to {node}: {source}; only its own user, or root, may")]
    Signal {
        /// The node.
        node: String,
        /// The signal's number.
        signal: i32,
        /// What happened.
        source: io::Error,
    },
    /// A signal that does not end a process.
    #[error(
        "signal {signal} cannot kill {node}: it does not end a process that ignores it, or is what pause and unpause do; \
         use one of {}",
        deadly.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
    )]
    NotDeadly {
        /// The node.
        node: String,
        /// The signal's number.
        signal: i32,
        /// Those that can.
        deadly: Vec<i32>,
    },
    /// What was asked for was not seen.
    #[error(
        "the kernel does not show {node} {wanted} after {} s; look for a disk that hangs, or an overloaded \
         machine",
        after.as_secs()
    )]
    NotShown {
        /// The node.
        node: String,
        /// What was to be seen: "as stopped".
        wanted: String,
        /// How long was looked.
        after: Duration,
    },
    /// A share of CPU time that is too small.
    #[error("a node's CPU time cannot be limited to {share}: the least is {least}; pause the node to give it none")]
    CpuShare {
        /// What was asked for.
        share: String,
        /// The least.
        least: String,
    },
    /// The thread that keeps a limit does not run; nothing is limited.
    #[error(
        "cannot limit the CPU time of {node}: {source}; reduce the load of the machine, or raise its limit of \
         threads"
    )]
    Governor {
        /// The node.
        node: String,
        /// What happened.
        source: io::Error,
    },
    /// A node does not answer clients in time.
    #[error("{node} does not answer clients after {:.0} s ({why}); its logs are in {logs}", after.as_secs_f64())]
    NoAnswer {
        /// The node.
        node: String,
        /// How long was waited.
        after: Duration,
        /// What it did last.
        why: String,
        /// Where its logs lie.
        logs: String,
    },
    /// A node's process ended while the cluster was awaited.
    #[error("{} died: {}; the last lines of its log:\n{}", .0.node, .0.status, .0.log_tail)]
    NodeDied(Death),
    /// The deadline passed.
    #[error(
        "the cluster is not ready after {:.0} s: {}; the logs are in {logs}; reduce the load of the machine, \
         or the nodes more time",
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
    /// A node goes on deciding by what it has learned.
    #[error("{node} does not forget how fast it found the others: {why}; start another cluster")]
    NotForgotten {
        /// The node.
        node: String,
        /// What it does instead.
        why: String,
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

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
}

impl ClusterError {
    /// For `map_err` on file work.
    pub(crate) fn files(action: impl Into<String>, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ClusterError {
        let (action, path) = (action.into(), path.into());
        move |source| ClusterError::Files { action, path, source }
    }
}

/// The error for a name that none of `known` is.
pub(crate) fn unknown(asked: &str, known: Vec<String>) -> ClusterError {
    let nearest = known
        .iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(name, asked), name))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        // The first of those that are equally near.
        .reduce(|best, other| if other.0 > best.0 { other } else { best })
        .map(|(_, name)| name.clone());
    ClusterError::UnknownNode { asked: asked.to_owned(), nearest, known }
}
