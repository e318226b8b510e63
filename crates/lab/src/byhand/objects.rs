//! The objects of a lab's answers; `--json` prints them (docs/lab-by-hand.md).

use serde::{Deserialize, Serialize};

/// The state of a lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// Version of this object.
    pub format: u32,
    /// The lab's name.
    pub name: String,
    /// What runs in it: "Cassandra 5.0.9".
    pub system: String,
    /// When it was started, ms since 1970 UTC.
    pub started_unix_ms: u64,
    /// What its randomness is drawn from.
    pub seed: u64,
    /// Sites and distances, in words.
    pub network: Vec<String>,
    /// The nodes, then the host of the load.
    pub hosts: Vec<HostStatus>,
    /// Every ordered pair.
    pub links: Vec<LinkStatus>,
    /// What chaos does, if it is on.
    pub chaos: Option<String>,
    /// Hosts whose interface failed, and what this lab cannot do.
    pub notes: Vec<String>,
    /// Whether what commands have put in force shows; none: not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<CheckStatus>>,
}

/// The state of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// `node` or `load`.
    pub role: String,
    /// `UP`, `STARTING` (runs, and answers nobody yet), `PAUSED`, `DOWN`; of the host of the load always `UP`.
    pub state: String,
    /// Where others reach it in the lab: on the overlay, if there is one.
    pub address: String,
    /// Its site; none if there are no sites.
    pub site: Option<String>,
    /// What is wrong with its links, in words with magnitudes; `FAILED` first if its interface failed; empty: nothing.
    pub network: Vec<String>,
    /// The groups of the partition that it is in, from 1; empty if there is no partition.
    pub partition: Vec<usize>,
    /// What is wrong with its disks, in words.
    pub disk: Vec<String>,
    /// The share of the processors that it is limited to.
    pub cpu_share: Option<f64>,
    /// Its clock, as its own NTP answers tell it.
    pub clock: Option<ClockStatus>,
}

/// A clock, against the machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStatus {
    /// Ahead of the true time by this (negative: behind), ns.
    pub offset_ns: i64,
    /// The true offset lies within this of it, ns.
    pub error_ns: u64,
    /// Gained in each second, ns: as set, not measured.
    pub drift_ppb: i64,
}

/// An ordered pair of hosts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// What lies between them all the time; none: nothing.
    pub distance: Option<String>,
    /// What is wrong beside that, oldest first.
    pub impairments: Vec<String>,
    /// Nothing passes.
    pub cut: bool,
}

/// One fault that a command has put in force, on one host or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckStatus {
    /// `slow`, `pause`, …
    pub kind: String,
    /// The host, or `n1>n2`; empty for a partition.
    pub subject: String,
    /// `proven` or `not seen`.
    pub verdict: String,
    /// What was seen, in words.
    pub evidence: String,
}

/// All ordered pairs of hosts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Matrix {
    /// Version of this object.
    pub format: u32,
    /// The hosts, in order.
    pub hosts: Vec<String>,
    /// Every ordered pair.
    pub pairs: Vec<ClockRow>,
}

/// One ordered pair.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClockRow {
    /// Who asks, by its own clock.
    pub from: String,
    /// Who answers, by its own.
    pub to: String,
    /// Median one-way delay of probes, ns, on the machine's one monotonic clock; none: none arrived.
    pub one_way_ns: Option<u64>,
    /// The share of probes that did not arrive.
    pub loss: Option<f64>,
    /// δ of the best exchange: the round trip without the time at the server, ns; none: no answer.
    pub rtt_ns: Option<u64>,
    /// θ of that exchange: the clock of `to` is ahead of that of `from` by this, ns.
    pub offset_ns: Option<i64>,
    /// The true offset lies within this of it, ns: δ/2 and the clocks' resolution.
    pub error_ns: Option<u64>,
}
