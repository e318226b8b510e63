//! Writes to clients' tables, singly and in batches.

use super::{Database, INVALID, Question, Refusal, refusal};
use crate::{
    stub::{
        Answer, Content,
        asked::{self, Asked, Value},
        reply,
        statement::{Role, Statement, Verb},
        store::ColumnChange,
    },
    wire::{ColumnType, NativeType, query, reader::Reader, write},
};

impl Database {
    /// Executes a write; `false` if it is conditional and not applied.
    pub(super) fn write(
        &mut self,
        number: usize,
        statement: &Statement,
        values: &[Value<'_>],
        timestamp: Option<i64>,
        answer: Answer,
    ) -> bool {
        if statement.conditional && answer == Answer::NotApplied {
            return false;
        }
        let table = &self.cluster.tables[number];
        if self.options.content != Content::Remembered {
            return true;
        }
        // Writes whose key is not bound are not stored.
        let Some(key) = statement.key(values, 0..table.partition) else { return true };
        let clustering = statement.key(values, table.partition..table.key());
        if statement.verb == Verb::Delete {
            self.rows[number].delete(&key, clustering.as_deref().filter(|_| table.clustering > 0));
            return true;
        }
        let Some(clustering) = clustering else { return true };
        if statement.if_not_exists && self.rows[number].row(&key, &clustering).is_some() {
            return false;
        }
        let long = |value: Value<'_>| value.bytes().and_then(|b| b.try_into().ok()).map(i64::from_be_bytes);
        let mut own = None;
        let mut changes = Vec::with_capacity(values.len());
        for (marker, value) in statement.markers.iter().zip(values) {
            match (marker.role, value) {
                (Role::Column(_), Value::Unset) | (Role::Other, _) => {}
                (Role::Column(column), value) => changes.push(ColumnChange::Set(column, value.bytes())),
                (Role::Increment(column, sign), value) => {
                    changes.push(ColumnChange::Add(column, sign.wrapping_mul(long(*value).unwrap_or(0))));
                }
                (Role::Timestamp, value) => own = long(*value),
            }
        }
        let columns = table.columns.len();
        self.rows[number].write(&key, &clustering, own.or(timestamp), columns, &changes);
        true
    }

    pub(super) fn batch(&mut self, question: &mut Question<'_>, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        if let Answer::Error(code) = question.answer {
            return Err(refusal(code, "as the stub was told"));
        }
        let _kind = reader.byte()?;
        let (mut conditional, mut applied) = (None, true);
        let mut parts = Vec::new();
        for _ in 0..reader.short()? {
            let known = match reader.byte()? {
                0 => {
                    let text = reader.long_string()?.to_owned();
                    self.prepare(&question.session.keyspace, &text)?
                }
                _ => self.find(reader.short_bytes()?)?,
            };
            parts.push((known, asked::values(reader, false)?));
        }
        let _consistency = reader.short()?;
        let flags = asked::flags(reader, question.version)?;
        if flags & query::SERIAL_CONSISTENCY != 0 {
            reader.short()?;
        }
        let timed = flags & query::DEFAULT_TIMESTAMP != 0;
        let timestamp = if timed { Some(asked::long(reader)?) } else { None };
        for (known, values) in parts {
            let Some((number, statement, _)) = &self.known[known].on else {
                return Err(refusal(INVALID, "only writes can be in a batch"));
            };
            let (number, statement) = (*number, statement.clone());
            applied &= self.write(number, &statement, &values, timestamp, question.answer);
            if statement.conditional {
                conditional = Some(number);
            }
        }
        match conditional {
            _ if question.answer == Answer::WrongKind => self.tell_applied(0, true, question.out),
            Some(table) => self.tell_applied(table, applied, question.out),
            None => reply::void(question.out),
        }
        Ok(())
    }

    pub(super) fn tell_applied(&self, table: usize, applied: bool, out: &mut Vec<u8>) {
        let columns = [("[applied]".to_owned(), ColumnType::Native(NativeType::Boolean))];
        self.head(table, &columns, &Asked::default(), None).append(out, 1);
        write::bytes(out, &[u8::from(applied)]);
    }
}
