//! The profiles of a `user` command: read, checked and shown.

use brownout_generate::seeds::{Flavour, SeedManager, SeedSettings};

use super::{RunError, check::check, console::Console, dry_run, plan, table::Table};
use crate::{
    profile::{self, HEADING, Profile, Resolved, What},
    schema::{dml, qualify, table::stored_name},
    settings::{Rate, Settings},
};

/// Profiles that were read and checked, and the settings combined with theirs.
pub struct Profiles {
    /// The settings, including rates from profiles.
    pub settings: Settings,
    /// The profiles.
    pub profiles: Vec<Profile>,
    /// The requested operations.
    pub ops: Vec<Resolved>,
}

impl Profiles {
    /// Reads the profiles that the settings name.
    ///
    /// # Errors
    /// One cannot be read, or lacks a requested operation.
    pub fn load(settings: &Settings) -> Result<Self, RunError> {
        let profiles = profile::load_all(&settings.command.profiles)?;
        let mut ops = profile::resolve(&settings.command.ops, &profiles)?;
        let mut settings = settings.clone();
        let mut notes: Vec<String> = profiles.iter().flat_map(|profile| profile.notes.clone()).collect();
        settings.rate = profile::rate(&settings, &ops, &profiles, &mut notes)?;
        settings.errors.suit(settings.rate.is_open());
        if matches!(settings.rate, Rate::PerOperation { .. }) {
            ops.retain(Resolved::is_asked);
        }
        settings.notes.extend(notes);
        Ok(Profiles { settings, profiles, ops })
    }

    /// Profiles that were read and checked already, with the operations found in them.
    pub fn of(settings: Settings, profiles: Vec<Profile>, ops: Vec<Resolved>) -> Self {
        Profiles { settings, profiles, ops }
    }

    /// Finds what is wrong before any server is contacted.
    ///
    /// # Errors
    /// The first requirement that cannot be met.
    pub fn check(&self) -> Result<(), RunError> {
        let settings = &self.settings;
        let names: Vec<String> = self.ops.iter().map(|op| op.name.clone()).collect();
        check(settings, &names)?;
        for profile in &self.profiles {
            let generator = profile.generator(settings.command.generator, settings.errors.skip_unsupported_columns)?;
            SeedManager::new(seed_settings(profile, settings, plan::seeds_flavour(generator)))?;
        }
        Ok(())
    }

    /// The block of settings, with that of the profiles.
    pub fn block(&self) -> String {
        let mut text = self.settings.block().trim_end_matches('\n').to_owned();
        text.push('\n');
        text.push_str(HEADING);
        for profile in &self.profiles {
            text.push_str(&profile.block());
        }
        text
    }

    /// Shows what would be done.
    ///
    /// # Errors
    /// Rows that cannot be generated as a profile requires.
    pub fn dry_run(&self, console: &mut Console) -> Result<u8, RunError> {
        let settings = &self.settings;
        console.line("Plan (nothing is done):");
        for profile in &self.profiles {
            let (types, others) = extra_definitions(profile);
            let before = profile.keyspace_definition.iter().chain(types);
            for cql in before.chain(&profile.table_definition).chain(others) {
                console.line(format!("  define  {}", one_line(cql)));
            }
            let Some(definition) = profile.definition.clone() else {
                console.line(format!("  ask     the columns of {}.{}", profile.keyspace, profile.table));
                continue;
            };
            let keyspace = Some(stored_name(&profile.keyspace));
            let table =
                Table::new(profile, brownout_generate::types::TableDefinition { keyspace, ..definition }, settings)?;
            let (text, warnings) = table.batches(settings)?;
            for op in self.ops.iter().filter(|op| self.profiles[op.profile].name == profile.name) {
                let cql = match op.what {
                    What::Insert => table.insert.cql.clone(),
                    What::Validate => dml::range(&table.definition, 0),
                    What::Query(place) => {
                        qualify::qualified(&profile.queries[place].cql, &stored_name(&profile.keyspace))
                    }
                    What::TokenRange(place) => {
                        dml::token_range(&table.definition, &profile.token_range_queries[place].columns)
                    }
                };
                console.line(format!("  prepare {}: {}", op.name, one_line(&cql)));
                let (consistency, serial) = op.levels(settings, &self.profiles);
                console.line(format!("  ask     {}: {}", op.name, dry_run::levels(consistency, serial)));
                if let Some(host) = op.request(&self.profiles).and_then(|request| request.pin.as_ref()) {
                    console.line(format!("  pin     {}: {host} coordinates it", op.name));
                }
                if op.what == What::Insert {
                    console.line(format!("  batch   {}: {}", op.name, table.batch_words(settings)));
                }
            }
            console.text(&text);
            warnings.into_iter().for_each(|warning| console.aside(warning));
        }
        let names: Vec<&str> = self.ops.iter().map(|op| op.name.as_str()).collect();
        dry_run::tell_load(&format!("[{}]", names.join(", ")), settings, console)?;
        Ok(0)
    }
}

/// How the partitions of a profile are chosen.
pub fn seed_settings(profile: &Profile, settings: &Settings, flavour: Flavour) -> SeedSettings {
    SeedSettings {
        visits: profile.visits(&settings.insert),
        revisit: profile.revisit(&settings.insert),
        ..plan::seed_settings(settings, flavour)
    }
}

fn one_line(cql: &str) -> String {
    cql.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The types among the extra definitions, and the others. Types must exist before the table that uses them, whatever
/// the order in which they are written.
pub fn extra_definitions(profile: &Profile) -> (Vec<&String>, Vec<&String>) {
    let is_type = |cql: &&String| {
        let words: Vec<String> = cql.split_whitespace().take(2).map(str::to_ascii_lowercase).collect();
        words == ["create", "type"]
    };
    profile.extra_definitions.iter().partition(is_type)
}
