//! What others have published, as far as a study stands beside it.

use std::{fs, path::Path};

use serde::Deserialize;

use crate::StudyError;

/// `published.json` of a study; its field `study` says which one it is, and so which tables there are.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "study", rename_all = "kebab-case")]
pub enum Published {
    /// One slow or lossy node.
    SlowAndFlaky(Box<SlowAndFlaky>),
    /// Cassandra on a virtual network.
    VirtualNetwork(VirtualNetwork),
    /// Latencies and clocks over three topologies.
    TopologiesAndClocks(TopologiesAndClocks),
}

/// Of the study slow-and-flaky.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowAndFlaky {
    /// One slow node.
    pub delay: ClosedLoops,
    /// Two slow nodes.
    pub two_nodes: ClosedLoops,
    /// The loss that was not there.
    pub ping: Ping,
    /// The paper that was to be reproduced.
    pub paper: Paper,
    /// What the same paper has of etcd.
    pub etcd: Etcd,
}

/// Closed loops beside a delay.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoops {
    /// Where it was published, and of what.
    pub source: String,
    /// Virtual users.
    pub threads: u32,
    /// How many of three nodes were slow.
    pub slow_nodes: u32,
    /// One for each delay.
    pub rows: Vec<ClosedLoop>,
}

/// What a closed loop did beside one delay.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// The level that ours has for it.
    pub delay: String,
    /// The same in ms.
    pub delay_ms: f64,
    /// How the delay is known.
    pub told: String,
    /// Operations per second.
    pub ops: f64,
    /// Their mean latency, ms.
    pub mean_ms: Option<f64>,
    /// The median.
    pub median_ms: Option<f64>,
    /// The 95th percentile.
    pub p95_ms: Option<f64>,
    /// The 99th.
    pub p99_ms: Option<f64>,
}

/// A check by ping.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// Where it was published.
    pub source: String,
    /// The loss that was asked for.
    pub asked: f64,
    /// Pings sent …
    pub sent: u32,
    /// … and answered.
    pub answered: u32,
}

/// Losses of throughput, and danger zones.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Where it was published, and of what.
    pub source: String,
    /// By delay.
    pub delay: Vec<Lost>,
    /// By loss of packets.
    pub loss: Vec<Lost>,
    /// Where the loss goes from 10 % to 50 %.
    pub zones: Vec<PublishedZone>,
}

/// What a severity takes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// The delay, or the share of packets.
    pub severity: String,
    /// Share of the throughput that is lost.
    pub loss: f64,
}

/// A danger zone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedZone {
    /// `delay` or `loss`.
    pub fault: String,
    /// `reads`, `mixed` or `writes`; of etcd whom the fault hits, `leader` or `follower`: only reads have a zone there.
    pub load: String,
    /// Where 10 % are lost.
    pub from: String,
    /// Where 50 % are lost.
    pub to: String,
}

/// What the paper says of etcd.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Etcd {
    /// Where it was published, and of what.
    pub source: String,
    /// Its findings, each with its figures.
    pub findings: Vec<Finding>,
    /// Where the loss of throughput of reads goes from 10 % to 50 %.
    pub zones: Vec<PublishedZone>,
}

/// A finding in words.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What was found.
    pub what: String,
    /// Its figures.
    pub figures: String,
    /// Which table of ours stands beside it.
    pub beside: String,
}

/// Of the study virtual-network.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualNetwork {
    /// Where it was published, and of what.
    pub source: String,
    /// Widths of a column in bytes, in the order of `changes`.
    pub widths: Vec<u32>,
    /// By replication and by what the virtual network was compared with.
    pub rows: Vec<Compared>,
}

/// What a virtual network changed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// Copies of each row.
    pub replication: u32,
    /// What without it: `unencrypted`, `encrypted`, `node only encryption`.
    pub against: String,
    /// (with − without) ÷ without, by width.
    pub changes: Vec<f64>,
    /// Its mean over the widths, as published.
    pub all: f64,
}

/// Of the study topologies-and-clocks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologiesAndClocks {
    /// Where it was published, and of what.
    pub source: String,
    /// Virtual users.
    pub threads: u32,
    /// In their order.
    pub topologies: Vec<Topology>,
}

/// One topology, and what was run on it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// The level that ours has for it.
    pub name: String,
    /// Round trips from the load to each node, ms; where they are not told, none.
    pub round_trips_ms: Vec<f64>,
    /// One for each load.
    pub rows: Vec<Ran>,
}

/// What cassandra-stress printed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// `write`, `read`, `mixed`: the level that ours has for it.
    pub load: String,
    /// Operations per second; none: in a figure that is not in the text.
    pub ops: Option<f64>,
    /// Their mean latency, ms.
    pub mean_ms: Option<f64>,
    /// The median.
    pub median_ms: Option<f64>,
    /// The 95th percentile.
    pub p95_ms: Option<f64>,
    /// The 99th.
    pub p99_ms: Option<f64>,
}

impl Published {
    /// Reads a study's file.
    ///
    /// # Errors
    /// It cannot be read, or is not as it has to be.
    pub fn read(path: &Path) -> Result<Published, StudyError> {
        let text = fs::read_to_string(path).map_err(|error| StudyError::file(path, error))?;
        serde_json::from_str(&text).map_err(|error| StudyError::file(path, error))
    }
}
