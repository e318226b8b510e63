//! Would anyone have noticed? Detectors that see what a monitoring system would have seen, scored on the schedule of the faults.
//!
//! A detector is a function of [`Watched`] alone: it knows neither schedule nor proof, and of each step only what had ended by
//! then. One file has one detector; `docs/detectors.md` says what each does and where it comes from.

mod adr;
mod change;
mod heartbeats;
mod peers;
mod row_column;
mod score;
mod threshold;
mod truth;
mod watched;

use std::fmt;

use brownout_record::Description;
use serde::Serialize;

pub use heartbeats::{HEARTBEAT_EVERY_NS, HEARTBEAT_TIMEOUT_NS, Heartbeats};
pub use score::{Accusation, Detection, DetectorFindings, score};
pub use truth::{GRACE_NS, Truth};
pub use watched::{Ended, LEAST_BASELINE_NS, LEAST_LEARNT, Limit, Step, Stream, Times, Watched};

use crate::TrialEvidence;

/// What a detector says is slow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Accused {
    /// A host.
    Node {
        /// Its name.
        host: String,
    },
    /// What lies between two hosts; a round trip does not tell one way from the other.
    Link {
        /// Their names, in the order of the alphabet.
        between: [String; 2],
    },
}

impl Accused {
    /// A host.
    pub fn node(host: impl Into<String>) -> Self {
        Accused::Node { host: host.into() }
    }

    /// What lies between two hosts.
    pub fn link(one: impl Into<String>, other: impl Into<String>) -> Self {
        let mut between = [one.into(), other.into()];
        between.sort_unstable();
        Accused::Link { between }
    }
}

impl fmt::Display for Accused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accused::Node { host } => f.pad(host),
            Accused::Link { between: [one, other] } => f.pad(&format!("{one} – {other}")),
        }
    }
}

/// A detector begins to say that something is slow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alarm {
    /// When: the end of the step that raised it, ns since the run's zero.
    pub at_ns: u64,
    /// What it accuses; none if the detector cannot tell.
    pub accused: Option<Accused>,
}

/// A detector.
#[derive(Debug, Clone, Copy)]
pub struct Detector {
    /// Its name in findings and reports.
    pub name: &'static str,
    /// What it looks at, in a few words.
    pub looks_at: &'static str,
    /// Whether there is anything that it can look at: else its silence says nothing.
    pub can_watch: fn(&Watched) -> bool,
    /// The alarms that it raises, in order of time. The steps that are there to learn from raise none.
    pub alarms: fn(&Watched) -> Vec<Alarm>,
}

/// All of them.
pub const DETECTORS: [Detector; 4] = [
    Detector {
        name: "static threshold",
        looks_at: "share of operations beyond the objective",
        can_watch: adr::can_watch,
        alarms: threshold::alarms,
    },
    Detector {
        name: "ADR",
        looks_at: "latency and frequency of each operation at each coordinator",
        can_watch: adr::can_watch,
        alarms: adr::alarms,
    },
    Detector {
        name: "peer-relative",
        looks_at: "latency of each coordinator beside the others'",
        can_watch: peers::can_watch,
        alarms: peers::alarms,
    },
    Detector {
        name: "row/column",
        looks_at: "heartbeats between all hosts",
        can_watch: row_column::can_watch,
        alarms: row_column::alarms,
    },
];

/// What each detector would have made of a trial; empty where there was too little time without a fault to learn from.
pub(crate) fn detectors(description: &Description, evidence: &TrialEvidence) -> Vec<DetectorFindings> {
    let Some(watched) = Watched::of(description, evidence) else { return Vec::new() };
    let truths = Truth::all(&evidence.faults, &description.hosts);
    let scored = |one: &Detector| score(one.name, (one.alarms)(&watched), &truths, &watched);
    DETECTORS.iter().filter(|one| (one.can_watch)(&watched)).map(scored).collect()
}
