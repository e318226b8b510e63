//! Profiles as the load of an experiment: the interface for a lab, which has its own phases, clock and record.
//!
//! [`ProfileLoad`] is what can be known without a cluster. [`ProfileLoad::make`] creates keyspaces and tables, and
//! returns two workloads: one that fills the tables, and the one to be measured.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use brownout_generate::{
    distribution::{RatioSpec, Spec},
    rows::{PartitionGenerator, RowSettings},
    seeds::{SeedManager, SeedRange, SeedSettings},
    types::TableDefinition,
};
use brownout_load::{Arrivals, Consistency, Coordinator, WireOptions, Workload as _, control::Limit};

use super::{
    RunError, console::Console, plan, plan::Source as _, profiles::Profiles, setup::Interrupted, table::Table,
    user::User,
};
use crate::{
    operations::{Flow, Kind, Named, Operations, Permits, StressWorkload, user::Common, user::Insert},
    profile::{self, Profile, RequestSpec, Resolved},
    schema::{Contact, Control, Member, table::stored_name},
    settings::{Contents, Op, Rate, Seeds, Settings},
};

/// How long a new cluster may take to answer queries of its schema.
const ANSWER: Duration = Duration::from_secs(60);

/// The load as the experiment specifies it.
#[derive(Debug, Clone)]
pub struct ProfileLoadOptions {
    /// Profiles, read and checked; operations without a profile's name belong to the first.
    pub profiles: Vec<Profile>,
    /// The operations.
    pub ops: Vec<Op>,
    /// Each operation is a load of its own, in a flow of its own, whose pace the lab sets; else they are one, by their weights.
    pub apart: bool,
    /// For every operation whose profile specifies none.
    pub consistency: Consistency,
    /// How many partitions of each table are written before measuring: the seeds from 1 on.
    pub partitions: u64,
    /// Which of them operations visit; `None`: any, with equal probability.
    pub keys: Option<Spec>,
}

/// A load of profiles that was checked.
#[derive(Debug, Clone)]
pub struct ProfileLoad {
    settings: Settings,
    profiles: Vec<Profile>,
    ops: Vec<Resolved>,
    partitions: u64,
}

/// What the engine is given.
pub struct PreparedLoad {
    /// Writes every partition of every table once, whole; a flow for each table. It ends by itself.
    pub filling: Arc<StressWorkload>,
    /// How many partitions that is, over all tables.
    pub partitions: u64,
    /// What is measured: one flow, or one for each operation, in order, if they are loads of their own.
    pub load: Arc<StressWorkload>,
    /// Remarks.
    pub notes: Vec<String>,
}

impl ProfileLoad {
    /// Finds the operations in the profiles.
    ///
    /// # Errors
    /// An operation of such a name does not exist.
    pub fn new(options: ProfileLoadOptions) -> Result<Self, RunError> {
        let ProfileLoadOptions { profiles, ops, apart, consistency, partitions, keys } = options;
        let ops = profile::resolve(&ops, &profiles)?;
        // Whatever experiments do not specify is as in a plain command.
        let mut settings = Settings::parse(&["user", "profile=experiment", "ops(insert=1)", "duration=1s"])?;
        if apart {
            let op = |op: &Resolved| Op { name: op.name.clone(), share: op.share };
            settings.rate = Rate::PerOperation { ops: ops.iter().map(op).collect(), arrivals: Arrivals::Constant };
        }
        let last = i64::try_from(partitions).unwrap_or(i64::MAX);
        settings.population.seeds = Seeds::Distribution(keys.unwrap_or(Spec::Uniform { min: 1, max: last }));
        // Only sorted rows can be compared with what compat generators produce again.
        settings.population.contents = Contents::Sorted;
        settings.command.consistency = consistency;
        settings.command.clustering = Spec::Fixed(1);
        settings.errors.ignore = true;
        Ok(ProfileLoad { settings, profiles, ops, partitions })
    }

    /// Names of the operations, in order, as in the account.
    pub fn operations(&self) -> impl Iterator<Item = &str> {
        self.ops.iter().map(|op| op.name.as_str())
    }

    /// The operations.
    pub fn ops(&self) -> &[Resolved] {
        &self.ops
    }

    /// The profiles.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// Partitions of each table.
    pub fn partitions(&self) -> u64 {
        self.partitions
    }

    /// Replaces the keyspace definition of a profile: what an experiment says about replication wins.
    pub fn define_keyspace(&mut self, profile: usize, cql: String) {
        if let Some(profile) = self.profiles.get_mut(profile) {
            profile.keyspace_definition = Some(cql);
        }
    }

    /// Checks that rows can be generated as the profile at this index requires, as far as its table is known; returns a
    /// text about the size of its visits, and warnings.
    ///
    /// # Errors
    /// They cannot.
    pub fn check_rows(&self, profile: usize) -> Result<(String, Vec<String>), RunError> {
        let known = self.profiles.get(profile).and_then(|profile| Some((profile, profile.definition.clone()?)));
        let Some((profile, definition)) = known else { return Ok((String::new(), Vec::new())) };
        let keyspace = Some(stored_name(&profile.keyspace));
        Table::new(profile, TableDefinition { keyspace, ..definition }, &self.settings)?.batches(&self.settings)
    }

    /// The keyspaces that [`ProfileLoad::make`] creates, as the servers name them; one may come twice.
    pub fn keyspaces(&self) -> impl Iterator<Item = String> + '_ {
        self.profiles.iter().map(|profile| stored_name(&profile.keyspace))
    }

    /// Creates keyspaces and tables, and what the engine is given. It must be called on a thread that reaches the
    /// nodes; `wire` has the encryption and the credentials of its connections.
    ///
    /// `coordinators` are those of the engine, in its order; `pin:` in profiles may name them.
    ///
    /// # Errors
    /// No node answers; a definition or a statement is refused; rows cannot be generated as requested; an interrupt.
    pub fn make(
        &self,
        coordinators: &[Coordinator],
        wire: &WireOptions,
        seed: u64,
        interrupted: Interrupted<'_>,
    ) -> Result<PreparedLoad, RunError> {
        let mut settings = self.settings.clone();
        // Any number is valid, and a trial's seed can be any number.
        settings.command.seed = Some(seed.cast_signed());
        let profiles = self.profiles.iter().map(|profile| pinned(profile, coordinators)).collect();
        let from = Profiles::of(settings, profiles, self.ops.clone());
        let addresses: Vec<String> = coordinators.iter().map(|node| node.address.to_string()).collect();
        let port = coordinators.first().map_or(0, |node| node.address.port());
        let credentials = wire.credentials.as_ref().map(|known| (known.user.clone(), known.password.clone()));
        let contact = Contact { credentials, tls: wire.tls.clone(), ..Contact::resolve(&addresses, port)? };
        let control = Control::open(&contact, Limit { time: ANSWER, interrupted })?;
        let members: Vec<Member> = coordinators.iter().map(|node| member(node.address)).collect();
        let mut console = Console::silent();
        let user = User::make(&from, &control, &members, &mut console, interrupted)?;
        let load = StressWorkload::new(plan::operations(&user, &from.settings, None, None)?)?;
        let filling = StressWorkload::new(self.filling(&user, &from.settings)?)?;
        let partitions = self.partitions * user.tables.len() as u64;
        Ok(PreparedLoad { filling: Arc::new(filling), partitions, load: Arc::new(load), notes: console.kept() })
    }

    /// What fills the tables.
    fn filling(&self, user: &User<'_>, settings: &Settings) -> Result<Operations, RunError> {
        let last = i64::try_from(self.partitions).unwrap_or(i64::MAX);
        let mut kinds = Vec::new();
        for (place, table) in user.tables.iter().enumerate() {
            let range = SeedRange::Sequence { first: 1, last, wrap: false, lookback: None };
            let seeds = SeedSettings::new(range, table.seeds_flavour(), plan::seed(settings).cast_unsigned());
            let whole = RatioSpec { spec: Spec::Fixed(1), divisor: 1 };
            let rows = RowSettings { select: whole, ..table.rows.clone() };
            let kind = Insert {
                common: Common {
                    cql: table.insert.cql.clone(),
                    statement: Some(place),
                    table: place as u16,
                    layout: Arc::clone(&table.layout),
                    seeds: SeedManager::new(seeds)?,
                    number: place,
                    consistency: settings.command.consistency,
                    serial_consistency: Some(settings.command.serial_consistency),
                    rows: rows.clone(),
                },
                columns: table.insert.columns.clone(),
                partitions: Spec::Fixed(1),
                batch: table.batch(settings),
                unit: table.unit(settings),
                counters: table.insert.counters,
                seed: plan::seed(settings),
                generator: PartitionGenerator::new(&table.layout, &rows)?,
            };
            let name = format!("fill {}", table.profile.name);
            kinds.push(Named { name, kind: Box::new(kind) as Box<dyn Kind>, pin: None });
        }
        let flow = |kind| Flow { kinds: vec![(kind, 1.0)], run: Spec::Fixed(1) };
        Ok(Operations {
            flows: (0..kinds.len()).map(flow).collect(),
            kinds,
            statements: user.tables.iter().map(|table| table.insert.cql.clone()).collect(),
            tables: user.tables(),
            permits: Permits::new(Some(self.partitions * user.tables.len() as u64)),
            stop_on_error: true,
            tell_statements: false,
            seed: plan::seed(settings),
        })
    }
}

impl PreparedLoad {
    /// Flows of the filling: one for each table.
    pub fn tables(&self) -> usize {
        self.filling.flows()
    }
}

/// A coordinator as a node of the cluster; only its address counts here.
fn member(address: SocketAddr) -> Member {
    Member { address, datacenter: String::new(), rack: String::new(), tier: 0 }
}

/// The profile, with coordinators' names in `pin:` replaced by addresses.
fn pinned(profile: &Profile, coordinators: &[Coordinator]) -> Profile {
    let mut profile = profile.clone();
    let address = |request: &mut RequestSpec| {
        let named = request.pin.as_ref().and_then(|pin| coordinators.iter().find(|node| node.name == *pin));
        if let Some(node) = named {
            request.pin = Some(node.address.to_string());
        }
    };
    address(&mut profile.insert.request);
    profile.queries.iter_mut().for_each(|query| address(&mut query.request));
    profile.token_range_queries.iter_mut().for_each(|query| address(&mut query.request));
    profile
}
