//! The seam between a cluster and the database that its nodes run. docs/adding-a-database.md walks through it.
//!
//! A [`Database`] knows how its nodes are asked: by readiness, by heartbeats, by evidence, by the load. Nodes that are started here
//! need a [`Program`] as well: directories, configuration, command. A database with a leader has [`Roles`]. What goes on while nodes
//! run is handed out as small objects, one per node, each for a thread in that node's network: [`Heartbeat`] and [`Looker`].

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use brownout_load::{Credentials, Tls, TlsError, TlsOptions, WireOptions};
use serde::Serialize;

use crate::{ClusterError, kind::DatabaseKind};

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
    /// does instead. What it would put off and then stand still for is to be done before. Most databases learn nothing.
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

/// One thing that a node shows of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// When, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The true time lies within `at_ns` ± this.
    pub error_ns: u64,
    /// `jmx`, `system-log`, `safepoint-log`, `metrics`, …
    pub source: &'static str,
    /// What: see `docs/run-file.md`.
    pub name: &'static str,
    /// Of what: another node, a verb, a thread pool, a cause; empty where there is only one.
    pub subject: String,
    /// A count since the node's start, a gauge, or the length of what happened, ns.
    pub value: f64,
}

/// What nodes are asked by heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Only whether they answer: next to nothing to do for them.
    Alive,
    /// What time it is.
    Clock,
}

/// How one node is asked: connections, questions, answers. The times are not its own: it is told when to ask.
pub trait Heartbeat: Send {
    /// Connects, within this time, and writes what comes first. Writes on the connection must not block for long (50 ms): a
    /// node that stands still takes nothing. What was open on an earlier connection is forgotten.
    ///
    /// # Errors
    /// When the node cannot be reached.
    fn connect(&mut self, patience: Duration) -> io::Result<Box<dyn Connection>>;

    /// Whether the node has to answer what [`Heartbeat::connect`] wrote before it is asked anything.
    fn greets(&self) -> bool;

    /// The bytes of a question of this number. Numbers count from 0, and begin anew after 32,767.
    fn question(&mut self, number: i16) -> Vec<u8>;

    /// Takes the first whole answer out of `input`; none if there is none yet.
    ///
    /// # Errors
    /// When it cannot be understood; the connection is then made anew.
    fn answer(&mut self, input: &mut Vec<u8>) -> io::Result<Option<Answer>>;
}

/// What a node has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The number of the question; of a greeting, any.
    pub number: i16,
    /// What the node's clock showed, if that was asked and told.
    pub clock: Option<Clock>,
}

/// What a node's clock showed while it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds since 1970, rounded down to a multiple of the resolution.
    pub shows_ns: i64,
    /// In nanoseconds.
    pub resolution_ns: i64,
}

/// A connection to a node, with TLS or without.
pub trait Connection: Read + Write + Send {
    /// Reads that find nothing end after this time, with `WouldBlock` or `TimedOut`.
    ///
    /// # Errors
    /// The kernel's.
    fn set_read_timeout(&self, time: Duration) -> io::Result<()>;
}

impl Connection for TcpStream {
    fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        TcpStream::set_read_timeout(self, Some(time))
    }
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
