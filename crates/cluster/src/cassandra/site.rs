use serde::Serialize;

/// Where a node stands, as Cassandra knows it; its snitch tells the other nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Site {
    /// The data centre, by which `NetworkTopologyStrategy` and `LOCAL_QUORUM` go.
    pub dc: String,
    /// The rack in it: replicas are placed in different racks where there are enough.
    pub rack: String,
}
