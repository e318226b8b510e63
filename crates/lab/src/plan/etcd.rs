//! The load of a plan on etcd: puts, ranges and transactions of single keys, and watches.

use brownout_load::EtcdLoad;
use brownout_units::{Bytes, Count};

use super::{
    check::Check,
    load::{MAX_WEIGHT, PlannedLoad, Work},
    narrow::to_u32,
};
use crate::{
    experiment::{Amount, CoordinatorsChoice, FileError, MixShare},
    hosts::Hosts,
};

/// All keys of the load lie below this.
pub(crate) const PREFIX: &str = "brownout/";
/// As many as the load can keep open.
const MAX_WATCHERS: u64 = 64;
/// Keys of `load:` that etcd has no use for, and why.
const OF_CASSANDRA: [(&str, &str); 8] = [
    ("profile", "profiles are of Cassandra's tables; leave it out, and write mix: { put: 1, range: 1 }"),
    ("ops", "ops are operations of profiles, which are Cassandra's; write mix: { put: 1, range: 1 }"),
    ("partitions", "partitions are of profiles, which are Cassandra's; write population:"),
    ("keys", "keys is of profiles, which are Cassandra's; leave it out"),
    ("replication", "every member of etcd holds every key; leave it out, and write cluster: { nodes: 3 }"),
    ("replication-of", "every member of etcd holds every key; leave it out"),
    (
        "consistency",
        "etcd has no levels of consistency: put, txn and range are linearizable, serializable is not; leave it out, and write \
         mix: { range: 1, serializable: 1 }",
    ),
    ("timestamps", "etcd orders writes by its log, not by clocks; leave it out"),
];

impl Check<'_> {
    /// Refuses what etcd has no use for.
    pub(super) fn refuse_words_of_cassandra(&self) -> Result<(), FileError> {
        for (key, why) in OF_CASSANDRA {
            let key = format!("load.{key}");
            if self.source.node(&key).is_some() {
                return self.complain(&key, why.to_owned());
            }
        }
        let known = [CoordinatorsChoice::RoundRobin, CoordinatorsChoice::Leader];
        if self.experiment.load.coordinators.is_some_and(|choice| !known.contains(&choice)) {
            let message = "every member of etcd holds every key, so none is nearer to one; write round-robin or leader";
            return self.complain("load.coordinators", message.to_owned());
        }
        Ok(())
    }

    pub(super) fn etcd(&self, hosts: &Hosts) -> Result<PlannedLoad, FileError> {
        let load = &self.experiment.load;
        let mix = load.mix(brownout_cluster::DatabaseKind::Etcd);
        for (name, share) in [("read", mix.read), ("write", mix.write)] {
            if share.is_some() {
                let message = format!("etcd has no {name}; write put, range, serializable or txn");
                return self.complain(&format!("load.mix.{name}"), message);
            }
        }
        // Of a load of its own no weight is asked; that it is there is what counts.
        let weight = |share: MixShare| match share {
            MixShare::Weight(weight) => weight.0,
            MixShare::Own(_) => 1,
        };
        let weights = [mix.put, mix.range, mix.serializable, mix.txn].map(weight);
        if weights.iter().any(|weight| *weight > MAX_WEIGHT) {
            return self.complain("load.mix", format!("a weight is at most {}", Count(MAX_WEIGHT)));
        }
        if weights.iter().all(|weight| *weight == 0) {
            let message = "all operations are 0; give one of them a weight: put, range, serializable, txn";
            return self.complain("load.mix", message.to_owned());
        }
        let (population, value_size) = (load.population(), load.value_size());
        if population.0 == 0 || population.0 > EtcdLoad::LARGEST_POPULATION {
            let most = Count(EtcdLoad::LARGEST_POPULATION);
            return self.complain("load.population", format!("{population} keys are not possible; write 1 to {most}"));
        }
        let sizes = Bytes(EtcdLoad::SMALLEST_VALUE)..=Bytes(EtcdLoad::LARGEST_VALUE);
        if !sizes.contains(&value_size) {
            return self.complain(
                "load.value-size",
                format!(
                    "a value of {value_size} cannot be put and verified; write {} to {}",
                    sizes.start(),
                    sizes.end()
                ),
            );
        }
        let watchers = load.watchers.map_or(0, |watchers| watchers.0);
        if watchers > MAX_WATCHERS {
            let message = format!("{watchers} watches cannot be kept; write 0 to {MAX_WATCHERS}");
            return self.complain("load.watchers", message);
        }
        let [put, range, serializable, txn] = weights.map(to_u32);
        if watchers > 0 && put + txn == 0 {
            let message =
                "nothing is put, so no watch has anything to report; write mix: { put: 1 }, or leave watchers out";
            return self.complain("load.watchers", message.to_owned());
        }
        let work = EtcdLoad {
            prefix: PREFIX.to_owned(),
            put,
            range,
            serializable,
            txn,
            population: population.0,
            value_size: value_size.0,
            watchers: to_u32(watchers),
        };
        work.check().or_else(|error| self.complain("load", error.to_string()))?;
        let own: Vec<Amount> =
            [mix.put, mix.range, mix.serializable, mix.txn].into_iter().filter_map(MixShare::own).collect();
        let own = (!own.is_empty()).then_some(own);
        let members = hosts.nodes().count();
        let mut warnings = Vec::new();
        if members.is_multiple_of(2) {
            warnings.push(format!(
                "{members} members tolerate no more failures than {} do, and a put waits for {} of them",
                members - 1,
                members / 2 + 1
            ));
        }
        Ok(PlannedLoad {
            work: Work::Etcd(work),
            consistency: None,
            replication: u32::try_from(members).unwrap_or(u32::MAX),
            own,
            warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Plan, experiment::Source};

    fn plan(load: &str) -> Result<Plan, FileError> {
        let rest = "phases: { warm-up: 20s, baseline: 5s }\nobjective: { p99: 1s }\n";
        let text = format!("cluster: {{ etcd: '3' }}\nload: {{ {load} }}\n{rest}");
        Plan::new(&Source::from_text(Path::new("e.yaml"), text).unwrap())
    }

    #[test]
    fn the_short_form_of_etcd_puts_and_ranges_unless_the_file_says_otherwise() {
        let plain = plan("rate: 400/s").unwrap();
        assert_eq!(plain.load.operations(), ["put", "range"]);
        let text = plain.load.text(&plain.experiment.load);
        assert!(text.contains("1 put to 1 range over 10_000 keys of 100B") && !text.contains("consistency"), "{text}");
        let own = plan("mix: { put: 300/s, serializable: { threads: 4 } }, watchers: 2").unwrap();
        assert_eq!(own.load.operations(), ["put", "serializable"]);
        assert_eq!(own.load.own.as_ref().map(Vec::len), Some(2));
        let Work::Etcd(work) = &own.load.work else { panic!("{:?}", own.load.work) };
        assert_eq!((work.watchers, work.txn), (2, 0));
    }

    #[test]
    fn words_that_etcd_does_not_have_are_refused_with_what_it_has() {
        for (load, words) in [
            ("rate: 1/s, consistency: quorum", "linearizable"),
            ("rate: 1/s, replication: 3", "cluster: { nodes: 3 }"),
            ("rate: 1/s, profile: p.yaml", "profiles are of Cassandra"),
            ("rate: 1/s, timestamps: coordinator", "by its log"),
            ("rate: 1/s, coordinators: token-aware", "round-robin or leader"),
            ("rate: 1/s, mix: { read: 1 }", "etcd has no read"),
            ("rate: 1/s, mix: { put: 0 }", "all operations are 0"),
            ("rate: 1/s, watchers: 65", "0 to 64"),
            ("rate: 1/s, mix: { range: 1 }, watchers: 1", "nothing is put"),
            ("rate: 1/s, value-size: 1B", "cannot be put"),
            ("rate: 1/s, population: 0", "0 keys"),
        ] {
            let error = plan(load).err().unwrap_or_else(|| panic!("{load} was taken")).to_string();
            assert!(error.contains(words), "{load}: {error}");
        }
    }

    #[test]
    fn an_even_number_of_members_is_warned_of() {
        assert!(plan("rate: 1/s").unwrap().warnings.is_empty());
        let text = "cluster: { etcd: '3', nodes: 4 }\nload: { rate: 1/s }\nphases: { warm-up: 20s, baseline: 5s }\n\
                    objective: { p99: 1s }\n";
        let plan = Plan::new(&Source::from_text(Path::new("e.yaml"), text.to_owned()).unwrap()).unwrap();
        assert!(
            plan.warnings.iter().any(|warning| warning.contains("than 3 do, and a put waits for 3")),
            "{:?}",
            plan.warnings
        );
    }
}
