//! Runs one statement on one coordinator, for people who inspect a lab.

use std::{sync::Arc, time::Duration};

use scylla::{
    client::session_builder::SessionBuilder,
    policies::{
        host_filter::AllowListHostFilter,
        load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy},
        retry::FallthroughRetryPolicy,
    },
    statement::{Consistency as Level, unprepared::Statement},
    value::{CqlValue, Row},
};

use crate::{Consistency, Coordinator, Credentials, LoadError, ThreadStart, Tls, WireOptions, tls_reason};

/// The result of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The names of its columns; empty if it gives no rows.
    pub columns: Vec<String>,
    /// Its rows, each value as text; `None`: null.
    pub rows: Vec<Vec<Option<String>>>,
    /// The server's warnings.
    pub warnings: Vec<String>,
}

/// Sends the statement to `coordinator` and to no other, without retries, with the credentials and the encryption of `wire`. Not
/// meant for results that exceed the server's memory for one answer.
///
/// # Errors
/// It cannot be reached, does not answer within `limit`, or rejects the statement: the error has its message.
pub fn query(
    wire: &WireOptions,
    coordinator: &Coordinator,
    thread_start: &ThreadStart,
    statement: &str,
    consistency: Consistency,
    limit: Duration,
) -> Result<Answer, LoadError> {
    let failed = |what: &str, reason: String| LoadError::Control {
        what: what.to_owned(),
        coordinator: format!("{} ({})", coordinator.name, coordinator.address),
        reason,
    };
    let ask = async {
        // If the node knows of others that cannot be reached, do not wait for those.
        let alone =
            AllowListHostFilter::new([coordinator.address]).map_err(|error| failed("finding it", error.to_string()))?;
        let mut builder = SessionBuilder::new()
            .known_node_addr(coordinator.address)
            .host_filter(Arc::new(alone))
            .connection_timeout(limit)
            .auto_await_schema_agreement(false)
            .fetch_schema_metadata(false)
            .tls_context(wire.tls.as_ref().map(Tls::client_config));
        if let Some(Credentials { user, password }) = &wire.credentials {
            builder = builder.user(user, password);
        }
        let session = match builder.build().await {
            Ok(session) => session,
            Err(error) => {
                let reason = tls_reason(&error).unwrap_or_else(|| error.to_string());
                return Err(failed("connecting", reason));
            }
        };
        let mut asked = Statement::new(statement);
        let target = NodeIdentifier::NodeAddress(coordinator.address);
        asked.set_load_balancing_policy(Some(SingleTargetLoadBalancingPolicy::new(target, None)));
        asked.set_retry_policy(Some(Arc::new(FallthroughRetryPolicy::new())));
        asked.set_request_timeout(Some(limit));
        if let Ok(level) = Level::try_from(consistency.code()) {
            asked.set_consistency(level);
        }
        let result = session.query_unpaged(asked, ()).await;
        let result = result.map_err(|error| failed("the statement", error.to_string()))?;
        let warnings = result.warnings().map(str::to_owned).collect();
        if !result.is_rows() {
            return Ok(Answer { warnings, ..Answer::default() });
        }
        let unreadable = |error: String| failed("reading the answer", error);
        let rows = result.into_rows_result().map_err(|error| unreadable(error.to_string()))?;
        let columns = rows.column_specs().iter().map(|column| column.name().to_owned()).collect();
        let rows = rows.rows::<Row>().map_err(|error| unreadable(error.to_string()))?;
        let text = |value: Option<CqlValue>| {
            value.map(|value| match value {
                // Its own text form is a CQL literal, in quotes.
                CqlValue::Text(text) | CqlValue::Ascii(text) => text,
                other => other.to_string(),
            })
        };
        let rows = rows
            .map(|row| Ok(row.map_err(|error| unreadable(error.to_string()))?.columns.into_iter().map(text).collect()))
            .collect::<Result<_, LoadError>>()?;
        Ok(Answer { columns, rows, warnings })
    };
    let body = || {
        thread_start().map_err(LoadError::ThreadStart)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LoadError::system("a runtime for a statement"))?;
        runtime.block_on(async {
            let late = || failed("the statement", format!("no answer within {} s", limit.as_secs_f64()));
            tokio::time::timeout(2 * limit, ask).await.map_err(|_| late())?
        })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("cql".into()).spawn_scoped(scope, body);
        let thread = thread.map_err(LoadError::system("a thread for a statement"))?;
        thread.join().unwrap_or_else(|_| Err(failed("the statement", "the driver panicked".to_owned())))
    })
}
