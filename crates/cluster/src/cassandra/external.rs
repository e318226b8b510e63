//! Nodes of Cassandra that run already and are not ours: what they are asked as any client asks, by CQL alone.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_load::{Credentials, Tls};

use super::{
    cql::{self, Connection, CqlError, Value},
    heartbeat::{CLOCK, clock_of},
    manifest::hex,
};
use crate::{
    database::{self, Answer, ClusterView, Heartbeat, Looker, Member, Question, Shown},
    last_told::LastTold,
};

/// For each answer: such nodes may be far away.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
/// For a keyspace to be dropped: its tables are written to disk first.
const DROP_WITHIN: Duration = Duration::from_secs(60);
/// For what is looked at in every interval.
const LOOK_WITHIN: Duration = Duration::from_millis(400);
/// A node that stands still takes nothing: a full buffer must not hold us up.
pub(crate) const WRITES_WITHIN: Duration = Duration::from_millis(50);
/// A server's error: it does not know what is asked for (section 9 of the protocol). Before 4.0 there are no virtual tables.
const INVALID: u32 = 0x2200;
/// Who logs in may not read it: nor may they when they log in again.
const UNAUTHORIZED: u32 = 0x2100;
/// Where this evidence comes from.
const TABLES: &str = "virtual-tables";
/// Pools whose waiting tasks are told, as over JMX.
const POOLS: [&str; 4] = ["ReadStage", "MutationStage", "RequestResponseStage", "Native-Transport-Requests"];
/// Settings of which the value is nobody's business but the cluster's. What classes take as their `parameters` may be
/// anything.
const SECRET: [&str; 6] = ["password", "secret", "private_key", "keystore", "truststore", "parameters"];

/// How nodes are reached.
#[derive(Clone)]
pub(crate) struct Entrance {
    /// How connections are encrypted.
    pub(crate) tls: Option<Tls>,
    /// Who logs in.
    pub(crate) login: Option<Credentials>,
}

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// `5.0.9`.
    pub(crate) version: String,
    /// The one number that it has, so that a node that is named twice is found out.
    pub(crate) host_id: String,
}

impl Entrance {
    fn open(&self, node: SocketAddr, patience: Duration) -> Result<Connection, CqlError> {
        Connection::open_as(node, patience, self.tls.as_ref(), self.login.as_ref())
    }

    /// What the node says of itself.
    pub(crate) fn said(&self, node: SocketAddr, patience: Duration) -> Result<Said, String> {
        let ask = || -> Result<Said, CqlError> {
            let rows = self.open(node, patience)?.query("SELECT release_version, host_id FROM system.local")?;
            match rows.first().map(Vec::as_slice) {
                Some([Some(version), Some(id)]) => {
                    Ok(Said { version: String::from_utf8_lossy(version).into_owned(), host_id: hex(id) })
                }
                _ => Err(CqlError::Protocol("no version in system.local")),
            }
        };
        ask().map_err(|error| error.to_string())
    }

    /// Whether it answers clients; if not, what it does instead.
    pub(crate) fn answers(&self, node: SocketAddr) -> Result<(), String> {
        let answer = self.open(node, PATIENCE).and_then(|mut asked| asked.query("SELECT key FROM system.local"));
        answer.map(drop).map_err(|error| error.to_string())
    }

    /// Whether it answers, and the schema that it holds: who else belongs to the cluster is the cluster's business.
    pub(crate) fn view(&self, member: &Member) -> ClusterView {
        let ask = || self.open(member.client, PATIENCE)?.query("SELECT schema_version FROM system.local");
        match ask() {
            Ok(rows) => match rows.first().map(Vec::as_slice) {
                Some([Some(version)]) => ClusterView { missing: Vec::new(), schema: Some(hex(version)) },
                _ => ClusterView::lacking(format!("{} reports no version of its schema", member.name)),
            },
            Err(error) => ClusterView::lacking(format!("{} ({}) does not answer: {error}", member.name, member.client)),
        }
    }

    /// Whether there is a keyspace of this name, as the schema stores it.
    pub(crate) fn has_keyspace(&self, node: SocketAddr, keyspace: &str) -> Result<bool, String> {
        let name = keyspace.replace('\'', "''");
        let query = format!("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = '{name}'");
        let rows = self.open(node, PATIENCE).and_then(|mut asked| asked.query(&query));
        rows.map(|rows| !rows.is_empty()).map_err(|error| error.to_string())
    }

    /// Drops a keyspace, if it is there, with all that is in it.
    pub(crate) fn drop_keyspace(&self, node: SocketAddr, keyspace: &str) -> Result<(), String> {
        let statement = format!("DROP KEYSPACE IF EXISTS \"{}\"", keyspace.replace('"', "\"\""));
        let dropped = self.open(node, DROP_WITHIN).and_then(|mut asked| asked.execute(&statement));
        dropped.map_err(|error| error.to_string())
    }

    /// Its settings in force, by name; empty of a version that does not tell. Without secrets.
    pub(crate) fn settings(&self, node: SocketAddr) -> BTreeMap<String, String> {
        let all = "SELECT name, value FROM system_views.settings";
        let rows = self.open(node, PATIENCE).and_then(|mut asked| asked.query(all));
        let named = |row: &Vec<Value>| match row.as_slice() {
            [Some(name), Some(value)] => Some((text(name), text(value))),
            _ => None,
        };
        let is_told = |name: &str| {
            let name = name.to_lowercase();
            !SECRET.iter().any(|secret| name.contains(secret))
        };
        rows.unwrap_or_default().iter().filter_map(named).filter(|(name, _)| is_told(name)).collect()
    }

    /// Asks a node many times a second.
    pub(crate) fn heartbeat(&self, node: SocketAddr, question: Question) -> Box<dyn Heartbeat> {
        Box::new(Beating { entrance: self.clone(), node, question })
    }

    /// Looks at the virtual tables of a node.
    pub(crate) fn looker(&self, members: &[Member], index: usize) -> Box<dyn Looker> {
        let names = members.iter().map(|member| (member.client.ip(), member.name.clone()));
        Box::new(Tables {
            entrance: self.clone(),
            node: members[index].client,
            names: names.collect(),
            asked: None,
            has_none: false,
            last: LastTold::default(),
        })
    }
}

/// Heartbeats through the same entrance: the session has begun, login and all, before the first question.
struct Beating {
    entrance: Entrance,
    node: SocketAddr,
    question: Question,
}

impl Heartbeat for Beating {
    fn connect(&mut self, patience: Duration) -> io::Result<Box<dyn database::Connection>> {
        let stream = self.entrance.open(self.node, patience).map_err(io::Error::other)?.into_stream();
        stream.socket().set_write_timeout(Some(WRITES_WITHIN))?;
        Ok(Box::new(stream))
    }

    fn greets(&self) -> bool {
        false
    }

    fn question(&mut self, number: i16) -> Vec<u8> {
        match self.question {
            Question::Alive => cql::options(number),
            Question::Clock => cql::query(number, CLOCK),
        }
    }

    fn answer(&mut self, input: &mut Vec<u8>) -> io::Result<Option<Answer>> {
        let answer = cql::take_answer(input).map_err(io::Error::other)?;
        Ok(answer.map(|(number, body)| Answer { number, clock: body.as_deref().and_then(clock_of) }))
    }
}

/// Looks at what a node tells in its virtual tables (Cassandra 4.0 and later).
struct Tables {
    entrance: Entrance,
    node: SocketAddr,
    /// By the addresses that clients know; where nodes speak among each other by others, those are told.
    names: BTreeMap<IpAddr, String>,
    asked: Option<Connection>,
    /// It has no such tables, or none for us.
    has_none: bool,
    /// What was last told.
    last: LastTold,
}

impl Looker for Tables {
    fn look(&mut self) -> Vec<Shown> {
        if self.has_none {
            return Vec::new();
        }
        let asked_ns = monotonic_ns();
        let readings = match self.readings() {
            Ok(readings) => readings,
            Err(error) => {
                self.has_none = matches!(error, CqlError::Server { code: INVALID | UNAUTHORIZED, .. });
                // Whatever it was, a new session is the way on.
                self.asked = None;
                return Vec::new();
            }
        };
        let took_ns = monotonic_ns() - asked_ns;
        let (at_ns, error_ns) = (asked_ns + took_ns / 2, took_ns / 2);
        let shown = |name, subject, value| Shown { at_ns, error_ns, source: TABLES, name, subject, value };
        let mut all = vec![shown("reading", String::new(), took_ns as f64)];
        for (name, subject, value) in readings {
            if self.last.is_news(name, &subject, value) {
                all.push(shown(name, subject, value));
            }
        }
        all
    }
}

impl Tables {
    fn readings(&mut self) -> Result<Vec<(&'static str, String, f64)>, CqlError> {
        let mut asked = match self.asked.take() {
            Some(asked) => asked,
            None => self.entrance.open(self.node, LOOK_WITHIN)?,
        };
        let mut all = Vec::new();
        for row in asked.query("SELECT name, pending_tasks FROM system_views.thread_pools")? {
            let [Some(pool), pending] = row.as_slice() else { continue };
            let pool = text(pool);
            if POOLS.contains(&pool.as_str()) {
                all.extend(number(pending).map(|pending| ("pending", pool, pending)));
            }
        }
        let ways = "SELECT address, sent_count, expired_count FROM system_views.internode_outbound";
        for row in asked.query(ways)? {
            let [Some(address), sent, expired] = row.as_slice() else { continue };
            let Some(to) = address_of(address).map(|address| self.name(address)) else { continue };
            all.extend(number(sent).map(|sent| ("messages-sent", to.clone(), sent)));
            all.extend(number(expired).map(|expired| ("messages-expired", to, expired)));
        }
        self.asked = Some(asked);
        Ok(all)
    }

    fn name(&self, address: IpAddr) -> String {
        self.names.get(&address).cloned().unwrap_or_else(|| address.to_string())
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// An `int` or a `bigint`.
fn number(value: &Value) -> Option<f64> {
    let bytes = value.as_deref()?;
    let int = || <[u8; 4]>::try_from(bytes).ok().map(|bytes| f64::from(i32::from_be_bytes(bytes)));
    let bigint = || <[u8; 8]>::try_from(bytes).ok().map(|bytes| i64::from_be_bytes(bytes) as f64);
    int().or_else(bigint)
}

/// An `inet`.
fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4().or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_of_both_lengths_are_read() {
        assert_eq!(number(&Some(vec![0, 0, 1, 2])), Some(258.0));
        assert_eq!(number(&Some(vec![255, 255, 255, 255, 255, 255, 255, 254])), Some(-2.0));
        assert_eq!((number(&None), number(&Some(vec![1]))), (None, None));
        assert_eq!(address_of(&[10, 0, 0, 5]), Some("10.0.0.5".parse().unwrap()));
        assert_eq!(address_of(&[0; 16]), Some("::".parse().unwrap()));
        assert_eq!(address_of(&[1, 2]), None);
    }
}
