//! A session for control work: definitions, metadata, everything that is not load.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use brownout_load::{Consistency, Tls, control::Limit, tls_reason};
use scylla::{
    client::{PoolSize, session::Session, session_builder::SessionBuilder},
    errors::{DbError, ExecutionError, RequestAttemptError},
    policies::{
        host_filter::AllowListHostFilter,
        load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy},
        retry::FallthroughRetryPolicy,
    },
    statement::{Consistency as Level, unprepared::Statement},
    value::{CqlValue, Row},
};
use tokio::{
    runtime::Runtime,
    time::{Instant, sleep, timeout_at},
};

use super::SchemaError;

/// How long nodes that refuse connections are retried: they may be about to listen.
const PATIENCE: Duration = Duration::from_secs(2);

/// Polling interval.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// How the cluster is reached.
#[derive(Clone)]
pub struct Contact {
    /// Nodes to begin with.
    pub nodes: Vec<SocketAddr>,
    /// Only these nodes, not others that they know of.
    pub whitelist: bool,
    /// User and password.
    pub credentials: Option<(String, String)>,
    /// Encryption.
    pub tls: Option<Tls>,
    /// How long one request may take; definitions get ten times as long.
    pub timeout: Duration,
}

impl Contact {
    /// Looks up `hosts`: names or addresses, with or without `:port`.
    ///
    /// # Errors
    /// A name that has no address.
    pub fn resolve(hosts: &[String], port: u16) -> Result<Contact, SchemaError> {
        let mut nodes = Vec::new();
        for host in hosts {
            let failed = |reason: String| SchemaError::Resolve { host: host.clone(), reason };
            let with_port = host.parse::<SocketAddr>().is_ok()
                || host.rsplit_once(':').is_some_and(|(name, port)| !name.contains(':') && port.parse::<u16>().is_ok());
            let found = if with_port {
                host.to_socket_addrs()
            } else {
                (host.trim_matches(['[', ']']), port).to_socket_addrs()
            };
            let mut found: Vec<SocketAddr> = found.map_err(|error| failed(error.to_string()))?.collect();
            // A node listens on one of its name's addresses, usually the IPv4 one ("localhost").
            found.sort_by_key(SocketAddr::is_ipv6);
            nodes.push(*found.first().ok_or_else(|| failed("the resolver gives none".to_owned()))?);
        }
        nodes.dedup();
        Ok(Contact { nodes, whitelist: false, credentials: None, tls: None, timeout: Duration::from_secs(12) })
    }

    fn names(&self) -> String {
        self.nodes.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
    }

    fn builder(&self) -> Result<SessionBuilder, SchemaError> {
        let mut builder = SessionBuilder::new()
            .known_nodes_addr(&self.nodes)
            .connection_timeout(self.timeout.min(Duration::from_secs(5)))
            .pool_size(PoolSize::PerHost(std::num::NonZeroUsize::MIN))
            .auto_await_schema_agreement(false)
            .fetch_schema_metadata(false);
        if self.whitelist {
            let listed = AllowListHostFilter::new(&self.nodes)
                .map_err(|error| SchemaError::Connect { nodes: self.names(), reason: error.to_string() })?;
            builder = builder.host_filter(Arc::new(listed));
        }
        if let Some((user, password)) = &self.credentials {
            builder = builder.user(user, password);
        }
        Ok(builder.tls_context(self.tls.as_ref().map(Tls::client_config)))
    }
}

/// Why a statement was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The object to be created exists already.
    AlreadyExists(String),
    /// Any other reason, as the server or the driver states it.
    Other(String),
}

impl Refused {
    /// The words.
    pub fn reason(&self) -> &str {
        match self {
            Refused::AlreadyExists(reason) | Refused::Other(reason) => reason,
        }
    }
}

/// A row of text values; `None` is a null.
pub type TextRow = Vec<Option<String>>;

/// A session. It has no thread of its own: between calls nothing of it runs, so it takes no time from the load.
pub struct Control {
    runtime: Runtime,
    session: Session,
    contact: Contact,
}

impl Control {
    /// Connects; nodes that refuse connections are retried for two seconds.
    ///
    /// # Errors
    /// No node answers, the credentials are refused, or the limit is reached.
    pub fn open(contact: &Contact, limit: Limit<'_>) -> Result<Control, SchemaError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| SchemaError::System { what: "a runtime for control work", source })?;
        let builder = contact.builder()?;
        let deadline = Instant::now() + limit.time;
        let patience = Instant::now() + limit.time.min(PATIENCE);
        let mut reason = "no answer".to_owned();
        let mut hopeless = false;
        let session = runtime.block_on(async {
            loop {
                let connected = tokio::select! {
                    connected = timeout_at(deadline, builder.build()) => connected,
                    () = interrupted(limit) => {
                        return Err(SchemaError::Interrupted { what: "connecting".to_owned() });
                    }
                };
                match connected {
                    Ok(Ok(session)) => return Ok(session),
                    Ok(Err(error)) => {
                        let tls = tls_reason(&error);
                        // Wrong credentials and wrong certificates do not become right.
                        hopeless = tls.is_some();
                        reason = tls.unwrap_or_else(|| with_causes(&error));
                        if let Some(reason) = login_reason(&reason) {
                            return Err(SchemaError::Login { nodes: contact.names(), reason });
                        }
                    }
                    Err(_) => {}
                }
                if hopeless || Instant::now() >= patience {
                    return Err(SchemaError::Connect { nodes: contact.names(), reason });
                }
                sleep(POLL).await;
            }
        })?;
        Ok(Control { runtime, session, contact: contact.clone() })
    }

    /// How it reaches the cluster.
    pub fn contact(&self) -> &Contact {
        &self.contact
    }

    /// The cluster's name; empty if it has none.
    pub fn cluster_name(&self) -> String {
        self.session.get_cluster_state().cluster_name().to_owned()
    }

    /// Whether the nodes are ScyllaDB's.
    pub fn is_scylla(&self) -> bool {
        self.session.get_cluster_state().get_nodes_info().iter().any(|node| node.sharder().is_some())
    }

    /// The driver's session, and the runtime to use it in.
    pub(super) fn driver(&self) -> (&Runtime, &Session) {
        (&self.runtime, &self.session)
    }

    /// Executes a statement at a consistency level, on any node, without retries.
    ///
    /// # Errors
    /// The outer error: no node answered, or the user interrupted. The inner one: the statement was refused.
    pub fn run(
        &self,
        cql: &str,
        consistency: Consistency,
        interrupt: &(dyn Fn() -> bool + Sync),
    ) -> Result<Result<Vec<TextRow>, Refused>, SchemaError> {
        self.ask(cql, consistency, None, interrupt)
    }

    /// Executes a statement on one node.
    ///
    /// # Errors
    /// Those of [`Control::run`].
    pub fn ask(
        &self,
        cql: &str,
        consistency: Consistency,
        node: Option<SocketAddr>,
        interrupt: &(dyn Fn() -> bool + Sync),
    ) -> Result<Result<Vec<TextRow>, Refused>, SchemaError> {
        let limit = self.contact.timeout * 10;
        let mut statement = Statement::new(cql);
        statement.set_retry_policy(Some(Arc::new(FallthroughRetryPolicy::new())));
        statement.set_request_timeout(Some(limit));
        if let Ok(level) = Level::try_from(consistency.code()) {
            statement.set_consistency(level);
        }
        if let Some(node) = node {
            let target = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::NodeAddress(node), None);
            statement.set_load_balancing_policy(Some(target));
        }
        let waiting = Limit { time: limit, interrupted: interrupt };
        let answer = self.runtime.block_on(async {
            tokio::select! {
                answer = self.session.query_unpaged(statement, ()) => Ok(answer),
                () = interrupted(waiting) => Err(SchemaError::Interrupted { what: format!("running {}", short(cql)) }),
            }
        })?;
        let unreadable = |reason: String| SchemaError::Unreadable { statement: short(cql), reason };
        match answer {
            Err(error) => Ok(Err(refusal(&error))),
            Ok(answer) if !answer.is_rows() => Ok(Ok(Vec::new())),
            Ok(answer) => {
                let rows = answer.into_rows_result().map_err(|error| unreadable(error.to_string()))?;
                let rows = rows.rows::<Row>().map_err(|error| unreadable(error.to_string()))?;
                let row = |row: Result<Row, _>| match row {
                    Ok(row) => Ok(row.columns.into_iter().map(|value| value.map(text)).collect()),
                    Err(error) => Err(unreadable(scylla::errors::DeserializationError::to_string(&error))),
                };
                Ok(Ok(rows.map(row).collect::<Result<_, _>>()?))
            }
        }
    }

    /// Executes a statement that must succeed.
    ///
    /// # Errors
    /// It is refused, no node answered, or the user interrupted.
    pub fn rows(
        &self,
        cql: &str,
        consistency: Consistency,
        interrupt: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<TextRow>, SchemaError> {
        self.run(cql, consistency, interrupt)?
            .map_err(|refused| SchemaError::Refused { statement: short(cql), reason: refused.reason().to_owned() })
    }
}

/// Completes when the user interrupts.
async fn interrupted(limit: Limit<'_>) {
    while !(limit.interrupted)() {
        sleep(POLL).await;
    }
}

fn refusal(error: &ExecutionError) -> Refused {
    match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::AlreadyExists { .. }, reason)) => {
            Refused::AlreadyExists(reason.clone())
        }
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(_, reason)) => Refused::Other(reason.clone()),
        other => Refused::Other(other.to_string()),
    }
}

/// Why a node refuses the login, if that is what the driver's message means.
fn login_reason(words: &str) -> Option<String> {
    if words.contains("Authentication is required") {
        // The driver's message continues with advice for programmers.
        return Some("a name and a password are asked for".to_owned());
    }
    words.contains("uthenticat").then(|| words.to_owned())
}

/// An error with its causes, where the driver's message lacks them.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let more = deeper.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = deeper.source();
    }
    words
}

/// A value as text: texts bare, lists with one element per line, maps with one `key=value` per line, all else as in
/// CQL.
fn text(value: CqlValue) -> String {
    match value {
        CqlValue::Text(text) | CqlValue::Ascii(text) => text,
        CqlValue::List(elements) | CqlValue::Set(elements) => {
            elements.into_iter().map(text).collect::<Vec<_>>().join("\n")
        }
        CqlValue::Map(entries) => {
            let entry = |(key, value)| format!("{}={}", text(key), text(value));
            entries.into_iter().map(entry).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

/// A statement shortened for an error message.
pub(super) fn short(cql: &str) -> String {
    let line = cql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
