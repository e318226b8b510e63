//! What others have published, as far as a study stands beside it.

use std::{fs, path::Path};

use serde::Deserialize;

use crate::StudyError;

/// `published.json` of a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// One slow node.
    pub delay: ClosedLoops,
    /// Two slow nodes.
    pub two_nodes: ClosedLoops,
    /// The loss that was not there.
    pub ping: Ping,
    /// The paper that was to be reproduced.
    pub paper: Paper,
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
    /// `reads`, `mixed` or `writes`.
    pub load: String,
    /// Where 10 % are lost.
    pub from: String,
    /// Where 50 % are lost.
    pub to: String,
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
