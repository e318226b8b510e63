//! Which databases there are.

use std::fmt;

use serde::{Deserialize, Serialize};

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
            DatabaseKind::Cassandra => 9042,
            DatabaseKind::Etcd => 2379,
        }
    }

    /// The program by which its nodes are administered.
    pub fn tool(self) -> &'static str {
        match self {
            DatabaseKind::Cassandra => "nodetool",
            DatabaseKind::Etcd => "etcdctl",
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

    /// Why its nodes' clocks cannot be made wrong; none: they can, and are what the lab says.
    pub fn fixed_clock(self) -> Option<&'static str> {
        match self {
            DatabaseKind::Cassandra => None,
            DatabaseKind::Etcd => {
                Some("it is a program of Go, which reads its clock past the C library, where clocks are shifted")
            }
        }
    }

    /// What a load makes under these names, in words: "the keyspace brownout", "the keys below brownout/".
    pub fn made(self, names: &[String]) -> String {
        let all = names.join(" and ");
        match self {
            DatabaseKind::Cassandra if names.len() > 1 => format!("the keyspaces {all}"),
            DatabaseKind::Cassandra => format!("the keyspace {all}"),
            DatabaseKind::Etcd => format!("the keys below {all}"),
        }
    }

    /// How a person gets rid of it.
    pub fn remedy(self, name: &str) -> String {
        match self {
            DatabaseKind::Cassandra => format!("DROP KEYSPACE \"{name}\" in cqlsh"),
            DatabaseKind::Etcd => format!("etcdctl del --prefix {name}"),
        }
    }

    /// Whether its nodes take statements of CQL.
    pub fn speaks_cql(self) -> bool {
        match self {
            DatabaseKind::Cassandra => true,
            DatabaseKind::Etcd => false,
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
