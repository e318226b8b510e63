//! Control work (schema and metadata) through the `scylla` driver.
//!
//! Every call starts a thread that runs the [`ThreadStart`] hook, opens a session on a runtime of its own, does its
//! work within a [`Limit`], and ends. Nothing here is on the load's hot path.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use scylla::{
    client::{session::Session, session_builder::SessionBuilder},
    policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy},
    statement::unprepared::Statement,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    Coordinator, Credentials, LoadError, Table, ThreadStart, Tls, TokenRange, TokenRing, WireOptions, tls_reason,
};

/// Polling interval.
const POLL: Duration = Duration::from_millis(100);

/// When control work is given up.
#[derive(Clone, Copy)]
pub struct Limit<'a> {
    /// After this time.
    pub time: Duration,
    /// As soon as this returns true; polled ten times a second.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// A time limit alone: nothing interrupts the work.
impl From<Duration> for Limit<'_> {
    fn from(time: Duration) -> Self {
        Limit { time, interrupted: &|| false }
    }
}

/// Runs DDL statements one after another, each followed by schema agreement among all `coordinators`, all within
/// `limit`.
///
/// # Errors
/// No coordinator can be reached, the server refuses a statement, or the limit is reached.
pub fn run_ddl<'a>(
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    statements: &[String],
    limit: impl Into<Limit<'a>>,
) -> Result<(), LoadError> {
    let wire = &WireOptions::default();
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

/// Drops every keyspace that is not Cassandra's own, with all that is in it, and waits for schema agreement among all
/// `coordinators`.
///
/// # Errors
/// Those of [`run_ddl`].
pub fn drop_keyspaces<'a>(
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    limit: impl Into<Limit<'a>>,
) -> Result<(), LoadError> {
    let wire = &WireOptions::default();
    let what = "dropping the keyspaces";
    in_session(what, coordinators, wire, thread_start, limit.into(), async |session, state| {
        let failed = |error: String| control_error(what, coordinators, error);
        let answer = session.query_unpaged("SELECT keyspace_name FROM system_schema.keyspaces", ()).await;
        let rows = answer.map_err(|error| failed(error.to_string()))?;
        let rows = rows.into_rows_result().map_err(|error| failed(error.to_string()))?;
        let names = rows.rows::<(String,)>().map_err(|error| failed(error.to_string()))?;
        for name in names {
            let (name,) = name.map_err(|error| failed(error.to_string()))?;
            if name == "system" || name.starts_with("system_") {
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

/// Waits until all `coordinators` report the same schema version, and returns it.
///
/// # Errors
/// No coordinator can be reached, or they do not agree within the limit; the error then says what each of them reports.
pub fn schema_agreement<'a>(
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    limit: impl Into<Limit<'a>>,
) -> Result<String, LoadError> {
    let wire = &WireOptions::default();
    in_session("schema agreement", coordinators, wire, thread_start, limit.into(), async |session, state| {
        Ok(agree(session, coordinators, state).await)
    })
}

/// Reads the token ring with the replicas of every range, for the keyspace of `table` (which must exist).
///
/// # Errors
/// No coordinator can be reached, the keyspace does not exist, or the limit is reached.
pub fn token_ring<'a>(
    coordinators: &[Coordinator],
    thread_start: &ThreadStart,
    table: &Table,
    limit: impl Into<Limit<'a>>,
) -> Result<TokenRing, LoadError> {
    token_ring_by(&WireOptions::default(), coordinators, thread_start, table, limit)
}

/// [`token_ring`] with the credentials and the encryption of `wire`.
///
/// # Errors
/// Those of [`token_ring`].
pub(crate) fn token_ring_by<'a>(
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

fn names(coordinators: &[Coordinator]) -> String {
    coordinators.iter().map(|node| format!("{} ({})", node.name, node.address)).collect::<Vec<_>>().join(", ")
}

fn control_error(what: &str, coordinators: &[Coordinator], reason: impl ToString) -> LoadError {
    LoadError::Control { what: what.to_owned(), coordinator: names(coordinators), reason: reason.to_string() }
}

/// The schema version that every coordinator reports for itself; `Err` with the reason if it reports none.
async fn versions(session: &Session, coordinators: &[Coordinator]) -> BTreeMap<String, Result<String, String>> {
    let mut versions = BTreeMap::new();
    for node in coordinators {
        let mut statement = Statement::new("SELECT schema_version FROM system.local WHERE key = 'local'");
        let target = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::NodeAddress(node.address), None);
        statement.set_load_balancing_policy(Some(target));
        statement.set_request_timeout(Some(Duration::from_secs(2)));
        let version = async {
            let answer = session.query_unpaged(statement, ()).await.map_err(|error| error.to_string())?;
            let rows = answer.into_rows_result().map_err(|error| error.to_string())?;
            let (version,) = rows.single_row::<(scylla::value::CqlValue,)>().map_err(|error| error.to_string())?;
            version.as_uuid().map(|uuid| uuid.to_string()).ok_or_else(|| "it tells no schema version".to_owned())
        };
        versions.insert(node.name.clone(), version.await);
    }
    versions
}

/// Waits without limit until all coordinators have one version. `state` describes the progress.
async fn agree(session: &Session, coordinators: &[Coordinator], state: &mut String) -> String {
    loop {
        let versions = versions(session, coordinators).await;
        let mut told = versions.values();
        if let Some(Ok(first)) = told.next()
            && told.all(|version| version.as_ref() == Ok(first))
        {
            return first.clone();
        }
        let tell = |(name, version): (&String, &Result<String, String>)| match version {
            Ok(version) => format!("{name} has {version}"),
            Err(reason) => format!("{name} does not tell: {reason}"),
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
fn in_session<T: Send>(
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
