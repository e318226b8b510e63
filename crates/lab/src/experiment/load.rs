//! `load:` of an experiment file: the short form, or profiles of `brownout stress user`.

use std::{collections::BTreeMap, fmt};

use brownout_cluster::DatabaseKind;
use brownout_generate::distribution::Spec;
use brownout_units::{Bytes, Count, Delay};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

use super::{
    Names, RateChoice, choice,
    share::{MixShare, OpShare},
};

/// `load:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadSection {
    /// Profiles of `brownout stress user`: a file, or a list of files, from where the experiment file is. Default: none;
    /// then the load is the short form, one table of blobs by key.
    pub profile: Option<Names>,
    /// With profiles, required: the operations by name (`insert`, `validate`, a query, `specname.query`), all with
    /// weights (`q1: 2`), or each a load of its own: with a rate (`q1: 500/s`) or with users (`q1: { threads: 4 }`).
    pub ops: Option<OpsChoice>,
    /// With profiles: partitions of each table; each is written once, whole, in the warm-up. Default: 10_000.
    pub partitions: Option<Count>,
    /// With profiles: which partitions operations visit, a distribution over 1 to `partitions`, as in
    /// `zipf(1..10000)`. Default: each as likely as the others.
    #[serde(default, deserialize_with = "keys")]
    pub keys: Option<Spec>,
    /// Copies of each row; with sites, in each of them. Default: what the profile says, else 3.
    pub replication: Option<Count>,
    /// Copies of each row in single sites, by name. Default: `replication` in each.
    #[serde(default)]
    pub replication_of: BTreeMap<String, Count>,
    /// Consistency level of operations of which the profile says none. Default: quorum.
    #[serde(default = "quorum")]
    pub consistency: String,
    /// Short form: weights of operations, or each a load of its own: `{ read: 300/s, write: { threads: 4 } }`. Cassandra has
    /// `read` and `write`; etcd has `put`, `range` (linearizable), `serializable` (a range that any member answers from what it
    /// has) and `txn` (a put if nobody else has put meanwhile). Default: one read to one write; one put to one range.
    pub mix: Option<Mix>,
    /// Short form: rows; each is written once in the warm-up. Default: 10_000.
    pub population: Option<Count>,
    /// Short form: bytes of each row's value, at least 16. Default: 100B.
    pub value_size: Option<Bytes>,
    /// Open loop: operations per second (`400/s`), or a share of the capacity measured in the warm-up (`30%`).
    pub rate: Option<RateChoice>,
    /// Closed loop: virtual users, each with one operation at a time, as cassandra-stress has them.
    pub threads: Option<Count>,
    /// Arrivals of the open loop: `constant` or `poisson`. Default: constant.
    #[serde(default)]
    pub arrivals: ArrivalsChoice,
    /// After this an operation counts as timed out (its late answer is still measured). Default: 5s.
    #[serde(default = "timeout")]
    pub timeout: Delay,
    /// Who is asked: `token-aware` (a replica of the key, in turn), `round-robin` (any node), `local` (a replica in the
    /// site of the load) or, of etcd, `leader` (whoever leads). Default: token-aware; round-robin of etcd.
    pub coordinators: Option<CoordinatorsChoice>,
    /// Etcd: watches on the keys that are put, 0 to 64, spread over the members; how long after a put each event comes is
    /// measured. Default: 0.
    pub watchers: Option<Count>,
    /// Connections to each node. Default: 2.
    #[serde(default = "two")]
    pub connections: Count,
    /// Short form on Cassandra: who says when a write was made, which decides which of two writes wins: `client` (the load,
    /// whose clock is right) or `coordinator` (the node that is asked, whatever its clock shows; only so a wrong clock
    /// loses writes). Default: client.
    pub timestamps: Option<TimestampsChoice>,
}

impl LoadSection {
    /// Copies of each row, where nothing else is said.
    pub fn replication(&self) -> u64 {
        self.replication.map_or(3, |copies| copies.0)
    }

    /// Whether the file says how many copies there are.
    pub fn says_replication(&self) -> bool {
        self.replication.is_some() || !self.replication_of.is_empty()
    }

    /// Operations of the short form.
    pub fn mix(&self, kind: DatabaseKind) -> Mix {
        let one = MixShare::Weight(Count(1));
        let default = || match kind {
            DatabaseKind::Cassandra => Mix { read: one, write: one, ..Mix::default() },
            DatabaseKind::Etcd => Mix { put: one, range: one, ..Mix::default() },
        };
        self.mix.unwrap_or_else(default)
    }

    /// Who is asked.
    pub fn coordinators(&self, kind: DatabaseKind) -> CoordinatorsChoice {
        self.coordinators.unwrap_or(match kind {
            DatabaseKind::Cassandra => CoordinatorsChoice::TokenAware,
            DatabaseKind::Etcd => CoordinatorsChoice::RoundRobin,
        })
    }

    /// Rows of the short form.
    pub fn population(&self) -> Count {
        self.population.unwrap_or(Count(10_000))
    }

    /// Bytes of a value of the short form.
    pub fn value_size(&self) -> Bytes {
        self.value_size.unwrap_or(Bytes(100))
    }

    /// Partitions of each table of a profile.
    pub fn partitions(&self) -> Count {
        self.partitions.unwrap_or(Count(10_000))
    }
}

/// `load.mix:` — of each operation a weight, a rate or users. Default of each: none.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mix {
    /// Cassandra: reads.
    pub read: MixShare,
    /// Cassandra: writes.
    pub write: MixShare,
    /// Etcd: puts.
    pub put: MixShare,
    /// Etcd: linearizable ranges, of one key each.
    pub range: MixShare,
    /// Etcd: serializable ranges, of one key each.
    pub serializable: MixShare,
    /// Etcd: transactions, each a put of one key if it is as this client knows it.
    pub txn: MixShare,
}

impl Mix {
    /// The operations that a database has, by name.
    pub fn of(&self, kind: DatabaseKind) -> Vec<(&'static str, MixShare)> {
        match kind {
            DatabaseKind::Cassandra => vec![("read", self.read), ("write", self.write)],
            DatabaseKind::Etcd => {
                vec![("put", self.put), ("range", self.range), ("serializable", self.serializable), ("txn", self.txn)]
            }
        }
    }

    /// Those of all databases.
    pub fn all(&self) -> Vec<(&'static str, MixShare)> {
        DatabaseKind::ALL.into_iter().flat_map(|kind| self.of(kind)).collect()
    }
}

/// Arrivals of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalsChoice {
    /// Evenly spaced.
    #[default]
    Constant,
    /// Exponential gaps.
    Poisson,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoordinatorsChoice {
    /// A replica of the key, in turn.
    TokenAware,
    /// Any node, in turn.
    RoundRobin,
    /// A replica of the key in the site of the load, in turn.
    Local,
    /// Whoever leads.
    Leader,
}

/// Who says when a write was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimestampsChoice {
    /// The load.
    #[default]
    Client,
    /// The node that is asked.
    Coordinator,
}

/// `load.ops:`, in the order written.
#[derive(Debug, Clone, PartialEq)]
pub struct OpsChoice(pub Vec<(String, OpShare)>);

impl<'de> Deserialize<'de> for OpsChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = OpsChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("operations with weights or rates, such as { insert: 1, q1: 2 } or { insert: 500/s, q1: { threads: 4 } }")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OpsChoice, A::Error> {
                let mut ops = Vec::new();
                while let Some(op) = map.next_entry()? {
                    ops.push(op);
                }
                match ops.is_empty() {
                    true => Err(A::Error::custom("no operation is named; write { insert: 1 }")),
                    false => Ok(OpsChoice(ops)),
                }
            }
        }

        deserializer.deserialize_map(Choice)
    }
}

fn keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Spec>, D::Error> {
    choice::text(deserializer).map(Some)
}

fn two() -> Count {
    Count(2)
}

fn quorum() -> String {
    "quorum".to_owned()
}

fn timeout() -> Delay {
    Delay::from_secs(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_keep_the_order_of_the_file() {
        let ops: OpsChoice = serde_json::from_str(r#"{"z":"1","a":"2","m.q":"0.5"}"#).unwrap();
        assert_eq!(ops.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["z", "a", "m.q"]);
        assert!(serde_json::from_str::<OpsChoice>("{}").is_err());
    }
}
