//! What is done to a run's tables besides the load: they are emptied, brought to disk, asked what served the reads.

use super::{
    RunError,
    disk::{Disks, TableName},
    execution::Run,
    nodetool::Nodetool,
};
use crate::settings::CommandKind;

impl Run<'_> {
    /// Empties tables; those that do not exist are passed over.
    ///
    /// # Errors
    /// It is refused; nobody answers.
    pub fn truncate(&mut self) -> Result<(), RunError> {
        let mut emptied = Vec::new();
        for TableName { keyspace, table } in &self.tables {
            if self.control.truncate(keyspace, table, self.interrupted)? {
                emptied.push(table.as_str());
            }
        }
        let keyspace = self.tables.first().map_or("", |table| table.keyspace.as_str());
        let what = match (self.settings.command.kind, &emptied[..]) {
            (CommandKind::User, [table]) => format!("Truncated {keyspace}.{table}"),
            _ => format!("Truncated {keyspace} ({})", emptied.join(", ")),
        };
        self.stage.line(format!("{what}. Sleeping {}s for propagation.", self.settings.node.hosts.len()));
        Ok(())
    }

    /// Brings what was written to disk, as `--flush`, `--compact` and `--wait-compactions` ask.
    ///
    /// # Errors
    /// nodetool cannot be run, or fails.
    pub fn settle_disks(&mut self) -> Result<(), RunError> {
        let extras = &self.settings.extras;
        let nodetool = extras.nodetool.as_deref().map(Nodetool::new).transpose()?;
        let disks = Disks { control: &self.control, nodetool: nodetool.as_ref(), interrupted: self.interrupted };
        for table in &self.tables {
            let name = format!("{}.{}", table.keyspace, table.table);
            if extras.flush {
                self.stage.aside(format!("flushing {name}"));
                disks.flush(table)?;
            }
            if extras.compact {
                self.stage.aside(format!("compacting {name}"));
                disks.compact(table)?;
            }
        }
        if extras.wait_compactions {
            self.stage.aside("waiting for compactions");
            let took = disks.wait_compactions()?;
            self.stage.aside(format!("no compactions are left after {:.1} s", took.as_secs_f64()));
        }
        Ok(())
    }

    /// Says how many reads were served by memtables alone, one line a table; returns those of them that are warnings.
    pub fn memtable_reads(&mut self) -> Vec<String> {
        let nodetool = self.settings.extras.nodetool.as_deref().and_then(|template| Nodetool::new(template).ok());
        let disks = Disks { control: &self.control, nodetool: nodetool.as_ref(), interrupted: self.interrupted };
        let mut warnings = Vec::new();
        for table in &self.tables {
            match disks.memtable_reads(table) {
                (text, true) => warnings.push(text),
                (text, false) => self.stage.aside(text),
            }
        }
        warnings
    }
}
