//! The variables of a statement, as the server reports them when it prepares the statement.

use super::{Control, SchemaError, session::short};

impl Control {
    /// The names of a statement's variables, in order, as the server gives them: a column's own name, or one in brackets
    /// (`[limit]`, `[ttl]`).
    ///
    /// # Errors
    /// The server refuses the statement; no node answers.
    pub fn variables(&self, cql: &str) -> Result<Vec<String>, SchemaError> {
        let (runtime, session) = self.driver();
        let prepared = runtime
            .block_on(session.prepare(cql))
            .map_err(|error| SchemaError::Refused { statement: short(cql), reason: error.to_string() })?;
        Ok(prepared.get_variable_col_specs().iter().map(|column| column.name().to_owned()).collect())
    }
}
