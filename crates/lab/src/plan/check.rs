//! The checks of an experiment file, each of which knows the place of its complaint.

use std::{collections::BTreeMap, ops::RangeInclusive};

use brownout_cluster::cassandra::{self, tarball};
use brownout_load::{Consistency, KeyValue};
use brownout_record::Objective;
use brownout_units::{Bytes, Count, Delay, Share};

use super::{INTERVAL_NS, Phase, PlannedPhase, to_u32};
use crate::experiment::{CassandraChoice, Complaint, Experiment, FileError, RateChoice, Source, one_of};

/// Nodes in one lab. Links, and the probes on them, grow with the square.
const MAX_NODES: u64 = 50;
/// What IPv4 hosts have to take (RFC 791), and the most that a TUN carries.
const MTU: RangeInclusive<u64> = 576..=65_521;
/// With less, Cassandra 5.0 ends in OutOfMemoryError sooner or later (64 MiB: while starting).
const MIN_HEAP: Bytes = Bytes(128 << 20);
/// Filling, flooding, and then as many settled seconds as stationarity is judged by.
const MIN_WARM_UP: Delay = Delay::from_secs(20);
/// Three intervals are the least of which one can be compared with the others.
const MIN_PHASE: Delay = Delay::from_secs(3);
/// Weights are shares of one another; more digits than this are a mistake.
const MAX_WEIGHT: u64 = 1_000_000;
/// Trials in one run; a mistyped number should not run for a year.
const MAX_TRIALS: u64 = 10_000;
/// Every open operation ends within the time-out; a longer one would outlast most phases.
const MAX_TIMEOUT: Delay = Delay::from_secs(60);

/// An experiment file under examination.
pub(super) struct Check<'a> {
    pub(super) source: &'a Source,
    pub(super) experiment: &'a Experiment,
}

impl Check<'_> {
    pub(super) fn complain<T>(&self, key: &str, message: String) -> Result<T, FileError> {
        Err(self.source.complain(key, message))
    }

    /// The same for a complaint that does not know its place yet.
    pub(super) fn complain_in<T>(&self, section: &str, complaint: Complaint) -> Result<T, FileError> {
        let dot = if complaint.key.is_empty() { "" } else { "." };
        self.complain(&format!("{section}{dot}{}", complaint.key), complaint.message)
    }

    pub(super) fn cassandra(&self) -> Result<(), FileError> {
        match &self.experiment.cluster.cassandra {
            CassandraChoice::Version(version) => cassandra::release(version)
                .map(drop)
                .or_else(|error| self.complain("cluster.cassandra", error.to_string())),
            CassandraChoice::Home(home) => tarball::open(home)
                .map(drop)
                .or_else(|error| self.complain("cluster.cassandra.home", error.to_string())),
        }
    }

    pub(super) fn trials(&self) -> Result<u32, FileError> {
        let trials = self.experiment.trials.0;
        if trials == 0 || trials > MAX_TRIALS {
            return self.complain("trials", format!("{trials} trials cannot be run; write 1 to {MAX_TRIALS}"));
        }
        Ok(to_u32(trials))
    }

    pub(super) fn nodes(&self) -> Result<u8, FileError> {
        let network = &self.experiment.network;
        if !MTU.contains(&network.mtu.0) {
            return self.complain(
                "network.mtu",
                format!(
                    "packets of {} bytes cannot be had; write {} to {}, usually 1500",
                    network.mtu,
                    Count(*MTU.start()),
                    Count(*MTU.end())
                ),
            );
        }
        let heap = self.experiment.cluster.heap;
        if heap < MIN_HEAP {
            return self.complain(
                "cluster.heap",
                format!("a heap of {heap} is too small for Cassandra to start; write at least {MIN_HEAP}"),
            );
        }
        let nodes = self.experiment.cluster.nodes.0;
        match u8::try_from(nodes) {
            Ok(count) if (1..=MAX_NODES).contains(&nodes) => Ok(count),
            _ => self.complain("cluster.nodes", format!("{nodes} nodes cannot be run; write 1 to {MAX_NODES}")),
        }
    }

    pub(super) fn load(&self, nodes: u8, copies: &BTreeMap<String, u32>) -> Result<Consistency, FileError> {
        let load = &self.experiment.load;
        let replication = load.replication.0;
        if replication == 0 {
            return self.complain("load.replication", "0 copies of a row are none; write at least 1".to_owned());
        }
        if replication > u64::from(nodes) {
            return self.complain(
                "load.replication",
                format!(
                    "{replication} copies of each row need {replication} nodes, and there are {nodes}; \
                     write replication: {nodes} or cluster: {{ nodes: {replication} }}"
                ),
            );
        }
        let consistency: Consistency = load
            .consistency
            .parse()
            .or_else(|error: brownout_load::UnknownConsistency| self.complain("load.consistency", error.to_string()))?;
        let all = if copies.is_empty() { to_u32(replication) } else { copies.values().sum() };
        let needed = consistency.required(all);
        if needed > all {
            return self.complain(
                "load.consistency",
                format!("{consistency} needs {needed} replicas to answer, and each row has {all}"),
            );
        }
        match (load.rate, load.threads) {
            (None, None) => {
                return self.complain(
                    "load",
                    "how much load is not said; write rate: 400/s (open loop), rate: 30% (of the measured capacity) \
                     or threads: 64 (closed loop)"
                        .to_owned(),
                );
            }
            (Some(_), Some(_)) => {
                return self.complain(
                    "load.threads",
                    "rate and threads exclude one another: an open loop has a rate, a closed loop has threads"
                        .to_owned(),
                );
            }
            (Some(RateChoice::Fixed(rate)), None) if rate.get() > 1e6 => {
                return self.complain("load.rate", format!("{rate} is beyond what one lab can offer; at most 1000k/s"));
            }
            (None, Some(threads)) if threads.0 == 0 || threads.0 > 100_000 => {
                return self.complain("load.threads", format!("{threads} threads cannot run; write 1 to 100_000"));
            }
            _ => {}
        }
        if load.mix.read.0 > MAX_WEIGHT || load.mix.write.0 > MAX_WEIGHT {
            return self.complain("load.mix", format!("a weight is at most {}", Count(MAX_WEIGHT)));
        }
        if load.mix.read.0 + load.mix.write.0 == 0 {
            return self.complain("load.mix", "read and write are both 0; give one of them a weight".to_owned());
        }
        if load.population.0 == 0 || load.population.0 > KeyValue::LARGEST_POPULATION {
            let most = Count(KeyValue::LARGEST_POPULATION);
            return self.complain("load.population", format!("{} rows; write 1 to {most}", load.population));
        }
        let sizes = Bytes(KeyValue::SMALLEST_VALUE)..=Bytes(KeyValue::LARGEST_VALUE).min(cassandra::largest_value());
        if !sizes.contains(&load.value_size) {
            return self.complain(
                "load.value-size",
                format!(
                    "a value of {} cannot be written and verified; write {} to {}",
                    load.value_size,
                    sizes.start(),
                    sizes.end()
                ),
            );
        }
        if load.timeout == Delay::ZERO || load.timeout > MAX_TIMEOUT {
            return self
                .complain("load.timeout", format!("{} is no time-out; write up to {MAX_TIMEOUT}", load.timeout));
        }
        if load.connections.0 == 0 || load.connections.0 > 64 {
            return self.complain("load.connections", format!("{} connections; write 1 to 64", load.connections));
        }
        Ok(consistency)
    }

    pub(super) fn phases(&self) -> Result<Vec<PlannedPhase>, FileError> {
        let phases = &self.experiment.phases;
        let wanted = [
            (Phase::WarmUp, Some(phases.warm_up)),
            (Phase::Baseline, Some(phases.baseline)),
            (Phase::Fault, phases.fault),
            (Phase::Recovery, phases.recovery),
        ];
        let mut planned = Vec::new();
        for (phase, length) in wanted {
            let key = format!("phases.{}", phase.name());
            let needed = !self.experiment.faults.is_empty();
            let length = match length {
                Some(length) if !needed && matches!(phase, Phase::Fault | Phase::Recovery) => {
                    return self.complain(
                        &key,
                        format!("a phase of {length} without a fault; add faults: or leave the phase out"),
                    );
                }
                Some(length) => length,
                None if needed => {
                    return self.complain(
                        "phases",
                        format!("there are faults, but no phase '{}'; write {}: 20s", phase.name(), phase.name()),
                    );
                }
                None => continue,
            };
            let least = if phase == Phase::WarmUp { MIN_WARM_UP } else { MIN_PHASE };
            if length < least || !length.ns().is_multiple_of(INTERVAL_NS) {
                return self.complain(
                    &key,
                    format!("{length} is not a whole number of seconds from {least} on; series are kept per second"),
                );
            }
            if length > Delay::from_secs(7 * 24 * 3600) {
                return self.complain(&key, format!("{length} is longer than a week"));
            }
            planned.push(PlannedPhase { phase, length });
        }
        Ok(planned)
    }

    pub(super) fn objective(&self, phases: &[PlannedPhase]) -> Result<Objective, FileError> {
        let objective = &self.experiment.objective;
        let given = objective.given();
        let [(share, response)] = given[..] else {
            return self.complain(
                "objective",
                "one percentile says what counts as good; write one of p50, p95, p99, p99.9, such as { p99: 50ms }"
                    .to_owned(),
            );
        };
        if response == Delay::ZERO {
            return self.complain("objective", "no operation takes no time; write a response time above 0".to_owned());
        }
        for phase in &objective.phases {
            if !phases.iter().any(|planned| planned.phase.name() == phase) {
                let names = one_of("the phases are", phases.iter().map(|planned| planned.phase.name()), phase);
                return self.complain("objective.in", format!("there is no phase '{phase}'; {names}"));
            }
        }
        Ok(Objective { response_ns: response.ns(), share: Share::fraction(share), phases: objective.phases.clone() })
    }

    pub(super) fn warnings(&self, consistency: Consistency, copies: &BTreeMap<String, u32>) -> Vec<String> {
        let load = &self.experiment.load;
        let replication = if copies.is_empty() { to_u32(load.replication.0) } else { copies.values().sum() };
        let mut warnings = Vec::new();
        let needed = consistency.required(replication);
        if replication == 1 {
            warnings.push(format!(
                "replication is 1: each row lives on one node and {consistency} waits for just that node, so a slow \
                 node delays exactly its share of the keys, by arithmetic. Replication, speculative retry and the \
                 snitch take no part; this measures no tolerance. Use replication 3 to ask about tolerance"
            ));
        } else if needed == replication && !self.experiment.faults.is_empty() {
            warnings.push(format!(
                "{consistency} with replication {replication} waits for all {replication} replicas: every operation \
                 meets the slow one. Use replication 3 with quorum to ask about tolerance"
            ));
        }
        if let Some(threads) = load.threads {
            warnings.push(format!(
                "closed loop: with {threads} threads, throughput is {threads} ÷ mean latency, whatever the database \
                 does; the report shows the loss that this alone predicts. Use rate: for an open loop"
            ));
        }
        let bytes = load.population.0.saturating_mul(load.value_size.0 + 64);
        if load.mix.read.0 > 0 && bytes < 16 << 20 {
            warnings.push(format!(
                "all rows together ({} MB) stay in the memtables: reads never touch a disk",
                (bytes / 1_000_000).max(1)
            ));
        }
        warnings
    }
}
