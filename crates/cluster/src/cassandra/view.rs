//! What one node sees of the cluster.

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use super::{
    cql::{Connection, CqlError, UNAVAILABLE, texts},
    manifest::hex,
    ring,
};
use crate::system::{ClusterView, Member};

/// Where a node answers clients.
pub const CQL_PORT: u16 = 9042;
/// For one answer: a healthy node takes milliseconds, and a busy one is asked again. It also bounds how long an end
/// of the wait can be delayed.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Asks `members[index]`, through CQL alone (JMX would need a JVM to ask it):
///
/// 1. the version of the schema it holds;
/// 2. whether it knows every other's place in the ring (`system.peers`);
/// 3. whether it takes every other for up. No table tells what its failure detector holds, but a read does:
///    `system_auth` has one replica, so a read of another node's part of the ring at ONE is answered by that
///    very node, and refused at once ("unavailable") by a coordinator that takes it for down. This also shows
///    that data flows between the two.
pub(super) fn view(members: &[Member], tokens: &[i64], index: usize) -> ClusterView {
    let me = &members[index];
    let mut connection = match Connection::open((me.address, CQL_PORT).into(), PATIENCE) {
        Ok(connection) => connection,
        Err(error) => return lacking(format!("{} does not answer clients yet ({error})", me.name)),
    };
    let (schema, known) = match schema_and_peers(&mut connection) {
        Ok(answers) => answers,
        Err(error) => return lacking(format!("{} does not say which nodes it knows ({error})", me.name)),
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

/// Whether `member` answers clients; if not, what it does instead.
pub(super) fn answers(member: &Member) -> Result<(), String> {
    let connection = Connection::open((member.address, CQL_PORT).into(), PATIENCE);
    let row = connection.and_then(|mut connection| connection.query("SELECT key FROM system.local"));
    row.map(drop).map_err(|error| error.to_string())
}

fn lacking(what: String) -> ClusterView {
    ClusterView { missing: vec![what], schema: None }
}

type Peers = BTreeMap<Ipv4Addr, Vec<String>>;

fn schema_and_peers(connection: &mut Connection) -> Result<(String, Peers), CqlError> {
    let local = connection.query("SELECT schema_version FROM system.local WHERE key = 'local'")?;
    let schema = match local.first().map(Vec::as_slice) {
        Some([Some(version)]) => hex(version),
        _ => return Err(CqlError::Protocol("no schema version in system.local")),
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
