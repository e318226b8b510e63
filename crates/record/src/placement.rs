//! Where rows lie, who is asked for them and how far hosts stand apart: what arithmetic about a run needs of its plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The cluster and the load as the plan lays them out. Documented field by field in `docs/json.md`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The nodes, in the order of their names.
    pub ring: Vec<NodePlacement>,
    /// `token-aware`: a replica of the row among `asked`, in turn, any of `asked` if none of them is one; `round-robin`: any of
    /// `asked`, in turn.
    pub coordinators: String,
    /// The nodes that the load has connections to.
    pub asked: Vec<String>,
    /// What the load does; empty where the plan does not know what an operation does.
    pub operations: Vec<OperationPlacement>,
    /// Ordered pairs of hosts between which something lies all the time.
    pub distances: Vec<PairDistance>,
}

/// One node on the token ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlacement {
    /// Its name.
    pub node: String,
    /// Its one token: it holds what lies above the token before it, up to its own.
    pub token: i64,
    /// Its data centre.
    pub site: String,
    /// Its rack.
    pub rack: String,
}

/// One operation of the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationPlacement {
    /// Its name in the record: `read`, `write`.
    pub operation: String,
    /// Whether it only reads.
    pub reads: bool,
    /// Its share of all operations, 0 to 1; none where only the run tells: closed loops of several operations, each with its own
    /// users.
    pub share: Option<f64>,
    /// "quorum".
    pub consistency: String,
    /// Copies of its rows by data centre (NetworkTopologyStrategy).
    pub copies: BTreeMap<String, u32>,
    /// How many different rows it visits, each as often as any other.
    pub rows: u64,
}

/// What lies between two hosts all the time, one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairDistance {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// The median delay that is declared, ns.
    pub delay_ns: u64,
    /// The least that any packet can have, ns: less than the median with jitter, 0 where some packets skip the delay.
    pub least_ns: u64,
}
