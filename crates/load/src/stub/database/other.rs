//! Statements that are not on clients' tables: system tables, and the schema.

use super::{Act, Database, INVALID, Known, Question, Refusal, SYNTAX, refusal};
use crate::{
    stub::{asked::Asked, reply, schema, store::Rows, tokens::Cursor},
    wire::{
        kind,
        write::{int, string},
    },
};

impl Database {
    /// Runs a statement that is not on a client's table: system tables, and the schema.
    pub(super) fn run(&mut self, question: &mut Question<'_>, known: &Known, asked: &Asked<'_>) -> Result<(), Refusal> {
        let out = &mut *question.out;
        let mut cursor = Cursor(&known.words);
        if cursor.accept(&["select"]) {
            let done = self.cluster.select(question.node, &known.words, asked, out);
            return done.map_err(|message| refusal(INVALID, message));
        }
        if cursor.accept(&["use"]) {
            let name = cursor.word().ok_or_else(|| refusal(SYNTAX, "USE what?"))?;
            question.session.keyspace = name.to_owned();
            int(out, kind::SET_KEYSPACE);
            string(out, name);
            return Ok(());
        }
        if question.silent_schema {
            question.act = Act::Silent;
            return Ok(());
        }
        let unreadable = || refusal(SYNTAX, format!("the stub cannot read: {}", known.text));
        let keyspace = question.session.keyspace.clone();
        if cursor.accept(&["create", "keyspace"]) {
            cursor.accept(&["if", "not", "exists"]);
            let name = cursor.word().ok_or_else(unreadable)?;
            if self.cluster.add_keyspace(name, cursor) {
                reply::schema_change(out, "CREATED", "KEYSPACE", name, "");
                return Ok(());
            }
        } else if cursor.accept(&["create", "table"]) {
            cursor.accept(&["if", "not", "exists"]);
            let table = schema::table(&mut cursor, &keyspace, &self.types).ok_or_else(unreadable)?;
            if self.cluster.table(&table.keyspace, &table.name).is_none() {
                reply::schema_change(out, "CREATED", "TABLE", &table.keyspace, &table.name);
                self.cluster.tables.push(table);
                self.rows.push(Rows::default());
                return Ok(());
            }
        } else if cursor.accept(&["create", "type"]) {
            cursor.accept(&["if", "not", "exists"]);
            schema::user_type(&mut cursor, &keyspace, &mut self.types).ok_or_else(unreadable)?;
        } else if cursor.accept(&["truncate"]) {
            cursor.accept(&["table"]);
            if let Some((given, name)) = cursor.name()
                && let Some(number) = self.cluster.table(given.unwrap_or(&keyspace), name)
            {
                self.rows[number] = Rows::default();
            }
        }
        reply::void(out);
        Ok(())
    }
}
