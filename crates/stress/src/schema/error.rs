use std::time::Duration;

use brownout_generate::types::TypeError;
use thiserror::Error;

/// What can go wrong with a schema.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// A name that cannot be resolved.
    #[error("the host '{host}' has no address: {reason}; check -node")]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's message.
        reason: String,
    },
    /// No node can be reached.
    #[error("cannot connect to {nodes}: {reason}; check -node, -port native=, and that the nodes are up")]
    Connect {
        /// The nodes that were tried.
        nodes: String,
        /// What happened.
        reason: String,
    },
    /// The nodes can be reached but refuse the login.
    #[error(
        "cannot log in to {nodes}: {reason}; check -mode user= password=, or cql.username and cql.password in -credentials-file"
    )]
    Login {
        /// The nodes that were tried.
        nodes: String,
        /// Their message.
        reason: String,
    },
    /// None of the usable nodes is in this data centre or rack.
    #[error("no node is in {place}; there are: {known}; check -node datacenter= and rack=")]
    NoSuchPlace {
        /// What was requested.
        place: String,
        /// What exists.
        known: String,
    },
    /// The server refused a statement.
    #[error("the server refused '{statement}': {reason}")]
    Refused {
        /// The statement, cut short if it is long.
        statement: String,
        /// The server's message.
        reason: String,
    },
    /// The table does not exist.
    #[error(
        "Unable to find table {keyspace}.{table}; create it first: write and counter_write make theirs, a profile the one that its table_definition defines"
    )]
    NoTable {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// A type of the table that is not a CQL type.
    #[error("column '{column}' of {keyspace}.{table}: {source}")]
    Type {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Why.
        #[source]
        source: Box<TypeError>,
    },
    /// An answer of a form that the schema tables do not give.
    #[error("the answer to '{statement}' cannot be read: {reason}")]
    Unreadable {
        /// The statement.
        statement: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value that cannot be used in a definition.
    #[error("{what} cannot stand in a definition: {remedy}")]
    Definition {
        /// The value.
        what: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// It took too long.
    #[error("{what} was not done within {limit:?}: {state}")]
    Deadline {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// The state when the time was up.
        state: String,
    },
    /// The user interrupted.
    #[error("interrupted while {what}")]
    Interrupted {
        /// What was in progress.
        what: String,
    },
    /// The kernel refused something.
    #[error("the kernel refused {what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// Its answer.
        #[source]
        source: std::io::Error,
    },
}
