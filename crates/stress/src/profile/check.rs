//! Checks that the parts of a profile fit together.

use brownout_generate::{
    distribution::Spec,
    types::{CqlType, TableDefinition, TypeError},
    values::{ColumnGenerator, ColumnSettings, Flavour},
};
use brownout_yaml::nearest;

use super::{
    ColumnSpec, InsertSpec, Profile, ProfileError, Query, RequestSpec,
    cql::{Words, created},
    select::selection,
    source::{Item, Source},
};
use crate::{
    schema::table::stored_name,
    settings::{Batch, Generator, Insert, SettingsError},
};

impl Profile {
    pub(super) fn check_keyspace(&self, item: Option<&Item<'_>>) -> Result<(), ProfileError> {
        let (Some(item), Some(cql)) = (item, &self.keyspace_definition) else { return Ok(()) };
        let name = created(cql, &["keyspace"]).ok_or_else(|| {
            item.complain(
                "There was a problem parsing the keyspace cql: write CREATE KEYSPACE name WITH replication = …",
            )
        })?;
        if !same(&name, &self.keyspace) {
            return Err(item.complain(format!(
                "Name in keyspace_definition doesn't match keyspace property: '{name}' != '{}'",
                self.keyspace
            )));
        }
        Ok(())
    }

    /// Also reads the definition.
    pub(super) fn check_table(&mut self, item: Option<&Item<'_>>) -> Result<(), ProfileError> {
        for cql in &self.extra_definitions {
            if created(cql, &["type"]).is_some()
                && let Err(error) = self.types.define(cql.trim().trim_end_matches(';'))
            {
                self.notes.push(format!("{}: a type of extra_definitions was not understood: {error}", self.file));
            }
        }
        let (Some(item), Some(cql)) = (item, &self.table_definition) else { return Ok(()) };
        let name = created(cql, &["table", "columnfamily"]).ok_or_else(|| {
            item.complain(
                "There was a problem parsing the table cql: write CREATE TABLE name (column type, …, PRIMARY KEY (…))",
            )
        })?;
        if !same(&name, &self.table) {
            return Err(item.complain(format!(
                "Name in table_definition doesn't match table property: '{name}' != '{}'",
                self.table
            )));
        }
        match TableDefinition::parse(cql.trim().trim_end_matches(';'), &self.types) {
            Ok(definition) => self.definition = Some(definition),
            Err(error @ (TypeError::NoSuchColumn { .. } | TypeError::NoKey { .. } | TypeError::Dimension(_))) => {
                return Err(item.complain(format!("There was a problem parsing the table cql: {error}")));
            }
            // The servers may know more: types that exist there, keywords of another product.
            Err(error) => self.notes.push(format!(
                "{}: table_definition is left to the servers to judge, and columns are not checked before: {error}",
                self.file
            )),
        }
        Ok(())
    }

    pub(super) fn check_columns(&mut self, columns: &[(ColumnSpec, Item<'_>)]) -> Result<(), ProfileError> {
        let Some(definition) = &self.definition else { return Ok(()) };
        let idle = columns.iter().flat_map(|(column, _)| idle_elements(column, definition));
        self.notes.extend(idle.map(|idle| format!("{}: {idle}", self.file)));
        for (column, item) in columns {
            let known = || definition.columns.iter().map(|known| known.name.as_str());
            if !known().any(|known| known.eq_ignore_ascii_case(&column.name)) {
                let mut message = format!("table {} has no column '{}'", self.table, column.name);
                match nearest(&column.name, known()) {
                    Some(nearest) => message.push_str(&format!("; did you mean '{nearest}'?")),
                    None => message.push_str(&format!("; its columns are {}", known().collect::<Vec<_>>().join(", "))),
                }
                return Err(item.complain(message));
            }
        }
        Ok(())
    }

    pub(super) fn check_queries(
        &self,
        queries: Option<&Item<'_>>,
        ranges: Option<&Item<'_>>,
    ) -> Result<(), ProfileError> {
        let entries = |item: Option<&Item<'_>>| -> Result<Vec<(String, ProfileError)>, ProfileError> {
            let Some(item) = item else { return Ok(Vec::new()) };
            let entries = item.map()?.entries();
            Ok(entries.into_iter().map(|(name, item)| (name.to_lowercase(), item.complain(""))).collect())
        };
        let mut seen: Vec<String> = Vec::new();
        for (name, mut complaint) in entries(queries)?.into_iter().chain(entries(ranges)?) {
            if matches!(name.as_str(), "insert" | "validate") {
                complaint.message =
                    format!("Found '{name}' in queries, this name is reserved, please use different name");
                return Err(complaint);
            }
            if seen.contains(&name) {
                complaint.message =
                    format!("Found {name} in both queries and token_range_queries, please use different names");
                return Err(complaint);
            }
            seen.push(name);
        }
        Ok(())
    }

    /// Checks that queries whose rows are compared can be compared, and notes what might make them differ.
    pub(super) fn check_checks(&mut self, queries: Option<&Item<'_>>) -> Result<(), ProfileError> {
        let entries = queries.map(|item| item.map()).transpose()?.map(|map| map.entries()).unwrap_or_default();
        let keyspace = stored_name(&self.keyspace);
        let checked = || self.queries.iter().filter(|query| query.check);
        for query in checked() {
            let Some(definition) = &self.definition else { continue };
            if let Err(reason) = selection(&query.cql, &keyspace, definition) {
                let item = entries.iter().find(|(name, _)| *name == query.name).map(|(_, item)| item);
                let complaint = item.or(queries).map(|item| item.complain(format!("check: {reason}")));
                return complaint.map_or(Ok(()), Err);
            }
        }
        if checked().next().is_some() {
            let is_select = |query: &&Query| Words::of(&query.cql).next().is_some_and(|word| word.is("select"));
            for query in self.queries.iter().filter(|query| !is_select(query)) {
                self.notes.push(format!(
                    "{}: {} may change rows that queries with check: compare with those of insert; what it has changed or \
                     removed is reported as wrong",
                    self.file, query.name
                ));
            }
        }
        Ok(())
    }

    pub(super) fn check_generator(&self, source: &Source) -> Result<(), ProfileError> {
        if self.generator == Some(Generator::Compat)
            && let Some(reason) = self.needs_v2()
        {
            let mut root = source.root()?;
            let item = root.take("generator")?;
            let message = format!("compat cannot be: {reason}; write v2, or leave generator out");
            return Err(item.map_or_else(|| root.complain(message.as_str()), |item| item.complain(message.as_str())));
        }
        Ok(())
    }

    /// What in it cassandra-stress's generators do not support, if anything.
    pub fn needs_v2(&self) -> Option<String> {
        if self.compress.is_some() {
            return Some("compress: makes values that cassandra-stress does not".to_owned());
        }
        if self.partition_sizes.is_some() {
            return Some("partition_sizes: makes partitions that cassandra-stress does not".to_owned());
        }
        if let Some(column) = self.columns.iter().find(|column| column.has_new_keys()) {
            return Some(format!("the columnspec of {} has keys that cassandra-stress does not know", column.name));
        }
        let definition = self.definition.as_ref()?;
        let compat = ColumnSettings { flavour: Flavour::Compat, ..ColumnSettings::default() };
        let unknown = definition
            .columns
            .iter()
            .find(|column| ColumnGenerator::new(&column.name, &column.cql_type, &compat).is_err())?;
        Some(format!("cassandra-stress knows no {}, the type of column {}", unknown.cql_type, unknown.name))
    }

    /// How its values are generated: as the command line says, else as the profile says, else as cassandra-stress does
    /// where that is possible.
    ///
    /// # Errors
    /// The command line asks for `compat`, and the profile needs more; or rows of `compat` are to be compared. (With
    /// `-errors skip-unsupported-columns`, which `skip` is, an unsupported type is no reason.)
    pub fn generator(&self, command: Option<Generator>, skip: bool) -> Result<Generator, SettingsError> {
        let generator = self.wanted_generator(command, skip)?;
        let checked = self.queries.iter().find(|query| query.check);
        match checked.filter(|_| generator == Generator::Compat) {
            Some(query) => Err(SettingsError::senseless(
                format!("{}: check: of {} cannot be had of rows as cassandra-stress makes them", self.file, query.name),
                "write 'generator: v2' in the profile, whose rows are the same for every reader, or leave check: out",
            )),
            None => Ok(generator),
        }
    }

    fn wanted_generator(&self, command: Option<Generator>, skip: bool) -> Result<Generator, SettingsError> {
        let needed = self.needs_v2();
        match (command.or(self.generator), needed) {
            (Some(Generator::Compat), Some(reason)) if !skip => Err(SettingsError::senseless(
                format!("generator=compat, but {}: {reason}", self.file),
                "write generator=v2, or leave it out",
            )),
            (Some(generator), _) => Ok(generator),
            (None, Some(_)) if skip && !self.has_new_values() => Ok(Generator::Compat),
            (None, Some(_)) => Ok(Generator::V2),
            (None, None) => Ok(Generator::Compat),
        }
    }

    /// Whether it has keys that require other values than those of cassandra-stress.
    fn has_new_values(&self) -> bool {
        self.generator == Some(Generator::V2)
            || self.compress.is_some()
            || self.partition_sizes.is_some()
            || self.columns.iter().any(ColumnSpec::has_new_keys)
    }

    /// Whether it has keys that cassandra-stress does not know. `batch-size` is not counted, as it asks for batches,
    /// and neither is `generator: compat`, which asks for nothing new.
    fn has_new_keys(&self) -> bool {
        let InsertSpec { visits, revisit, request, .. } = &self.insert;
        self.has_new_values()
            || visits.is_some()
            || revisit.is_some()
            || request.has_new_keys()
            || self.queries.iter().any(|query| query.page_size.is_some() || query.check || query.request.has_new_keys())
            // cassandra-stress supports consistency levels only for other queries.
            || self.token_range_queries.iter().any(|query| query.request != RequestSpec::default())
    }

    /// In how many visits a partition is written: as the command line says, else as the profile says, else in one.
    pub fn visits(&self, command: &Insert) -> Spec {
        let own = self.insert.visits.as_ref().filter(|_| command.visits_is_default);
        own.unwrap_or(&command.visits).clone()
    }

    /// Which of the incomplete partitions is visited next, likewise.
    pub fn revisit(&self, command: &Insert) -> Spec {
        let own = self.insert.revisit.as_ref().filter(|_| command.revisit_is_default);
        own.unwrap_or(&command.revisit).clone()
    }

    /// How the rows of a visit are batched: as the command line says, else as the profile says. Otherwise a logged
    /// batch if a batch size is given, or if all keys are cassandra-stress's, whose default that is; else not at all.
    pub fn batch(&self, command: &Insert) -> Batch {
        let batched = self.batch_size(command).is_some() || !self.has_new_keys();
        let default = if batched { Batch::Logged } else { Batch::None };
        command.batch.or(self.insert.batch).unwrap_or(default)
    }

    /// Most rows in a batch, likewise.
    pub fn batch_size(&self, command: &Insert) -> Option<u32> {
        command.batch_size.or(self.insert.batch_size)
    }
}

impl ColumnSpec {
    fn has_new_keys(&self) -> bool {
        self.compress.is_some() || self.element_size.is_some() || self.element_population.is_some()
    }
}

impl RequestSpec {
    fn has_new_keys(&self) -> bool {
        self.rate.is_some() || self.pin.is_some()
    }
}

/// Keys about the elements of columns that have no elements.
fn idle_elements(column: &ColumnSpec, table: &TableDefinition) -> Vec<String> {
    let of = table.columns.iter().find(|known| known.name.eq_ignore_ascii_case(&column.name));
    let Some(cql_type) = of.map(|known| known.cql_type.unfrozen()) else { return Vec::new() };
    let has_inside = matches!(
        cql_type,
        CqlType::List(_)
            | CqlType::Set(_)
            | CqlType::Map(..)
            | CqlType::Tuple(_)
            | CqlType::Vector(..)
            | CqlType::Udt(_)
    );
    let keys = [
        ("element_size", column.element_size.is_some(), "size"),
        ("element_population", column.element_population.is_some(), "population"),
    ];
    keys.into_iter()
        .filter(|(_, given, _)| *given && !has_inside)
        .map(|(key, _, instead)| {
            format!("{key}: of column {} has no effect: {cql_type} has no elements; write {instead}:", column.name)
        })
        .collect()
}

/// Whether a name from the schema equals one as written; quotes and case do not matter, as in cassandra-stress.
fn same(found: &str, written: &str) -> bool {
    found.eq_ignore_ascii_case(written.trim().trim_matches('"'))
}
