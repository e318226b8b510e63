//! `link`: any impairment on single links.

use brownout_lab::byhand::{Ask, Failure};
use brownout_units::{BitRate, Delay, Share};
use serde_json::json;

use super::{
    ask::{LabName, ask, wrong},
    tokens::{Asked, For, heals_alone, reads, section},
};

/// The word that heals links.
const HEALS: &str = "fast";

/// `link`: in the words of the experiment file.
#[derive(clap::Args)]
pub struct LinkOfArguments {
    /// The sending hosts or sites, separated by commas.
    from: String,
    /// The receiving hosts or sites.
    to: String,
    /// A delay (and a jitter), a loss, a rate; or `fast`: heal what was done to these links by this command.
    #[arg(value_name = "MAGNITUDE")]
    words: Vec<String>,
    /// The same in the other direction, too.
    #[arg(long)]
    both: bool,
    /// One-way delay.
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
    delay_correlation: Option<String>,
    /// Share of packets lost.
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Correlation of successive packets' loss.
    #[arg(long, value_name = "SHARE")]
    loss_correlation: Option<String>,
    /// Loss in bursts instead: p=1%,r=25%.
    #[arg(long, value_name = "KEY=SHARE,…")]
    gilbert_elliott: Option<String>,
    /// Loss by a Markov model of four states instead: p13=1%,p31=30%.
    #[arg(long, value_name = "KEY=SHARE,…")]
    markov: Option<String>,
    /// Share of packets that come twice.
    #[arg(long, value_name = "SHARE")]
    duplicate: Option<String>,
    /// Share of packets with a flipped bit.
    #[arg(long, value_name = "SHARE")]
    corrupt: Option<String>,
    /// Share of packets that skip the delay.
    #[arg(long, value_name = "SHARE")]
    reorder: Option<String>,
    /// Only one of this many packets may skip the delay.
    #[arg(long, value_name = "PACKETS")]
    gap: Option<String>,
    /// Bits per second.
    #[arg(long)]
    rate: Option<String>,
    /// The queue of the bottleneck: 64KiB or 50ms.
    #[arg(long, value_name = "BYTES|TIME")]
    queue: Option<String>,
    /// Overhead of each packet, bytes.
    #[arg(long, value_name = "BYTES")]
    overhead: Option<String>,
    /// The largest IP packet that passes.
    #[arg(long, value_name = "BYTES")]
    mtu: Option<String>,
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

impl LinkOfArguments {
    /// The options that say what is done to the links, and for how long.
    fn given(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("--delay", self.delay.is_some()),
            ("--jitter", self.jitter.is_some()),
            ("--distribution", self.distribution.is_some()),
            ("--delay-correlation", self.delay_correlation.is_some()),
            ("--loss", self.loss.is_some()),
            ("--loss-correlation", self.loss_correlation.is_some()),
            ("--gilbert-elliott", self.gilbert_elliott.is_some()),
            ("--markov", self.markov.is_some()),
            ("--duplicate", self.duplicate.is_some()),
            ("--corrupt", self.corrupt.is_some()),
            ("--reorder", self.reorder.is_some()),
            ("--gap", self.gap.is_some()),
            ("--rate", self.rate.is_some()),
            ("--queue", self.queue.is_some()),
            ("--overhead", self.overhead.is_some()),
            ("--mtu", self.mtu.is_some()),
            self.length.given(),
        ]
    }

    pub fn run(self) -> Result<u8, Failure> {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let (from, to) = (names(&self.from), names(&self.to));
        if self.words.iter().any(|word| word == HEALS) {
            heals_alone(HEALS, &self.words, &self.given())?;
            return ask(&self.lab, Ask::FastLink { from, to, both: self.both });
        }
        let mut asked = Asked::new("link", None)
            .with("from", Some(json!(from)))
            .with("to", Some(json!(to)))
            .with("both", self.both.then_some(true))
            .with("delay", self.delay)
            .with("jitter", self.jitter)
            .with("distribution", self.distribution)
            .with("delay-correlation", self.delay_correlation)
            .with("loss", self.loss)
            .with("loss-correlation", self.loss_correlation)
            .with("gilbert-elliott", self.gilbert_elliott.as_deref().map(section).transpose()?)
            .with("markov", self.markov.as_deref().map(section).transpose()?)
            .with("duplicate", self.duplicate)
            .with("corrupt", self.corrupt)
            .with("reorder", self.reorder)
            .with("gap", self.gap)
            .with("rate", self.rate)
            .with("queue", self.queue)
            .with("overhead", self.overhead)
            .with("mtu", self.mtu);
        let (mut delays, mut shares, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for word in self.words {
            if reads::<Delay>(&word).is_some() {
                delays.push(word);
            } else if reads::<Share>(&word).is_some() {
                shares.push(word);
            } else if reads::<BitRate>(&word).is_some() {
                rates.push(word);
            } else {
                return wrong(format!(
                    "'{word}' is neither a delay (50ms), a loss (1%) nor a rate (10mbit); to heal the links, \
                     write fast"
                ));
            }
        }
        asked = asked.placed(delays, &["delay", "jitter"])?.placed(shares, &["loss"])?.placed(rates, &["rate"])?;
        asked.send(&self.lab, &self.length)
    }
}
