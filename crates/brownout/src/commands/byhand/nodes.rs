//! The commands on nodes: their processes, disks, processors and clocks.

use brownout_lab::byhand::{Ask, Failure, Verb};
use brownout_lab::experiment::StepChoice;
use brownout_units::{Delay, Share};

use super::{
    ask::{LabName, ask},
    look,
    tokens::{Asked, For, HostsArguments, alone, heals_alone, plain, reads},
};

/// `start` and `restart`.
#[derive(clap::Args)]
pub struct StartArguments {
    #[command(flatten)]
    hosts: HostsArguments,
    /// Return at once instead of waiting until the nodes answer.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    lab: LabName,
}

impl StartArguments {
    pub fn run(self, verb: Verb) -> Result<u8, Failure> {
        ask(&self.lab, Ask::Process { verb, who: self.hosts.who(), wait: !self.no_wait })
    }
}

/// `stop` and `pause`.
#[derive(clap::Args)]
pub struct StopArguments {
    #[command(flatten)]
    hosts: HostsArguments,
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

impl StopArguments {
    pub fn run(self, kind: &str) -> Result<u8, Failure> {
        let (kind, who, values) = (kind.to_owned(), Some(self.hosts.who()), serde_json::Map::new());
        ask(&self.lab, Ask::Fault { kind, who, values, for_ns: self.length.ns() })
    }
}

#[derive(clap::Args)]
pub struct UnpauseArguments {
    #[command(flatten)]
    hosts: HostsArguments,
    #[command(flatten)]
    lab: LabName,
}

impl UnpauseArguments {
    pub fn run(self) -> Result<u8, Failure> {
        ask(&self.lab, Ask::Process { verb: Verb::Unpause, who: self.hosts.who(), wait: false })
    }
}

#[derive(clap::Args)]
pub struct KillArguments {
    #[command(flatten)]
    hosts: HostsArguments,
    /// Another signal: TERM, INT, HUP, ABRT or SEGV.
    #[arg(short = 's', long, value_name = "SIGNAL", default_value = "KILL")]
    signal: String,
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

impl KillArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let values = [("signal".to_owned(), self.signal.into())].into_iter().collect();
        let (kind, who) = ("kill".to_owned(), Some(self.hosts.who()));
        ask(&self.lab, Ask::Fault { kind, who, values, for_ns: self.length.ns() })
    }
}

#[derive(clap::Args)]
pub struct DiskArguments {
    #[command(flatten)]
    hosts: HostsArguments,
    /// How much longer each operation takes.
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Each operation's own delay is this much shorter or longer at most.
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// Directories: data, commitlog and hints; default: all.
    #[arg(long, value_name = "DIRECTORY,…", value_delimiter = ',')]
    directories: Vec<String>,
    /// Operations: read, write, sync and metadata; default: sync.
    #[arg(long, value_name = "OPERATION,…", value_delimiter = ',')]
    operations: Vec<String>,
    /// The share of operations that are hit.
    #[arg(long, value_name = "SHARE")]
    share: Option<String>,
    /// Operations that are hit fail: io (EIO), no-space (ENOSPC) or read-only (EROFS).
    #[arg(long)]
    error: Option<String>,
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

/// Words that heal a disk, processors, a clock; no host can have them for a name.
const HEALS_DISK: &str = "fast";
const HEALS_CPU: &str = "full";
const HEALS_CLOCK: &str = "right";

impl DiskArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let (who, placed) =
            self.hosts.split(|word| reads::<Delay>(word).or((word == HEALS_DISK).then(|| word.to_owned())));
        if placed.iter().any(|word| word == HEALS_DISK) {
            let options = [
                ("--delay", self.delay.is_some()),
                ("--jitter", self.jitter.is_some()),
                ("--directories", !self.directories.is_empty()),
                ("--operations", !self.operations.is_empty()),
                ("--share", self.share.is_some()),
                ("--error", self.error.is_some()),
                self.length.given(),
            ];
            heals_alone(HEALS_DISK, &placed, &options)?;
            return ask(&self.lab, Ask::Heal { kind: "disk".to_owned(), who });
        }
        let listed = |list: Vec<String>| (!list.is_empty()).then_some(list);
        let asked = Asked::new("disk", Some(who)).with("delay", self.delay).with("jitter", self.jitter);
        let asked = asked.placed(placed, &["delay", "jitter"])?.with("error", self.error.clone());
        let asked = if self.error.is_some() {
            asked
        } else {
            asked.needs("delay", "disk n2 20ms, or: brownout disk n2 --error io")?
        };
        asked
            .with("directories", listed(self.directories))
            .with("operations", listed(self.operations))
            .with("share", self.share)
            .send(&self.lab, &self.length)
    }
}

#[derive(clap::Args)]
pub struct CpuArguments {
    #[command(flatten)]
    hosts: HostsArguments,
    /// The share of all processors that the lab may use.
    #[arg(long, value_name = "SHARE")]
    share: Option<String>,
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

impl CpuArguments {
    pub fn run(self) -> Result<u8, Failure> {
        let (who, placed) =
            self.hosts.split(|word| reads::<Share>(word).or((word == HEALS_CPU).then(|| word.to_owned())));
        if placed.iter().any(|word| word == HEALS_CPU) {
            heals_alone(HEALS_CPU, &placed, &[("--share", self.share.is_some()), self.length.given()])?;
            return ask(&self.lab, Ask::Heal { kind: "cpu".to_owned(), who });
        }
        let asked = Asked::new("cpu", Some(who)).with("share", self.share).placed(placed, &["share"])?;
        asked.needs("share", "cpu n2 20%")?.send(&self.lab, &self.length)
    }
}

#[derive(clap::Args)]
pub struct ClockArguments {
    #[command(flatten)]
    hosts: HostsArguments,
    /// Ahead (5s) or behind (-5s) of the true time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    offset: Option<String>,
    /// Too fast (1000ppm, 1%) or too slow (-1000ppm).
    #[arg(long, value_name = "DRIFT", allow_hyphen_values = true)]
    drift: Option<String>,
    /// Print the matrix as one JSON object (docs/lab-by-hand.md).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

impl ClockArguments {
    pub fn run(self) -> Result<u8, Failure> {
        if self.hosts.is_empty() && self.offset.is_none() && self.drift.is_none() {
            alone("clock without hosts", &[self.length.given()])?;
            return look::clocks(&self.lab, self.json);
        }
        alone("clock with hosts", &[("--json", self.json)])?;
        let heals = |word: &str| (word == HEALS_CLOCK).then(|| word.to_owned());
        let drift = |word: &str| (word.ends_with("ppm") || word.ends_with("ppb")).then(|| word.to_owned());
        let (who, placed) =
            self.hosts.split(|word| reads::<StepChoice>(word).or_else(|| heals(word)).or_else(|| drift(word)));
        if placed.iter().any(|word| word == HEALS_CLOCK) {
            let options = [("--offset", self.offset.is_some()), ("--drift", self.drift.is_some()), self.length.given()];
            heals_alone(HEALS_CLOCK, &placed, &options)?;
            return ask(&self.lab, Ask::Heal { kind: "clock".to_owned(), who });
        }
        let (drifts, offsets): (Vec<String>, Vec<String>) = placed.into_iter().partition(|word| drift(word).is_some());
        let asked = Asked::new("clock", Some(who))
            .with("offset", self.offset.as_deref().map(plain))
            .with("drift", self.drift.as_deref().map(plain))
            .placed(offsets, &["offset"])?
            .placed(drifts, &["drift"])?;
        asked.send(&self.lab, &self.length)
    }
}
