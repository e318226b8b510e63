//! Clusters that run already: not started, ended or configured by us, only asked.
//!
//! All that is known of such a cluster is what its nodes tell any client: their version, whether they answer, the time, counters.
//! Nothing has to be installed on them. What is done to them is the load, in a keyspace (etcd: below a prefix) of its own.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, thread, time::Duration};

use brownout_load::{Credentials, Tls};

use crate::{
    ClusterError,
    cassandra::external::{Entrance, PATIENCE, Said, WRITES_WITHIN},
    database::{
        Access, ClusterView, Connection, Database, Heartbeat, Looker, Member, Program, Question, Roles, SystemSettings,
        version_words,
    },
    etcd::{self, Dial, Door},
    kind::DatabaseKind,
    stream::Stream,
};

/// For all keys of a load to be deleted.
const CLEAR_WITHIN: Duration = Duration::from_secs(60);

/// A cluster that is not ours.
pub struct External {
    access: Access,
    asked: Asked,
}

/// How its nodes are asked.
enum Asked {
    Cassandra(Entrance),
    Etcd(Door),
}

/// What the nodes of a cluster say of themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The version of each node, by its name: `5.0.9`.
    pub versions: BTreeMap<String, String>,
}

impl External {
    /// One of this database, whose nodes are reached like this.
    ///
    /// # Errors
    /// When a file of the encryption is missing or does not hold what it should.
    pub fn new(kind: DatabaseKind, access: Access) -> Result<External, ClusterError> {
        let tls = access.tls.as_ref().map(Tls::new).transpose();
        let tls = tls.map_err(|error| ClusterError::Access { why: error.to_string() })?;
        let login = access.credentials.clone();
        let asked = match kind {
            DatabaseKind::Cassandra => Asked::Cassandra(Entrance { tls, login }),
            DatabaseKind::Etcd => Asked::Etcd(Door {
                dial: Arc::new(Dialer { tls }),
                login: login.map(|Credentials { user, password }| (user, password)),
            }),
        };
        Ok(External { access, asked })
    }

    /// Asks every node who it is, all at once; `patience` bounds each wait for one.
    ///
    /// # Errors
    /// When one does not answer as a node of this database does, or two of them are the same.
    pub fn survey(&self, nodes: &[(String, SocketAddr)], patience: Duration) -> Result<Survey, ClusterError> {
        let said = self.all_said(nodes, patience);
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        let mut versions = BTreeMap::new();
        for ((name, address), said) in nodes.iter().zip(said) {
            let Said { version, host_id } = said.map_err(|why| ClusterError::Unreachable {
                database: self.kind(),
                node: name.clone(),
                address: *address,
                why,
            })?;
            if let Some(other) = known.insert(host_id, name) {
                return Err(ClusterError::SameNode { one: other.to_owned(), other: name.clone() });
            }
            versions.insert(name.clone(), version);
        }
        Ok(Survey { versions })
    }

    /// What each of them says of itself.
    fn all_said(&self, nodes: &[(String, SocketAddr)], patience: Duration) -> Vec<Result<Said, String>> {
        thread::scope(|scope| {
            let ask = |node: SocketAddr| scope.spawn(move || self.said(node, patience));
            let threads: Vec<_> = nodes.iter().map(|(_, node)| ask(*node)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("its thread ended".into()))).collect()
        })
    }

    fn said(&self, node: SocketAddr, patience: Duration) -> Result<Said, String> {
        match &self.asked {
            Asked::Cassandra(entrance) => entrance.said(node, patience),
            Asked::Etcd(door) => etcd::ask::status(door, node, patience)
                .map(|status| Said { version: status.version, host_id: format!("{:x}", status.id) }),
        }
    }

    /// Whether the cluster holds a keyspace of this name, or, of etcd, a key below this prefix.
    ///
    /// # Errors
    /// When the node does not say; with what it does instead.
    pub fn holds(&self, node: SocketAddr, name: &str) -> Result<bool, String> {
        match &self.asked {
            Asked::Cassandra(entrance) => entrance.has_keyspace(node, name),
            Asked::Etcd(door) => etcd::ask::keys_below(door, node, name, PATIENCE).map(|keys| keys > 0),
        }
    }

    /// Drops that keyspace with all that is in it, or deletes all keys below that prefix. Nothing else is touched: the history of
    /// etcd is not compacted, and of what Cassandra drops its nodes may keep snapshots (see [`External::keeps_what_is_dropped`]).
    ///
    /// # Errors
    /// When the node does not do it; with what it does instead.
    pub fn clear(&self, node: SocketAddr, name: &str) -> Result<(), String> {
        match &self.asked {
            Asked::Cassandra(entrance) => entrance.drop_keyspace(node, name),
            Asked::Etcd(door) => etcd::ask::delete_below(door, node, name, CLEAR_WITHIN),
        }
    }

    /// Whether the node says that it keeps a snapshot of what is dropped (Cassandra's `auto_snapshot`).
    pub fn keeps_what_is_dropped(&self, node: SocketAddr) -> bool {
        let Asked::Cassandra(entrance) = &self.asked else { return false };
        entrance.settings(node).get("auto_snapshot").is_some_and(|set| set == "true")
    }
}

/// Connects with TLS or without.
struct Dialer {
    tls: Option<Tls>,
}

impl Dial for Dialer {
    fn dial(&self, to: SocketAddr, patience: Duration) -> io::Result<Box<dyn Connection>> {
        let stream = Stream::connect(to, patience, self.tls.as_ref())?;
        stream.socket().set_write_timeout(Some(WRITES_WITHIN))?;
        Ok(Box::new(stream))
    }
}

impl Database for External {
    fn kind(&self) -> DatabaseKind {
        match &self.asked {
            Asked::Cassandra(_) => DatabaseKind::Cassandra,
            Asked::Etcd(_) => DatabaseKind::Etcd,
        }
    }

    fn program(&self) -> Option<&dyn Program> {
        None
    }

    fn roles(&self) -> Option<&dyn Roles> {
        let Asked::Etcd(door) = &self.asked else { return None };
        Some(door)
    }

    fn answers(&self, members: &[Member], index: usize) -> Result<(), String> {
        let node = members[index].client;
        match &self.asked {
            Asked::Cassandra(entrance) => entrance.answers(node),
            Asked::Etcd(door) => etcd::ask::answers(door, node),
        }
    }

    fn view(&self, members: &[Member], index: usize) -> ClusterView {
        let member = &members[index];
        match &self.asked {
            Asked::Cassandra(entrance) => entrance.view(member),
            Asked::Etcd(door) => match etcd::ask::status(door, member.client, PATIENCE) {
                Ok(status) => match status.leader {
                    Some(leader) => {
                        let schema = Some(format!("{leader:x} leads, term {}", status.term));
                        ClusterView { missing: Vec::new(), schema }
                    }
                    None => ClusterView::lacking(format!("{} knows of no leader", member.name)),
                },
                Err(why) => ClusterView::lacking(format!("{} ({}) does not answer: {why}", member.name, member.client)),
            },
        }
    }

    /// What else it holds or works on is the business of others.
    fn rest(&self, members: &[Member], index: usize) -> ClusterView {
        self.view(members, index)
    }

    fn heartbeat(&self, members: &[Member], index: usize, question: Question) -> Box<dyn Heartbeat> {
        let node = members[index].client;
        match &self.asked {
            Asked::Cassandra(entrance) => entrance.heartbeat(node, question),
            Asked::Etcd(door) => Box::new(etcd::Beating::new(door.clone(), node)),
        }
    }

    fn looker(&self, members: &[Member], index: usize, _: bool) -> Option<Box<dyn Looker>> {
        Some(match &self.asked {
            Asked::Cassandra(entrance) => entrance.looker(members, index),
            Asked::Etcd(door) => Box::new(etcd::Watcher::new(door.clone(), members, index, None)),
        })
    }

    fn access(&self) -> Access {
        self.access.clone()
    }

    fn settings_in_force(&self, members: &[Member]) -> SystemSettings {
        let nodes: Vec<_> = members.iter().map(|member| (member.name.clone(), member.client)).collect();
        // Asked when all of them have just answered; whoever does not now is told as that by its heartbeats.
        let said = self.all_said(&nodes, PATIENCE).into_iter();
        let said = said.map(|said| said.map_or_else(|_| "unknown".to_owned(), |said| said.version));
        let versions: BTreeMap<String, String> = nodes.into_iter().map(|(name, _)| name).zip(said).collect();
        let version = version_words(versions.iter().map(|(node, version)| (node.as_str(), version.as_str())));
        let settings = match (&self.asked, members.first()) {
            (Asked::Cassandra(entrance), Some(first)) => entrance.settings(first.client),
            _ => BTreeMap::new(),
        };
        SystemSettings {
            system: self.kind().word().to_owned(),
            version,
            versions,
            origin: "not ours: it ran before".to_owned(),
            settings,
            ..SystemSettings::default()
        }
    }
}

#[cfg(test)]
mod tests;
