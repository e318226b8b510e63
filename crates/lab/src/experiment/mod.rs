//! The experiment file: what a user writes.
//!
//! The structs here are the file's grammar; [`source`] reads the text and finds the place of every
//! complaint; [`crate::plan`] makes a checked [`crate::Plan`] of it.

mod attached;
mod bundle;
mod choice;
mod cluster;
mod differences;
mod factor;
mod fault;
mod foreign;
mod found;
mod ground;
mod impairment;
mod kubernetes;
mod load;
mod machines;
mod parallel;
mod search;
mod share;
mod signal;
mod source;
mod topology;
mod tree;
mod vary;

use std::{borrow::Cow, collections::BTreeMap};

use brownout_units::{Count, Delay, Share};
use serde::{Deserialize, de::IgnoredAny};

pub(crate) use choice::MAX_RATE;
pub use choice::{CassandraChoice, Names, RateChoice, Span, StepChoice};
pub use cluster::{
    AccessSection, Addresses, ClusterSection, EncryptionSection, EtcdChoice, InternodeChoice, JitChoice, Setting,
};
pub use factor::{Factor, Level};
pub use fault::*;
pub use found::ContainersFound;
pub(crate) use found::moved;
pub use ground::{ContainersSection, GroundSection};
pub use impairment::{GilbertElliottSection, LinkEntry, MarkovSection};
pub(crate) use impairment::{checked, gap, limit, mtu};
pub use kubernetes::{KubernetesSection, OwnCluster, OwnSection, Pods};
pub use load::{ArrivalsChoice, CoordinatorsChoice, LoadSection, Mix, OpsChoice, TimestampsChoice};
pub use machines::{Machine, MachineSection, Start};
pub use parallel::ParallelChoice;
pub(crate) use search::Method;
pub use search::{MaxRateSection, Search, SearchSection};
pub use share::{Amount, MixShare, OpShare};
pub use signal::Signal;
pub(crate) use source::one_of;
pub use source::{FileError, Source};
pub use topology::{OverlayChoice, SiteSection, Topology};
pub use vary::Variation;

/// An experiment file. Unknown keys are errors.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Experiment {
    /// What the experiment is to answer, in words. Default: none.
    pub question: Option<String>,
    /// What it is run on, if that is no lab: containers that run already. Default: a lab of its own.
    pub ground: Option<GroundSection>,
    /// The emulated network. Default: all of its defaults.
    #[serde(default)]
    pub network: NetworkSection,
    /// The cluster. Default: three nodes of Cassandra 5.0.
    #[serde(default)]
    pub cluster: ClusterSection,
    /// The load. Required: at least `rate` or `threads`.
    pub load: LoadSection,
    /// The phases of each trial. Required.
    pub phases: PhasesSection,
    /// What goes wrong, and when. Default: nothing (an A/A run).
    #[serde(default)]
    pub faults: Vec<FaultEntry>,
    /// What the cells of the design differ in: factors with their levels; see [`Variation`]. Default: nothing, one cell.
    pub vary: Option<IgnoredAny>,
    /// What is looked for, instead of cells that are known beforehand; see [`SearchSection`]. Excludes `vary`, `trials` and
    /// `without-fault`. Default: nothing.
    pub search: Option<IgnoredAny>,
    /// Trials of each cell. Default: 1.
    #[serde(default = "one")]
    pub trials: Count,
    /// Trials without a fault beside each trial of the cells, in an order of their own. Default: 1 where there are faults and
    /// two trials or more, else 0.
    pub without_fault: Option<Count>,
    /// Times that a trial is tried until one is valid. Default: 3.
    #[serde(default = "three")]
    pub attempts: Count,
    /// Trials that a cluster serves, one after the other, its tables made anew for each. Default: 10.
    #[serde(default = "ten")]
    pub fresh_every: Count,
    /// Labs that work at once, each on processors of its own, and each with a cluster and a trial of its own: a number,
    /// or `auto`, as many as this machine has room for. A search has one. Default: 1, since labs beside each other
    /// still share memory bandwidth, caches and the disk.
    #[serde(default)]
    pub parallel: ParallelChoice,
    /// What counts as good. Required.
    pub objective: ObjectiveSection,
    /// A change that is smaller is none: 0.1% to 50%. Excludes `search`. Default: 1%.
    pub margin: Option<Share>,
    /// The number that all randomness is drawn from. Default: 1.
    #[serde(default = "one")]
    pub seed: Count,
    /// The machines of its ground, those with hosts first; none: all is on this one.
    #[serde(skip)]
    pub machines: Vec<Machine>,
    /// The pods of its ground; none: it is no Kubernetes.
    #[serde(skip)]
    pub pods: Option<Pods>,
    /// The containers of its ground, as they were found; none: it has a lab of its own.
    #[serde(skip)]
    pub found: Option<ContainersFound>,
    /// What of the file is not used on that ground, one sentence each.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

/// `network:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NetworkSection {
    /// TCP congestion control of every host. Default: cubic. (BBR, some kernels' default, hides loss.)
    pub congestion_control: String,
    /// Largest packet on the wire, bytes. Default: 1500.
    pub mtu: Count,
    /// TCP congestion control of single hosts, by name. Default: as all.
    pub congestion_control_of: BTreeMap<String, String>,
    /// A ready-made topology: `one-host` (nothing between hosts), `lan` (0.1 ms), `wan` (three sites on three
    /// continents). Excludes `sites` and `links`. Default: one-host.
    pub topology: Option<Topology>,
    /// Sites by name, each with its hosts. A site is a data centre of Cassandra, too. Default: none.
    pub sites: BTreeMap<String, SiteSection>,
    /// What lies between sites, or between hosts, all the time: the distance, not a fault. Default: nothing.
    pub links: Vec<LinkEntry>,
    /// What carries the packets of databases and loads, on top of the emulated network: `vxlan` (the kernel's), `wireguard`,
    /// `wireguard+vxlan` (VXLAN inside of WireGuard), `openvpn` (an installed one; node n1 is its server, and passes on what all
    /// others send each other), or `none`. Faults and distances act below it. Default: none.
    pub overlay: OverlayChoice,
    /// Every host asks every other once a second, by NTP over the network, what time it is: round trips and clock offsets
    /// between all of them are in the findings. Host `load` has the true time. Default: false.
    pub clock_matrix: bool,
}

impl Default for NetworkSection {
    fn default() -> Self {
        NetworkSection {
            congestion_control: "cubic".to_owned(),
            mtu: Count(1500),
            congestion_control_of: BTreeMap::new(),
            topology: None,
            sites: BTreeMap::new(),
            links: Vec::new(),
            overlay: OverlayChoice::None,
            clock_matrix: false,
        }
    }
}

/// `phases:`; each a whole number of seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PhasesSection {
    /// The longest the warm-up may take; it ends when latency is stationary over 40 s, or over what this leaves to
    /// settle. Required.
    pub warm_up: Delay,
    /// Without a fault, measured. Required.
    pub baseline: Delay,
    /// With the faults. Required if there are any.
    pub fault: Option<Delay>,
    /// After the faults were healed. Required if there are any.
    pub recovery: Option<Delay>,
}

/// `objective:` — what counts as good: one percentile and its response time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ObjectiveSection {
    /// Half of the operations within this.
    pub p50: Option<Delay>,
    /// 95 % of the operations within this.
    pub p95: Option<Delay>,
    /// 99 % of the operations within this.
    pub p99: Option<Delay>,
    /// 99.9 % of the operations within this.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<Delay>,
    /// The one operation that it is of, by name: `read`, `write`, or one of `load.ops`. Default: all together.
    pub operation: Option<String>,
    /// The phases in which a miss makes the run fail with exit code 1. Default: [baseline].
    #[serde(rename = "in", default = "baseline")]
    pub phases: Vec<String>,
}

impl ObjectiveSection {
    /// Each percentile that was given, as a share, with its response time.
    pub fn given(&self) -> Vec<(Share, Delay)> {
        [(0.5, self.p50), (0.95, self.p95), (0.99, self.p99), (0.999, self.p99_9)]
            .into_iter()
            .filter_map(|(share, response)| Share::new(share).zip(response))
            .collect()
    }
}

fn one() -> Count {
    Count(1)
}

fn three() -> Count {
    Count(3)
}

fn ten() -> Count {
    Count(10)
}

fn baseline() -> Vec<String> {
    vec!["baseline".to_owned()]
}

/// Something wrong with a value, before it is known where in which file that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The key within the section; empty for the whole of it.
    pub key: Cow<'static, str>,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Complaint {
    /// About the value of a key.
    pub fn at(key: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Complaint {
        Complaint { key: key.into(), message: message.into() }
    }
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.key.as_ref() {
            "" => f.write_str(&self.message),
            key => write!(f, "{key}: {}", self.message),
        }
    }
}
