//! What one node sees of the cluster.

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use brownout_load::Tls;
use sha2::{Digest, Sha256};

use super::{
    cql::{Connection, CqlError, UNAVAILABLE, Value, texts},
    dialect::Series,
    manifest::hex,
    ring,
};
use crate::database::{ClusterView, Member};

/// For one answer: a healthy node takes milliseconds, and a busy one is asked again. It also bounds how long an end
/// of the wait can be delayed.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How a node is asked.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) members: &'a [Member],
    pub(super) tokens: &'a [i64],
    pub(super) index: usize,
    /// Of this node.
    pub(super) series: Series,
    /// Others of the cluster are of another series.
    pub(super) mixed: bool,
    /// Clients encrypt.
    pub(super) tls: Option<&'a Tls>,
    /// Where it takes its tool of administration, on its own loopback address.
    pub(super) jmx_port: u16,
}

impl<'a> Asked<'a> {
    pub(super) fn member(&self) -> &'a Member {
        &self.members[self.index]
    }

    pub(super) fn connect(&self) -> Result<Connection, CqlError> {
        Connection::open(self.member().client, PATIENCE, self.tls)
    }
}

/// Asks a node, through CQL alone (JMX would need a JVM to ask it):
///
/// 1. the version of the schema it holds; where nodes are of several series, whose own tables differ, what tables of
///    users it holds;
/// 2. whether it knows every other's place in the ring (`system.peers`);
/// 3. whether it takes every other for up. No table tells what its failure detector holds, but a read does:
///    `system_auth` has one replica, so a read of another node's part of the ring at ONE is answered by that
///    very node, and refused at once ("unavailable") by a coordinator that takes it for down. This also shows
///    that data flows between the two.
pub(super) fn view(asked: &Asked<'_>) -> ClusterView {
    let Asked { members, tokens, index, mixed, .. } = *asked;
    let me = asked.member();
    let mut connection = match asked.connect() {
        Ok(connection) => connection,
        Err(error) => return ClusterView::lacking(format!("{} does not answer clients yet ({error})", me.name)),
    };
    let (schema, known) = match schema_and_peers(&mut connection, mixed) {
        Ok(answers) => answers,
        Err(error) => {
            return ClusterView::lacking(format!("{} does not say which nodes it knows ({error})", me.name));
        }
    };
    let mut missing = Vec::new();
    for (other, member) in members.iter().enumerate().filter(|(other, _)| *other != index) {
        if known.get(&member.address) != Some(&vec![tokens[other].to_string()]) {
            missing.push(format!("{} does not know {}'s place in the ring", me.name, member.name));
            continue;
        }
        let part = ring::owned_by(tokens, other, "role");
        match connection.query(&format!("SELECT role FROM system_auth.roles WHERE {part}")) {
            Ok(_) => {}
            Err(CqlError::Server { code: UNAVAILABLE, .. }) => {
                missing.push(format!("{} considers {} down", me.name, member.name));
            }
            Err(error) => {
                missing.push(format!("{} cannot read from {} ({error})", me.name, member.name));
                // After a timeout the answer may still come, and would be taken for the next one's.
                break;
            }
        }
    }
    ClusterView { missing, schema: Some(schema) }
}

/// Whether the node answers clients; if not, what it does instead.
pub(super) fn answers(asked: &Asked<'_>) -> Result<(), String> {
    let row = asked.connect().and_then(|mut connection| connection.query("SELECT key FROM system.local"));
    row.map(drop).map_err(|error| error.to_string())
}

/// Whether a keyspace is Cassandra's own, as far as its name tells: versions have more and more of them.
pub fn is_own_keyspace(keyspace: &str) -> bool {
    keyspace == "system" || keyspace.starts_with("system_")
}

/// What stands for a schema where its version cannot: the tables of users, with the identifiers that they have had
/// since they were made, in whatever order.
fn tables_of_users(rows: Vec<Vec<Value>>) -> String {
    let is_users = |row: &Vec<Value>| {
        let name = row.first().and_then(Option::as_deref).unwrap_or_default();
        !is_own_keyspace(&String::from_utf8_lossy(name))
    };
    let mut rows: Vec<Vec<Value>> = rows.into_iter().filter(is_users).collect();
    rows.sort_unstable();
    let mut hash = Sha256::new();
    for value in rows.into_iter().flatten() {
        let value = value.unwrap_or_default();
        hash.update((value.len() as u64).to_be_bytes());
        hash.update(value);
    }
    format!("tables {}", &hex(&hash.finalize())[..32])
}

type Peers = BTreeMap<Ipv4Addr, Vec<String>>;

fn schema_and_peers(connection: &mut Connection, mixed: bool) -> Result<(String, Peers), CqlError> {
    let schema = if mixed {
        tables_of_users(connection.query("SELECT keyspace_name, table_name, id FROM system_schema.tables")?)
    } else {
        let local = connection.query("SELECT schema_version FROM system.local WHERE key = 'local'")?;
        match local.first().map(Vec::as_slice) {
            Some([Some(version)]) => hex(version),
            _ => return Err(CqlError::Protocol("no schema version in system.local")),
        }
    };
    let mut peers = Peers::new();
    for row in connection.query("SELECT peer, tokens FROM system.peers")? {
        // A peer that was only just heard of has no tokens yet.
        if let [Some(peer), Some(tokens)] = row.as_slice()
            && let Ok(peer) = <[u8; 4]>::try_from(peer.as_slice())
            && let Some(tokens) = texts(tokens)
        {
            peers.insert(Ipv4Addr::from(peer), tokens);
        }
    }
    Ok((schema, peers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_users_stand_for_a_schema_whatever_the_order_and_the_tables_of_the_version_are() {
        let row = |keyspace: &str, table: &str, id: u8| {
            vec![Some(keyspace.as_bytes().to_vec()), Some(table.as_bytes().to_vec()), Some(vec![id])]
        };
        let (a, b) = (row("shop", "orders", 1), row("shop", "stock", 2));
        let old = tables_of_users(vec![row("system_auth", "roles", 9), a.clone(), b.clone()]);
        let new = tables_of_users(vec![b.clone(), row("system_auth", "cidr_groups", 7), a.clone()]);
        assert_eq!(old, new);
        assert_ne!(old, tables_of_users(vec![a.clone()]));
        assert_ne!(old, tables_of_users(vec![a, row("shop", "stock", 3)]), "another table of the same name");
        assert_eq!(tables_of_users(vec![row("system", "local", 1)]), tables_of_users(Vec::new()));
    }

    #[test]
    fn keyspaces_of_users_are_told_from_cassandras_own() {
        let all = ["system", "system_auth", "system_virtual_schema", "systematic", "keyspace1", ""];
        assert_eq!(all.map(is_own_keyspace), [true, true, true, false, false, false]);
    }
}
