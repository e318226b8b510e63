//! `chaos`: random faults.

use brownout_lab::byhand::{Ask, Failure};
use serde_json::{Map, Value, json};

use super::ask::{LabName, ask, wrong};

#[derive(clap::Subcommand)]
pub enum Chaos {
    /// Start chaos.
    Start(Box<StartArguments>),
    /// Stop chaos, and heal its faults.
    Stop(ChaosArguments),
    /// Show what chaos is doing.
    Status(ChaosArguments),
}

#[derive(clap::Args)]
pub struct StartArguments {
    /// Which faults, each with its magnitude: slow:100ms, flaky:30%, duplicate:5%, corrupt:1%, rate:10mbit, mtu:1000,
    /// disk:20ms, cpu:20%, clock:5s, pause, kill, stop, partition.
    #[arg(long, value_name = "FAULT,…", value_delimiter = ',', default_value = "slow:100ms,flaky:30%,pause,partition")]
    faults: Vec<String>,
    /// The pause between two rounds.
    #[arg(long, value_name = "TIME..TIME", default_value = "5s..20s")]
    pause: String,
    /// How long a round lasts.
    #[arg(long, value_name = "TIME..TIME", default_value = "5s..20s")]
    run: String,
    /// How many hosts at once.
    #[arg(long, value_name = "COUNT..COUNT", default_value = "1")]
    at_once: String,
    /// The hosts that faults may hit. Default: every node.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    hosts: Vec<String>,
    /// The same seed gives the same faults. Default: random, and printed.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    lab: LabName,
}

#[derive(clap::Args)]
pub struct ChaosArguments {
    #[command(flatten)]
    lab: LabName,
}

/// Each fault with the key of its magnitude; none: it has none.
const FAULTS: [(&str, Option<&str>); 13] = [
    ("slow", Some("delay")),
    ("flaky", Some("loss")),
    ("duplicate", Some("share")),
    ("corrupt", Some("share")),
    ("rate", Some("rate")),
    ("mtu", Some("bytes")),
    ("disk", Some("delay")),
    ("cpu", Some("share")),
    ("clock", Some("offset")),
    ("pause", None),
    ("kill", None),
    ("stop", None),
    ("partition", None),
];

impl Chaos {
    pub fn run(self) -> Result<u8, Failure> {
        match self {
            Chaos::Start(arguments) => arguments.run(),
            Chaos::Stop(arguments) => ask(&arguments.lab, Ask::ChaosStop),
            Chaos::Status(arguments) => ask(&arguments.lab, Ask::ChaosStatus),
        }
    }
}

impl StartArguments {
    fn run(self) -> Result<u8, Failure> {
        let faults = self.faults.iter().map(|text| fault(text)).collect::<Result<Vec<_>, _>>()?;
        let mut entry = Map::new();
        entry.insert("pause".to_owned(), self.pause.into());
        entry.insert("run".to_owned(), self.run.into());
        entry.insert("at-once".to_owned(), self.at_once.into());
        entry.insert("faults".to_owned(), faults.into());
        if !self.hosts.is_empty() {
            entry.insert("hosts".to_owned(), json!(self.hosts));
        }
        ask(&self.lab, Ask::ChaosStart { entry: entry.into(), seed: self.seed })
    }
}

/// `slow:100ms` as an experiment file has it.
fn fault(text: &str) -> Result<Value, Failure> {
    let (kind, magnitude) = text.split_once(':').map_or((text, None), |(kind, magnitude)| (kind, Some(magnitude)));
    let known = || FAULTS.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ");
    match (FAULTS.iter().find(|(known, _)| *known == kind), magnitude) {
        (None, _) => wrong(format!("'{kind}' is not a fault that chaos knows; it knows {}", known())),
        (Some((_, Some(key))), Some(magnitude)) => Ok(json!({ kind: { *key: magnitude } })),
        (Some((_, Some(key))), None) => wrong(format!("{kind} needs its {key}, as in {kind}:…")),
        (Some((_, None)), Some(magnitude)) => wrong(format!("{kind} has no magnitude; leave ':{magnitude}' out")),
        (Some((_, None)), None) => Ok(kind.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_written_with_their_magnitude() {
        assert_eq!(fault("slow:100ms").unwrap(), json!({ "slow": { "delay": "100ms" } }));
        assert_eq!(fault("pause").unwrap(), json!("pause"));
        for text in ["slow", "pause:3s", "slo:1ms", ""] {
            assert_eq!(fault(text).unwrap_err().code, 2, "{text}");
        }
    }
}
