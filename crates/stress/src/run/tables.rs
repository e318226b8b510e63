//! What is done to a run's tables besides the load: they are truncated, flushed, and queried for how reads were served.

use super::{
    RunError,
    disk::{Disks, TableName},
    execution::Run,
    nodetool::Nodetool,
};
use crate::{output::Total, settings::CommandKind};

/// The tables of the predefined commands.
const PREDEFINED: [&str; 2] = ["standard1", "counter1"];

impl Run<'_> {
    /// Truncates tables; those that do not exist are skipped. Like cassandra-stress, a predefined command truncates all
    /// predefined tables of its keyspace, whichever it uses.
    ///
    /// # Errors
    /// The server refuses; no node answers.
    pub fn truncate(&mut self) -> Result<(), RunError> {
        let used = self.tables.iter().map(|TableName { keyspace, table }| (keyspace.as_str(), table.as_str()));
        let keyspace = used.clone().next().map_or("", |(keyspace, _)| keyspace);
        let tables: Vec<(&str, &str)> = match self.settings.command.kind {
            CommandKind::User => used.collect(),
            _ => PREDEFINED.map(|table| (keyspace, table)).to_vec(),
        };
        let mut emptied = Vec::new();
        for (keyspace, table) in tables {
            if self.control.truncate(keyspace, table, self.interrupted)? {
                emptied.push(table);
            }
        }
        let what = match (self.settings.command.kind, &emptied[..]) {
            (CommandKind::User, [table]) => format!("Truncated {keyspace}.{table}"),
            _ => format!("Truncated {keyspace} ({})", emptied.join(", ")),
        };
        self.console.line(format!("{what}. Sleeping {}s for propagation.", self.settings.node.hosts.len()));
        Ok(())
    }

    /// Brings written data to disk, as `--flush`, `--compact` and `--wait-compactions` request.
    ///
    /// # Errors
    /// nodetool cannot be run, or fails.
    pub fn settle_disks(&mut self) -> Result<(), RunError> {
        let extras = &self.settings.extras;
        let nodetool = Nodetool::asked(extras)?;
        let disks = Disks { control: &self.control, nodetool: nodetool.as_ref(), interrupted: self.interrupted };
        for table in &self.tables {
            let name = format!("{}.{}", table.keyspace, table.table);
            if extras.flush {
                self.console.aside(format!("flushing {name}"));
                disks.flush(table)?;
            }
            if extras.compact {
                self.console.aside(format!("compacting {name}"));
                disks.compact(table)?;
            }
        }
        if extras.wait_compactions {
            self.console.aside("waiting for compactions");
            let took = disks.wait_compactions()?;
            self.console.aside(format!("no compactions are left after {:.1} s", took.as_secs_f64()));
        }
        Ok(())
    }

    /// Adds to the figures of a run that reads how many of its reads were served by memtables alone.
    pub fn ask_disks(&self, total: &mut Total) {
        // An empty template was refused earlier.
        let nodetool = Nodetool::asked(&self.settings.extras).ok().flatten();
        let disks = Disks { control: &self.control, nodetool: nodetool.as_ref(), interrupted: self.interrupted };
        for read in self.source.tables_read() {
            let (text, warns) = disks.memtable_reads(&TableName { keyspace: read.keyspace, table: read.name });
            if warns { total.warnings.push(text) } else { total.remarks.push(text) }
        }
    }
}
