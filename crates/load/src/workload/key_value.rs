use std::collections::BTreeMap;

use crate::{Consistency, LoadError, Pace, value};

/// The flow of reads and writes by weight.
pub(crate) const MIX: usize = 0;
/// The flow that writes every key once.
pub(crate) const FILLING: usize = 1;
/// The flow of reads alone.
pub(crate) const READS: usize = 2;
/// The flow of writes alone.
pub(crate) const WRITES: usize = 3;
/// How many there are.
pub(crate) const FLOWS: usize = 4;

/// Who says when a write was made, which decides which of two writes wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timestamps {
    /// The client, by a clock that never jumps: a write that it sends later wins.
    #[default]
    Client,
    /// The node that coordinates the write, by its own clock, whatever that shows.
    Coordinator,
}

/// The short-form workload: one row per key, a `bigint` and a blob, read and written by weight.
#[derive(Debug, Clone)]
pub struct KeyValue {
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table: `(key bigint PRIMARY KEY, value blob)`.
    pub table: String,
    /// Replicas of every row, without data centres.
    pub replication: u32,
    /// Replicas of every row by data centre; empty for one data centre of whatever name.
    pub data_centres: BTreeMap<String, u32>,
    /// Consistency level of reads and writes.
    pub consistency: Consistency,
    /// Weight of reads.
    pub read: u32,
    /// Weight of writes.
    pub write: u32,
    /// Number of keys: 0 .. population, drawn uniformly.
    pub population: u64,
    /// Size of a value in bytes, at least [`KeyValue::SMALLEST_VALUE`].
    pub value_size: u64,
    /// Who says when a write was made.
    pub timestamps: Timestamps,
}

impl KeyValue {
    /// A value begins with the key and the version it was written for, 8 bytes each.
    pub const SMALLEST_VALUE: u64 = value::HEADER as u64;
    /// The largest value: by default Cassandra accepts frames (`native_transport_max_frame_size`) and mutations (half a
    /// commit-log segment) of 16 MiB. 4 KiB of them are left for what surrounds the value: less than 200 bytes in the
    /// frame, and the names, timestamps and lengths of the mutation.
    pub const LARGEST_VALUE: u64 = (16 << 20) - (4 << 10);
    /// The largest population, 2^28: ten bytes per key are kept to know its newest acknowledged version, and who looked for it.
    pub const LARGEST_POPULATION: u64 = 1 << 28;

    /// Paces for [`crate::Engine::set_paces`]: reads and writes as two loads, each by its own pace, whatever becomes of the
    /// other. The weights count for nothing then.
    pub fn apart(read: Pace, write: Pace) -> Vec<Pace> {
        let mut paces = vec![Pace::Idle; FLOWS];
        (paces[READS], paces[WRITES]) = (read, write);
        paces
    }

    /// The statements that create the keyspace and the table if they do not exist yet.
    ///
    /// Compression is off: the values are random, so compressing them would only waste CPU time.
    pub fn schema(&self) -> Vec<String> {
        let KeyValue { keyspace, table, replication, data_centres, .. } = self;
        let mut replicas: Vec<String> =
            data_centres.iter().map(|(name, count)| format!(", '{name}': '{count}'")).collect();
        if replicas.is_empty() {
            replicas.push(format!(", 'replication_factor': '{replication}'"));
        }
        let replicas = replicas.concat();
        vec![
            format!(
                "CREATE KEYSPACE IF NOT EXISTS \"{keyspace}\" WITH replication = \
                 {{'class': 'NetworkTopologyStrategy'{replicas}}} AND durable_writes = true"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS \"{keyspace}\".\"{table}\" (key bigint PRIMARY KEY, value blob) \
                 WITH compression = {{'enabled': 'false'}}"
            ),
        ]
    }

    pub(crate) fn read_statement(&self) -> String {
        format!("SELECT value FROM \"{}\".\"{}\" WHERE key = ?", self.keyspace, self.table)
    }

    pub(crate) fn write_statement(&self) -> String {
        format!("INSERT INTO \"{}\".\"{}\" (key, value) VALUES (?, ?)", self.keyspace, self.table)
    }

    /// Checks that this workload can be run; [`crate::Engine::start`] does the same.
    ///
    /// # Errors
    /// [`LoadError::Config`] with what to write instead.
    pub fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: String, remedy| Err(LoadError::Config { what, remedy });
        let plain_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if let Some(name) = self.data_centres.keys().find(|name| name.is_empty() || !name.chars().all(plain_name)) {
            return refuse(format!("'{name}' cannot name a data centre"), "use letters, digits, '-' and '_'");
        }
        for name in [&self.keyspace, &self.table] {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || name.len() > 48 || !name.chars().all(plain) {
                return refuse(
                    format!("'{name}' cannot name a keyspace or table"),
                    "use 1 to 48 letters, digits and underscores",
                );
            }
        }
        let level = self.consistency;
        if self.read > 0 && level == Consistency::Any
            || self.write > 0 && matches!(level, Consistency::Serial | Consistency::LocalSerial)
        {
            return refuse(
                format!("{level} is a level for {} only", if level == Consistency::Any { "writes" } else { "reads" }),
                "write one, quorum, all or another level that is for both",
            );
        }
        if self.read == 0 && self.write == 0 {
            return refuse("the weights of reads and writes are both 0".into(), "give at least one a weight");
        }
        if !(1..=Self::LARGEST_POPULATION).contains(&self.population) {
            return refuse(
                format!("a population of {} keys is not between 1 and {}", self.population, Self::LARGEST_POPULATION),
                "write a population between the two",
            );
        }
        if !(Self::SMALLEST_VALUE..=Self::LARGEST_VALUE).contains(&self.value_size) {
            let (smallest, largest) = (Self::SMALLEST_VALUE, Self::LARGEST_VALUE);
            return refuse(
                format!("values of {} bytes are not between {smallest} and {largest} bytes", self.value_size),
                "below they cannot be verified, above the server does not take them; write a size between the two",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Parameters,
        wire::{Statements, Version, compose},
    };

    fn workload() -> KeyValue {
        KeyValue {
            keyspace: "brownout".into(),
            table: "kv".into(),
            replication: 3,
            data_centres: BTreeMap::new(),
            consistency: Consistency::Quorum,
            read: 1,
            write: 1,
            population: 10,
            value_size: 16,
            timestamps: Timestamps::Client,
        }
    }

    #[test]
    fn impossible_workloads_are_refused_with_a_remedy() {
        assert!(workload().check().is_ok());
        let broken: [fn(&mut KeyValue); 9] = [
            |w| w.consistency = Consistency::Any,
            |w| w.consistency = Consistency::LocalSerial,
            |w| w.keyspace = "a b".into(),
            |w| w.table = String::new(),
            |w| (w.read, w.write) = (0, 0),
            |w| w.population = 0,
            |w| w.population = KeyValue::LARGEST_POPULATION + 1,
            |w| w.value_size = 15,
            |w| w.value_size = KeyValue::LARGEST_VALUE + 1,
        ];
        for (row, spoil) in broken.iter().enumerate() {
            let mut workload = workload();
            spoil(&mut workload);
            assert!(matches!(workload.check(), Err(LoadError::Config { .. })), "row {row}");
        }
    }

    #[test]
    fn the_largest_write_fits_into_a_frame_that_cassandra_takes() {
        let workload = KeyValue { value_size: KeyValue::LARGEST_VALUE, ..workload() };
        assert!(workload.check().is_ok());
        let mut statements = Statements::new(Version::V5);
        // Ids are MD5 sums; twice that is room enough.
        statements.keep(0, &[0; 32], &[0; 32]);
        let mut frame = Vec::new();
        let parameters = Parameters { timestamp_us: Some(1), ..Parameters::new(workload.consistency) };
        let written = compose(&mut frame, 1, &statements, |request| {
            let size = workload.value_size as usize;
            request.execute(0, &parameters).value(&[0; 8]).value_with(|out| value::append(out, 1, 1, size));
        });
        assert_eq!(written, Ok(()));
        assert!(frame.len() < (16 << 20) - 2_000, "{} bytes, and the mutation needs room too", frame.len());
    }

    #[test]
    fn the_schema_carries_the_replication_of_each_data_centre() {
        let data_centres = BTreeMap::from([("east".to_owned(), 2), ("west".to_owned(), 1)]);
        let schema = KeyValue { data_centres, ..workload() }.schema();
        assert!(schema[0].contains("'NetworkTopologyStrategy', 'east': '2', 'west': '1'}"), "{schema:?}");
    }

    #[test]
    fn the_schema_carries_the_replication() {
        let schema = workload().schema();
        assert!(schema[0].contains("'replication_factor': '3'"), "{schema:?}");
        assert!(schema[1].contains("key bigint PRIMARY KEY, value blob"), "{schema:?}");
    }
}
