use std::{collections::BTreeMap, net::Ipv4Addr, path::PathBuf, process::Command};

use serde::Serialize;

use crate::ClusterError;

/// One node of the cluster to be, with the directories that are its own.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    /// Scratch: configuration, data, temporary files. Removed by whoever gave it.
    pub(crate) home: PathBuf,
    /// Kept after the run.
    pub(crate) logs: PathBuf,
}

/// Whether a node starts from nothing, or has data of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    First,
    Again,
}

/// What a database has to bring so that a cluster of it can be started, awaited and read: the seam
/// between this crate's processes and the database they run.
pub(crate) trait System: Send + Sync {
    /// Subdirectories of a member's home that the database itself writes to.
    fn directories(&self) -> &[&str];

    /// The log files in a member's log directory, most telling last.
    fn log_files(&self) -> &'static [&'static str];

    /// What a node has to read besides its own directories.
    fn reads(&self) -> Vec<PathBuf>;

    /// Refuses members that it cannot run. Asked before anything is made.
    fn check(&self, members: &[Member]) -> Result<(), ClusterError>;

    /// Writes the configuration of `members[index]`: once, before its first start.
    fn configure(&self, members: &[Member], index: usize) -> Result<(), ClusterError>;

    /// The command that runs `members[index]` in the foreground.
    fn command(&self, members: &[Member], index: usize, start: Start) -> Command;

    /// The command that administers `members[index]` from within its network.
    fn tool(&self, members: &[Member], index: usize, arguments: &[String]) -> Command;

    /// Asks `members[index]` for its own view of the cluster. Runs in the member's network, blocks for
    /// seconds at most.
    fn view(&self, members: &[Member], index: usize) -> ClusterView;

    /// As [`System::view`], and what the member still holds or works on that its clients gave it: data, compactions, hints.
    fn rest(&self, members: &[Member], index: usize) -> ClusterView;

    /// Has a member forget what it has learned of the others and would decide by, and verifies that it has; if not, what it
    /// does instead. Runs in the member's network, blocks for seconds.
    fn forget(&self) -> Result<(), String>;

    /// Whether `members[index]` answers clients; if not, what it does instead. Runs and blocks as [`System::view`].
    fn answers(&self, members: &[Member], index: usize) -> Result<(), String>;

    /// What is in force, for the record.
    fn settings_in_force(&self, members: &[Member]) -> SystemSettings;
}

/// A member's own view of the cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterView {
    /// What this member still lacks, as half sentences that begin with its name. Empty: nothing.
    pub(crate) missing: Vec<String>,
    /// The version of the schema it holds; all members must hold the same.
    pub(crate) schema: Option<String>,
}

/// The settings that a cluster runs with, for the record of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SystemSettings {
    /// The database: `cassandra`.
    pub system: String,
    /// Its full version: `5.0.9`.
    pub version: String,
    /// Where it came from: `maven`, or the directory of a tarball.
    pub origin: String,
    /// Everything else that may explain a result, by name: Java, heap, garbage collector, JIT, archive.
    pub settings: BTreeMap<String, String>,
    /// In what the configuration differs from the one that the database ships with, one sentence each, but for names,
    /// addresses, directories and what the experiment set.
    pub deviations: Vec<String>,
    /// Command line options of a node, in their order; node 1 stands for all.
    pub options: Vec<String>,
    /// Configuration files of a node, by name, with their text; node 1 stands for all.
    pub files: BTreeMap<String, String>,
}
