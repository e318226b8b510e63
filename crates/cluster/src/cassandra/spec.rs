use std::collections::BTreeMap;

use brownout_units::Bytes;
use serde::Serialize;

use super::{dialect::other_name, encryption::Encryption, site::Site};

/// How a Cassandra cluster is to be; one node runs on each host it is started on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CassandraSpec {
    /// The name that the nodes know their cluster by.
    pub cluster_name: String,
    /// The JVM's heap, in each node.
    pub heap: Bytes,
    /// Which compiler of the JVM.
    pub jit: Jit,
    /// Further keys of cassandra.yaml, or others than Brownout's own; each value is YAML on one line.
    pub settings: BTreeMap<String, String>,
    /// The same of single nodes, by their names; they go before those of all.
    pub settings_of: BTreeMap<String, BTreeMap<String, String>>,
    /// What is encrypted, with certificates made for this cluster.
    pub encryption: Encryption,
    /// The port on the loopback address of its host at which a node takes nodetool: nodes that share a host, and so
    /// that address, need one each.
    pub jmx_port: u16,
    /// The data centre and rack of every node, by its name. Empty: all are in one, and Cassandra knows of none.
    pub sites: BTreeMap<String, Site>,
}

impl Default for CassandraSpec {
    fn default() -> Self {
        CassandraSpec {
            cluster_name: "brownout".to_owned(),
            heap: DEFAULT_HEAP,
            jit: Jit::Default,
            settings: BTreeMap::new(),
            settings_of: BTreeMap::new(),
            encryption: Encryption::default(),
            jmx_port: 7199,
            sites: BTreeMap::new(),
        }
    }
}

impl CassandraSpec {
    /// What is set of a node: of all, and of it alone. That goes before, whichever of its names a key has there.
    pub(super) fn settings_for(&self, node: &str) -> BTreeMap<String, String> {
        let mut settings = self.settings.clone();
        if let Some(own) = self.settings_of.get(node) {
            settings.retain(|key, _| other_name(key).is_none_or(|other| !own.contains_key(other)));
            settings.extend(own.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        settings
    }
}

/// The just-in-time compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Jit {
    /// Only the first: quick to warm up, slower once warm. For demonstrations and tests.
    C1,
    /// The JVM's own choice: both. For measurements.
    Default,
}

/// The heap of a node unless another is asked for.
///
/// About 65 MiB of it live. In 192 MiB the old generation was full every 100 s under 400 operations/s, and collecting it
/// stopped the node for 0.3 s: what it then knew of the others' latencies (the dynamic snitch) made it read from the slow
/// replica for minutes, in some trials and not in others. In this it is full once in many minutes.
pub const DEFAULT_HEAP: Bytes = Bytes(512 << 20);

/// Resident memory that a node takes beside its heap: code, threads, off-heap memtables, mapped jars and archive.
/// Measured with a heap of 192 MiB: 280 to 340 MiB in all when fresh, up to 450 MiB after load, and some to spare.
const BESIDE_HEAP: u64 = 320 << 20;

/// Memory that `nodes` nodes with this heap need when loaded, in bytes: to be compared with what is available
/// before anything starts.
pub fn memory_needed(nodes: usize, heap: Bytes) -> u64 {
    (nodes as u64).saturating_mul(heap.0.saturating_add(BESIDE_HEAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_small_nodes_need_a_gigabyte_and_a_half() {
        assert_eq!(memory_needed(3, Bytes(192 << 20)), 1536 << 20);
        assert_eq!(memory_needed(usize::MAX, Bytes(u64::MAX)), u64::MAX);
    }
}
