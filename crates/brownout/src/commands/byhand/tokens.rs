//! Hosts and magnitudes as they are typed: what can be read as a magnitude is one, everything else has to be a host.

use std::str::FromStr;

use brownout_lab::byhand::{Ask, Failure, Who};
use brownout_units::Delay;
use serde_json::{Map, Value};

use super::ask::{LabName, ask, wrong};

/// Stands for the minus of a number; see [`super::with_signs`].
pub const MINUS: char = '−';

/// Hosts, with magnitudes among them.
#[derive(clap::Args)]
pub struct HostsArguments {
    /// Hosts by name, and magnitudes with their units.
    #[arg(value_name = "HOST|MAGNITUDE")]
    words: Vec<String>,
    /// All nodes.
    #[arg(long)]
    all: bool,
    /// One node, chosen at random.
    #[arg(long)]
    random: bool,
}

/// Which way a fault works.
#[derive(clap::Args)]
pub struct Way {
    /// What the hosts send (out), what is sent to them (in), or both.
    #[arg(long, value_parser = ["out", "in", "both"], default_value = "out")]
    direction: String,
}

/// For how long.
#[derive(clap::Args)]
pub struct For {
    /// Heal after this time: 30s.
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Delay>,
}

impl For {
    /// ns.
    pub fn ns(&self) -> Option<u64> {
        self.time.map(Delay::ns)
    }

    /// Whether it was given, with its name.
    pub fn given(&self) -> (&'static str, bool) {
        ("--for", self.time.is_some())
    }
}

/// Refuses options beside what has no use for them: nothing is ever ignored.
pub fn alone(what: &str, options: &[(&'static str, bool)]) -> Result<(), Failure> {
    let given: Vec<&str> = options.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    match given.is_empty() {
        true => Ok(()),
        false => wrong(format!("{what} takes no {}; leave it out", given.join(" and no "))),
    }
}

/// Refuses magnitudes and options beside the word that heals.
pub fn heals_alone(word: &str, placed: &[String], options: &[(&'static str, bool)]) -> Result<(), Failure> {
    if let Some(magnitude) = placed.iter().find(|placed| *placed != word) {
        return wrong(format!("{word} heals, and {magnitude} is a magnitude; write one of the two"));
    }
    alone(word, options)
}

/// Whom a fault of links strikes, which way, for how long, and in which lab.
#[derive(clap::Args)]
pub struct Target {
    #[command(flatten)]
    pub hosts: HostsArguments,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    length: For,
    #[command(flatten)]
    lab: LabName,
}

impl Target {
    /// Sends what was asked.
    pub fn send(self, asked: Asked) -> Result<u8, Failure> {
        asked.with("direction", Some(self.way.direction)).send(&self.lab, &self.length)
    }
}

/// A number with its own sign.
pub fn plain(word: &str) -> String {
    word.replace(MINUS, "-")
}

impl HostsArguments {
    /// Whether nobody and nothing is named.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && !self.all && !self.random
    }

    /// The words that `take` takes are magnitudes, in their order; the others are hosts, which may be listed with commas.
    pub fn split<T>(&self, take: impl Fn(&str) -> Option<T>) -> (Who, Vec<T>) {
        let mut who = Who { names: Vec::new(), all: self.all, random: self.random };
        let mut taken = Vec::new();
        for word in &self.words {
            let word = plain(word);
            match take(&word) {
                Some(magnitude) => taken.push(magnitude),
                None => who.names.extend(word.split(',').filter(|name| !name.is_empty()).map(str::to_owned)),
            }
        }
        (who, taken)
    }

    /// All of them are hosts.
    pub fn who(&self) -> Who {
        self.split(|_| None::<()>).0
    }
}

/// The word, if it reads as this.
pub fn reads<T: FromStr>(word: &str) -> Option<String> {
    word.parse::<T>().ok().map(|_| word.to_owned())
}

/// A fault on its way to a lab.
pub struct Asked {
    kind: &'static str,
    who: Option<Who>,
    values: Map<String, Value>,
}

impl Asked {
    /// Of this kind, for these hosts.
    pub fn new(kind: &'static str, who: Option<Who>) -> Asked {
        Asked { kind, who, values: Map::new() }
    }

    /// A value, if it was given.
    pub fn with(mut self, key: &str, value: Option<impl Into<Value>>) -> Asked {
        if let Some(value) = value {
            self.values.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Values that were given by their position, for these keys in their order; each may stand in an option instead.
    pub fn placed(mut self, placed: Vec<String>, keys: &[&str]) -> Result<Asked, Failure> {
        if placed.len() > keys.len() {
            return wrong(format!(
                "{} takes {} by position ({}), and got {}: {}",
                self.kind,
                keys.len(),
                keys.join(", "),
                placed.len(),
                placed.join(", ")
            ));
        }
        for (value, key) in placed.into_iter().zip(keys) {
            if self.values.contains_key(*key) {
                return wrong(format!("{key} is given twice, as --{key} and as {value}"));
            }
            self.values.insert((*key).to_owned(), value.into());
        }
        Ok(self)
    }

    /// Refuses what lacks these, naming an example.
    pub fn needs(self, key: &str, example: &str) -> Result<Asked, Failure> {
        if self.values.contains_key(key) {
            return Ok(self);
        }
        wrong(format!("the amount is missing; write for example: brownout {example}"))
    }

    /// Sends it.
    pub fn send(self, lab: &LabName, length: &For) -> Result<u8, Failure> {
        let Asked { kind, who, values } = self;
        ask(lab, Ask::Fault { kind: kind.to_owned(), who, values, for_ns: length.ns() })
    }
}

/// `p=1%,r=25%` as the keys of a section.
pub fn section(text: &str) -> Result<Value, Failure> {
    let mut section = Map::new();
    for part in text.split(',') {
        let Some((key, value)) = part.split_once('=') else {
            return wrong(format!("'{part}' is not KEY=VALUE, as in p=1%,r=25%"));
        };
        section.insert(key.trim().to_owned(), value.trim().into());
    }
    Ok(section.into())
}

#[cfg(test)]
mod tests {
    use brownout_units::Share;

    use super::*;

    fn hosts(words: &str) -> HostsArguments {
        HostsArguments { words: words.split(' ').map(str::to_owned).collect(), all: false, random: false }
    }

    #[test]
    fn a_share_is_never_a_host_and_a_host_never_a_share() {
        let (who, shares) = hosts("n2 80% n3").split(reads::<Share>);
        assert_eq!(who.names, ["n2", "n3"]);
        assert_eq!(shares, ["80%"]);
        let (who, shares) = hosts("n1,n2 80").split(reads::<Share>);
        assert_eq!((who.names.len(), shares.len()), (3, 0), "80 without its unit has to be told as no host");
    }

    #[test]
    fn magnitudes_are_taken_once_and_by_their_place() {
        let asked = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            Asked::new("slow", None).placed(words, &["delay", "jitter"])
        };
        assert_eq!(asked(&["100ms", "10ms"]).unwrap_or_else(|_| unreachable!()).values["jitter"], "10ms");
        assert!(asked(&["1ms", "2ms", "3ms"]).is_err());
        let twice = Asked::new("slow", None).with("delay", Some("1ms")).placed(vec!["2ms".to_owned()], &["delay"]);
        assert!(twice.is_err_and(|failure| failure.message.contains("twice")));
    }

    #[test]
    fn nothing_beside_a_word_that_heals_is_ignored() {
        let placed = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let length = |time: Option<Delay>| For { time }.given();
        assert!(heals_alone("fast", &placed(&["fast"]), &[("--error", false), length(None)]).is_ok());
        for (words, options) in [
            (&["fast", "20ms"][..], [("--error", false), length(None)]),
            (&["fast"], [("--error", true), length(None)]),
            (&["fast"], [("--error", false), length(Some(Delay::from_secs(5)))]),
        ] {
            assert!(
                heals_alone("fast", &placed(words), &options).is_err_and(|failure| failure.code == 2),
                "{options:?}"
            );
        }
    }

    #[test]
    fn sections_are_written_as_keys_and_values() {
        assert_eq!(section("p=1%, r=25%").unwrap_or_default(), serde_json::json!({ "p": "1%", "r": "25%" }));
        assert!(section("1%").is_err());
    }
}
