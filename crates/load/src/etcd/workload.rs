//! The load of an etcd: keys that are put, read and exchanged by weight.

use crate::{LoadError, Pace, value};

/// Where flows of single operations begin, after [`crate::workload::MIX`] and [`crate::workload::FILLING`].
pub(super) const APART: usize = 2;

/// The load of an etcd: one value per key; puts, reads and transactions by weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdLoad {
    /// What every key begins with. Nobody else may write keys that begin so.
    pub prefix: String,
    /// Weight of puts.
    pub put: u32,
    /// Weight of linearizable reads of one key.
    pub range: u32,
    /// Weight of serializable reads of one key: what the asked member has, which may be old.
    pub serializable: u32,
    /// Weight of transactions: if the key is as this client knows it (its `mod_revision`), it is put, else read.
    pub txn: u32,
    /// Number of keys, drawn uniformly.
    pub population: u64,
    /// Size of a value in bytes, at least [`EtcdLoad::SMALLEST_VALUE`].
    pub value_size: u64,
    /// How many watches there are on all keys, spread over the coordinators; [`crate::Bucket::watches`] has how long
    /// events took to come. More than 0 only with one load thread.
    pub watchers: u32,
}

impl EtcdLoad {
    /// A value begins with the key and the version it was written for, 8 bytes each.
    pub const SMALLEST_VALUE: u64 = value::HEADER as u64;
    /// The largest value: by default etcd takes requests of 1.5 MiB (`--max-request-bytes`). 4 KiB of them are left for
    /// what surrounds the value: the key, up to three times, and lengths.
    pub const LARGEST_VALUE: u64 = (1536 << 10) - (4 << 10);
    /// The largest population, 2^26: eleven bytes per key are kept to know its newest revision.
    pub const LARGEST_POPULATION: u64 = 1 << 26;
    /// The most watches.
    pub const MOST_WATCHERS: u32 = 64;
    /// The longest prefix of keys, in bytes.
    pub const LONGEST_PREFIX: usize = 256;
    /// Names of the operations, as the account has them, in the order of [`EtcdLoad::apart`].
    pub const OPERATIONS: [&'static str; 4] = ["put", "range", "serializable", "txn"];

    /// Paces for [`crate::Engine::set_paces`]: each operation a load of its own, whatever becomes of the others, in the
    /// order of [`EtcdLoad::OPERATIONS`]. The weights count for nothing then.
    pub fn apart(paces: [Pace; 4]) -> Vec<Pace> {
        [Pace::Idle, Pace::Idle].into_iter().chain(paces).collect()
    }

    /// The weights in the order of [`EtcdLoad::OPERATIONS`].
    pub fn weights(&self) -> [u32; 4] {
        [self.put, self.range, self.serializable, self.txn]
    }

    /// Checks that this load can be run; [`crate::Engine::start_etcd_unless`] does the same.
    ///
    /// # Errors
    /// [`LoadError::Config`] with what to write instead.
    pub fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: String, remedy| Err(LoadError::Config { what, remedy });
        if self.prefix.is_empty() || self.prefix.len() > Self::LONGEST_PREFIX {
            let what = format!("a prefix of {} bytes for the keys of the load", self.prefix.len());
            return refuse(what, "write 1 to 256 bytes, so that no other keys are touched");
        }
        if self.weights() == [0; 4] {
            return refuse("the weights of all operations are 0".into(), "give at least one a weight");
        }
        if !(1..=Self::LARGEST_POPULATION).contains(&self.population) {
            return refuse(
                format!("a population of {} keys is not between 1 and {}", self.population, Self::LARGEST_POPULATION),
                "write a population between the two",
            );
        }
        if !(Self::SMALLEST_VALUE..=Self::LARGEST_VALUE).contains(&self.value_size) {
            let (smallest, largest) = (Self::SMALLEST_VALUE, Self::LARGEST_VALUE);
            return refuse(
                format!("values of {} bytes are not between {smallest} and {largest} bytes", self.value_size),
                "below they cannot be verified, above etcd does not take them; write a size between the two",
            );
        }
        if self.watchers > Self::MOST_WATCHERS {
            return refuse(format!("{} watchers are too many", self.watchers), "write 0 to 64");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_loads_are_refused_with_a_remedy() {
        let load = || EtcdLoad {
            prefix: "brownout/".into(),
            put: 1,
            range: 1,
            serializable: 1,
            txn: 1,
            population: 10,
            value_size: 16,
            watchers: 64,
        };
        assert!(load().check().is_ok());
        let broken: [fn(&mut EtcdLoad); 8] = [
            |load| load.prefix.clear(),
            |load| load.prefix = "x".repeat(257),
            |load| (load.put, load.range, load.serializable, load.txn) = (0, 0, 0, 0),
            |load| load.population = 0,
            |load| load.population = EtcdLoad::LARGEST_POPULATION + 1,
            |load| load.value_size = 15,
            |load| load.value_size = EtcdLoad::LARGEST_VALUE + 1,
            |load| load.watchers = 65,
        ];
        for (row, spoil) in broken.iter().enumerate() {
            let mut load = load();
            spoil(&mut load);
            assert!(matches!(load.check(), Err(LoadError::Config { .. })), "row {row}");
        }
    }
}
