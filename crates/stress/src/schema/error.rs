use std::time::Duration;

use brownout_generate::types::TypeError;
use thiserror::Error;

/// What can go wrong with a schema.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// A name that the resolver does not know.
    #[error("the host '{host}' has no address: {reason}; check -node")]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's words.
        reason: String,
    },
    /// No node can be reached.
    #[error("cannot connect to {nodes}: {reason}; check -node, -port native=, and that the nodes are up")]
    Connect {
        /// Who was tried.
        nodes: String,
        /// What happened.
        reason: String,
    },
    /// They can be reached, and do not let us in.
    #[error(
        "cannot log in to {nodes}: {reason}; check -mode user= password=, or cql.username and cql.password in -credentials-file"
    )]
    Login {
        /// Who was tried.
        nodes: String,
        /// What they said.
        reason: String,
    },
    /// The nodes that may be used hold no such place.
    #[error("no node is in {place}; there are: {known}; check -node datacenter= and rack=")]
    NoSuchPlace {
        /// What was asked for.
        place: String,
        /// What there is.
        known: String,
    },
    /// The server refused a statement.
    #[error("the server refused '{statement}': {reason}")]
    Refused {
        /// The statement, cut short if it is long.
        statement: String,
        /// The server's words.
        reason: String,
    },
    /// There is no such table.
    #[error(
        "Unable to find table {keyspace}.{table}; create it first: write and counter_write make theirs, a profile the one that its table_definition defines"
    )]
    NoTable {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// A type of the table that is none of CQL's.
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
    /// An answer that the schema's tables do not give.
    #[error("the answer to '{statement}' cannot be read: {reason}")]
    Unreadable {
        /// The statement.
        statement: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value that cannot be written in a definition.
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
        /// What was the case at the end.
        state: String,
    },
    /// The user asked for an end.
    #[error("interrupted while {what}")]
    Interrupted {
        /// What was under way.
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
