//! Brings written data to disk before it is read, and reports how many reads never went to disk.
//!
//! What CQL can do: `system_views.sstable_tasks` (Cassandra 4.0 and later) shows what every node compacts, so waiting
//! for compactions needs nothing else; `system_views.disk_usage` shows whether a table is on disk at all. What it
//! cannot do: flush, compact, and count SSTables per read. Those need [`Nodetool`].

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use brownout_generate::sizes::{TableHistogram, parse_tablehistograms};
use brownout_load::Consistency;

use super::nodetool::{Nodetool, NodetoolError};
use crate::schema::{Control, SchemaError};

/// Polling interval for compactions.
const POLL: Duration = Duration::from_millis(500);
/// This many polls in a row must find none, because one may be about to begin.
const QUIET: u32 = 4;

/// A table, by its names in the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
}

/// Why an operation on the nodes' disks failed.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// A failure of nodetool.
    #[error(transparent)]
    Nodetool(#[from] NodetoolError),
    /// A failure of CQL.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Neither reports compactions.
    #[error("node {node} does not report its compactions: {by_cql}; {by_nodetool}")]
    NoCompactions {
        /// The node.
        node: SocketAddr,
        /// Why not by CQL.
        by_cql: String,
        /// Why not by nodetool.
        by_nodetool: String,
    },
    /// The user asked for an end.
    #[error("interrupted while waiting for compactions")]
    Interrupted,
}

impl DiskError {
    /// Whether the user asked for an end.
    pub fn is_interrupt(&self) -> bool {
        match self {
            DiskError::Interrupted | DiskError::Nodetool(NodetoolError::Interrupted { .. }) => true,
            DiskError::Schema(error) => matches!(error, SchemaError::Interrupted { .. }),
            DiskError::Nodetool(_) | DiskError::NoCompactions { .. } => false,
        }
    }
}

/// The nodes, and how they are told.
pub struct Disks<'a> {
    /// A session.
    pub control: &'a Control,
    /// How nodetool is run; `None`: as `nodetool -h HOST` for what nothing else can do, and not at all where CQL
    /// suffices.
    pub nodetool: Option<&'a Nodetool>,
    /// Whether the user has interrupted.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

impl Disks<'_> {
    fn nodes(&self) -> Vec<SocketAddr> {
        self.control.members().into_iter().map(|member| member.address).collect()
    }

    fn tool(&self, node: SocketAddr, arguments: &[&str]) -> Result<String, NodetoolError> {
        match self.nodetool {
            Some(nodetool) => nodetool.run(node.ip(), arguments, self.interrupted),
            None => Nodetool::default().run(node.ip(), arguments, self.interrupted),
        }
    }

    fn everywhere(&self, arguments: &[&str]) -> Result<(), DiskError> {
        for node in self.nodes() {
            self.tool(node, arguments)?;
        }
        Ok(())
    }

    /// Makes every node write the table's memtables to disk.
    ///
    /// # Errors
    /// nodetool cannot be run, or fails.
    pub fn flush(&self, table: &TableName) -> Result<(), DiskError> {
        self.everywhere(&["flush", &table.keyspace, &table.table])
    }

    /// Makes every node compact the table.
    ///
    /// # Errors
    /// Those of [`Disks::flush`].
    pub fn compact(&self, table: &TableName) -> Result<(), DiskError> {
        self.everywhere(&["compact", &table.keyspace, &table.table])
    }

    /// Waits until no node has compacted anything for two seconds; returns how long it took.
    ///
    /// # Errors
    /// A node reports compactions neither by CQL nor by nodetool; the user interrupts.
    pub fn wait_compactions(&self) -> Result<Duration, DiskError> {
        let begun = Instant::now();
        let mut quiet = 0;
        while quiet < QUIET {
            let mut pending = 0;
            for node in self.nodes() {
                pending += self.compactions(node)?;
            }
            quiet = if pending == 0 { quiet + 1 } else { 0 };
            if (self.interrupted)() {
                return Err(DiskError::Interrupted);
            }
            std::thread::sleep(POLL);
        }
        Ok(begun.elapsed())
    }

    fn compactions(&self, node: SocketAddr) -> Result<usize, DiskError> {
        const TASKS: &str = "SELECT keyspace_name FROM system_views.sstable_tasks";
        let by_cql = match self.control.ask(TASKS, Consistency::One, Some(node), self.interrupted)? {
            Ok(rows) => return Ok(rows.len()),
            Err(refused) => refused.reason().to_owned(),
        };
        match self.tool(node, &["compactionstats"]) {
            Ok(text) => Ok(pending_tasks(&text)),
            Err(error) => Err(DiskError::NoCompactions { node, by_cql, by_nodetool: error.to_string() }),
        }
    }

    /// A node's histograms of a table.
    ///
    /// # Errors
    /// nodetool cannot be run or fails; its output cannot be read.
    pub fn histograms(&self, node: SocketAddr, table: &TableName) -> Result<TableHistogram, DiskError> {
        let arguments = ["tablehistograms", &table.keyspace, &table.table];
        let text = self.tool(node, &arguments)?;
        let failed = |output: String| NodetoolError::Failed {
            command: arguments.join(" "),
            status: "its output cannot be read".to_owned(),
            output,
        };
        let tables = parse_tablehistograms(&text).map_err(|error| failed(error.to_string()))?;
        Ok(tables.into_iter().next().ok_or_else(|| failed("no table".to_owned()))?)
    }

    /// How many reads were served by memtables alone, as far as it can be found out: one line of text, and whether it
    /// is a warning.
    pub fn memtable_reads(&self, table: &TableName) -> (String, bool) {
        let nodes = self.nodes();
        let Some(first) = nodes.first() else { return ("no node is known".to_owned(), true) };
        if self.nodetool.is_none() {
            return self.on_disk_at_all(*first, table, "give --nodetool");
        }
        let by_nodetool: Result<Vec<(f64, f64)>, DiskError> =
            nodes.iter().map(|node| self.histograms(*node, table).map(|found| without_sstables(&found))).collect();
        match by_nodetool {
            Ok(shares) => {
                let low = shares.iter().map(|(low, _)| *low).fold(1.0, f64::min);
                let high = shares.iter().map(|(_, high)| *high).fold(0.0, f64::max);
                said(table, low, high)
            }
            Err(error) => self.on_disk_at_all(*first, table, &error.to_string()),
        }
    }

    /// Without nodetool: whether the table has anything on disk. `lacking` says what nodetool would show.
    fn on_disk_at_all(&self, node: SocketAddr, table: &TableName, lacking: &str) -> (String, bool) {
        let TableName { keyspace, table } = table;
        let cql = format!(
            "SELECT mebibytes FROM system_views.disk_usage WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'"
        );
        let unknown = |why: &str| {
            let text = format!(
                "it is not known how many reads of {keyspace}.{table} were served by memtables alone: {why}; {lacking}"
            );
            (text, false)
        };
        match self.control.ask(&cql, Consistency::One, Some(node), self.interrupted) {
            Ok(Ok(rows)) => match rows.into_iter().flatten().flatten().next().and_then(|size| size.parse::<u64>().ok())
            {
                Some(0) | None => {
                    let text = format!(
                        "{keyspace}.{table} takes less than 1 MiB on the disk of {node}: its reads were served by memtables, \
                         not by disks; use --flush"
                    );
                    (text, true)
                }
                Some(size) => unknown(&format!("CQL only says that it takes {size} MiB on the disk of {node}")),
            },
            Ok(Err(refused)) => unknown(refused.reason()),
            Err(error) => unknown(&error.to_string()),
        }
    }
}

fn said(table: &TableName, low: f64, high: f64) -> (String, bool) {
    let TableName { keyspace, table } = table;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let how_many = if low == high { percent(low) } else { format!("between {} and {}", percent(low), percent(high)) };
    let text = format!("reads of {keyspace}.{table} served by memtables alone (no SSTable looked at): {how_many}");
    // From half on, the disks were not what was measured.
    let warning = high >= 0.5;
    (if warning { format!("{text}; use --flush before reading") } else { text }, warning)
}

/// The share of reads that looked at no SSTable, as (least, most). The histogram has only some percentiles.
fn without_sstables(histogram: &TableHistogram) -> (f64, f64) {
    let inner = |share: f64| share > 0.0 && share < 1.0;
    let known = || histogram.sstables.iter().filter_map(|(share, count)| count.map(|count| (*share, count)));
    if known().next().is_none() {
        return (0.0, 1.0);
    }
    let all = known().all(|(share, count)| share == 0.0 || count == 0.0);
    if all {
        return (1.0, 1.0);
    }
    let low =
        known().filter(|(share, count)| inner(*share) && *count == 0.0).map(|(share, _)| share).fold(0.0, f64::max);
    let none = known().any(|(share, count)| share == 0.0 && count > 0.0);
    let high =
        known().filter(|(share, count)| inner(*share) && *count > 0.0).map(|(share, _)| share).fold(1.0, f64::min);
    if none { (0.0, 0.0) } else { (low, high) }
}

/// `pending tasks: 3` of `nodetool compactionstats`.
fn pending_tasks(text: &str) -> usize {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("pending tasks:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(sstables: &[(f64, f64)]) -> TableHistogram {
        TableHistogram {
            table: "ks/t".to_owned(),
            partition_size: Vec::new(),
            cell_count: Vec::new(),
            sstables: sstables.iter().map(|(share, count)| (*share, Some(*count))).collect(),
        }
    }

    #[test]
    fn percentiles_of_sstables_bound_the_share_of_reads_without_any() {
        let rows = [(0.0, 0.0), (0.5, 0.0), (0.75, 0.0), (0.95, 1.0), (1.0, 2.0)];
        assert_eq!(without_sstables(&histogram(&rows)), (0.75, 0.95));
        assert_eq!(without_sstables(&histogram(&[(0.0, 0.0), (0.5, 0.0), (1.0, 0.0)])), (1.0, 1.0));
        assert_eq!(without_sstables(&histogram(&[(0.0, 1.0), (0.5, 1.0), (1.0, 3.0)])), (0.0, 0.0));
        assert_eq!(without_sstables(&histogram(&[(0.0, 0.0), (0.5, 1.0), (1.0, 3.0)])), (0.0, 0.5));
        assert_eq!(without_sstables(&histogram(&[])), (0.0, 1.0), "nothing is known");
    }

    #[test]
    fn a_read_phase_that_never_saw_a_disk_is_a_warning() {
        let table = TableName { keyspace: "ks".to_owned(), table: "t".to_owned() };
        assert!(said(&table, 0.75, 0.95).1);
        assert!(!said(&table, 0.0, 0.4).1);
        assert!(said(&table, 1.0, 1.0).0.contains("100 %"));
    }

    #[test]
    fn pending_compactions_are_read() {
        assert_eq!(pending_tasks("pending tasks: 12\n- ks.t: 12\n"), 12);
        assert_eq!(pending_tasks("concurrent compactors 2\npending tasks: 0\n"), 0);
    }
}
