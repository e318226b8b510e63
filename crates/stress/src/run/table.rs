//! A profile's table: its definition in the cluster, and how its rows are generated.

use std::sync::Arc;

use brownout_generate::{
    distribution::{RatioSpec, Spec},
    rows::{Order, PartitionGenerator, PartitionLayout, RowSettings},
    seeds,
    types::TableDefinition,
    values::{ColumnGenerator, ColumnSettings, Flavour},
};
use brownout_load::BatchKind;

use super::{RunError, plan};
use crate::{
    profile::{Profile, batches},
    schema::dml::{self, InsertStatement},
    settings::{Batch, Contents, Generator, Settings},
};

/// A profile with its table.
pub struct Table<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Its columns, without those that are skipped (`-errors skip-unsupported-columns`).
    pub definition: TableDefinition,
    /// How they are generated.
    pub layout: Arc<PartitionLayout>,
    /// How rows are visited.
    pub rows: RowSettings,
    /// The rules of generation.
    pub flavour: Flavour,
    /// How rows are written.
    pub insert: InsertStatement,
    /// A generator of its rows.
    pub generator: PartitionGenerator,
    /// Skipped columns.
    pub skipped: Vec<String>,
}

/// Everything, one partition: the defaults of `insert:`.
fn all() -> RatioSpec {
    RatioSpec { spec: Spec::Fixed(1), divisor: 1 }
}

impl<'a> Table<'a> {
    /// For the table with this definition.
    ///
    /// # Errors
    /// Rows that cannot be generated as the profile requires.
    pub fn new(profile: &'a Profile, mut definition: TableDefinition, settings: &Settings) -> Result<Self, RunError> {
        let skip = settings.errors.skip_unsupported_columns;
        // A profile without a definition only learns its types now.
        let known = Profile { definition: Some(definition.clone()), ..profile.clone() };
        let flavour = match known.generator(settings.command.generator, skip)? {
            Generator::Compat => Flavour::Compat,
            Generator::V2 => Flavour::V2,
        };
        let mut skipped = Vec::new();
        if skip && flavour == Flavour::Compat {
            let compat = ColumnSettings { flavour, ..ColumnSettings::default() };
            definition.columns.retain(|column| {
                let made = ColumnGenerator::new(&column.name, &column.cql_type, &compat).is_ok();
                if !made {
                    skipped.push(column.name.clone());
                }
                made
            });
        }
        let layout = PartitionLayout::new(&definition, flavour, |name| {
            // Names in columnspec may be in any case, as in cassandra-stress.
            let spec = profile.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
            let own = spec.map(|column| ColumnSettings {
                size: column.size.clone(),
                population: column.population.clone(),
                cluster: column.cluster.clone(),
                element_size: column.element_size.clone(),
                element_population: column.element_population.clone(),
                compress: column.compress,
                ..ColumnSettings::default()
            });
            let made = ColumnSettings { flavour, ..own.unwrap_or_default() };
            (spec.map(|column| column.name.clone()), made)
        });
        let layout = Arc::new(super::fitting::fitted(layout, profile, &definition)?);
        let insert = &settings.insert;
        let rows = RowSettings {
            order: match settings.population.contents {
                Contents::Arbitrary => Order::Arbitrary,
                Contents::Sorted => Order::Sorted,
                Contents::Shuffled => Order::Shuffled,
            },
            select: insert.select_ratio.clone().or(profile.insert.select.clone()).unwrap_or_else(all),
            populated: insert
                .row_population_ratio
                .clone()
                .or(profile.insert.row_population.clone())
                .unwrap_or_else(all),
            seed: plan::seed(settings) as u64,
        };
        let generator = PartitionGenerator::new(&layout, &rows)?;
        let statement = dml::insert(&definition, flavour == Flavour::Compat);
        Ok(Table { profile, definition, layout, rows, flavour, insert: statement, generator, skipped })
    }

    /// Whether `validate` would reject rows that were written in the order of these settings: compat values depend on
    /// the order, and a server returns rows sorted.
    pub fn has_order_of_its_own(&self) -> bool {
        let sorted = matches!(self.rows.order, Order::Sorted);
        self.flavour == Flavour::Compat && !self.layout.clustering().is_empty() && !sorted
    }

    /// Partitions of a visit.
    pub fn partitions(&self, settings: &Settings) -> Spec {
        settings.insert.partitions.clone().or(self.profile.insert.partitions.clone()).unwrap_or(Spec::Fixed(1))
    }

    fn batch_type(&self, settings: &Settings) -> Batch {
        match self.profile.batch(&settings.insert) {
            // Servers refuse increments in any other batch.
            Batch::Logged | Batch::Unlogged if self.insert.counters => Batch::Counter,
            as_asked => as_asked,
        }
    }

    /// How the rows of a visit are batched; `None`: not at all.
    pub fn batch(&self, settings: &Settings) -> Option<BatchKind> {
        match self.batch_type(settings) {
            Batch::None => None,
            Batch::Logged => Some(BatchKind::Logged),
            Batch::Unlogged => Some(BatchKind::Unlogged),
            Batch::Counter => Some(BatchKind::Counter),
        }
    }

    /// Most rows in a batch.
    pub fn unit(&self, settings: &Settings) -> Option<usize> {
        self.profile.batch_size(&settings.insert).map(|rows| rows as usize)
    }

    /// How the rows of a visit are sent, as text.
    pub fn batch_words(&self, settings: &Settings) -> String {
        let batch = self.batch_type(settings);
        match (batch, self.unit(settings)) {
            (Batch::None, _) => format!("{}, each row by itself", batch.name()),
            (_, None) => format!("{}, all rows of a visit in one", batch.name()),
            (_, Some(size)) => format!("{}, at most {size} rows in one", batch.name()),
        }
    }

    /// How many clustering columns can bound a range of rows: those sorted in the same direction. In compat whole
    /// partitions are compared: Java's order, in which cassandra-stress bounds its ranges, is not the servers'.
    pub fn range_depth(&self) -> usize {
        if self.flavour == Flavour::Compat {
            return 0;
        }
        let clustering = self.layout.clustering();
        let first = clustering.first().map(|column| column.kind);
        clustering.iter().take_while(|column| Some(column.kind) == first).count()
    }

    /// How its seeds are handed out.
    pub fn seeds_flavour(&self) -> seeds::Flavour {
        match self.flavour {
            Flavour::Compat => seeds::Flavour::Compat,
            Flavour::V2 => seeds::Flavour::Fixed,
        }
    }

    /// The line that says how large visits are, and cassandra-stress's warnings.
    ///
    /// # Errors
    /// A logged batch would have more statements than allowed.
    pub fn batches(&self, settings: &Settings) -> Result<(String, Vec<String>), RunError> {
        let (least, most) = self.generator.row_counts();
        let partitions = self.partitions(settings).build(0);
        let bounds = |p: f64| partitions.inverse_cumulative(p);
        let visits = self.profile.visits(&settings.insert).build(0);
        let (fewest, largest) = (visits.inverse_cumulative(0.0) as f64, visits.inverse_cumulative(1.0) as f64);
        let select = self.rows.select.build(0);
        let rows =
            (select.min() * bounds(0.0) as f64 * least / largest, select.max() * bounds(1.0) as f64 * most / fewest);
        let total = (bounds(0.0) as f64 * least, bounds(1.0) as f64 * most);
        let text = batches((bounds(0.0), bounds(1.0)), rows, total);
        let mut warnings = Vec::new();
        if most > 1e8 {
            warnings.push(format!(
                "WARNING: You have defined a schema that permits very large partitions ({most:.0} max rows (>100M))"
            ));
        }
        let batch = self.batch_type(settings);
        let largest_batch = self.unit(settings).map_or(rows.1, |unit| rows.1.min(unit as f64));
        if batch == Batch::Logged && largest_batch > 65_535.0 {
            return Err(RunError::Unfit {
                what: format!(
                    "ERROR: You have defined a workload that generates batches with more than 65k rows ({largest_batch:.0}), \
                     but have required the use of LOGGED batches. There is a 65k row limit on a single batch."
                ),
                remedy: "write batchtype: UNLOGGED or NONE, a batch-size, or more visits",
            });
        }
        if batch != Batch::None && largest_batch > 100_000.0 {
            warnings.push(format!(
                "WARNING: You have defined a schema that permits very large batches ({largest_batch:.0} max rows (>100K)). \
                 This may OOM this stress client, or the server."
            ));
        }
        if let (Batch::None, Some(size)) = (batch, self.unit(settings)) {
            warnings.push(format!(
                "batch-size {size} of {} has no effect: batchtype is NONE; leave out one of the two",
                self.profile.name
            ));
        }
        Ok((text, warnings))
    }
}
