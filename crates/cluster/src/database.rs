//! The seam between a cluster and the database that its nodes run. docs/adding-a-database.md walks through it.
//!
//! A [`Database`] knows how its nodes are asked: by readiness, by heartbeats, by evidence, by the load. Nodes that are started here
//! need a [`Program`] as well: directories, configuration, command. A database with a leader has [`Roles`]. What goes on while nodes
//! run is handed out as small objects, one per node, each for a thread in that node's network: [`Heartbeat`] and [`Looker`].

use std::{
    collections::BTreeMap,
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Command,
};

use brownout_load::{Credentials, Tls, TlsError, TlsOptions, WireOptions};
use serde::{Deserialize, Serialize};

use crate::{ClusterError, cassandra, evidence::Shown, heartbeat::Heartbeat};

/// The databases that are known: what the file, the lab and the load go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatabaseKind {
    /// Apache Cassandra.
    Cassandra,
    /// etcd.
    Etcd,
}

impl DatabaseKind {
    /// All of them.
    pub const ALL: [DatabaseKind; 2] = [DatabaseKind::Cassandra, DatabaseKind::Etcd];

    /// Its key in experiment files: `cassandra`, `etcd`.
    pub fn word(self) -> &'static str {
        match self {
            DatabaseKind::Cassandra => "cassandra",
            DatabaseKind::Etcd => "etcd",
        }
    }

    /// The port at which its nodes answer clients, where nobody says otherwise.
    pub fn client_port(self) -> u16 {
        match self {
            DatabaseKind::Cassandra => cassandra::CQL_PORT,
            DatabaseKind::Etcd => 2379,
        }
    }

    /// The directories of a node that a disk fault can name. Each is a subdirectory of the node's home, of that name.
    pub fn disks(self) -> &'static [&'static str] {
        match self {
            DatabaseKind::Cassandra => &["data", "commitlog", "hints"],
            DatabaseKind::Etcd => &["data", "wal"],
        }
    }

    /// Whether one of its nodes leads the others, so that faults can follow that role.
    pub fn has_leader(self) -> bool {
        match self {
            DatabaseKind::Cassandra => false,
            DatabaseKind::Etcd => true,
        }
    }
}

impl fmt::Display for DatabaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DatabaseKind::Cassandra => "Cassandra",
            DatabaseKind::Etcd => "etcd",
        })
    }
}

/// One node of the cluster, with the directories that are its own.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name, which is its host's.
    pub name: String,
    /// Where other nodes reach it.
    pub address: Ipv4Addr,
    /// Where clients reach it.
    pub client: SocketAddr,
    /// Scratch: configuration, data, temporary files. Removed by whoever gave it. Empty for a node that is not ours.
    pub home: PathBuf,
    /// Kept after the run. Empty for a node that is not ours.
    pub logs: PathBuf,
}

/// Whether a node starts from nothing, or has data of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// For the first time, on empty directories.
    First,
    /// On what its earlier lives have left.
    Again,
}

/// A system under test: how its nodes are asked, whoever started them.
///
/// Every method that takes `members` and an `index` is about `members[index]`. Those that ask the node run in its network, on a
/// thread of their own, and block for seconds at most; several nodes are asked at the same time.
pub trait Database: Send + Sync {
    /// Which it is.
    fn kind(&self) -> DatabaseKind;

    /// How its nodes are run by us; none: they run already, and are not ours to start, end or configure.
    fn program(&self) -> Option<&dyn Program>;

    /// The part that nodes have among each other, where the database has one that leads.
    fn roles(&self) -> Option<&dyn Roles> {
        None
    }

    /// Whether the node answers clients; if not, what it does instead.
    fn answers(&self, members: &[Member], index: usize) -> Result<(), String>;

    /// The node's own view of the cluster: the cluster is ready when no node lacks anything and all hold one schema.
    fn view(&self, members: &[Member], index: usize) -> ClusterView;

    /// As [`Database::view`], and what the node still holds or works on that its clients gave it: data, compactions, hints.
    fn rest(&self, members: &[Member], index: usize) -> ClusterView;

    /// Has the node forget what it has learned of the others and would decide by, and verifies that it has; if not, says what it
    /// does instead. Most databases learn nothing.
    fn forget(&self, members: &[Member], index: usize) -> Result<(), String> {
        let _ = (members, index);
        Ok(())
    }

    /// Who asks the node whether it answers, many times a second.
    fn heartbeat(&self, members: &[Member], index: usize, question: Question) -> Box<dyn Heartbeat>;

    /// Who looks at what the node tells of itself, once in an interval; none: it tells nothing. `clock_is_right`: the node's wall
    /// clock shows the machine's time, so stamps of its logs can be used.
    fn looker(&self, members: &[Member], index: usize, clock_is_right: bool) -> Option<Box<dyn Looker>>;

    /// What a client needs beside the nodes' addresses.
    fn access(&self) -> Access {
        Access::default()
    }

    /// What is in force, for the record. Asked when the cluster is ready.
    fn settings_in_force(&self, members: &[Member]) -> SystemSettings;
}

/// What a database has to bring so that its nodes can be run by us.
pub trait Program: Send + Sync {
    /// Subdirectories of a member's home that the database itself writes to; those of [`DatabaseKind::disks`] are among them.
    fn directories(&self) -> &[&str];

    /// What a node has to read besides its own directories.
    fn reads(&self) -> Vec<PathBuf>;

    /// Refuses members that it cannot run. Asked before anything is made.
    fn check(&self, members: &[Member]) -> Result<(), ClusterError>;

    /// Writes the configuration of `members[index]`: once, before its first start.
    fn configure(&self, members: &[Member], index: usize) -> Result<(), ClusterError>;

    /// The command that runs `members[index]` in the foreground.
    fn command(&self, members: &[Member], index: usize, start: Start) -> Command;

    /// The command that administers `members[index]` from within its network (`nodetool`, `etcdctl`), by its program's name;
    /// none: it has no such tool here.
    fn tool(&self, members: &[Member], index: usize, arguments: &[String]) -> Option<Command>;

    /// The log files in a member's log directory, most telling last. Empty: all that it says is on its console.
    fn log_files(&self) -> &'static [&'static str];
}

/// The roles of nodes.
pub trait Roles: Send + Sync {
    /// Whom `members[index]` takes for the leader; none: for nobody, at this moment. Runs in the node's network, blocks for a
    /// second at most.
    fn leader(&self, members: &[Member], index: usize) -> Result<Option<Led>, String>;
}

/// Who leads, as one node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Led {
    /// The leader's place among the members.
    pub leader: usize,
    /// By which election: that of the greatest term counts.
    pub term: u64,
}

/// Looks at what one node tells of itself: counters, gauges, logs. Lives on a thread in that node's network.
pub trait Looker: Send {
    /// What has changed since the last look. Blocks for less than a second; what does not answer is left out and asked again.
    fn look(&mut self) -> Vec<Shown>;
}

/// What nodes are asked by heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Only whether they answer: next to nothing to do for them.
    Alive,
    /// What time it is.
    Clock,
}

/// What a client needs beside addresses: nothing where neither is there.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// How connections are encrypted.
    pub tls: Option<TlsOptions>,
    /// Who logs in.
    pub credentials: Option<Credentials>,
}

impl Access {
    /// As a load connects.
    ///
    /// # Errors
    /// When a file of the encryption is missing or does not hold what it should.
    pub fn wire(&self) -> Result<WireOptions, TlsError> {
        let tls = self.tls.as_ref().map(Tls::new).transpose()?;
        Ok(WireOptions { tls, credentials: self.credentials.clone(), ..WireOptions::default() })
    }
}

/// A member's own view of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// What this member still lacks, as half sentences that begin with its name. Empty: nothing.
    pub missing: Vec<String>,
    /// The version of the schema it holds, or whatever else all members must hold alike (etcd: who leads, by which term).
    pub schema: Option<String>,
}

impl ClusterView {
    /// Of a member that lacks this.
    pub fn lacking(what: impl Into<String>) -> ClusterView {
        ClusterView { missing: vec![what.into()], schema: None }
    }
}

/// The settings that a cluster runs with, for the record of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SystemSettings {
    /// The database: `cassandra`.
    pub system: String,
    /// Its full version: `5.0.9`; of several versions all, with their nodes: `5.0.9 (n1, n2), 4.1.10 (n3)`.
    pub version: String,
    /// The full version of each node.
    pub versions: BTreeMap<String, String>,
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

/// One version, or several with the names of their nodes: `5.0.9 (n1, n2), 4.1.10 (n3)`, in the order in which nodes have them.
pub fn version_words<'a>(of_nodes: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for (node, version) in of_nodes {
        match all.iter_mut().find(|(known, _)| *known == version) {
            Some((_, nodes)) => nodes.push(node),
            None => all.push((version, vec![node])),
        }
    }
    match all.as_slice() {
        [(version, _)] => (*version).to_owned(),
        several => {
            let words: Vec<String> =
                several.iter().map(|(version, nodes)| format!("{version} ({})", nodes.join(", "))).collect();
            words.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_versions_are_told_with_their_nodes_and_one_without() {
        assert_eq!(version_words([("n1", "5.0.9"), ("n2", "5.0.9")]), "5.0.9");
        assert_eq!(version_words([("n1", "5.0.9"), ("n2", "4.1.10"), ("n3", "5.0.9")]), "5.0.9 (n1, n3), 4.1.10 (n2)");
    }
}
