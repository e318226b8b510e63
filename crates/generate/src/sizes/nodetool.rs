//! What `nodetool tablehistograms` prints.
//!
//! Cassandra 4.1 and 5.0 print the same columns in different orders and widths, in the locale of the machine
//! (`1,50`), and `NaN` where nothing is on disk. The columns are therefore found by their titles.

use super::SizeError;

/// The titles, in no order.
const TITLES: [&str; 5] = ["Read Latency", "Write Latency", "SSTables", "Partition Size", "Cell Count"];

/// One table's histograms.
#[derive(Debug, Clone, PartialEq)]
pub struct TableHistogram {
    /// `keyspace/table` as printed; empty where the heading is missing.
    pub table: String,
    /// Bytes of a partition: share of partitions (0 for the row `Min`, 1 for `Max`) and size; `None` for NaN.
    pub partition_size: Vec<(f64, Option<u64>)>,
    /// Cells of a partition, likewise.
    pub cell_count: Vec<(f64, Option<u64>)>,
    /// SSTables that a read looked at: share of reads, and number.
    pub sstables: Vec<(f64, Option<f64>)>,
}

/// Read the output of `nodetool tablehistograms`, of one table or of many. Lines before the first heading are passed over,
/// so that a shell's prompt or a warning of the JVM does no harm.
pub fn parse_tablehistograms(text: &str) -> Result<Vec<TableHistogram>, SizeError> {
    let mut tables: Vec<TableHistogram> = Vec::new();
    let mut name = String::new();
    let mut columns: Option<Vec<&str>> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(heading) = line.strip_suffix(" histograms") {
            name = heading.to_owned();
            columns = None;
        } else if line.starts_with("Percentile") {
            columns = Some(titles(line)?);
            tables.push(TableHistogram {
                table: std::mem::take(&mut name),
                partition_size: Vec::new(),
                cell_count: Vec::new(),
                sstables: Vec::new(),
            });
        } else if let (Some(columns), Some(table)) = (&columns, tables.last_mut()) {
            row(line, columns, table)?;
        }
    }
    if tables.is_empty() {
        return Err(SizeError::NotHistograms { what: "there is no line that starts with 'Percentile'".to_owned() });
    }
    for table in &mut tables {
        if table.partition_size.is_empty() {
            return Err(SizeError::NotHistograms { what: format!("the table '{}' has no rows", table.table) });
        }
        table.partition_size.sort_by(|left, right| left.0.total_cmp(&right.0));
        table.cell_count.sort_by(|left, right| left.0.total_cmp(&right.0));
        table.sstables.sort_by(|left, right| left.0.total_cmp(&right.0));
    }
    Ok(tables)
}

/// The titles of the heading, from left to right.
fn titles(heading: &str) -> Result<Vec<&'static str>, SizeError> {
    let mut found: Vec<(usize, &'static str)> =
        TITLES.iter().filter_map(|title| heading.find(title).map(|at| (at, *title))).collect();
    found.sort_unstable();
    for needed in ["Partition Size", "Cell Count"] {
        if !found.iter().any(|(_, title)| *title == needed) {
            return Err(SizeError::NotHistograms { what: format!("there is no column '{needed}'") });
        }
    }
    Ok(found.into_iter().map(|(_, title)| title).collect())
}

/// One row, if it is one: a share and as many numbers as there are columns.
fn row(line: &str, columns: &[&str], table: &mut TableHistogram) -> Result<(), SizeError> {
    let mut fields = line.split_whitespace();
    let share = match fields.next() {
        Some("Min") => 0.0,
        Some("Max") => 1.0,
        Some(first) => match first.strip_suffix('%').map(|digits| digits.replace(',', ".").parse::<f64>()) {
            Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => percent / 100.0,
            // The line of units, an empty line, a remark.
            _ => return Ok(()),
        },
        None => return Ok(()),
    };
    let fields: Vec<&str> = fields.collect();
    let bad = |what: String| SizeError::NotHistograms { what };
    if fields.len() != columns.len() {
        return Err(bad(format!("the row '{line}' has {} numbers for {} columns", fields.len(), columns.len())));
    }
    for (title, field) in columns.iter().zip(fields) {
        let value = match field {
            // Java's ways to say that there is no number.
            "NaN" | "\u{fffd}" => None,
            _ => Some(
                field
                    .replace(',', ".")
                    .parse::<f64>()
                    .map_err(|_| bad(format!("'{field}' is not a number in the row '{line}'")))?,
            ),
        };
        // A histogram that overflowed has the largest long as its maximum.
        let whole = value.filter(|value| (0.0..9e18).contains(value)).map(|value| value.round() as u64);
        match *title {
            "Partition Size" => table.partition_size.push((share, whole)),
            "Cell Count" => table.cell_count.push((share, whole)),
            "SSTables" => table.sstables.push((share, value)),
            _ => {}
        }
    }
    Ok(())
}
