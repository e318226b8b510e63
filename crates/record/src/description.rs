//! What a run was meant to be: the parts of the plan that findings and reports need.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Document, Placement, Subject};

/// The run as planned. Written before anything starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The experiment's name: its file's name without the ending.
    pub name: String,
    /// The question in the experiment file's words.
    pub question: Option<String>,
    /// Every host of the lab, nodes first, then the host of the load.
    pub hosts: Vec<HostDescription>,
    /// "Cassandra 5.0.9", "etcd 3.6.16"; of several versions at once "Cassandra 5.0.9 (n1, n2), 4.1.10 (n3)".
    pub database: String,
    /// Whether the cluster is none of the run's own: it was there before, and its hosts and its network are not known.
    #[serde(default)]
    pub external: bool,
    /// What it is run on, if that is no lab and no cluster that is only asked: "3 containers of the Compose project shop, Docker
    /// 20.10.24"; empty for those, and in runs of a version that did not tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ground: String,
    /// The load.
    pub load: LoadDescription,
    /// Phases of each trial, in order.
    pub phases: Vec<PhaseDescription>,
    /// The faults, one line each, as the plan says them, with their effect on round-trip times.
    pub faults: Vec<String>,
    /// The network as planned, in words, one line for each site, each pair of sites and whatever else is not "one LAN
    /// without limits"; empty for that.
    #[serde(default)]
    pub network: Vec<String>,
    /// What the hosts' packets are carried in: `vxlan`, `wireguard`, `wireguard+vxlan`, `openvpn`; empty: nothing.
    #[serde(default)]
    pub overlay: String,
    /// What the database itself encrypts, in words, one line each: "between all nodes", "to clients"; empty: nothing. Of an
    /// external cluster only what the load knows: whether its own connections are encrypted.
    #[serde(default)]
    pub encryption: Vec<String>,
    /// The ordered pairs of hosts that have a limit of rate all the time: what waits before it is the load's doing. None:
    /// the run is of a version that did not tell; see [`Description::may_queue`].
    #[serde(default)]
    pub bottlenecks: Option<Vec<Subject>>,
    /// Where rows lie, who is asked and how far hosts stand apart. None: nobody laid that out, or the run is of a version
    /// that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// How many trials were planned.
    pub trials: u32,
    /// What counts as good.
    pub objective: Objective,
    /// Length of an interval of the series, ns.
    pub interval_ns: u64,
    /// Things to check before trusting the result.
    pub warnings: Vec<String>,
}

impl Description {
    /// Whether packets of a pair may wait before a limit of rate, or be dropped there, without any fault. A run that does not
    /// tell which pairs have one may have it on each, unless its network is one LAN without limits.
    pub fn may_queue(&self, pair: &Subject) -> bool {
        self.bottlenecks.as_ref().map_or(!self.network.is_empty(), |known| known.contains(pair))
    }
}

/// One host of the lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostDescription {
    /// Its name: `n1`, `load`.
    pub name: String,
    /// Its address inside the lab: with an overlay the one below it. Of a node of an external cluster the one that it was
    /// asked at, with the port; of the load there, which runs on the machine itself, empty.
    pub address: String,
    /// `node` or `load`.
    pub role: String,
}

/// The load as planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadDescription {
    /// "open, 400/s, constant arrivals", "closed, 64 threads".
    pub text: String,
    /// Operations per second offered by the clock; none in a closed loop, or when a share of the capacity was asked.
    pub rate: Option<f64>,
    /// Virtual users where all of the load is closed; else none.
    pub threads: Option<u32>,
    /// The operations, if each is a load of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<LoadPart>,
    /// "quorum".
    pub consistency: String,
    /// Copies of each row.
    pub replication: u32,
    /// Client time-out, ns.
    pub timeout_ns: u64,
}

/// An operation that is a load of its own: it has a rate, or users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPart {
    /// Its name in the record: `read`, `write`.
    pub operation: String,
    /// Operations per second, by the clock.
    pub rate: Option<f64>,
    /// Virtual users.
    pub threads: Option<u32>,
}

impl LoadDescription {
    /// Operations in closed loops that stand beside open ones; empty where all of the load is of one kind.
    pub fn closed_beside_open(&self) -> Vec<&LoadPart> {
        let closed: Vec<&LoadPart> = self.parts.iter().filter(|part| part.threads.is_some()).collect();
        if closed.len() == self.parts.len() { Vec::new() } else { closed }
    }
}

/// One phase of a trial as planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseDescription {
    /// `warm-up`, `baseline`, `fault`, `recovery`.
    pub name: String,
    /// Planned length, ns; the longest for a warm-up.
    pub length_ns: u64,
}

/// What counts as good.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// A good operation is answered without error within this time from its intended start, ns.
    pub response_ns: u64,
    /// The share of operations that has to be good, 0 to 1: 0.99 for `p99`.
    pub share: f64,
    /// The phases in which a miss makes the run fail (exit code 1).
    pub phases: Vec<String>,
    /// The operation that this is of, by name; none: all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// The machine and the versions a run was made with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Of Brownout.
    pub version: String,
    /// `uname -r`.
    pub kernel: String,
    /// Model of the first processor.
    pub cpu: String,
    /// Processors the lab may use.
    pub cores: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// `tsc`, `kvm-clock`, …
    pub clock_source: String,
    /// "root" or "user namespace".
    pub privilege: String,
    /// What the emulator thread got: "SCHED_FIFO 50", "SCHED_OTHER".
    pub emulator_scheduling: String,
    /// Whether idle processors slept: "awake (haltpoll)", "asleep: …" with why; empty in runs before 2026-11-23.
    #[serde(default)]
    pub idle: String,
    /// TCP congestion control of the hosts, as read back.
    pub congestion_control: String,
    /// "17.0.15, /usr/lib/jvm/…".
    pub java: String,
    /// The system's settings in force, as text.
    pub system_settings: String,
    /// The seed all others are drawn from.
    pub seed: u64,
}

impl Document for Description {
    const WHAT: &'static str = "description";
    const FORMAT: u64 = 2;

    fn upgrade(format: u64, fields: &mut Map<String, Value>) -> Result<(), String> {
        if format != 1 {
            return Err(format!("there was never a format {format} of it"));
        }
        // Format 1 called the database the system.
        let database = fields.remove("system").ok_or("it has no system")?;
        fields.insert("database".to_owned(), database);
        Ok(())
    }
}

impl Document for Environment {
    const WHAT: &'static str = "environment";
}
