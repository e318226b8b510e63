//! A session of the `scylla` driver for control work, and agreement on the schema among the nodes that it reaches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use scylla::{
    client::{session::Session, session_builder::SessionBuilder},
    policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy},
    response::query_result::QueryRowsResult,
    statement::unprepared::Statement,
    value::CqlValue,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{Coordinator, Credentials, LoadError, ThreadStart, Tls, WireOptions, limit::Limit, tls_reason};

/// Polling interval.
const POLL: Duration = Duration::from_millis(100);

fn names(coordinators: &[Coordinator]) -> String {
    coordinators.iter().map(|node| format!("{} ({})", node.name, node.address)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn control_error(what: &str, coordinators: &[Coordinator], reason: impl ToString) -> LoadError {
    LoadError::Control { what: what.to_owned(), coordinator: names(coordinators), reason: reason.to_string() }
}

/// The schema version that a coordinator reports.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SchemaVersion {
    /// A UUID: the same on nodes that hold the same schema.
    version: String,
    /// The server's, without its last number: `5.0`.
    release: String,
}

/// What every coordinator says for itself; `Err` with the reason if it says nothing.
async fn versions(session: &Session, coordinators: &[Coordinator]) -> BTreeMap<String, Result<SchemaVersion, String>> {
    let mut versions = BTreeMap::new();
    for node in coordinators {
        let text = "SELECT schema_version, release_version FROM system.local WHERE key = 'local'";
        let held = async {
            let rows = ask(session, node, text).await?;
            let row = rows.single_row::<(CqlValue, String)>().map_err(|error| error.to_string())?;
            let version = row.0.as_uuid().ok_or_else(|| "it does not report a schema version".to_owned())?;
            let release = row.1.rsplit_once('.').map_or(row.1.as_str(), |(release, _)| release).to_owned();
            Ok::<SchemaVersion, String>(SchemaVersion { version: version.to_string(), release })
        };
        versions.insert(node.name.clone(), held.await);
    }
    versions
}

/// One question to one node.
async fn ask(session: &Session, node: &Coordinator, text: &str) -> Result<QueryRowsResult, String> {
    let mut statement = Statement::new(text);
    let target = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::NodeAddress(node.address), None);
    statement.set_load_balancing_policy(Some(target));
    statement.set_request_timeout(Some(Duration::from_secs(2)));
    let answer = session.query_unpaged(statement, ()).await.map_err(|error| error.to_string())?;
    answer.into_rows_result().map_err(|error| error.to_string())
}

/// The tables of users that a node knows, with the identifiers that they have had since they were made.
async fn tables_of(session: &Session, node: &Coordinator) -> Result<BTreeSet<String>, String> {
    let rows = ask(session, node, "SELECT keyspace_name, table_name, id FROM system_schema.tables").await?;
    let rows = rows.rows::<(String, String, CqlValue)>().map_err(|error| error.to_string())?;
    let mut tables = BTreeSet::new();
    for row in rows {
        let (keyspace, table, id) = row.map_err(|error| error.to_string())?;
        if !is_own_keyspace(&keyspace) {
            tables.insert(format!("{keyspace}.{table} {id}"));
        }
    }
    Ok(tables)
}

/// Whether a keyspace is Cassandra's own.
pub(crate) fn is_own_keyspace(name: &str) -> bool {
    name == "system" || name.starts_with("system_")
}

/// Checks that all coordinators have the same tables; else says who has others.
async fn same_tables(session: &Session, coordinators: &[Coordinator]) -> Result<(), String> {
    let mut common: Option<BTreeSet<String>> = None;
    for node in coordinators {
        let tables = tables_of(session, node)
            .await
            .map_err(|reason| format!("{} does not report its tables: {reason}", node.name))?;
        if common.as_ref().is_some_and(|first| *first != tables) {
            return Err(format!("{} has other tables than {}", node.name, coordinators[0].name));
        }
        common = Some(tables);
    }
    Ok(())
}

/// Waits without limit until all coordinators report the same schema version. `state` describes the progress. Nodes of
/// several releases describe their own tables differently, so that their versions never are the same: there the tables
/// of users have to be.
pub(crate) async fn agree(session: &Session, coordinators: &[Coordinator], state: &mut String) {
    loop {
        let versions = versions(session, coordinators).await;
        let mut told = versions.values();
        if let Some(Ok(first)) = told.next() {
            let others: Vec<_> = told.collect();
            if others.iter().all(|held| matches!(held, Ok(held) if held.version == first.version)) {
                return;
            }
            let is_mixed = others.iter().any(|held| matches!(held, Ok(held) if held.release != first.release));
            if is_mixed && others.iter().all(|held| held.is_ok()) {
                match same_tables(session, coordinators).await {
                    Ok(()) => return,
                    Err(reason) => {
                        *state = format!("no agreement on the schema: {reason}");
                        sleep(POLL).await;
                        continue;
                    }
                }
            }
        }
        let tell = |(name, held): (&String, &Result<SchemaVersion, String>)| match held {
            Ok(held) => format!("{name} has version {}", held.version),
            Err(reason) => format!("{name} does not report one: {reason}"),
        };
        *state = format!("no agreement on the schema: {}", versions.iter().map(tell).collect::<Vec<_>>().join("; "));
        sleep(POLL).await;
    }
}

/// Why work was given up.
enum End {
    Deadline,
    Interrupt,
}

/// Runs `work` with a session, in a thread of its own. `work` keeps its progress in the given string, for the error if
/// the limit is reached.
pub(crate) fn in_session<T: Send>(
    what: &str,
    coordinators: &[Coordinator],
    wire: &WireOptions,
    thread_start: &ThreadStart,
    limit: Limit<'_>,
    work: impl AsyncFn(&Session, &mut String) -> Result<T, LoadError> + Send + Sync,
) -> Result<T, LoadError> {
    let body = || {
        thread_start().map_err(LoadError::ThreadStart)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LoadError::system("a runtime for control work"))?;
        let mut state = format!("connecting to {}", names(coordinators));
        let deadline = Instant::now() + limit.time;
        let interrupt = async {
            while !(limit.interrupted)() {
                sleep(POLL).await;
            }
        };
        let (what, limit) = (what.to_owned(), limit.time);
        let done = runtime.block_on(async {
            let work = async {
                let session = connect(coordinators, wire, &mut state).await?;
                work(&session, &mut state).await
            };
            tokio::select! {
                done = timeout_at(deadline, work) => done.map_err(|_| End::Deadline),
                () = interrupt => Err(End::Interrupt),
            }
        });
        // Dropping the runtime ends the session's own tasks.
        drop(runtime);
        done.unwrap_or_else(|end| match end {
            End::Deadline => Err(LoadError::Deadline { what, limit, state }),
            End::Interrupt => Err(LoadError::Interrupted { what }),
        })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("load-control".into()).spawn_scoped(scope, body);
        let thread = thread.map_err(LoadError::system("a thread for control work"))?;
        thread.join().unwrap_or_else(|_| Err(control_error(what, coordinators, "the driver panicked")))
    })
}

/// Retries until it succeeds, because a starting node refuses connections for a while. Wrong certificates are not
/// retried.
async fn connect(
    coordinators: &[Coordinator],
    wire: &WireOptions,
    state: &mut String,
) -> Result<Arc<Session>, LoadError> {
    loop {
        let mut builder = SessionBuilder::new()
            .known_nodes_addr(coordinators.iter().map(|node| node.address))
            .connection_timeout(Duration::from_secs(5))
            .auto_await_schema_agreement(false);
        if let Some(Credentials { user, password }) = &wire.credentials {
            builder = builder.user(user, password);
        }
        builder = builder.tls_context(wire.tls.as_ref().map(Tls::client_config));
        match builder.build().await {
            Ok(session) => return Ok(Arc::new(session)),
            Err(error) => match tls_reason(&error) {
                Some(reason) => return Err(control_error("connecting", coordinators, reason)),
                None => *state = format!("cannot connect to {}: {error}", names(coordinators)),
            },
        }
        sleep(POLL).await;
    }
}
