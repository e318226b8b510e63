//! The load of a plan: what is asked of the database, and how much.

use brownout_cluster::{DatabaseKind, cassandra};
use brownout_load::{Consistency, EtcdLoad, KeyValue, Timestamps};
use brownout_stress::run::experiment::ProfileLoad;
use brownout_units::{Bytes, Count, Delay};

use super::{
    amounts::{self, MAX_THREADS},
    check::Check,
    narrow::to_u32,
};
use crate::{
    experiment::{
        Amount, CoordinatorsChoice, FileError, LoadSection, MAX_RATE, MixShare, RateChoice, TimestampsChoice,
    },
    hosts::Hosts,
};

/// Weights are shares of one another; more digits than this are a mistake.
pub(super) const MAX_WEIGHT: u64 = 1_000_000;
/// Every open operation ends within the time-out; a longer one would outlast most phases.
const MAX_TIMEOUT: Delay = Delay::from_secs(60);

/// The load of a plan.
#[derive(Debug, Clone)]
pub struct PlannedLoad {
    /// What is asked of the database.
    pub work: Work,
    /// Consistency level of operations that have none of their own; none where the database has no levels.
    pub consistency: Option<Consistency>,
    /// Copies of each row, of etcd as many as there are members; with sites, in each of them if the experiment says so. Of several keyspaces the fewest, and 0 if
    /// nobody knows before the servers do.
    pub replication: u32,
    /// How much there is of each operation, in their order, if each is a load of its own.
    pub own: Option<Vec<Amount>>,
    /// Things to check before trusting the result.
    pub(super) warnings: Vec<String>,
}

/// What is asked of the database.
#[derive(Debug, Clone)]
pub enum Work {
    /// The short form: one table of blobs by key.
    KeyValue(KeyValue),
    /// Operations of profiles, as the engine is given them.
    Profiles(Box<ProfileLoad>),
    /// The short form on etcd: single keys.
    Etcd(EtcdLoad),
}

impl PlannedLoad {
    /// Names of the operations, as the record has them.
    pub fn operations(&self) -> Vec<&str> {
        match &self.work {
            Work::KeyValue(work) => {
                let weights = [("read", work.read), ("write", work.write)];
                weights.into_iter().filter(|(_, weight)| *weight > 0).map(|(name, _)| name).collect()
            }
            Work::Profiles(load) => load.operations().collect(),
            Work::Etcd(work) => {
                weights(work).into_iter().filter(|(_, weight)| *weight > 0).map(|(name, _)| name).collect()
            }
        }
    }

    /// Which copies an operation waits for, as the record has it: a level of Cassandra; `raft` where puts wait for a majority.
    pub fn consistency_words(&self) -> String {
        self.consistency.map_or_else(|| "raft".to_owned(), |level| level.to_string())
    }

    /// Each operation with how much there is of it, if each is a load of its own; else nothing.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Amount)> {
        self.operations().into_iter().zip(self.own.iter().flatten().copied())
    }

    /// Operations per second by the clock, if that is known before the run: of the open loops alone, if there are closed ones
    /// beside them.
    pub fn rate(&self, section: &LoadSection) -> Option<f64> {
        match (&self.own, section.rate) {
            (Some(own), _) => amounts::rate(own),
            (None, Some(RateChoice::Fixed(rate))) => Some(rate.get()),
            (None, _) => None,
        }
    }

    /// Virtual users, if all of the load is closed.
    pub fn threads(&self, section: &LoadSection) -> Option<u32> {
        match &self.own {
            Some(own) if amounts::rate(own).is_some() => None,
            Some(own) => amounts::threads(own),
            None => section.threads.map(|threads| to_u32(threads.0)),
        }
    }

    /// All of it in words.
    pub fn text(&self, section: &LoadSection) -> String {
        let arrivals = format!("{:?} arrivals", section.arrivals).to_lowercase();
        let pace = match (&self.own, section.rate, section.threads) {
            (Some(own), ..) => amounts::pace(own, &arrivals),
            (None, Some(rate), _) => format!("open loop, {rate}, {arrivals}"),
            (None, None, Some(threads)) => format!("closed loop, {threads} threads"),
            (None, None, None) => String::new(),
        };
        let what = match &self.work {
            Work::KeyValue(work) => {
                let which = match &self.own {
                    Some(_) => amounts::words(self.parts()),
                    None => format!("{} reads to {} writes", work.read, work.write),
                };
                let stamped = match work.timestamps {
                    Timestamps::Client => "",
                    Timestamps::Coordinator => ", timestamps by the coordinators",
                };
                format!("{which} over {} rows of {}{stamped}", Count(work.population), Bytes(work.value_size))
            }
            Work::Profiles(load) => self.of_profiles(load),
            Work::Etcd(work) => {
                let each = |(name, weight): (&str, u32)| (weight > 0).then(|| format!("{weight} {name}"));
                let which = match &self.own {
                    Some(_) => amounts::words(self.parts()),
                    None => weights(work).into_iter().filter_map(each).collect::<Vec<_>>().join(" to "),
                };
                let watched = match work.watchers {
                    0 => String::new(),
                    1 => ", watched once".to_owned(),
                    watchers => format!(", watched {watchers} times"),
                };
                format!("{which} over {} keys of {}{watched}", Count(work.population), Bytes(work.value_size))
            }
        };
        let copies = match self.replication {
            0 => "as the profile says".to_owned(),
            copies => copies.to_string(),
        };
        match self.consistency {
            Some(level) => format!("{pace}; {what}; consistency {level}, replication {copies}"),
            None => format!("{pace}; {what}; on {copies} members"),
        }
    }
}

/// The operations of etcd's load with their weights.
fn weights(work: &EtcdLoad) -> [(&'static str, u32); 4] {
    let [put, range, serializable, txn] = EtcdLoad::OPERATIONS;
    [(put, work.put), (range, work.range), (serializable, work.serializable), (txn, work.txn)]
}

impl Check<'_> {
    pub(super) fn load(&self, hosts: &Hosts) -> Result<PlannedLoad, FileError> {
        let load = &self.experiment.load;
        let kind = self.experiment.cluster.kind();
        match kind {
            DatabaseKind::Cassandra => self.refuse_words_of_etcd()?,
            DatabaseKind::Etcd => self.refuse_words_of_cassandra()?,
        }
        let consistency: Consistency = load
            .consistency
            .parse()
            .or_else(|error: brownout_load::UnknownConsistency| self.complain("load.consistency", error.to_string()))?;
        self.pace()?;
        if load.timeout == Delay::ZERO || load.timeout > MAX_TIMEOUT {
            return self.complain(
                "load.timeout",
                format!("{} is not a valid timeout; write one up to {MAX_TIMEOUT}", load.timeout),
            );
        }
        if load.connections.0 == 0 || load.connections.0 > 64 {
            return self.complain(
                "load.connections",
                format!("{} connections are not possible; write 1 to 64", load.connections),
            );
        }
        let mut planned = match (kind, &load.profile) {
            (DatabaseKind::Etcd, _) => self.etcd(hosts)?,
            (DatabaseKind::Cassandra, Some(_)) => self.profiles(hosts, &self.cassandra()?, consistency)?,
            (DatabaseKind::Cassandra, None) => self.key_value(hosts, consistency)?,
        };
        if let Some(threads) = load.threads {
            planned.warnings.push(format!(
                "closed loop: with {threads} threads, throughput is {threads} ÷ mean latency, whatever the database \
                 does; the report shows the loss that this alone predicts. Use rate: for an open loop"
            ));
        }
        let closed = amounts::warning(planned.parts());
        planned.warnings.extend(closed);
        Ok(planned)
    }

    /// How much load there is: of `rate`, `threads` and operations that are loads of their own, one.
    fn pace(&self) -> Result<(), FileError> {
        let load = &self.experiment.load;
        if self.amounts()? {
            return Ok(());
        }
        match (load.rate, load.threads) {
            (None, None) if load.profile.is_none() => self.complain("load", HOW_MUCH.to_owned()),
            (Some(_), Some(_)) => self.complain(
                "load.threads",
                "rate and threads cannot be combined: an open loop has a rate, a closed loop has threads; one beside the other \
                 are mix: { read: 300/s, write: { threads: 4 } }"
                    .to_owned(),
            ),
            (Some(RateChoice::Fixed(rate)), None) if rate.get() > MAX_RATE => {
                self.complain("load.rate", format!("{rate} is beyond what one lab can offer; at most 1000k/s"))
            }
            (None, Some(threads)) if threads.0 == 0 || threads.0 > MAX_THREADS => {
                self.complain("load.threads", format!("{threads} threads cannot run; write 1 to 100_000"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what Cassandra has no use for.
    fn refuse_words_of_etcd(&self) -> Result<(), FileError> {
        let load = &self.experiment.load;
        if load.watchers.is_some() {
            let message = "Cassandra has no watches; leave watchers out, or write cluster: { etcd: \"3\" }".to_owned();
            return self.complain("load.watchers", message);
        }
        if load.coordinators == Some(CoordinatorsChoice::Leader) {
            let message =
                "no node of Cassandra leads: all are alike; write token-aware, round-robin or local".to_owned();
            return self.complain("load.coordinators", message);
        }
        let mut of_etcd = load.mix.iter().flat_map(|mix| mix.of(DatabaseKind::Etcd));
        match of_etcd.find(|(_, share)| share.is_some()) {
            Some((name, _)) => {
                let message =
                    format!("{name} is an operation of etcd; write read and write, or cluster: {{ etcd: \"3\" }}");
                self.complain(&format!("load.mix.{name}"), message)
            }
            None => Ok(()),
        }
    }

    fn key_value(&self, hosts: &Hosts, consistency: Consistency) -> Result<PlannedLoad, FileError> {
        let load = &self.experiment.load;
        let of_profiles =
            [("ops", load.ops.is_some()), ("partitions", load.partitions.is_some()), ("keys", load.keys.is_some())];
        if let Some((key, _)) = of_profiles.into_iter().find(|(_, given)| *given) {
            let message = format!("{key} is for profiles, and no profile is given; add profile: FILE");
            return self.complain(&format!("load.{key}"), message);
        }
        self.level(consistency)?;
        let copies = self.copies(hosts)?;
        let replication = load.replication();
        self.enough_nodes(replication, hosts)?;
        let all = if copies.is_empty() { to_u32(replication) } else { copies.values().sum() };
        let needed = consistency.required(all);
        if needed > all {
            return self.complain(
                "load.consistency",
                format!("{consistency} needs {needed} replicas to answer, and each row has {all}"),
            );
        }
        let (mix, population, value_size) = (load.mix(DatabaseKind::Cassandra), load.population(), load.value_size());
        // Of a load of its own no weight is asked; that it is there is what counts.
        let weight = |share: MixShare| match share {
            MixShare::Weight(weight) => weight.0,
            MixShare::Own(_) => 1,
        };
        let (read, write) = (weight(mix.read), weight(mix.write));
        if read > MAX_WEIGHT || write > MAX_WEIGHT {
            return self.complain("load.mix", format!("a weight is at most {}", Count(MAX_WEIGHT)));
        }
        if read + write == 0 {
            return self.complain("load.mix", "read and write are both 0; give one of them a weight".to_owned());
        }
        if population.0 == 0 || population.0 > KeyValue::LARGEST_POPULATION {
            let most = Count(KeyValue::LARGEST_POPULATION);
            return self.complain("load.population", format!("{population} rows are not possible; write 1 to {most}"));
        }
        let sizes = Bytes(KeyValue::SMALLEST_VALUE)..=Bytes(KeyValue::LARGEST_VALUE).min(cassandra::largest_value());
        if !sizes.contains(&value_size) {
            return self.complain(
                "load.value-size",
                format!(
                    "a value of {value_size} cannot be written and verified; write {} to {}",
                    sizes.start(),
                    sizes.end()
                ),
            );
        }
        let mut warnings = self.tolerance(consistency, all);
        let bytes = population.0.saturating_mul(value_size.0 + 64);
        if read > 0 && bytes < 16 << 20 {
            warnings.push(format!(
                "all rows together ({} MB) stay in the memtables: reads never touch a disk",
                (bytes / 1_000_000).max(1)
            ));
        }
        let work = KeyValue {
            keyspace: "brownout".to_owned(),
            table: "kv".to_owned(),
            replication: to_u32(replication),
            data_centres: copies,
            consistency,
            read: to_u32(read),
            write: to_u32(write),
            population: population.0,
            value_size: value_size.0,
            timestamps: match load.timestamps.unwrap_or_default() {
                TimestampsChoice::Client => Timestamps::Client,
                TimestampsChoice::Coordinator => Timestamps::Coordinator,
            },
        };
        let own: Vec<Amount> = [mix.read, mix.write].into_iter().filter_map(MixShare::own).collect();
        let own = (!own.is_empty()).then_some(own);
        Ok(PlannedLoad {
            work: Work::KeyValue(work),
            consistency: Some(consistency),
            replication: to_u32(replication),
            own,
            warnings,
        })
    }

    /// Refuses a level that the short form's operations cannot have: it writes every row before it reads one.
    fn level(&self, consistency: Consistency) -> Result<(), FileError> {
        let message = match consistency {
            Consistency::Serial | Consistency::LocalSerial => {
                format!(
                    "{consistency} is a level for reads only, and all rows are written before the baseline; write quorum"
                )
            }
            Consistency::Any if self.experiment.load.mix(DatabaseKind::Cassandra).read.is_some() => {
                "any is a level for writes only, and the load reads; write one, or mix: { read: 0, write: 1 }"
                    .to_owned()
            }
            _ => return Ok(()),
        };
        self.complain("load.consistency", message)
    }

    /// `load.replication` copies need as many nodes.
    pub(super) fn enough_nodes(&self, replication: u64, hosts: &Hosts) -> Result<(), FileError> {
        let nodes = hosts.nodes().count() as u64;
        if replication == 0 {
            return self.complain("load.replication", "a replication of 0 stores nothing; write at least 1".to_owned());
        }
        if replication > nodes {
            return self.complain(
                "load.replication",
                format!(
                    "{replication} copies of each row need {replication} nodes, and there are {nodes}; \
                     write replication: {nodes} or cluster: {{ nodes: {replication} }}"
                ),
            );
        }
        Ok(())
    }

    /// What a level with so many copies cannot tell about tolerance.
    pub(super) fn tolerance(&self, consistency: Consistency, copies: u32) -> Vec<String> {
        let needed = consistency.required(copies);
        let mut warnings = Vec::new();
        if copies == 1 {
            warnings.push(format!(
                "replication is 1: each row lives on one node and {consistency} waits for just that node, so \
                 a slow node delays exactly its share of the keys, by arithmetic. Replication, speculative \
                 retry and the snitch play no part, so this does not measure tolerance. Use replication 3 to \
                 measure it"
            ));
        } else if needed == copies && !self.experiment.faults.is_empty() {
            warnings.push(format!(
                "{consistency} with replication {copies} waits for all {copies} replicas: every operation \
                 meets the slow one. Use replication 3 with quorum to ask about tolerance"
            ));
        }
        warnings
    }
}

/// What to write if nothing says how much load there is.
pub(super) const HOW_MUCH: &str = "the amount of load is missing; write rate: 400/s (open loop), rate: 30% (of the measured capacity) or \
                                   threads: 64 (closed loop)";
