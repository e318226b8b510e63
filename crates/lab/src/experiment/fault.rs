//! `faults:` of an experiment file, and the same words typed at a lab by hand.

use brownout_network::{Distribution, Loss};
use brownout_units::{BitRate, Count, Delay, Share};
use serde::Deserialize;

use super::{
    Complaint,
    choice::{DriftChoice, Names, QueueChoice, Span, StepChoice},
    impairment::{GilbertElliottSection, LinkEntry, MarkovSection, all, loss},
    signal::Signal,
};

/// One entry of `faults:`: exactly one kind, and when.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FaultEntry {
    /// What a host sends is late.
    pub slow: Option<SlowFault>,
    /// What a host sends is lost in part.
    pub flaky: Option<FlakyFault>,
    /// What a host sends comes twice in part.
    pub duplicate: Option<ShareFault>,
    /// What a host sends is damaged in part.
    pub corrupt: Option<ShareFault>,
    /// What a host sends overtakes itself in part.
    pub reorder: Option<ReorderFault>,
    /// What a host sends has to pass a bottleneck.
    pub rate: Option<RateFault>,
    /// What a host sends may not be larger.
    pub mtu: Option<MtuFault>,
    /// Anything at once, on single links.
    pub link: Option<LinkEntry>,
    /// Hosts cannot reach one another.
    pub partition: Option<PartitionFault>,
    /// A node's process is paused.
    pub pause: Option<NodeFault>,
    /// A node's process is killed, and started again in the end.
    pub kill: Option<KillFault>,
    /// A node's process is asked to end, and started again in the end.
    pub stop: Option<NodeFault>,
    /// A node's process gets little of the processors.
    pub cpu: Option<CpuFault>,
    /// A node's disk is slow, or fails.
    pub disk: Option<DiskFaultEntry>,
    /// A node's clock is wrong.
    pub clock: Option<ClockFault>,
    /// Faults drawn at random, the same for the same seed.
    pub chaos: Option<Box<ChaosFault>>,
    /// When it begins, from the start of the phase `fault`. Default: 0.
    #[serde(default)]
    pub start: Delay,
    /// How long it lasts. Default: until the end of the phase `fault`.
    pub length: Option<Delay>,
    /// In force for `on`, then healed for `off`, over and over. Default: in force all the time.
    pub flap: Option<FlapSection>,
    /// Grows in equal steps, each for an equal part of the length, up to what was asked. Default: at once.
    pub ramp: Option<RampSection>,
}

impl FaultEntry {
    /// The words a fault may begin with.
    pub const KINDS: &'static [&'static str] = &[
        "slow",
        "flaky",
        "duplicate",
        "corrupt",
        "reorder",
        "rate",
        "mtu",
        "link",
        "partition",
        "pause",
        "kill",
        "stop",
        "cpu",
        "disk",
        "clock",
        "chaos",
    ];
    /// The words that say when.
    pub const TIMING: &'static [&'static str] = &["start", "length", "flap", "ramp"];
}

/// `flap:`
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlapSection {
    /// In force for this long. Required.
    pub on: Delay,
    /// Then healed for this long. Required.
    pub off: Delay,
}

/// `ramp:`
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RampSection {
    /// The number of steps up to what was asked; the last step is that. Required.
    pub steps: Count,
}

/// Which way a fault of a host works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// What the host sends.
    #[default]
    Out,
    /// What is sent to the host.
    In,
    /// Both.
    Both,
}

/// `slow:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SlowFault {
    /// The host, or a list of hosts; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// How much later each packet arrives, one way. Required.
    pub delay: Delay,
    /// How far single packets lie from that: the half-width of a uniform distribution, the standard deviation of the
    /// others. Default: 0.
    #[serde(default)]
    pub jitter: Delay,
    /// Of the jitter: `uniform`, `normal`, `pareto` or `paretonormal`. Default: uniform.
    #[serde(default, deserialize_with = "super::choice::text")]
    pub distribution: Distribution,
    /// Of one packet's jitter with the next one's. Default: 0%.
    #[serde(default)]
    pub correlation: Share,
    /// `out`: what the host sends; `in`: what is sent to it; `both`. Default: out.
    #[serde(default)]
    pub direction: Direction,
}

/// `flaky:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlakyFault {
    /// The host, or a list of hosts; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// The share of packets that vanish. Required, unless `gilbert-elliott` or `markov` says it.
    pub loss: Option<Share>,
    /// Of one packet's fate with the next one's: losses come in bursts. Default: 0%.
    #[serde(default)]
    pub correlation: Share,
    /// Loss by Gilbert's and Elliott's model. Default: none.
    pub gilbert_elliott: Option<GilbertElliottSection>,
    /// Loss by the Markov model with four states. Default: none.
    pub markov: Option<MarkovSection>,
    /// `out`, `in` or `both`. Default: out.
    #[serde(default)]
    pub direction: Direction,
}

impl FlakyFault {
    /// How packets are lost.
    pub fn model(&self) -> Result<Loss, Complaint> {
        loss(self.loss, self.correlation, self.gilbert_elliott, self.markov)?
            .ok_or_else(|| Complaint::at("loss", "the loss is missing; write loss: 10%, gilbert-elliott or markov"))
    }
}

/// `duplicate:` and `corrupt:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ShareFault {
    /// The host, or a list of hosts; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// The share of packets. Required.
    pub share: Share,
    /// Of one packet's fate with the next one's. Default: 0%.
    #[serde(default)]
    pub correlation: Share,
    /// `out`, `in` or `both`. Default: out.
    #[serde(default)]
    pub direction: Direction,
}

/// `reorder:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReorderFault {
    /// The host, or a list of hosts; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// The share of packets that skip the delay. Required.
    pub share: Share,
    /// The delay that all others have: without one, nothing can be overtaken. Required.
    pub delay: Delay,
    /// Of one packet's fate with the next one's. Default: 0%.
    #[serde(default)]
    pub correlation: Share,
    /// Only every so many packets may skip the delay. Default: 1.
    #[serde(default = "one")]
    pub gap: Count,
    /// `out`, `in` or `both`. Default: out.
    #[serde(default)]
    pub direction: Direction,
}

/// `rate:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateFault {
    /// The host, or a list of hosts; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// On each of its links, bits per second of IP packets. Required.
    pub rate: BitRate,
    /// What may wait before the bottleneck: bytes (`64KiB`) or time (`50ms`). Default: 100ms, and 32KiB at least.
    pub queue: Option<QueueChoice>,
    /// Bytes that each packet costs beside its own, such as 14 for Ethernet. Default: 0.
    #[serde(default)]
    pub overhead: Count,
    /// `out`, `in` or `both`. Default: out.
    #[serde(default)]
    pub direction: Direction,
}

/// `mtu:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MtuFault {
    /// The host, or a list of hosts; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// The largest IP packet that passes, bytes. Required.
    pub bytes: Count,
    /// `out`, `in` or `both`. Default: out.
    #[serde(default)]
    pub direction: Direction,
}

/// `partition:` exactly one of `groups`, `isolate`, `random`, or `from` with `to`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PartitionFault {
    /// Groups of hosts, `[[n1], [n2, n3]]`: who shares no group cannot reach one another. Hosts that are in none form one
    /// of their own; a host that is in two is a bridge.
    pub groups: Vec<Names>,
    /// These hosts cannot reach anyone, nor one another; of etcd also `leader` or `follower`.
    pub isolate: Option<Names>,
    /// Two groups of nodes drawn from the seed; the host of the load stays with the larger one.
    pub random: bool,
    /// One way only: what these send to `to` does not arrive.
    pub from: Option<Names>,
    /// See `from`.
    pub to: Option<Names>,
    /// `drop`: packets vanish; `reject`: the sender is told. Default: drop.
    pub how: CutChoice,
    /// The host of the load takes part too, unless this is false: then it reaches every host. Default: true.
    pub load: Option<bool>,
}

/// How a partition treats packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutChoice {
    /// They vanish.
    #[default]
    Drop,
    /// The sender is told that the destination is prohibited.
    Reject,
}

/// `pause:`, `stop:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeFault {
    /// The node, or a list of nodes; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
}

/// `kill:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KillFault {
    /// The node, or a list of nodes; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// `KILL`, `TERM`, `INT`, `HUP`, `ABRT` or `SEGV`. Default: KILL.
    #[serde(default)]
    pub signal: Signal,
}

/// `cpu:`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CpuFault {
    /// The node, or a list of nodes; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// Of all processors that the lab may use; per 100 ms. Required.
    pub share: Share,
}

/// `disk:` at least one of `delay` and `error`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DiskFaultEntry {
    /// The node, or a list of nodes; of etcd also `leader` or `follower`. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// Of Cassandra which of `data`, `commitlog`, `hints`, of etcd which of `data`, `wal`. Default: all of them.
    pub directories: Option<Names>,
    /// Which of `read`, `write`, `sync`, `metadata`. Default: sync.
    pub operations: Option<Names>,
    /// How much longer each operation takes. Default: 0.
    #[serde(default)]
    pub delay: Delay,
    /// Each operation's own delay is this much shorter or longer at most, uniformly. Default: 0.
    #[serde(default)]
    pub jitter: Delay,
    /// The share of operations that is hit. Default: 100%.
    #[serde(default = "all")]
    pub share: Share,
    /// Operations that are hit fail: `io` (EIO), `no-space` (ENOSPC) or `read-only` (EROFS). Default: they do not.
    pub error: Option<DiskErrorChoice>,
}

/// How disk operations fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskErrorChoice {
    /// EIO.
    Io,
    /// ENOSPC.
    NoSpace,
    /// EROFS.
    ReadOnly,
}

/// `clock:` at least one of `offset` and `drift`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClockFault {
    /// The node, or a list of nodes. Required.
    #[serde(alias = "hosts")]
    pub host: Names,
    /// Ahead (`5s`) or behind (`-5s`) of the true time, at once. Default: 0.
    #[serde(default)]
    pub offset: StepChoice,
    /// Too fast (`100ppm`, `1%`) or too slow (`-100ppm`). Default: 0.
    #[serde(default)]
    pub drift: DriftChoice,
}

/// `chaos:` faults one after the other, or some at once, all drawn from the experiment's seed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChaosFault {
    /// From the end of one round of faults to the start of the next: `2s..10s`. Required.
    pub pause: Span,
    /// How long a round lasts: `5s..20s`. Required.
    pub run: Span,
    /// How many hosts are struck at once: `1` or `1..2`. Default: 1.
    #[serde(default)]
    pub at_once: super::choice::CountSpan,
    /// Who may be struck. Default: every node.
    pub hosts: Option<Names>,
    /// Of which kinds, each as in `faults:` but without a host: `[slow: { delay: 100ms }, pause: {}]`. Required.
    pub faults: Vec<serde_json::Value>,
}

fn one() -> Count {
    Count(1)
}
