//! Control work (schema and metadata) through the `scylla` driver.
//!
//! Every call starts a thread that runs the [`ThreadStart`] hook, opens a session on a runtime of its own, does its
//! work within a [`Limit`], and ends. Nothing here is on the load's hot path.

use crate::{
    Coordinator, LoadError, Table, ThreadStart, TokenRange, TokenRing, WireOptions,
    session::{agree, control_error, in_session, is_own_keyspace},
};

pub use crate::{
    etcd::clear_etcd,
    limit::Limit,
    marker::{MARKED_ROWS, Marker, write_marker},
};

/// Runs DDL statements one after another, each followed by schema agreement among all `coordinators`, all within
/// `limit`; with the credentials and the encryption of `wire`, as all that follows.
///
/// # Errors
/// No coordinator can be reached, the server refuses a statement, or the limit is reached.
pub fn run_ddl<'a>(
    wire: &WireOptions,
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    statements: &[String],
    limit: impl Into<Limit<'a>>,
) -> Result<(), LoadError> {
    in_session("defining the schema", coordinators, wire, thread_start, limit.into(), async |session, state| {
        for text in statements {
            *state = format!("running {text}");
            let result = session.query_unpaged(text.as_str(), ()).await;
            result.map_err(|error| control_error(text, coordinators, error))?;
            agree(session, coordinators, state).await;
        }
        Ok(())
    })
}

/// Drops a keyspace with all that is in it, if it is there, and waits for schema agreement among all `coordinators`.
///
/// # Errors
/// Those of [`run_ddl`].
pub fn drop_keyspace<'a>(
    wire: &WireOptions,
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    keyspace: &str,
    limit: impl Into<Limit<'a>>,
) -> Result<(), LoadError> {
    let text = format!("DROP KEYSPACE IF EXISTS \"{}\"", keyspace.replace('"', "\"\""));
    run_ddl(wire, coordinators, thread_start, &[text], limit)
}

/// Drops every keyspace that is not Cassandra's own, with all that is in it, and waits for schema agreement among all
/// `coordinators`.
///
/// # Errors
/// Those of [`run_ddl`].
pub fn drop_keyspaces<'a>(
    wire: &WireOptions,
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    limit: impl Into<Limit<'a>>,
) -> Result<(), LoadError> {
    let what = "dropping the keyspaces";
    in_session(what, coordinators, wire, thread_start, limit.into(), async |session, state| {
        let failed = |error: String| control_error(what, coordinators, error);
        let answer = session.query_unpaged("SELECT keyspace_name FROM system_schema.keyspaces", ()).await;
        let rows = answer.map_err(|error| failed(error.to_string()))?;
        let rows = rows.into_rows_result().map_err(|error| failed(error.to_string()))?;
        let names = rows.rows::<(String,)>().map_err(|error| failed(error.to_string()))?;
        for name in names {
            let (name,) = name.map_err(|error| failed(error.to_string()))?;
            if is_own_keyspace(&name) {
                continue;
            }
            let text = format!("DROP KEYSPACE \"{}\"", name.replace('"', "\"\""));
            *state = format!("running {text}");
            let dropped = session.query_unpaged(text.as_str(), ()).await;
            dropped.map_err(|error| control_error(&text, coordinators, error))?;
        }
        agree(session, coordinators, state).await;
        Ok(())
    })
}

/// Reads the token ring with the replicas of every range, for the keyspace of `table` (which must exist).
///
/// # Errors
/// No coordinator can be reached, the keyspace does not exist, or the limit is reached.
pub fn token_ring<'a>(
    wire: &WireOptions,
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    table: &Table,
    limit: impl Into<Limit<'a>>,
) -> Result<TokenRing, LoadError> {
    in_session("reading the token ring", coordinators, wire, thread_start, limit.into(), async |session, _| {
        let cluster = session.get_cluster_state();
        if cluster.get_keyspace(&table.keyspace).is_none() {
            let reason = format!("there is no keyspace '{}'; make the schema first", table.keyspace);
            return Err(control_error("reading the token ring", coordinators, reason));
        }
        let ring = cluster.replica_locator().ring();
        let range = |(token, _): &(scylla::routing::Token, _)| {
            let replicas = cluster.get_token_endpoints(&table.keyspace, &table.name, *token);
            TokenRange { end: token.value(), replicas: replicas.iter().map(|(node, _)| node.address.ip()).collect() }
        };
        Ok(TokenRing { ranges: ring.iter().map(range).collect() })
    })
}
