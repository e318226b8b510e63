//! What a fault had to show, and when it was in force.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Document;

/// A moment known to within an error: the true time lies in `at_ns ± error_ns`.
///
/// What a lab knows as a `Change` of the crate `base`: that one is on the monotonic clock, this one on the run's own axis
/// ([`crate::Recorder::at`]) and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// ns since the run's zero.
    pub at_ns: u64,
    /// ns.
    pub error_ns: u64,
}

impl Stamp {
    /// From the beginning of the first to the end of the last.
    #[must_use]
    pub fn together(self, other: Stamp) -> Stamp {
        let begin = |stamp: Stamp| stamp.at_ns.saturating_sub(stamp.error_ns);
        let from = begin(self).min(begin(other));
        let to = (self.at_ns + self.error_ns).max(other.at_ns + other.error_ns);
        Stamp { at_ns: from + (to - from) / 2, error_ns: (to - from).div_ceil(2) }
    }
}

/// What a fault can hit or spare.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Subject {
    /// The way from one host to another; the way back is another subject.
    Pair {
        /// The sending host.
        from: String,
        /// The receiving host.
        to: String,
    },
    /// The same way through the overlay that carries the hosts' packets.
    Overlay {
        /// The sending host.
        from: String,
        /// The receiving host.
        to: String,
    },
    /// A host: its processes, its share of the processors, its clock.
    Host {
        /// Its name.
        host: String,
    },
    /// A directory of a host, that is: a disk. Runs made before format 4 say `folder`.
    #[serde(alias = "folder")]
    Directory {
        /// The host.
        host: String,
        /// `data`, `commitlog`, `hints`.
        #[serde(alias = "folder")]
        directory: String,
    },
}

impl Subject {
    /// The way from one host to another.
    pub fn pair(from: impl Into<String>, to: impl Into<String>) -> Self {
        Subject::Pair { from: from.into(), to: to.into() }
    }

    /// The way from one host to another through the overlay.
    pub fn overlay(from: impl Into<String>, to: impl Into<String>) -> Self {
        Subject::Overlay { from: from.into(), to: to.into() }
    }

    /// A host.
    pub fn host(host: impl Into<String>) -> Self {
        Subject::Host { host: host.into() }
    }

    /// A directory of a host.
    pub fn directory(host: impl Into<String>, directory: impl Into<String>) -> Self {
        Subject::Directory { host: host.into(), directory: directory.into() }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Pair { from, to } => f.pad(&format!("{from} → {to}")),
            Subject::Overlay { from, to } => f.pad(&format!("{from} → {to} (overlay)")),
            Subject::Host { host } => f.pad(host),
            Subject::Directory { host, directory } => f.pad(&format!("{host} {directory}")),
        }
    }
}

/// What is measured. Times are ns, shares 0 to 1, rates bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Of a pair: growth of the median one-way delay, ns.
    OneWayDelay,
    /// Of a pair: 90th − 10th percentile of the one-way delay, ns.
    DelaySpread,
    /// Of a pair: share of the wire packets that do not arrive; 1 where it is cut.
    Loss,
    /// Of a pair: share of the wire packets that arrive twice.
    Duplicates,
    /// Of a pair: share of the wire packets that one sent later overtakes.
    Reordered,
    /// Of a pair: share of the wire packets that arrive damaged.
    Corruption,
    /// Of a pair: bits per second at the level of IP; asked 0: no limit.
    Rate,
    /// Of a pair: the largest IP packet that arrives without being taken apart, bytes; asked 0: no limit of its own.
    LargestPacket,
    /// Of a host: share of the requests to its database that are answered; a fault asks −1.
    Answers,
    /// Of a host: how long the answer to a request took that was answered, ns. No fault asks for it: it says when each of the
    /// answers came that [`Quantity::Answers`] counts.
    AnswerTime,
    /// Of a host: share of the time in which its process runs, that is: exists and is not stopped; a fault asks −1.
    Running,
    /// Of a host: share of all processors that it may use at most.
    ProcessorShare,
    /// Of a directory: growth of the time of a read that reaches the disk, ns.
    ReadTime,
    /// Of a directory: growth of the time of a write, ns.
    WriteTime,
    /// Of a directory: growth of the time of an fsync, ns.
    SyncTime,
    /// Of a directory: share of the reads that fail.
    ReadErrors,
    /// Of a directory: share of the writes that fail.
    WriteErrors,
    /// Of a directory: share of the fsyncs that fail.
    SyncErrors,
    /// Of a directory: growth of the time of a change of its metadata, ns.
    MetadataTime,
    /// Of a directory: share of the changes of its metadata that fail.
    MetadataErrors,
    /// Of a directory: share of the reads that a fault makes wait, by the filesystem's own count.
    ReadDelayed,
    /// The same of writes.
    WriteDelayed,
    /// The same of fsyncs.
    SyncDelayed,
    /// The same of changes of metadata.
    MetadataDelayed,
    /// Of a host: what its clock shows − true time, ns.
    ClockOffset,
    /// Of a host: growth of that offset, ns per second (1 ns/s is a drift of 1e-9).
    ClockDrift,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; 26] = [
        Quantity::OneWayDelay,
        Quantity::DelaySpread,
        Quantity::Loss,
        Quantity::Duplicates,
        Quantity::Reordered,
        Quantity::Corruption,
        Quantity::Rate,
        Quantity::LargestPacket,
        Quantity::Answers,
        Quantity::AnswerTime,
        Quantity::Running,
        Quantity::ProcessorShare,
        Quantity::ReadTime,
        Quantity::WriteTime,
        Quantity::SyncTime,
        Quantity::ReadErrors,
        Quantity::WriteErrors,
        Quantity::SyncErrors,
        Quantity::MetadataTime,
        Quantity::MetadataErrors,
        Quantity::ReadDelayed,
        Quantity::WriteDelayed,
        Quantity::SyncDelayed,
        Quantity::MetadataDelayed,
        Quantity::ClockOffset,
        Quantity::ClockDrift,
    ];

    /// Its name in the run file and in JSON: `one-way-delay`.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::OneWayDelay => "one-way-delay",
            Quantity::DelaySpread => "delay-spread",
            Quantity::Loss => "loss",
            Quantity::Duplicates => "duplicates",
            Quantity::Reordered => "reordered",
            Quantity::Corruption => "corruption",
            Quantity::Rate => "rate",
            Quantity::LargestPacket => "largest-packet",
            Quantity::Answers => "answers",
            Quantity::AnswerTime => "answer-time",
            Quantity::Running => "running",
            Quantity::ProcessorShare => "processor-share",
            Quantity::ReadTime => "read-time",
            Quantity::WriteTime => "write-time",
            Quantity::SyncTime => "sync-time",
            Quantity::ReadErrors => "read-errors",
            Quantity::WriteErrors => "write-errors",
            Quantity::SyncErrors => "sync-errors",
            Quantity::MetadataTime => "metadata-time",
            Quantity::MetadataErrors => "metadata-errors",
            Quantity::ReadDelayed => "read-delayed",
            Quantity::WriteDelayed => "write-delayed",
            Quantity::SyncDelayed => "sync-delayed",
            Quantity::MetadataDelayed => "metadata-delayed",
            Quantity::ClockOffset => "clock-offset",
            Quantity::ClockDrift => "clock-drift",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Quantity::ALL.into_iter().find(|quantity| quantity.name() == name)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What one fault must show of one subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// Where.
    pub subject: Subject,
    /// What is measured.
    pub quantity: Quantity,
    /// Whether the fault is meant to hit this subject; a spared one must show nothing.
    pub hit: bool,
    /// The change or the value asked for, in the quantity's unit; 0 for a spared subject.
    pub asked: f64,
    /// How far from it the measured one may lie and still prove the fault, same unit.
    pub tolerance: f64,
    /// Of a share of a subject that is hit: how many packets are hit in a row, on average over all runs of them; none where each is by
    /// itself, where nobody can say, and in runs that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
}

/// One fault of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Its index in the experiment's list.
    pub index: u32,
    /// `slow`, `partition`, `pause`, …
    pub kind: String,
    /// "everything n2 sends is 100ms late".
    pub text: String,
    /// "every RTT to and from n2 grows by 100ms".
    pub effect: String,
    /// After each of its changes this time is left out of the proof, ns: it includes the longest delay that is asked for.
    pub unsettled_ns: u64,
    /// How hard it hits: one for a fault that is there or not, one for each step of a ramp.
    pub severities: Vec<Severity>,
    /// The stretches of time in which it was in force, in order; those of a ramp follow one another.
    pub periods: Vec<Period>,
}

impl Document for FaultRecord {
    const WHAT: &'static str = "fault";
    const FORMAT: u64 = 2;

    fn upgrade(format: u64, fields: &mut Map<String, Value>) -> Result<(), String> {
        match format {
            1 => several_severities(fields),
            _ => Err(format!("there was never a format {format} of it")),
        }
    }
}

/// From format 1, in which a fault hit pairs alone, all the time with the same severity, once.
fn several_severities(fields: &mut Map<String, Value>) -> Result<(), String> {
    /// Left out after each change, beside the longest delay asked for.
    const MARGIN_NS: u64 = 500_000_000;
    let mut take = |name: &str| fields.remove(name).ok_or_else(|| format!("it has no {name}"));
    let (mut expectations, injected, healed) = (take("expectations")?, take("injected")?, take("healed")?);
    let mut longest_ns = 0.0_f64;
    for expectation in expectations.as_array_mut().ok_or("its expectations are not a list")? {
        let fields = expectation.as_object_mut().ok_or("an expectation has no fields")?;
        let mut take = |name: &str| fields.remove(name).ok_or_else(|| format!("an expectation has no {name}"));
        let subject = json!({ "kind": "pair", "from": take("from")?, "to": take("to")? });
        fields.insert("subject".to_owned(), subject);
        if fields.get("quantity").is_some_and(|quantity| quantity == Quantity::OneWayDelay.name()) {
            longest_ns = fields.get("asked").and_then(Value::as_f64).unwrap_or(0.0).max(longest_ns);
        }
    }
    fields.insert("unsettled_ns".to_owned(), (MARGIN_NS + longest_ns as u64).into());
    fields.insert("severities".to_owned(), json!([{ "text": "", "expectations": expectations }]));
    fields.insert("periods".to_owned(), json!([{ "severity": 0, "injected": injected, "healed": healed }]));
    Ok(())
}

impl FaultRecord {
    /// When it first came into force; none if it never did.
    pub fn injected(&self) -> Option<Stamp> {
        self.periods.iter().find_map(|period| period.injected)
    }

    /// When it was healed for good; none if it never came into force, or still is.
    pub fn healed(&self) -> Option<Stamp> {
        self.periods.iter().rev().find(|period| period.injected.is_some())?.healed
    }
}

/// How hard a fault hits, and what that must show of every subject: hit and spared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Severity {
    /// "100ms"; empty for a fault that has but one.
    pub text: String,
    /// What it must show.
    pub expectations: Vec<Expectation>,
}

/// A stretch of time in which a fault was in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// The index of its severity in [`FaultRecord::severities`].
    pub severity: u32,
    /// When it came into force; none if it has not yet.
    pub injected: Option<Stamp>,
    /// When it ended: of a ramp's step when the next began; none while in force.
    pub healed: Option<Stamp>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn a_quantity_has_one_name_in_the_file_and_in_json() {
        for quantity in Quantity::ALL {
            assert_eq!(Quantity::of(quantity.name()), Some(quantity));
            assert_eq!(serde_json::to_value(quantity).unwrap(), quantity.name());
        }
        assert_eq!(Quantity::of("speed"), None);
    }

    #[test]
    fn a_subject_reads_well_in_words_and_in_json() {
        for (subject, words, json) in [
            (Subject::pair("n1", "n2"), "n1 → n2", r#"{"kind":"pair","from":"n1","to":"n2"}"#),
            (Subject::overlay("n1", "n2"), "n1 → n2 (overlay)", r#"{"kind":"overlay","from":"n1","to":"n2"}"#),
            (Subject::host("n2"), "n2", r#"{"kind":"host","host":"n2"}"#),
            (Subject::directory("n2", "data"), "n2 data", r#"{"kind":"directory","host":"n2","directory":"data"}"#),
        ] {
            assert_eq!(subject.to_string(), words);
            assert_eq!(serde_json::to_string(&subject).unwrap(), json);
            assert_eq!(serde_json::from_str::<Subject>(json).unwrap(), subject);
        }
    }

    #[test]
    fn an_expectation_of_an_older_run_has_no_bursts() {
        let old =
            r#"{"subject":{"kind":"host","host":"n2"},"quantity":"loss","hit":true,"asked":0.1,"tolerance":0.01}"#;
        let one = serde_json::from_str::<Expectation>(old).unwrap();
        assert_eq!(one.burst, None);
        assert_eq!(serde_json::to_string(&one).unwrap(), old);
        let bursty = Expectation { burst: Some(20.0), ..one };
        let again = serde_json::from_str::<Expectation>(&serde_json::to_string(&bursty).unwrap()).unwrap();
        assert_eq!(again, bursty);
    }

    #[test]
    fn two_moments_together_are_from_the_first_to_the_last() {
        let stamp = |at_ns, error_ns| Stamp { at_ns, error_ns };
        assert_eq!(stamp(100, 10).together(stamp(120, 5)), stamp(107, 18));
        assert_eq!(stamp(120, 5).together(stamp(100, 10)), stamp(107, 18));
        assert_eq!(stamp(100, 30).together(stamp(100, 10)), stamp(100, 30));
    }

    #[test]
    fn a_fault_is_healed_when_its_last_period_in_force_is() {
        let stamp = |at_ns| Some(Stamp { at_ns, error_ns: 0 });
        let mut fault = FaultRecord {
            index: 0,
            kind: "slow".to_owned(),
            text: String::new(),
            effect: String::new(),
            unsettled_ns: 0,
            severities: Vec::new(),
            periods: vec![
                Period { severity: 0, injected: stamp(1), healed: stamp(2) },
                Period { severity: 0, injected: stamp(3), healed: stamp(4) },
                Period { severity: 0, injected: None, healed: None },
            ],
        };
        assert_eq!((fault.injected(), fault.healed()), (stamp(1), stamp(4)));
        fault.periods[1].healed = None;
        assert_eq!(fault.healed(), None);
        fault.periods.clear();
        assert_eq!((fault.injected(), fault.healed()), (None, None));
    }
}
