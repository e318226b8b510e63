//! The checks of an experiment file, each of which knows the place of its complaint.

use std::ops::RangeInclusive;

use brownout_cluster::cassandra::{self, tarball};
use brownout_load::{Consistency, KeyValue};
use brownout_record::Objective;
use brownout_units::{Bytes, Count, Delay, Share};

use super::{INTERVAL_NS, Phase, PlannedFault, PlannedPhase, to_u32};
use crate::{
    experiment::{CassandraChoice, Experiment, FaultEntry, FileError, RateChoice, Source, one_of},
    faults::{Fault, Slow},
    hosts::Hosts,
};

/// Nodes in one lab. Links, and the probes on them, grow with the square.
const MAX_NODES: u64 = 50;
/// What IPv4 hosts have to take (RFC 791), and the most that a TUN carries.
const MTU: RangeInclusive<u64> = 576..=65_521;
/// With less, Cassandra 5.0 ends in OutOfMemoryError sooner or later (64 MiB: while starting).
const MIN_HEAP: Bytes = Bytes(128 << 20);
/// Shorter delays drown in the noise of probes on a busy machine; longer ones than any time-out tell nothing more.
const DELAYS: RangeInclusive<Delay> = Delay::from_ns(100_000)..=Delay::from_secs(60);
/// Filling, flooding, and then as many settled seconds as stationarity is judged by.
const MIN_WARM_UP: Delay = Delay::from_secs(20);
/// Three intervals are the least of which one can be compared with the others.
const MIN_PHASE: Delay = Delay::from_secs(3);
/// Weights are shares of one another; more digits than this are a mistake.
const MAX_WEIGHT: u64 = 1_000_000;
/// Probes that each of the windows before, during and after a fault has to have: three times what a verdict takes.
const PROBES: u32 = 3 * brownout_analysis::ENOUGH as u32;
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
    fn complain<T>(&self, key: &str, message: String) -> Result<T, FileError> {
        Err(self.source.complain(key, message))
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

    pub(super) fn load(&self, nodes: u8) -> Result<Consistency, FileError> {
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
        let needed = consistency.required(to_u32(replication));
        if u64::from(needed) > replication {
            return self.complain(
                "load.consistency",
                format!("{consistency} needs {needed} replicas to answer, and replication is {replication}"),
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

    pub(super) fn faults(&self, hosts: &Hosts, phases: &[PlannedPhase]) -> Result<Vec<PlannedFault>, FileError> {
        let phase = phases.iter().find(|phase| phase.phase == Phase::Fault).map_or(Delay::ZERO, |phase| phase.length);
        let mut planned = Vec::new();
        for (index, entry) in self.experiment.faults.iter().enumerate() {
            let FaultEntry::Slow(slow) = entry;
            let at = |key: &str| format!("faults.{index}.slow.{key}");
            if hosts.find(&slow.host).is_none() {
                let names = one_of("the hosts are", hosts.iter().map(|host| host.name.as_str()), &slow.host);
                return self.complain(&at("host"), format!("unknown host '{}'; {names}", slow.host));
            }
            if slow.delay == Delay::ZERO {
                return self.complain(
                    &at("delay"),
                    "a delay of 0 does nothing, and a fault that does nothing proves nothing; write a delay above 0, \
                     or leave the fault out for an A/A run"
                        .to_owned(),
                );
            }
            if !DELAYS.contains(&slow.delay) {
                return self.complain(
                    &at("delay"),
                    format!(
                        "{} cannot be put in force and proven; write {} to {}",
                        slow.delay,
                        DELAYS.start(),
                        DELAYS.end()
                    ),
                );
            }
            if slow.jitter > slow.delay {
                return self.complain(
                    &at("jitter"),
                    format!(
                        "{} exceeds the delay of {}: some packets would have to arrive early",
                        slow.jitter, slow.delay
                    ),
                );
            }
            if slow.start >= phase {
                return self.complain(
                    &at("start"),
                    format!(
                        "the fault would begin {} into a phase of {phase}, after its end; \
                         start is counted from the beginning of the phase 'fault'",
                        slow.start
                    ),
                );
            }
            let ends = slow.length.map_or(phase, |length| Delay::from_ns(slow.start.ns() + length.ns()));
            if ends > phase || ends == slow.start {
                return self.complain(
                    &at("length"),
                    format!(
                        "from {} on, the fault can last up to {}; the phase 'fault' ends then",
                        slow.start,
                        Delay::from_ns(phase.ns() - slow.start.ns())
                    ),
                );
            }
            let fault = Fault::Slow(Slow { host: slow.host.clone(), delay: slow.delay, jitter: slow.jitter });
            planned.push(PlannedFault { fault, starts: slow.start, ends });
        }
        self.proof_needs(hosts, phases, &planned)?;
        Ok(planned)
    }

    /// A fault that the probes of its phases could not prove is refused now, not after minutes.
    fn proof_needs(&self, hosts: &Hosts, phases: &[PlannedPhase], faults: &[PlannedFault]) -> Result<(), FileError> {
        let [fault] = faults else {
            return match faults.len() {
                0 => Ok(()),
                _ => self.complain(
                    "faults.1",
                    "one fault is what an experiment can have and prove yet; make an experiment of each".to_owned(),
                ),
            };
        };
        let length =
            |wanted: Phase| phases.iter().find(|phase| phase.phase == wanted).map_or(Delay::ZERO, |phase| phase.length);
        // What happens around a change, and the probes that are needed before, during and after it.
        let (unsettled, probes) = (fault.fault.unsettled(), probing_time(hosts));
        let sum = |parts: &[Delay]| Delay::from_ns(parts.iter().map(|part| part.ns()).sum());
        let refuse = |key: &str, have: Delay, need: Delay| {
            self.complain(key, format!("{have} is too short to prove this fault by probes; it needs at least {need}"))
        };
        let before = sum(&[length(Phase::Baseline), fault.starts]);
        if before < probes {
            return refuse("phases.baseline", before, probes);
        }
        let during = Delay::from_ns(fault.ends.ns() - fault.starts.ns());
        // Once until the change is seen at the far end, once more for what healing lets go early.
        let need = sum(&[unsettled, unsettled, probes]);
        if during < need {
            return refuse("faults.0", during, need);
        }
        let after = sum(&[length(Phase::Recovery), Delay::from_ns(length(Phase::Fault).ns() - fault.ends.ns())]);
        let need = sum(&[unsettled, probes]);
        if after < need {
            return refuse("phases.recovery", after, need);
        }
        Ok(())
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

    pub(super) fn warnings(&self, consistency: Consistency) -> Vec<String> {
        let load = &self.experiment.load;
        let replication = to_u32(load.replication.0);
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

/// The time in which every pair gets the probes that a window needs.
fn probing_time(hosts: &Hosts) -> Delay {
    Delay::from(super::probe_interval(hosts) * PROBES)
}
