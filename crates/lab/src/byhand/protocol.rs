//! The protocol of a lab's socket: one request per connection, any number of replies.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Failure,
    events::LabEvent,
    objects::{Matrix, Status},
};

/// Both ends have to speak the same; raised with every change.
pub const VERSION: u32 = 3;

/// What is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// The command line, for the event log.
    pub who: String,
    /// What.
    pub ask: Ask,
}

/// Hosts, as a person names them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Who {
    /// By name.
    pub names: Vec<String>,
    /// All of them.
    pub all: bool,
    /// One node, drawn.
    pub random: bool,
}

/// What can be asked of a lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// How all is.
    Status {
        /// And whether what is in force shows: a look of some seconds.
        check: bool,
    },
    /// A fault, in the words of an experiment file.
    Fault {
        /// The word it begins with there.
        kind: String,
        /// Its hosts; none for faults that name theirs in `values`.
        who: Option<Who>,
        /// Its values, without the hosts.
        values: Map<String, Value>,
        /// It heals by itself after this, ns.
        for_ns: Option<u64>,
    },
    /// Heals what was done to the links of these hosts, partitions apart.
    Fast(Who),
    /// Heals what `link` commands did to the links from some hosts or sites to others.
    FastLink {
        /// Who sends.
        from: Vec<String>,
        /// Who receives.
        to: Vec<String>,
        /// And the other way round.
        both: bool,
    },
    /// Heals partitions.
    Join,
    /// Heals what was done to disks, clocks or processors of nodes.
    Heal {
        /// `disk`, `clock` or `cpu`.
        kind: String,
        /// Of whom.
        who: Who,
    },
    /// Nodes that are paused or down run again.
    Process {
        /// How.
        verb: Verb,
        /// Which.
        who: Who,
        /// Until the nodes answer.
        wait: bool,
    },
    /// Faults at random, until they are stopped.
    ChaosStart {
        /// As `chaos:` of an experiment file.
        entry: Value,
        /// None: drawn.
        seed: Option<u64>,
    },
    /// Ends that, and heals.
    ChaosStop,
    /// What chaos does.
    ChaosStatus,
    /// A program in a host, with the client's own streams.
    Exec {
        /// Where.
        host: String,
        /// The program and its arguments.
        command: Vec<String>,
        /// The client's variables that matter.
        environment: BTreeMap<String, String>,
        /// The client's directory, used where the lab has it.
        directory: PathBuf,
    },
    /// Cassandra's tool of administration, with the client's own streams.
    Nodetool {
        /// Of which node.
        host: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// Where a node logs.
    Logs {
        /// Which.
        host: String,
        /// What its process prints, rather than its own log.
        console: bool,
    },
    /// One statement.
    Cql {
        /// The coordinator; none: the first node that is up.
        host: Option<String>,
        /// In CQL.
        statement: String,
        /// As in an experiment file.
        consistency: String,
    },
    /// Round trips between two hosts.
    Ping {
        /// Who sends.
        from: String,
        /// Who answers.
        to: String,
        /// How often.
        count: u32,
        /// How far apart, ns.
        every_ns: u64,
    },
    /// Delays and clocks between all hosts.
    Clocks,
    /// What has changed so far.
    Events {
        /// And from now on.
        follow: bool,
    },
    /// The end of the lab.
    Destroy,
    /// The same of one that is attached to containers; one with nodes of its own refuses.
    Detach,
}

/// How a process runs again: what heals `pause`, and what heals `kill` and `stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// SIGCONT.
    Unpause,
    /// Again.
    Start,
    /// Stop, then start.
    Restart,
}

impl Verb {
    /// As it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Unpause => "unpause",
            Verb::Start => "start",
            Verb::Restart => "restart",
        }
    }
}

/// What a lab answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// A line for people.
    Line(String),
    /// While a lab is made: what is under way.
    Step(String),
    /// To [`Ask::Status`].
    Status(Box<Status>),
    /// To [`Ask::Clocks`].
    Clocks(Box<Matrix>),
    /// To [`Ask::Events`].
    Event(LabEvent),
    /// To [`Ask::Logs`]: the file, outside of the lab.
    Path(PathBuf),
    /// To [`Ask::Cql`].
    Table {
        /// Names.
        columns: Vec<String>,
        /// Values as text; none: null.
        rows: Vec<Vec<Option<String>>>,
        /// Of the server.
        warnings: Vec<String>,
    },
    /// The last: the lab is being made still, and cannot be asked yet.
    Starting,
    /// The last: done, with this exit code.
    Done(u8),
    /// The last: it could not be done.
    Failed(Failure),
}
