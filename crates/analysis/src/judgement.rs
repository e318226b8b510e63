//! What one source shows of a subject, and the verdict that follows for it.

use brownout_record::{Expectation, Quantity};

use serde::Serialize;

use crate::{
    measure::{Measure, Source},
    segments::{Class, Segment},
    stats::ENOUGH,
    strain::Strain,
    target::{Bound, Target},
    words::{said, show},
};

/// What the evidence says of a fault, or of one subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// Every subject that is hit shows what was asked, every spared one nothing, and all are back after healing.
    Proven,
    /// There is enough evidence, and it shows something else.
    Refuted,
    /// There is not enough evidence.
    Unproven,
}

/// What one source saw of one subject before, during and after the fault. Values are in the quantity's unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceSeen {
    /// `probes`, `counters`, `checksums`, `cpu`; or a witness: `train`, `heartbeat`, `process`, `governor`, `disk-probe`,
    /// `disk`, `sntp`, `database`.
    pub source: String,
    /// Before the first injection of any fault.
    pub before: Option<f64>,
    /// While in force, after the margin, with whatever else was in force then (`together`).
    pub during: Option<f64>,
    /// After the last healing and the margin.
    pub after: Option<f64>,
    /// during − before; none without enough samples.
    pub change: Option<f64>,
    /// after − before; none without enough samples.
    pub after_change: Option<f64>,
    /// What this source had to show; none where it cannot say.
    pub expected: Option<f64>,
    /// How far from it is still right.
    pub allowed: Option<f64>,
    /// Probes, packets or measurements behind `before`, `during` and `after`.
    pub samples: [u64; 3],
    /// Half-width of the 99.999 % interval of the change of a share, or the bound of a clock's error: part of `allowed`.
    pub error: f64,
    /// Whether what it saw can tell the fault from none.
    pub tells: bool,
}

/// What a window needs before it says anything.
pub(crate) fn enough(source: Source<'_>, quantity: Quantity) -> u64 {
    match (source, quantity) {
        (Source::Probes | Source::Counters | Source::Checksums, _) => ENOUGH,
        // A train or an exchange of clocks is many packets, and says by itself how far it can be wrong.
        (
            _,
            Quantity::Rate
            | Quantity::LargestPacket
            | Quantity::ClockOffset
            | Quantity::ClockDrift
            | Quantity::ProcessorShare,
        ) => 3,
        (Source::Witness(_) | Source::Cpu, _) => 10,
    }
}

/// The row to be judged.
pub(crate) struct Row<'a> {
    pub(crate) fault: usize,
    pub(crate) asked: &'a Expectation,
    /// The smallest that its severity asks of this quantity of any subject: evidence that cannot tell it from none says
    /// nothing, neither of a subject that is hit nor of one that is spared.
    pub(crate) least: f64,
    /// The faults that may do something to the subject that nobody has said how much.
    pub(crate) disturbing: &'a [usize],
    /// What is tolerated besides its tolerance.
    pub(crate) leeway: Leeway<'a>,
}

/// What is tolerated besides the tolerance that a fault says, or that its kind has.
#[derive(Clone, Copy)]
pub(crate) enum Leeway<'a> {
    /// Nothing.
    None,
    /// What the machine does where it may have kept packets waiting.
    Strained {
        /// Where it was.
        strain: &'a Strain,
        /// At most, in the quantity's unit.
        most: f64,
        /// The share of the time that it takes to move the figure that is judged by all of that: half of it moves a median.
        moved_by: f64,
    },
    /// As much of any stretch, however short it is, ns: of what is a share of what is asked of a host.
    Moment(u64),
}

impl Leeway<'_> {
    /// In some segments, in the quantity's unit.
    pub(crate) fn within(&self, segments: &[Segment]) -> f64 {
        match self {
            Leeway::None => 0.0,
            Leeway::Strained { strain, most, moved_by } => most * (strain.mean(segments) / moved_by).min(1.0),
            Leeway::Moment(moment_ns) => {
                let looked_at = segments.iter().map(|segment| segment.begun(Class::Hosts));
                let length_ns: u64 = looked_at.map(|(from, to)| to.saturating_sub(from)).sum();
                *moment_ns as f64 / length_ns.max(1) as f64
            }
        }
    }
}

/// What one source says of one window.
pub(crate) struct Observation<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) target: Target,
    pub(crate) during: Measure,
    pub(crate) measured: Option<f64>,
    pub(crate) allowed: f64,
    pub(crate) enough: bool,
    pub(crate) tells: bool,
}

impl Observation<'_> {
    pub(crate) fn contradicts(&self) -> bool {
        self.enough && self.measured.is_some_and(|measured| self.target.deviation(measured) > self.allowed)
    }
}

/// What is said of a row.
#[derive(Default)]
pub(crate) struct Judgement {
    pub(crate) verdict: Option<Proof>,
    pub(crate) why: Option<String>,
    pub(crate) expected: f64,
    pub(crate) measured: Option<f64>,
    pub(crate) allowed: f64,
    pub(crate) change: bool,
    pub(crate) together: Vec<usize>,
    pub(crate) sources: Vec<SourceSeen>,
    /// Of a subject that is hit: each stretch in which it was, in order of time.
    pub(crate) stretches: Vec<Stretch>,
}

/// What was seen in one stretch in which a fault was in force.
pub(crate) struct Stretch {
    pub(crate) from_ns: u64,
    /// How long it was looked at, ns.
    pub(crate) length_ns: u64,
    /// It was long enough to be judged by itself.
    pub(crate) judged: bool,
    /// Somebody could have seen something, and nobody did: which stretch it is, in words.
    pub(crate) unseen: Option<String>,
    /// What contradicts.
    pub(crate) why: Option<String>,
}

/// Whether agreeing says something: what was measured cannot be what there were without the fault.
pub(crate) fn tells(row: &Row<'_>, observation: &Observation<'_>, measured: f64) -> bool {
    let Observation { target, allowed, .. } = observation;
    if !target.tells {
        return false;
    }
    if row.asked.hit && row.asked.asked != 0.0 {
        return (target.expected - target.without).abs() > *allowed && (measured - target.without).abs() > *allowed;
    }
    match target.bound {
        Bound::AtLeast if !target.change => target.expected - allowed > row.least.min(target.expected),
        _ if target.change => *allowed < row.least,
        _ => (measured - row.least).abs() > *allowed,
    }
}

pub(crate) fn cannot_tell(row: &Row<'_>, observation: &Observation<'_>) -> String {
    let quantity = row.asked.quantity;
    let number = |value: f64| show(quantity, value);
    let (source, verb) = said(observation.source, quantity);
    let what = if observation.target.change { "a change of " } else { "" };
    // What the fault takes away from what were there without it.
    let effect = if row.asked.hit && row.asked.asked != 0.0 {
        (observation.target.expected - observation.target.without).abs()
    } else {
        row.least
    };
    format!(
        "{source} {verb} {what}{}, but an error of ± {} cannot distinguish {} from none",
        number(observation.measured.unwrap_or(0.0)),
        number(observation.allowed),
        number(if effect.is_finite() { effect } else { row.asked.asked })
    )
}

/// Which of the windows has too little in it.
pub(crate) fn too_few(source: Source<'_>, quantity: Quantity, windows: [(&str, u64); 2]) -> String {
    let least = enough(source, quantity);
    let few = windows.iter().filter(|(_, samples)| *samples < least);
    let few: Vec<String> = few.map(|(name, samples)| format!("{samples} {name}")).collect();
    format!("not enough evidence from {}: {} ({least} are needed)", said(source, quantity).0, few.join(", "))
}

impl Judgement {
    /// Stretches that nobody saw anything of, though they are as long as one that was judged by itself.
    pub(crate) fn unseen(&self) -> impl Iterator<Item = &Stretch> {
        let judged = self.stretches.iter().filter(|stretch| stretch.judged);
        let shortest = judged.map(|stretch| stretch.length_ns).min().unwrap_or(u64::MAX);
        // A tenth less is as long: no two changes take the same time.
        let long = move |stretch: &&Stretch| stretch.length_ns / 9 >= shortest / 10;
        self.stretches.iter().filter(long).filter(|stretch| stretch.unseen.is_some())
    }

    pub(crate) fn fail(&mut self, verdict: Proof, row: &Row<'_>, why: String) {
        self.verdict = Some(verdict);
        self.why = Some(format!("{}: {why}", row.asked.subject));
    }

    pub(crate) fn refute(&mut self, row: &Row<'_>, observation: &Observation<'_>, when: &str) {
        self.fail(Proof::Refuted, row, refutation(row, observation, when));
    }
}

/// What a source showed where something else was to be seen.
pub(crate) fn refutation(row: &Row<'_>, observation: &Observation<'_>, when: &str) -> String {
    let number = |value: f64| show(row.asked.quantity, value);
    let (source, verb) = said(observation.source, row.asked.quantity);
    let role = if row.asked.hit { "" } else { " (spared)" };
    let what = if observation.target.change { "a change of " } else { "" };
    let bound = match observation.target.bound {
        Bound::Both => "",
        Bound::AtLeast => "at least ",
        Bound::AtMost => "at most ",
    };
    let when = if when.is_empty() { String::new() } else { format!(" {when}") };
    format!(
        "{source}{role} {verb} {what}{}{when} where {bound}{} ± {} was expected",
        number(observation.measured.unwrap_or(0.0)),
        number(observation.target.expected),
        number(observation.allowed)
    )
}
