//! The commands that impair links.

use brownout_lab::byhand::{Ask, Failure};
use brownout_units::{BitRate, Count, Delay, Share};
use serde_json::json;

use super::{
    ask::{LabName, ask},
    tokens::{Asked, For, HostsArguments, Target, reads, section},
};

#[derive(clap::Args)]
pub struct SlowArguments {
    #[command(flatten)]
    target: Target,
    /// How much later each packet arrives.
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Jitter: how far single packets deviate from that.
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// Distribution of the jitter: uniform, normal, pareto or paretonormal.
    #[arg(long)]
    distribution: Option<String>,
    /// Correlation of successive packets' jitter.
    #[arg(long, value_name = "SHARE")]
    correlation: Option<String>,
}

impl SlowArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let (who, placed) = self.target.hosts.split(reads::<Delay>);
        let asked = Asked::new("slow", Some(who))
            .with("delay", self.delay)
            .with("jitter", self.jitter)
            .placed(placed, &["delay", "jitter"])?
            .needs("delay", "slow n2 100ms")?
            .with("distribution", self.distribution)
            .with("correlation", self.correlation);
        self.target.send(asked)
    }
}

#[derive(clap::Args)]
pub struct FlakyArguments {
    #[command(flatten)]
    target: Target,
    /// The share of packets that vanish.
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Correlation of successive packets' fates.
    #[arg(long, value_name = "SHARE")]
    correlation: Option<String>,
    /// Loss in bursts instead: p=1%,r=25% and, if need be, bad-loss and good-loss.
    #[arg(long, value_name = "KEY=SHARE,…")]
    gilbert_elliott: Option<String>,
    /// Loss by a Markov model of four states instead: p13=1%,p31=30% and, if need be, p32, p23, p14.
    #[arg(long, value_name = "KEY=SHARE,…")]
    markov: Option<String>,
}

impl FlakyArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let (who, placed) = self.target.hosts.split(reads::<Share>);
        let asked = Asked::new("flaky", Some(who))
            .with("loss", self.loss)
            .placed(placed, &["loss"])?
            .with("correlation", self.correlation)
            .with("gilbert-elliott", self.gilbert_elliott.as_deref().map(section).transpose()?)
            .with("markov", self.markov.as_deref().map(section).transpose()?);
        self.target.send(asked)
    }
}

/// `duplicate` and `corrupt`.
#[derive(clap::Args)]
pub struct ShareOfArguments {
    #[command(flatten)]
    target: Target,
    /// The share of packets.
    #[arg(long, value_name = "SHARE")]
    share: Option<String>,
    /// Correlation of successive packets' fates.
    #[arg(long, value_name = "SHARE")]
    correlation: Option<String>,
}

impl ShareOfArguments {
    pub fn run(self, kind: &'static str) -> Result<u8, Failure> {
        let (who, placed) = self.target.hosts.split(reads::<Share>);
        let asked = Asked::new(kind, Some(who))
            .with("share", self.share)
            .placed(placed, &["share"])?
            .needs("share", &format!("{kind} n2 5%"))?
            .with("correlation", self.correlation);
        self.target.send(asked)
    }
}

#[derive(clap::Args)]
pub struct ReorderArguments {
    #[command(flatten)]
    target: Target,
    /// The share of packets that skip the delay.
    #[arg(long, value_name = "SHARE")]
    share: Option<String>,
    /// The delay of all others: without one, nothing can be overtaken.
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Correlation of successive packets' fates.
    #[arg(long, value_name = "SHARE")]
    correlation: Option<String>,
    /// Only one of this many packets may skip the delay.
    #[arg(long, value_name = "PACKETS")]
    gap: Option<String>,
}

impl ReorderArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let (who, placed) = self.target.hosts.split(|word| reads::<Share>(word).or_else(|| reads::<Delay>(word)));
        let (shares, delays): (Vec<String>, Vec<String>) =
            placed.into_iter().partition(|word| reads::<Share>(word).is_some());
        let asked = Asked::new("reorder", Some(who))
            .with("share", self.share)
            .with("delay", self.delay)
            .placed(shares, &["share"])?
            .placed(delays, &["delay"])?
            .needs("share", "reorder n2 25% 50ms")?
            .needs("delay", "reorder n2 25% 50ms")?
            .with("correlation", self.correlation)
            .with("gap", self.gap);
        self.target.send(asked)
    }
}

#[derive(clap::Args)]
pub struct RateArguments {
    #[command(flatten)]
    target: Target,
    /// Bits per second on each link.
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// The queue of the bottleneck: 64KiB or 50ms.
    #[arg(long, value_name = "BYTES|TIME")]
    queue: Option<String>,
    /// Overhead of each packet, bytes.
    #[arg(long, value_name = "BYTES")]
    overhead: Option<String>,
}

impl RateArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let (who, placed) = self.target.hosts.split(reads::<BitRate>);
        let asked = Asked::new("rate", Some(who))
            .with("rate", self.rate)
            .placed(placed, &["rate"])?
            .needs("rate", "rate n2 10mbit")?
            .with("queue", self.queue)
            .with("overhead", self.overhead);
        self.target.send(asked)
    }
}

#[derive(clap::Args)]
pub struct MtuArguments {
    #[command(flatten)]
    target: Target,
    /// The largest IP packet that passes.
    #[arg(long, value_name = "BYTES")]
    bytes: Option<String>,
}

impl MtuArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let (who, placed) = self.target.hosts.split(reads::<Count>);
        let asked = Asked::new("mtu", Some(who))
            .with("bytes", self.bytes)
            .placed(placed, &["bytes"])?
            .needs("bytes", "mtu n2 1000")?;
        self.target.send(asked)
    }
}

#[derive(clap::Args)]
pub struct FastArguments {
    #[command(flatten)]
    hosts: HostsArguments,
    #[command(flatten)]
    lab: LabName,
}

impl FastArguments {
    pub fn run(self) -> Result<u8, Failure> {
        ask(&self.lab, Ask::Fast(self.hosts.who()))
    }
}

#[derive(clap::Args)]
pub struct PartitionArguments {
    /// Groups of hosts: n1,n2 n3. Hosts in no group form one of their own; a host in two is a bridge.
    #[arg(value_name = "HOST,HOST…")]
    groups: Vec<String>,
    /// Isolate these hosts from all others and from one another.
    #[arg(long, value_name = "HOST,…")]
    isolate: Option<String>,
    /// One way only: what these send to --to does not arrive.
    #[arg(long, value_name = "HOST,…", requires = "to")]
    from: Option<String>,
    /// The receivers for --from.
    #[arg(long, value_name = "HOST,…", requires = "from")]
    to: Option<String>,
    /// Cut the nodes into two random groups.
    #[arg(long)]
    random: bool,
    /// Reject packets (the sender gets ICMP) instead of dropping them.
    #[arg(long)]
    reject: bool,
    /// Leave the host of the load out: it reaches every host.
    #[arg(long)]
    without_load: bool,
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

impl PartitionArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let names =
            |text: &String| text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let groups: Vec<Vec<String>> = self.groups.iter().map(names).collect();
        Asked::new("partition", None)
            .with("groups", (!groups.is_empty()).then(|| json!(groups)))
            .with("isolate", self.isolate.as_ref().map(names))
            .with("from", self.from.as_ref().map(names))
            .with("to", self.to.as_ref().map(names))
            .with("random", self.random.then_some(true))
            .with("how", self.reject.then_some("reject"))
            .with("load", self.without_load.then_some(false))
            .send(&self.lab, &self.length)
    }
}

#[derive(clap::Args)]
pub struct RandomPartitionArguments {
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

impl RandomPartitionArguments {
    pub fn run(self) -> Result<u8, Failure> {
        Asked::new("partition", None).with("random", Some(true)).send(&self.lab, &self.length)
    }
}

#[derive(clap::Args)]
pub struct JoinArguments {
    #[command(flatten)]
    lab: LabName,
}

impl JoinArguments {
    pub fn run(self) -> Result<u8, Failure> {
        ask(&self.lab, Ask::Join)
    }
}
