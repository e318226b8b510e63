//! The operations of the `user` command, and the tables that they need.

use std::{collections::BTreeSet, sync::Arc};

use brownout_generate::{
    rows::{Binding, Fields},
    seeds::{SeedManager, SeedSettings},
};
use brownout_load::{Table as LoadTable, control::Limit};

use super::{
    RunError, connect,
    console::Console,
    disk::TableName,
    plan::{self, Planned, Source},
    profiles::{Profiles, extra_definitions, seed_settings},
    setup::{self, Interrupted},
    table::Table,
};
use crate::{
    operations::{
        Kind,
        user::{Common, Insert, Query, Ranges, TokenRange, Validate},
    },
    profile::{self, PAGE_SIZE, Profile, RequestSpec, Resolved, Selection, What},
    schema::{Control, Member, dml, make, qualify, table::stored_name},
    settings::{Rate, Settings, Share},
};

/// An operation with everything that the cluster had to provide for it.
struct Ready {
    name: String,
    weight: f64,
    profile: usize,
    what: What,
    pin: Option<u16>,
    /// Indices of its statements, one for every kind.
    statements: Vec<usize>,
    /// The variables of a query.
    variables: Vec<String>,
    /// What a query selects, if its rows are compared.
    check: Option<Selection>,
}

/// The operations of profiles, ready to be planned.
pub struct User<'a> {
    settings: &'a Settings,
    pub(super) tables: Vec<Table<'a>>,
    ready: Vec<Ready>,
    cql: Vec<String>,
    tokens: Vec<i64>,
}

impl<'a> User<'a> {
    /// Creates the schemas, and reads the tables' definitions from the cluster.
    ///
    /// # Errors
    /// A definition or a statement is refused; a table does not exist; rows cannot be generated as requested.
    pub fn make(
        from: &'a Profiles,
        control: &Control,
        members: &[Member],
        console: &mut Console,
        interrupted: Interrupted<'_>,
    ) -> Result<Self, RunError> {
        let settings = &from.settings;
        for host in from.profiles.iter().flat_map(pins) {
            connect::place("pin: ", host, settings, members)?;
        }
        let mut tables = Vec::new();
        for (place, profile) in from.profiles.iter().enumerate() {
            define(profile, settings, control, console, interrupted)?;
            let (keyspace, name) = (stored_name(&profile.keyspace), stored_name(&profile.table));
            let definition = control.table(&keyspace, &name, interrupted)?;
            let table = Table::new(profile, definition, settings)?;
            for column in &table.skipped {
                console.aside(format!("WARNING: Table '{name}' has column '{column}' of unsupported type"));
            }
            let (text, warnings) = table.batches(settings)?;
            console.text(&text);
            warnings.into_iter().for_each(|warning| console.aside(warning));
            if table.has_order_of_its_own()
                && from.ops.iter().any(|op| op.profile == place && op.what == What::Validate)
            {
                console.aside(format!(
                    "WARNING: validate of table '{name}' expects the rows that -pop contents=sorted writes, as in \
                     cassandra-stress; rows that were written otherwise are reported as wrong. Write and validate with -pop \
                     contents=sorted, or with 'generator: v2' in the profile, whose rows are the same in any order"
                ));
            }
            tables.push(table);
        }
        // This is where cassandra-stress ends its block of settings.
        console.line("");
        let mut user = User { settings, tables, ready: Vec::new(), cql: Vec::new(), tokens: Vec::new() };
        for op in &from.ops {
            let ready = user.ready(op, control, members)?;
            user.ready.push(ready);
        }
        if from.ops.iter().any(|op| matches!(op.what, What::TokenRange(_))) {
            user.tokens = control.tokens();
        }
        Ok(user)
    }

    /// The tables that are truncated, flushed and queried for statistics.
    pub fn table_names(&self) -> Vec<TableName> {
        let name = |table: &Table<'_>| TableName {
            keyspace: table.definition.keyspace.clone().unwrap_or_default(),
            table: table.definition.name.clone(),
        };
        self.tables.iter().map(name).collect()
    }

    fn ready(&mut self, op: &Resolved, control: &Control, members: &[Member]) -> Result<Ready, RunError> {
        let table = &self.tables[op.profile];
        let profile = table.profile;
        let keyspace = table.definition.keyspace.as_deref().unwrap_or_default();
        let (mut variables, mut check) = (Vec::new(), None);
        let cql = match op.what {
            What::Insert => vec![table.insert.cql.clone()],
            What::Validate => (0..=table.range_depth()).map(|depth| dml::range(&table.definition, depth)).collect(),
            What::Query(place) => {
                let cql = qualify::qualified(&profile.queries[place].cql, keyspace);
                variables = control.variables(&cql)?;
                if profile.queries[place].check && !self.settings.errors.skip_read_validation {
                    let selection = profile::selection(&cql, keyspace, &table.definition);
                    check = Some(selection.map_err(|reason| RunError::Unfit {
                        what: format!("check: of {}: {reason}", op.name),
                        remedy: "or leave check: out of the query",
                    })?);
                }
                vec![cql]
            }
            What::TokenRange(place) => {
                vec![dml::token_range(&table.definition, &profile.token_range_queries[place].columns)]
            }
        };
        let pin = self.request(op.profile, op.what).and_then(|request| request.pin.as_deref());
        let pin = pin.map(|host| connect::place("pin: ", host, self.settings, members)).transpose()?;
        let first = self.cql.len();
        self.cql.extend(cql);
        Ok(Ready {
            name: op.name.clone(),
            weight: match op.share {
                Share::Weight(weight) => weight,
                Share::Rate(_) => 1.0,
            },
            profile: op.profile,
            what: op.what,
            pin,
            statements: (first..self.cql.len()).collect(),
            variables,
            check,
        })
    }

    /// The profile's settings for the operation's requests.
    fn request(&self, profile: usize, what: What) -> Option<&RequestSpec> {
        let profile = self.tables[profile].profile;
        match what {
            What::Insert => Some(&profile.insert.request),
            What::Validate => None,
            What::Query(place) => Some(&profile.queries[place].request),
            What::TokenRange(place) => Some(&profile.token_range_queries[place].request),
        }
    }

    /// The seed managers, by profile. As in cassandra-stress, all operations share one, unless profiles are visited in
    /// different ways. Where operations have rates, which cassandra-stress does not know, every profile has its own:
    /// with one sequence for several tables each would get only some of its partitions.
    fn seeds(&self) -> Result<Vec<Arc<SeedManager>>, RunError> {
        let asked = |table: &Table<'_>| seed_settings(table.profile, self.settings, table.seeds_flavour());
        let shared = !matches!(self.settings.rate, Rate::PerOperation { .. });
        let mut made: Vec<(SeedSettings, Arc<SeedManager>)> = Vec::new();
        self.tables
            .iter()
            .map(|table| {
                let asked = asked(table);
                if let Some((_, known)) = made.iter().find(|(known, _)| shared && *known == asked) {
                    return Ok(Arc::clone(known));
                }
                let manager = SeedManager::new(asked.clone())?;
                made.push((asked, Arc::clone(&manager)));
                Ok(manager)
            })
            .collect()
    }

    fn kinds(
        &self,
        number: usize,
        ready: &Ready,
        seeds: &Arc<SeedManager>,
        ranges: &Arc<Ranges>,
    ) -> Result<Vec<Box<dyn Kind>>, RunError> {
        let settings = self.settings;
        let table = &self.tables[ready.profile];
        let request = self.request(ready.profile, ready.what);
        let (mut consistency, mut serial) = (settings.command.consistency, settings.command.serial_consistency);
        if let Some(request) = request {
            consistency = request.consistency.unwrap_or(consistency);
            serial = request.serial_consistency.unwrap_or(serial);
        }
        if ready.what == What::Insert {
            consistency = settings.insert.consistency.unwrap_or(consistency);
            serial = settings.insert.serial_consistency.unwrap_or(serial);
        }
        let common = |place: usize| Common {
            cql: self.cql[ready.statements[place]].clone(),
            statement: settings.mode.prepared.then_some(ready.statements[place]),
            table: ready.profile as u16,
            layout: Arc::clone(&table.layout),
            rows: table.rows.clone(),
            seeds: Arc::clone(seeds),
            // The kinds of one operation draw independently.
            number: number * 16 + place,
            consistency,
            serial_consistency: Some(serial),
        };
        let seed = plan::seed(settings).wrapping_add(number as i64);
        Ok(match ready.what {
            What::Insert => {
                vec![Box::new(Insert {
                    common: common(0),
                    columns: table.insert.columns.clone(),
                    partitions: table.partitions(settings),
                    batch: table.batch(settings),
                    unit: table.unit(settings),
                    counters: table.insert.counters,
                    seed,
                    generator: table.generator.clone(),
                })]
            }
            What::Validate => (0..ready.statements.len())
                .map(|depth| {
                    Box::new(Validate {
                        common: common(depth),
                        depth,
                        order: (0..table.definition.columns.len()).collect(),
                        page_size: page(PAGE_SIZE),
                        validates: !settings.errors.skip_read_validation,
                        generator: table.generator.clone(),
                    }) as Box<dyn Kind>
                })
                .collect(),
            What::Query(place) => {
                let query = &table.profile.queries[place];
                let names: Vec<&str> = ready.variables.iter().map(String::as_str).collect();
                let fields = match query.fields {
                    profile::Fields::SameRow => Fields::SameRow,
                    profile::Fields::MultiRow => Fields::MultiRow,
                };
                let common = common(0);
                vec![Box::new(Query {
                    binding: Binding::new(&table.layout, &names, fields, seed as u64)?,
                    page_size: page(query.page_size.unwrap_or(PAGE_SIZE)),
                    counts_pages: query.page_size.is_some(),
                    routed: table.layout.key().iter().all(|column| names.contains(&column.name.as_str())),
                    conditional: qualify::is_conditional(&common.cql),
                    writes: qualify::writes(&common.cql) && !table.insert.counters,
                    check: ready.check.clone(),
                    generator: table.generator.clone(),
                    common,
                })]
            }
            What::TokenRange(place) => {
                let query = &table.profile.token_range_queries[place];
                vec![Box::new(TokenRange {
                    cql: self.cql[ready.statements[0]].clone(),
                    statement: ready.statements[0],
                    table: ready.profile as u16,
                    ranges: Arc::clone(ranges),
                    page_size: page(query.page_size),
                    consistency,
                    serial_consistency: Some(serial),
                })]
            }
        })
    }
}

/// The nodes to which a profile pins operations.
fn pins(profile: &Profile) -> impl Iterator<Item = &String> {
    let queries = profile.queries.iter().map(|query| &query.request);
    let ranges = profile.token_range_queries.iter().map(|query| &query.request);
    [&profile.insert.request].into_iter().chain(queries).chain(ranges).filter_map(|request| request.pin.as_ref())
}

/// Creates a profile's schema, as far as the profile defines one.
fn define(
    profile: &Profile,
    settings: &Settings,
    control: &Control,
    console: &mut Console,
    interrupted: Interrupted<'_>,
) -> Result<(), RunError> {
    let consistency = make::definition_consistency(settings.command.consistency, settings.node.datacenter.is_some());
    if let Some(cql) = &profile.keyspace_definition {
        control.define(cql, consistency, interrupted)?;
    }
    let (types, others) = extra_definitions(profile);
    if profile.table_definition.is_some() || !profile.extra_definitions.is_empty() {
        control.use_keyspace(&profile.keyspace)?;
    }
    for cql in types {
        control.define(cql, consistency, interrupted)?;
    }
    if let Some(cql) = &profile.table_definition {
        control.define(cql, consistency, interrupted)?;
        setup::propagated(console, "Created schema", settings);
    }
    if !profile.extra_definitions.is_empty() {
        for cql in others {
            control.define(cql, consistency, interrupted)?;
        }
        setup::propagated(console, "Created extra schema", settings);
    }
    control.agree(Limit { time: connect::ANSWER, interrupted })?;
    Ok(())
}

impl Source for User<'_> {
    fn operations(&self) -> Vec<(String, f64)> {
        self.ready.iter().map(|ready| (ready.name.clone(), ready.weight)).collect()
    }

    fn plan(&self, only: Option<usize>) -> Result<Vec<Planned>, RunError> {
        let seeds = self.seeds()?;
        let token_range = &self.settings.token_range;
        let ranges = Arc::new(Ranges::new(self.tokens.clone(), token_range.split_factor, token_range.wrap));
        let wanted = self.ready.iter().enumerate().filter(|(place, _)| only.is_none_or(|only| only == *place));
        wanted
            .map(|(place, ready)| {
                Ok(Planned {
                    name: ready.name.clone(),
                    weight: ready.weight,
                    kinds: self.kinds(place, ready, &seeds[ready.profile], &ranges)?,
                    pin: ready.pin,
                })
            })
            .collect()
    }

    fn statements(&self) -> Vec<String> {
        self.cql.clone()
    }

    fn tables(&self) -> Vec<LoadTable> {
        let table = |table: &Table<'_>| LoadTable {
            keyspace: table.definition.keyspace.clone().unwrap_or_default(),
            name: table.definition.name.clone(),
        };
        self.tables.iter().map(table).collect()
    }

    fn tables_read(&self) -> Vec<LoadTable> {
        let reads = |ready: &&Ready| match ready.what {
            What::Insert => false,
            What::Validate | What::TokenRange(_) => true,
            What::Query(_) => ready.statements.iter().any(|place| qualify::selects(&self.cql[*place])),
        };
        let read: BTreeSet<usize> = self.ready.iter().filter(reads).map(|ready| ready.profile).collect();
        let tables = self.tables();
        read.into_iter().map(|place| tables[place].clone()).collect()
    }

    fn profiles(&self) -> Vec<(String, String)> {
        let of = |table: &Table<'_>| (table.profile.file.clone(), table.profile.text.clone());
        self.tables.iter().map(of).collect()
    }

    fn updates(&self) -> bool {
        // As in cassandra-stress: a user command may always write.
        true
    }

    fn description(&self) -> String {
        let names: Vec<&str> = self.ready.iter().map(|ready| ready.name.as_str()).collect();
        format!("[{}]", names.join(", "))
    }
}

/// Number of rows in a page, as the protocol represents it.
fn page(rows: u32) -> i32 {
    i32::try_from(rows).unwrap_or(i32::MAX)
}
