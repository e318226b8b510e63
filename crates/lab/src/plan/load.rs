//! The load of a plan: what is asked of the database, and how much.

use brownout_cluster::cassandra;
use brownout_load::{Consistency, KeyValue};
use brownout_stress::run::experiment::ProfileLoad;
use brownout_units::{Bytes, Count, Delay, Rate};

use super::{check::Check, narrow::to_u32};
use crate::{
    experiment::{FileError, LoadSection, OpShare, RateChoice},
    hosts::Hosts,
};

/// Weights are shares of one another; more digits than this are a mistake.
const MAX_WEIGHT: u64 = 1_000_000;
/// Every open operation ends within the time-out; a longer one would outlast most phases.
const MAX_TIMEOUT: Delay = Delay::from_secs(60);
/// Operations per second of all together.
const MAX_RATE: f64 = 1e6;

/// The load of a plan.
#[derive(Debug, Clone)]
pub struct PlannedLoad {
    /// What is asked of the database.
    pub work: Work,
    /// Consistency level of operations that have none of their own.
    pub consistency: Consistency,
    /// Copies of each row; with sites, in each of them if the experiment says so. Of several keyspaces the fewest, and 0 if
    /// nobody knows before the servers do.
    pub replication: u32,
    /// Things to check before trusting the result.
    pub(super) warnings: Vec<String>,
}

/// What is asked of the database.
#[derive(Debug, Clone)]
pub enum Work {
    /// The short form: one table of blobs by key.
    KeyValue(KeyValue),
    /// Operations of profiles.
    Profiles(Box<ProfileWork>),
}

/// Operations of profiles.
#[derive(Debug, Clone)]
pub struct ProfileWork {
    /// As the engine is given it.
    pub load: ProfileLoad,
    /// The rates of the operations, in their order, if each has its own.
    pub rates: Option<Vec<Rate>>,
}

impl PlannedLoad {
    /// Names of the operations, as the record has them.
    pub fn operations(&self) -> Vec<&str> {
        match &self.work {
            Work::KeyValue(work) => {
                let weights = [("read", work.read), ("write", work.write)];
                weights.into_iter().filter(|(_, weight)| *weight > 0).map(|(name, _)| name).collect()
            }
            Work::Profiles(work) => work.load.operations().collect(),
        }
    }

    /// The rates of the operations, in their order, if each has its own.
    pub fn rates(&self) -> Option<&[Rate]> {
        match &self.work {
            Work::KeyValue(_) => None,
            Work::Profiles(work) => work.rates.as_deref(),
        }
    }

    /// Operations per second, if that is known before the run.
    pub fn rate(&self, section: &LoadSection) -> Option<f64> {
        match (self.rates(), section.rate) {
            (Some(rates), _) => Some(rates.iter().map(|rate| rate.get()).sum()),
            (None, Some(RateChoice::Fixed(rate))) => Some(rate.get()),
            (None, _) => None,
        }
    }

    /// All of it in words.
    pub fn text(&self, section: &LoadSection) -> String {
        let arrivals = format!("{:?} arrivals", section.arrivals).to_lowercase();
        let pace = match (self.rates(), section.rate, section.threads) {
            (Some(rates), ..) => {
                let all: f64 = rates.iter().map(|rate| rate.get()).sum();
                let all = Rate::per_second(all).map(|all| all.to_string()).unwrap_or_default();
                format!("open loop, {all}, {arrivals}")
            }
            (None, Some(rate), _) => format!("open loop, {rate}, {arrivals}"),
            (None, None, Some(threads)) => format!("closed loop, {threads} threads"),
            (None, None, None) => String::new(),
        };
        let what = match &self.work {
            Work::KeyValue(work) => format!(
                "{} reads to {} writes over {} rows of {}",
                work.read,
                work.write,
                Count(work.population),
                Bytes(work.value_size)
            ),
            Work::Profiles(work) => work.text(),
        };
        let copies = match self.replication {
            0 => "as the profile says".to_owned(),
            copies => copies.to_string(),
        };
        format!("{pace}; {what}; consistency {}, replication {copies}", self.consistency)
    }
}

impl Check<'_> {
    pub(super) fn load(&self, hosts: &Hosts, version: &str) -> Result<PlannedLoad, FileError> {
        let load = &self.experiment.load;
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
        let mut planned = match &load.profile {
            Some(_) => self.profiles(hosts, version, consistency)?,
            None => self.key_value(hosts, consistency)?,
        };
        if let Some(threads) = load.threads {
            planned.warnings.push(format!(
                "closed loop: with {threads} threads, throughput is {threads} ÷ mean latency, whatever the database \
                 does; the report shows the loss that this alone predicts. Use rate: for an open loop"
            ));
        }
        Ok(planned)
    }

    /// How much load there is: of `rate`, `threads` and rates of operations, one.
    fn pace(&self) -> Result<(), FileError> {
        let load = &self.experiment.load;
        let of_ops = load.ops.iter().flat_map(|ops| &ops.0);
        let rated = of_ops.filter_map(|(name, share)| match share {
            OpShare::Rate(rate) => Some((name, rate.get())),
            OpShare::Weight(_) => None,
        });
        let rated: Vec<(&String, f64)> = rated.collect();
        if let Some((first, _)) = rated.first() {
            let clash = [("rate", load.rate.is_some()), ("threads", load.threads.is_some())];
            if let Some((key, _)) = clash.into_iter().find(|(_, given)| *given) {
                let message =
                    format!("operations have rates of their own ({first}); leave {key} out, or write weights");
                return self.complain(&format!("load.{key}"), message);
            }
            let all: f64 = rated.iter().map(|(_, rate)| rate).sum();
            if all > MAX_RATE {
                let message = format!("{all}/s together are beyond what one lab can offer; at most 1000k/s");
                return self.complain("load.ops", message);
            }
            return Ok(());
        }
        match (load.rate, load.threads) {
            (None, None) if load.profile.is_none() => self.complain("load", HOW_MUCH.to_owned()),
            (Some(_), Some(_)) => self.complain(
                "load.threads",
                "rate and threads cannot be combined: an open loop has a rate, a closed loop has threads".to_owned(),
            ),
            (Some(RateChoice::Fixed(rate)), None) if rate.get() > MAX_RATE => {
                self.complain("load.rate", format!("{rate} is beyond what one lab can offer; at most 1000k/s"))
            }
            (None, Some(threads)) if threads.0 == 0 || threads.0 > 100_000 => {
                self.complain("load.threads", format!("{threads} threads cannot run; write 1 to 100_000"))
            }
            _ => Ok(()),
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
        let (mix, population, value_size) = (load.mix(), load.population(), load.value_size());
        if mix.read.0 > MAX_WEIGHT || mix.write.0 > MAX_WEIGHT {
            return self.complain("load.mix", format!("a weight is at most {}", Count(MAX_WEIGHT)));
        }
        if mix.read.0 + mix.write.0 == 0 {
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
        if mix.read.0 > 0 && bytes < 16 << 20 {
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
            read: to_u32(mix.read.0),
            write: to_u32(mix.write.0),
            population: population.0,
            value_size: value_size.0,
        };
        Ok(PlannedLoad { work: Work::KeyValue(work), consistency, replication: to_u32(replication), warnings })
    }

    /// Refuses a level that the short form's operations cannot have: it writes every row before it reads one.
    fn level(&self, consistency: Consistency) -> Result<(), FileError> {
        let message = match consistency {
            Consistency::Serial | Consistency::LocalSerial => {
                format!(
                    "{consistency} is a level for reads only, and all rows are written before the baseline; write quorum"
                )
            }
            Consistency::Any if self.experiment.load.mix().read.0 > 0 => {
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
