//! SELECTs on clients' tables.

use super::{Database, Known};
use crate::{
    stub::{
        Answer, Content,
        asked::{Asked, Value},
        reply::Head,
        schema::Table,
        statement::{Role, Selected, Statement, Verb},
        store::Row,
    },
    wire::{
        ColumnType,
        write::{self, cell},
    },
};

/// The result of a SELECT.
enum Found<'a> {
    Canned(u32),
    Rows(Vec<&'a Row>),
}

impl Database {
    pub(super) fn head<'a>(
        &'a self,
        table: usize,
        columns: &'a [(String, ColumnType)],
        asked: &Asked<'_>,
        paging_state: Option<u32>,
    ) -> Head<'a> {
        let Table { keyspace, name, .. } = &self.cluster.tables[table];
        Head { keyspace, table: name, columns, skip_metadata: asked.skip_metadata, paging_state }
    }

    pub(super) fn select(&self, known: &Known, asked: &Asked<'_>, answer: Answer, out: &mut Vec<u8>) {
        let Some((number, statement, canned)) = &known.on else { return };
        let Verb::Select(columns) = &statement.verb else { return };
        let found = match self.options.content {
            Content::Canned { rows, .. } => Found::Canned(if answer == Answer::NoRow { 0 } else { rows }),
            Content::Remembered if answer == Answer::NoRow => Found::Rows(Vec::new()),
            Content::Remembered => Found::Rows(self.rows_of(*number, statement, &asked.values)),
        };
        let counts = columns.contains(&Selected::Count);
        let total = match &found {
            _ if counts => 1,
            Found::Canned(rows) => *rows,
            Found::Rows(rows) => rows.len() as u32,
        };
        let start = asked.paging_state.and_then(|state| state.try_into().ok()).map_or(0, u32::from_be_bytes).min(total);
        let end = asked.page_size.filter(|size| *size > 0).map_or(total, |size| total.min(start.saturating_add(size)));
        let more = (end < total).then_some(end);
        self.head(*number, &known.result, asked, more).append(out, end - start);
        match &found {
            Found::Canned(rows) if counts => write::bytes(out, &u64::from(*rows).to_be_bytes()),
            Found::Rows(rows) if counts => write::bytes(out, &(rows.len() as u64).to_be_bytes()),
            Found::Canned(_) => (start..end).for_each(|_| out.extend_from_slice(canned)),
            Found::Rows(rows) => {
                for row in &rows[start as usize..end as usize] {
                    let cells =
                        if answer == Answer::Stale && !row.before.is_empty() { &row.before } else { &row.cells };
                    for column in columns {
                        match column {
                            Selected::Column(place) => cell(out, cells[*place].as_deref()),
                            Selected::Count | Selected::Function(_) => cell(out, None),
                        }
                    }
                }
            }
        }
        if answer == Answer::Flipped
            && end > start
            && let Some(last) = out.last_mut()
        {
            *last ^= 1;
        }
    }

    /// The requested rows: one, those of a partition, or all.
    fn rows_of(&self, number: usize, statement: &Statement, values: &[Value<'_>]) -> Vec<&Row> {
        let (table, rows) = (&self.cluster.tables[number], &self.rows[number]);
        let Some(key) = statement.key(values, 0..table.partition) else {
            let partly = statement.markers.iter().any(|marker| matches!(marker.role, Role::Column(_)));
            return if partly { Vec::new() } else { rows.partitions().flatten().collect() };
        };
        match statement.key(values, table.partition..table.key()) {
            Some(clustering) => rows.row(&key, &clustering).into_iter().collect(),
            None => rows.partition(&key).iter().collect(),
        }
    }
}
