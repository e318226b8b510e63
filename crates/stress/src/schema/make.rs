//! Creates schemas, and truncates tables.

use std::time::Duration;

use brownout_load::{Consistency, control::Limit};

use super::{Control, Refused, SchemaError, definition, session::short};

/// How long the nodes may take to agree on a schema.
const AGREEMENT: Duration = Duration::from_secs(60);

/// The consistency at which a profile's definitions are executed: that of the command where it is a majority or more,
/// else a majority, within the data centre if the command or `-node` names one. ScyllaDB checks it; Cassandra ignores
/// it.
pub fn definition_consistency(command: Consistency, datacenter: bool) -> Consistency {
    use Consistency as C;
    let local = datacenter || matches!(command, C::LocalOne | C::LocalQuorum | C::LocalSerial);
    match command {
        C::Quorum | C::LocalQuorum | C::EachQuorum | C::All => command,
        _ if local => C::LocalQuorum,
        _ => C::Quorum,
    }
}

impl Control {
    /// Executes a definition; it is not an error if its object exists already. Waits for schema agreement.
    ///
    /// # Errors
    /// It is refused for another reason; the nodes do not agree; the user interrupts.
    pub fn define(
        &self,
        cql: &str,
        consistency: Consistency,
        interrupt: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SchemaError> {
        match self.run(cql.trim().trim_end_matches(';'), consistency, interrupt)? {
            Ok(_) | Err(Refused::AlreadyExists(_)) => {}
            // An existing index is reported as an invalid request.
            Err(Refused::Other(reason)) if reason.contains("already exist") => {}
            Err(Refused::Other(reason)) => return Err(SchemaError::Refused { statement: short(cql), reason }),
        }
        self.agree(Limit { time: AGREEMENT, interrupted: interrupt }).map(drop)
    }

    /// From now on unqualified names refer to this keyspace.
    ///
    /// # Errors
    /// It does not exist, or no node answers.
    pub fn use_keyspace(&self, name: &str) -> Result<(), SchemaError> {
        let (runtime, session) = self.driver();
        let stored = super::table::stored_name(name);
        runtime
            .block_on(session.use_keyspace(stored, true))
            .map_err(|error| SchemaError::Refused { statement: format!("USE {name}"), reason: error.to_string() })
    }

    /// Truncates a table, if it exists; returns whether it does.
    ///
    /// # Errors
    /// It is refused for another reason than that the table does not exist; no node answers.
    pub fn truncate(
        &self,
        keyspace: &str,
        table: &str,
        interrupt: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, SchemaError> {
        let there = format!(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = '{}' AND table_name = '{}'",
            keyspace.replace('\'', "''"),
            table.replace('\'', "''")
        );
        if self.rows(&there, Consistency::One, interrupt)?.is_empty() {
            return Ok(false);
        }
        let cql = format!("TRUNCATE {}.{}", definition::identifier(keyspace), definition::identifier(table));
        self.rows(&cql, Consistency::One, interrupt)?;
        Ok(true)
    }
}
