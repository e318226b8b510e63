//! The predefined commands: their keyspace, their tables, their operations.

use std::sync::Arc;

use brownout_generate::{seeds::SeedManager, values};
use brownout_load::Table;

use super::{
    RunError,
    plan::{Planned, Source, seed, seed_settings, seeds_flavour},
};
use crate::{
    operations::{
        Kind,
        predefined::{Common, CounterRead, CounterWrite, PredefinedRow, Read, Write},
    },
    schema::definition::{self, Flavour, KeyspaceDefinition, TableOptions},
    settings::{CommandKind, Generator, Settings},
};

/// The predefined commands.
pub struct Predefined<'a> {
    settings: &'a Settings,
    keyspace: String,
    row: PredefinedRow,
}

/// The default keyspace.
const KEYSPACE: &str = "keyspace1";

fn table(kind: CommandKind) -> &'static str {
    match kind {
        CommandKind::CounterWrite | CommandKind::CounterRead => "counter1",
        _ => "standard1",
    }
}

impl<'a> Predefined<'a> {
    /// From the settings.
    ///
    /// # Errors
    /// Columns or keys that cannot be generated.
    pub fn new(settings: &'a Settings) -> Result<Self, RunError> {
        let columns = &settings.columns;
        let flavour = match settings.command.generator {
            Some(Generator::V2) => values::Flavour::V2,
            Some(Generator::Compat) | None => values::Flavour::Compat,
        };
        let row = PredefinedRow::new(u64::from(settings.command.key_size), &columns.names, &columns.size, flavour)?;
        let keyspace = settings.schema.keyspace.clone().unwrap_or_else(|| KEYSPACE.to_owned());
        Ok(Predefined { settings, keyspace, row })
    }

    /// The keyspace.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// The statements that create keyspace and tables. ScyllaDB's cassandra-stress creates `counter1` only for writes
    /// of counters; here a mix that uses it creates it, too.
    pub fn definitions(&self, scylla: bool) -> Vec<String> {
        let schema = &self.settings.schema;
        let keyspace = KeyspaceDefinition {
            name: self.keyspace.clone(),
            strategy: schema.replication_strategy.clone(),
            replication: schema.replication.clone(),
            storage: schema.storage_type.clone().map(|kind| (kind, schema.storage.clone())),
        };
        let options = TableOptions {
            columns: self.settings.columns.names.clone(),
            compression: schema.compression.clone(),
            compaction: schema.compaction_strategy.clone().map(|class| (class, schema.compaction.clone())),
            flavour: if scylla { Flavour::Scylla } else { Flavour::Cassandra },
        };
        let counters = self.ratio().iter().any(|(kind, _)| table(*kind) == "counter1");
        let mut all =
            vec![definition::keyspace(&keyspace), definition::table(&self.keyspace, "standard1", "blob", &options)];
        if counters || self.settings.extras.apache {
            all.push(definition::table(&self.keyspace, "counter1", "counter", &options));
        }
        all
    }

    /// The tables used by these of its operations.
    fn tables_of(&self, wanted: impl Fn(CommandKind) -> bool) -> Vec<Table> {
        let mut tables: Vec<Table> = Vec::new();
        for (kind, _) in self.ratio().iter().filter(|(kind, _)| wanted(*kind)) {
            let found = Table { keyspace: self.keyspace.clone(), name: table(*kind).to_owned() };
            if !tables.contains(&found) {
                tables.push(found);
            }
        }
        tables
    }

    fn ratio(&self) -> &[(CommandKind, f64)] {
        &self.settings.command.ratio
    }

    fn cql(&self, kind: CommandKind) -> Result<String, RunError> {
        let columns = &self.settings.columns;
        let timestamp = columns.timestamp.map(|micros| micros.to_string());
        Ok(match kind {
            CommandKind::Write => definition::write(&self.keyspace, &columns.names, timestamp.as_deref())?,
            CommandKind::CounterWrite => definition::counter_write(&self.keyspace, &columns.names),
            CommandKind::CounterRead => definition::counter_read(&self.keyspace),
            _ => definition::read(&self.keyspace, &columns.names, columns.slice),
        })
    }

    fn kind(&self, number: usize, kind: CommandKind, seeds: &Arc<SeedManager>) -> Result<Box<dyn Kind>, RunError> {
        let table_place = self.tables().iter().position(|known| known.name == table(kind)).unwrap_or(0);
        let common = Common {
            cql: self.cql(kind)?,
            statement: self.settings.mode.prepared.then_some(number),
            table: table_place as u16,
            seeds: Arc::clone(seeds),
            number,
            row: self.row.clone(),
            consistency: self.settings.command.consistency,
            serial_consistency: Some(self.settings.command.serial_consistency),
        };
        let validates = !self.settings.errors.skip_read_validation;
        Ok(match kind {
            CommandKind::Write => Box::new(Write(common)),
            CommandKind::CounterWrite => {
                Box::new(CounterWrite { common, add: self.settings.command.add.clone(), seed: seed(self.settings) })
            }
            CommandKind::CounterRead => Box::new(CounterRead { common, validates }),
            _ => Box::new(Read { common, slice: self.settings.columns.slice, validates }),
        })
    }
}

impl Source for Predefined<'_> {
    fn operations(&self) -> Vec<(String, f64)> {
        self.ratio().iter().map(|(kind, weight)| (kind.shown().to_owned(), *weight)).collect()
    }

    fn plan(&self, only: Option<usize>) -> Result<Vec<Planned>, RunError> {
        let flavour = seeds_flavour(self.settings.command.generator.unwrap_or(Generator::Compat));
        let seeds = SeedManager::new(seed_settings(self.settings, flavour))?;
        let wanted = self.ratio().iter().enumerate().filter(|(place, _)| only.is_none_or(|only| only == *place));
        wanted
            .map(|(place, (kind, weight))| {
                Ok(Planned {
                    name: kind.shown().to_owned(),
                    weight: *weight,
                    kinds: vec![self.kind(place, *kind, &seeds)?],
                    pin: None,
                })
            })
            .collect()
    }

    fn statements(&self) -> Vec<String> {
        if !self.settings.mode.prepared {
            return Vec::new();
        }
        self.ratio().iter().filter_map(|(kind, _)| self.cql(*kind).ok()).collect()
    }

    fn tables(&self) -> Vec<Table> {
        self.tables_of(|_| true)
    }

    fn tables_read(&self) -> Vec<Table> {
        self.tables_of(|kind| matches!(kind, CommandKind::Read | CommandKind::CounterRead))
    }

    fn updates(&self) -> bool {
        let writes = |kind: &CommandKind| matches!(kind, CommandKind::Write | CommandKind::CounterWrite);
        self.settings.command.kind == CommandKind::Mixed || self.ratio().iter().any(|(kind, _)| writes(kind))
    }

    fn description(&self) -> String {
        let names: Vec<&str> = self.ratio().iter().map(|(kind, _)| kind.shown()).collect();
        match (self.settings.command.kind, &names[..]) {
            (CommandKind::Mixed, _) => format!("[{}]", names.join(", ")),
            (_, [name]) => (*name).to_owned(),
            _ => names.join(", "),
        }
    }
}
