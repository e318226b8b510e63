//! The load of a plan, from profiles of `brownout stress user`.

use std::{collections::BTreeMap, path::Path};

use brownout_cluster::cassandra;
use brownout_generate::types::{CqlType, TableDefinition, TypeError};
use brownout_load::Consistency;
use brownout_stress::{
    profile::{Profile, RequestSpec, Resolved, What, resolve},
    run::experiment::{ProfileLoad, ProfileLoadOptions},
    schema::{definition::identifier, replication::Replication, table::stored_name},
    settings::{Op, Share},
};
use brownout_units::Count;

use super::{
    amounts,
    check::Check,
    load::{HOW_MUCH, PlannedLoad, Work},
    narrow::to_u32,
};
use crate::{
    experiment::{Amount, FileError, OpShare, one_of},
    hosts::Hosts,
};

/// The data centre of a cluster without sites.
pub(super) const ONLY_DATA_CENTRE: &str = "datacenter1";
/// Partitions of a table: more could not be written in any warm-up.
const MAX_PARTITIONS: u64 = 1 << 32;

impl PlannedLoad {
    /// Operations of profiles in words.
    pub(super) fn of_profiles(&self, load: &ProfileLoad) -> String {
        let op = |op: &Resolved| match op.share {
            Share::Weight(weight) => format!("{} × {weight}", op.name),
            Share::Rate(rate) => format!("{} {rate}", op.name),
        };
        let ops = match &self.own {
            Some(_) => amounts::words(self.parts()),
            None => load.ops().iter().map(op).collect::<Vec<_>>().join(", "),
        };
        let tables = load.profiles().iter().map(|profile| {
            format!("{}.{} of {}", stored_name(&profile.keyspace), stored_name(&profile.table), profile.file)
        });
        let tables: Vec<String> = tables.collect();
        format!("{ops}; {}, {} partitions each", tables.join(", "), Count(load.partitions()))
    }
}

impl Check<'_> {
    pub(super) fn profiles(
        &self,
        hosts: &Hosts,
        version: &str,
        consistency: Consistency,
    ) -> Result<PlannedLoad, FileError> {
        let section = &self.experiment.load;
        let of_short_form = [
            ("mix", section.mix.is_some()),
            ("population", section.population.is_some()),
            ("value-size", section.value_size.is_some()),
            ("timestamps", section.timestamps.is_some()),
        ];
        if let Some((key, _)) = of_short_form.into_iter().find(|(_, given)| *given) {
            let message = format!(
                "{key} is for loads without a profile, and the profile defines it itself; leave it out (the \
                 number of partitions is set by partitions:)"
            );
            return self.complain(&format!("load.{key}"), message);
        }
        let partitions = section.partitions().0;
        if partitions == 0 || partitions > MAX_PARTITIONS {
            let most = Count(MAX_PARTITIONS);
            return self.complain(
                "load.partitions",
                format!("{} partitions are not possible; write 1 to {most}", Count(partitions)),
            );
        }
        if let Some(keys) = section.keys.as_ref().filter(|keys| keys.min() < 1 || keys.max() as u64 > partitions) {
            let message = format!(
                "{keys} reaches from {} to {}, and what is written are the partitions 1 to {partitions}; keep it within \
                 them, or write another number of partitions",
                keys.min(),
                keys.max()
            );
            return self.complain("load.keys", message);
        }
        let profiles = self.read_profiles(version)?;
        let (ops, own) = self.ops(&profiles)?;
        let mut warnings: Vec<String> = profiles.iter().flat_map(|profile| profile.notes.clone()).collect();
        if own.is_none() && ops.iter().any(|op| self::own(op, &profiles).is_some_and(|request| request.rate.is_some()))
        {
            warnings.push("rate: in profiles has no effect: the experiment gives one to all operations".to_owned());
        }
        let copies = self.copies_of(&profiles, hosts)?;
        self.consistencies(consistency, &ops, &profiles, &copies)?;
        let options = ProfileLoadOptions {
            ops: ops.iter().map(|op| Op { name: op.name.clone(), share: op.share }).collect(),
            apart: own.is_some(),
            profiles,
            consistency,
            partitions,
            keys: section.keys.clone(),
        };
        let mut load = ProfileLoad::new(options).or_else(|error| self.complain("load.ops", error.to_string()))?;
        for (place, copies) in copies.iter().enumerate() {
            if let Copies::Ours(cql, _) = copies {
                load.define_keyspace(place, cql.clone());
            }
            let (_, told) = load.check_rows(place).or_else(|error| self.in_profile(place, error.to_string()))?;
            warnings.extend(told);
        }
        let known = copies.iter().filter_map(Copies::count);
        let fewest = known.min();
        warnings.extend(fewest.map(|copies| self.tolerance(consistency, copies)).unwrap_or_default());
        let work = Work::Profiles(Box::new(load));
        Ok(PlannedLoad { work, consistency: Some(consistency), replication: fewest.unwrap_or(0), own, warnings })
    }

    /// A complaint about the profile in this place of the list.
    fn in_profile<T>(&self, place: usize, message: String) -> Result<T, FileError> {
        self.complain(&self.profile_key(place), message)
    }

    fn profile_key(&self, place: usize) -> String {
        match self.experiment.load.profile.as_ref().map_or(0, |names| names.0.len()) {
            // A single name may be written without a list.
            0 | 1 => "load.profile".to_owned(),
            _ => format!("load.profile.{place}"),
        }
    }

    fn read_profiles(&self, version: &str) -> Result<Vec<Profile>, FileError> {
        let mut profiles: Vec<Profile> = Vec::new();
        let names = self.experiment.load.profile.iter().flat_map(|names| names.iter());
        for (place, name) in names.enumerate() {
            if name.starts_with('~') {
                let message = format!("'{name}': only a shell expands ~; write the path relative to this file");
                return self.in_profile(place, message);
            }
            if name.contains("://") {
                let message = format!("'{name}' is not fetched over the network; download it, and name the file");
                return self.in_profile(place, message);
            }
            let path = self.source.beside(Path::new(name));
            let text = self.source.attachment(&path).or_else(|error| {
                let shown = path.display();
                self.in_profile(place, format!("{shown} cannot be read: {error}; paths are from where this file is"))
            })?;
            // What a profile names is found from where the profile is.
            let named = |file: &Path| self.source.attachment(file);
            let profile = Profile::from_text(&path.display().to_string(), text, &named)?;
            if let Some(other) = profiles.iter().find(|other| other.name == profile.name) {
                let message =
                    format!("{} is also named '{}'; give one of them a specname of its own", other.file, profile.name);
                return self.in_profile(place, message);
            }
            let keyspace = stored_name(&profile.keyspace);
            if cassandra::is_own_keyspace(&keyspace) {
                let message = format!(
                    "{}: the keyspace {keyspace} is taken for one of Cassandra's own, which are not dropped between trials; \
                     call it otherwise, without system_",
                    profile.file
                );
                return self.in_profile(place, message);
            }
            self.table(place, &profile, version)?;
            profiles.push(profile);
        }
        Ok(profiles)
    }

    /// The cluster of a lab is a new one: a profile has to define its table, by types that this Cassandra has.
    fn table(&self, place: usize, profile: &Profile, version: &str) -> Result<(), FileError> {
        let Some(cql) = &profile.table_definition else {
            let message = format!(
                "{} has no table_definition, and the cluster of a lab is new; write CREATE TABLE {} (…) there",
                profile.file, profile.table
            );
            return self.in_profile(place, message);
        };
        // Words that the reader of definitions does not know are the servers' to judge; the types are known.
        let parsed = TableDefinition::parse(cql.trim().trim_end_matches(';'), &profile.types);
        if let Err(error @ TypeError::Unknown { .. }) = parsed {
            return self.in_profile(place, format!("{}: table_definition: {error}", profile.file));
        }
        let columns = profile.definition.iter().flat_map(|definition| &definition.columns);
        for column in columns {
            if major(version) < 5 && has_vector(&column.cql_type) {
                let message = format!(
                    "{}: column {} is of type {}, which Cassandra {version} does not have; it came with 5.0: write \
                     cluster: {{ cassandra: \"5.0\" }}",
                    profile.file, column.name, column.cql_type
                );
                return self.in_profile(place, message);
            }
        }
        Ok(())
    }

    /// The operations; and how much there is of each, if they are loads of their own: by the experiment, or by the rates that
    /// profiles give them if the experiment has none for all.
    fn ops(&self, profiles: &[Profile]) -> Result<(Vec<Resolved>, Option<Vec<Amount>>), FileError> {
        let section = &self.experiment.load;
        let Some(ops) = &section.ops else {
            let message = "the operations are missing; write ops: { insert: 1 }, with the names of queries";
            return self.complain("load.profile", message.to_owned());
        };
        let mut found: Vec<Resolved> = Vec::new();
        let mut own: Vec<Amount> = Vec::new();
        for (name, share) in &ops.0 {
            let (share, amount) = match share {
                OpShare::Weight(weight) => (Share::Weight(*weight), None),
                OpShare::Own(Amount::Rate(rate)) => (Share::Rate(*rate), Some(Amount::Rate(*rate))),
                // In a flow of its own a weight means nothing.
                OpShare::Own(users) => (Share::Weight(1.0), Some(*users)),
            };
            let op = Op { name: name.clone(), share };
            let key = format!("load.ops.{name}");
            let resolved =
                resolve(std::slice::from_ref(&op), profiles).or_else(|error| self.complain(&key, error.to_string()))?;
            if let Some(twice) = resolved
                .iter()
                .find_map(|op| found.iter().find(|known| (known.profile, known.what) == (op.profile, op.what)))
            {
                return self.complain(&key, format!("the operation '{}' is listed twice", twice.name));
            }
            own.extend(amount.iter().cycle().take(resolved.len()));
            found.extend(resolved);
        }
        if !own.is_empty() {
            return Ok((found, Some(own)));
        }
        if section.rate.is_some() || section.threads.is_some() {
            return Ok((found, None));
        }
        // Nothing here says how much: profiles may.
        for op in &mut found {
            let Some(rate) = self::own(op, profiles).and_then(|request| request.rate) else {
                return self.complain(
                    "load",
                    format!("{HOW_MUCH}; or rates of operations, as in ops: {{ {}: 500/s }}", op.name),
                );
            };
            op.share = Share::Rate(rate);
            own.push(Amount::Rate(rate));
        }
        Ok((found, Some(own)))
    }

    /// How often each profile's rows are kept, and whether there are nodes for that.
    fn copies_of(&self, profiles: &[Profile], hosts: &Hosts) -> Result<Vec<Copies>, FileError> {
        let section = &self.experiment.load;
        let ours = section.says_replication() || profiles.iter().any(|profile| profile.keyspace_definition.is_none());
        let copies = if ours { self.copies(hosts)? } else { BTreeMap::new() };
        if ours {
            self.enough_nodes(section.replication(), hosts)?;
        }
        let all = if copies.is_empty() { to_u32(section.replication()) } else { copies.values().sum() };
        let mut keyspaces: BTreeMap<String, (usize, Option<Replication>)> = BTreeMap::new();
        let mut found = Vec::new();
        for (place, profile) in profiles.iter().enumerate() {
            let keyspace = stored_name(&profile.keyspace);
            let own = profile.keyspace_definition.as_ref().filter(|_| !section.says_replication());
            let Some(cql) = own else {
                found.push(Copies::Ours(definition(&keyspace, &copies, section.replication()), all));
                continue;
            };
            let replication = Replication::of(cql);
            if let Some((first, _)) = keyspaces.get(&keyspace).filter(|(_, known)| *known != replication) {
                let message = format!(
                    "{} and {} define the keyspace {keyspace} with different replications; write one in both, or \
                     replication: 3 here, which takes the place of both",
                    profiles[*first].file, profile.file
                );
                return self.in_profile(place, message);
            }
            let count = replication.as_ref().map(|replication| self.nodes_for(place, profile, replication, hosts));
            keyspaces.entry(keyspace).or_insert((place, replication));
            found.push(Copies::Theirs(count.transpose()?.flatten()));
        }
        Ok(found)
    }

    /// Copies of each row under a profile's own replication, if there are nodes for them; none if only the servers know.
    fn nodes_for(
        &self,
        place: usize,
        profile: &Profile,
        replication: &Replication,
        hosts: &Hosts,
    ) -> Result<Option<u32>, FileError> {
        let sites = hosts.sites();
        let mut nodes: BTreeMap<&str, usize> = sites.iter().map(|(site, nodes)| (*site, nodes.len())).collect();
        if nodes.is_empty() {
            nodes.insert(ONLY_DATA_CENTRE, hosts.nodes().count());
        }
        let remedy = "write replication: in load, which takes the place of the profile's";
        let head = format!("{}: the keyspace {}", profile.file, profile.keyspace);
        let too_many = |copies: u32, there: usize, whose: &str| {
            let message =
                format!("{head} keeps {copies} copies of each row, and there are {there} nodes{whose}; {remedy}");
            self.in_profile(place, message)
        };
        let there: usize = nodes.values().sum();
        match replication.class.as_str() {
            "SimpleStrategy" => match replication.factor {
                Some(copies) if copies as usize > there => too_many(copies, there, ""),
                copies => Ok(copies),
            },
            "NetworkTopologyStrategy" => {
                let mut all = 0;
                for (name, copies) in &replication.data_centres {
                    let Some(there) = nodes.get(name.as_str()) else {
                        let known = one_of("its data centres are", nodes.keys().copied(), name);
                        let message = format!(
                            "{head} has copies in '{name}', and the lab has no such data centre; {known}, or {remedy}"
                        );
                        return self.in_profile(place, message);
                    };
                    if *copies as usize > *there {
                        return too_many(*copies, *there, &format!(" in {name}"));
                    }
                    all += copies;
                }
                for (name, there) in &nodes {
                    let own = replication.data_centres.iter().any(|(known, _)| known == name);
                    let Some(copies) = replication.factor.filter(|_| !own) else { continue };
                    if copies as usize > *there {
                        return too_many(copies, *there, &format!(" in {name}"));
                    }
                    all += copies;
                }
                Ok((all > 0).then_some(all))
            }
            _ => Ok(None),
        }
    }

    /// Whether levels can be had, of the whole load and of single operations.
    fn consistencies(
        &self,
        consistency: Consistency,
        ops: &[Resolved],
        profiles: &[Profile],
        copies: &[Copies],
    ) -> Result<(), FileError> {
        if matches!(consistency, Consistency::Serial | Consistency::LocalSerial) {
            let message = format!(
                "{consistency} is a level for reads only, and all rows are written before the baseline; write it to a \
                 query of the profile (consistencyLevel:), and another one here"
            );
            return self.complain("load.consistency", message);
        }
        for op in ops {
            let given = own(op, profiles).and_then(|request| request.consistency);
            let level = given.unwrap_or(consistency);
            let key = if given.is_some() { self.profile_key(op.profile) } else { "load.consistency".to_owned() };
            if level == Consistency::Any && matches!(op.what, What::Validate | What::TokenRange(_)) {
                return self.complain(&key, format!("any is a level for writes only, and {} reads", op.name));
            }
            let Some(all) = copies.get(op.profile).and_then(Copies::count) else { continue };
            let needed = level.required(all);
            if needed > all {
                let message =
                    format!("{level} of {} needs {needed} replicas to answer, and each row has {all}", op.name);
                return self.complain(&key, message);
            }
        }
        Ok(())
    }
}

/// How often a profile's rows are kept.
enum Copies {
    /// As the experiment says: by this definition, so many in all.
    Ours(String, u32),
    /// As the profile says: so many in all, if that is known.
    Theirs(Option<u32>),
}

impl Copies {
    fn count(&self) -> Option<u32> {
        match self {
            Copies::Ours(_, count) => Some(*count),
            Copies::Theirs(count) => *count,
        }
    }
}

fn definition(keyspace: &str, copies: &BTreeMap<String, u32>, replication: u64) -> String {
    let by_site: String = copies.iter().map(|(site, copies)| format!(", '{site}': '{copies}'")).collect();
    let options = if copies.is_empty() { format!(", 'replication_factor': '{replication}'") } else { by_site };
    format!(
        "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {{'class': 'NetworkTopologyStrategy'{options}}}",
        identifier(keyspace)
    )
}

/// What a profile says of an operation's requests.
fn own<'a>(op: &Resolved, profiles: &'a [Profile]) -> Option<&'a RequestSpec> {
    let profile = profiles.get(op.profile)?;
    match op.what {
        What::Insert => Some(&profile.insert.request),
        What::Validate => None,
        What::Query(place) => profile.queries.get(place).map(|query| &query.request),
        What::TokenRange(place) => profile.token_range_queries.get(place).map(|query| &query.request),
    }
}

fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(u32::MAX)
}

fn has_vector(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::Vector(..) => true,
        CqlType::List(inner) | CqlType::Set(inner) | CqlType::Frozen(inner) => has_vector(inner),
        CqlType::Map(key, value) => has_vector(key) || has_vector(value),
        CqlType::Tuple(parts) => parts.iter().any(has_vector),
        CqlType::Udt(udt) => udt.fields.iter().any(|(_, part)| has_vector(part)),
        _ => false,
    }
}
