//! Was each fault in force, on the subjects it was meant to hit and on no other?
//!
//! A fault that is not proven did not happen. Two sources that know nothing of each other have to show it where there
//! are two: the probes, which cross the network like any packet, and the emulator's own counters; or those who look at
//! a process, a disk or a clock itself.

mod encryption;

use std::collections::{BTreeMap, HashMap};

use brownout_record::{Expectation, FaultRecord, Period, Quantity, Stamp, Subject};
use serde::Serialize;

use crate::{
    AnalysisError, TrialEvidence,
    evidence::phase,
    index::Index,
    judgement::{Judgement, Leeway, Proof, Row, SourceSeen, Stretch},
    observe::{SubjectEvidence, Window, Windows},
    routes::MEASURED,
    segments::{Force, Segment, Segments},
    stalls::starved,
    subject::SubjectSeries,
    target::Asks,
};

pub(crate) use encryption::encryption;
pub use encryption::{EncryptionFindings, LoggedConnection, MarkedLink};

/// One subject, one quantity, one severity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProofRow {
    /// The subject.
    pub subject: Subject,
    /// What is measured there.
    pub quantity: Quantity,
    /// Whether this fault is meant to hit the subject.
    pub hit: bool,
    /// Its severity, by its index in [`FaultFindings::severities`].
    pub severity: u32,
    /// What this fault asks for; 0 for a spared subject.
    pub asked: f64,
    /// What had to be seen, with the other faults in force at the same time.
    pub expected: f64,
    /// What was seen, by the source that tells most.
    pub measured: Option<f64>,
    /// Whether `expected` and `measured` are changes since before, or values.
    pub change: bool,
    /// How far the measured one may lie from what is expected, without the error of the measurement.
    pub tolerance: f64,
    /// With it, and with what the other faults in force may err.
    pub allowed: f64,
    /// The other faults that hit this subject in the time that is shown here.
    pub together: Vec<u32>,
    /// Who looked.
    pub sources: Vec<SourceSeen>,
    /// What that says.
    pub verdict: Proof,
    /// Why it is not proven.
    pub why: Option<String>,
}

/// What one period of a fault showed by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeriodFindings {
    /// From 1.
    pub period: u32,
    /// `proven`, if it was judged by itself on every subject that is hit, and nothing contradicts; `refuted`, if something does;
    /// `unproven`, if on some subject it was too short, or showed too little to tell the fault from none, and was judged with the
    /// others alone.
    pub verdict: Proof,
    /// What contradicts, by subject.
    pub reasons: Vec<String>,
}

/// What one period has shown so far, subject by subject.
#[derive(Default)]
struct Shown {
    /// On some subject that is hit it was judged by itself …
    judged: bool,
    /// … and in some it was not.
    unjudged: bool,
    /// What contradicts, by subject.
    reasons: Vec<String>,
}

impl Shown {
    fn findings(self, period: u32) -> PeriodFindings {
        let verdict = match (self.reasons.is_empty(), self.judged && !self.unjudged) {
            (false, _) => Proof::Refuted,
            (true, true) => Proof::Proven,
            (true, false) => Proof::Unproven,
        };
        PeriodFindings { period, verdict, reasons: self.reasons }
    }
}

/// Adds what the periods of one severity have shown on a subject that is hit.
fn add(shown: &mut [Shown], fault: &FaultRecord, severity: usize, subject: &Subject, judgement: &Judgement) {
    let of = |stretch: &Stretch| {
        let begun = |period: &Period| period.injected.is_some_and(|stamp| stamp.at_ns <= stretch.from_ns);
        fault.periods.iter().rposition(begun)
    };
    let mut judged = vec![false; shown.len()];
    for stretch in &judgement.stretches {
        let Some(at) = of(stretch) else { continue };
        judged[at] |= stretch.judged;
        shown[at].reasons.extend(stretch.why.as_ref().map(|why| format!("{subject}: {why}")));
    }
    for at in judgement.unseen().filter_map(of) {
        judged[at] = false;
    }
    for ((shown, period), judged) in shown.iter_mut().zip(&fault.periods).zip(judged) {
        if period.severity as usize == severity {
            shown.judged |= judged;
            shown.unjudged |= !judged;
        }
    }
}

/// One fault of one trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultFindings {
    /// Its index in the experiment's list.
    pub index: u32,
    /// `slow`, …
    pub kind: String,
    /// "everything n2 sends is 100ms late".
    pub text: String,
    /// Its effect on round-trip times, in words.
    pub effect: String,
    /// When it first came into force.
    pub injected: Option<Stamp>,
    /// When it was healed for good.
    pub healed: Option<Stamp>,
    /// Its severities, in words; one, without a word, if it is there or not.
    pub severities: Vec<String>,
    /// The stretches of time in which it was in force.
    pub periods: Vec<Period>,
    /// What each of them showed by itself, in the same order.
    pub outcomes: Vec<PeriodFindings>,
    /// Left out after each change, ns, if it is long enough in force: the delay asked for (packets already on their way)
    /// and a margin to settle.
    pub unsettled_ns: u64,
    /// The verdict.
    pub verdict: Proof,
    /// Why it is not proven: which subject showed what.
    pub reasons: Vec<String>,
    /// Every subject, those that are hit first.
    pub rows: Vec<ProofRow>,
}

/// Judges every fault of a trial.
pub(crate) fn proofs(evidence: &TrialEvidence) -> Result<Vec<FaultFindings>, AnalysisError> {
    let starved = starved(evidence);
    let faults = &evidence.faults;
    let before = Window { id: 0, segments: Segments::before(evidence), forces: Vec::new() };
    let mut timeline = Timeline { evidence, known: HashMap::new(), windows: 1 };
    let index = Index::of(evidence);
    let least: Vec<Vec<HashMap<Quantity, f64>>> = faults
        .iter()
        .map(|fault| fault.severities.iter().map(|one| least_asked(&one.expectations)).collect())
        .collect();
    let touching = touching(faults);
    let mut rows: Vec<Vec<ProofRow>> = faults.iter().map(|_| Vec::new()).collect();
    let mut shown: Vec<Vec<Shown>> =
        faults.iter().map(|fault| fault.periods.iter().map(|_| Shown::default()).collect()).collect();
    for (subject, asked) in by_subject(faults) {
        let mut hit: Vec<usize> = asked.iter().filter(|(_, one)| one.hit).map(|((fault, _), _)| *fault).collect();
        hit.dedup();
        let series = SubjectSeries::of(evidence, &index, subject, hit.is_empty());
        let facts = SubjectEvidence::new(series, Asks::new(asked.clone()), &before, &starved);
        for ((fault, severity), asked) in asked {
            // What else is asked of a way through an overlay only says what may disturb the rest.
            if matches!(subject, Subject::Overlay { .. }) && !MEASURED.contains(&asked.quantity) {
                continue;
            }
            // Of all faults, those that hit this subject cut its time line, and the one that is judged.
            let disturbing = match subject {
                Subject::Host { host } if asked.quantity == Quantity::Answers => {
                    touching.get(host.as_str()).map_or(&[][..], |faults| &faults[..])
                }
                _ => &[],
            };
            let mut which = hit.clone();
            which.push(fault);
            which.extend(disturbing);
            which.sort_unstable();
            which.dedup();
            let least = least[fault][severity].get(&asked.quantity).copied().unwrap_or(f64::INFINITY);
            let windows = timeline.windows(which, fault);
            let judgement =
                facts.judge(&Row { fault, asked, least, disturbing, leeway: Leeway::None }, &windows[severity])?;
            if asked.hit && asked.asked != 0.0 {
                add(&mut shown[fault], &faults[fault], severity, subject, &judgement);
            }
            rows[fault].push(row(faults, (fault, severity), asked, judgement));
        }
    }
    let found = faults.iter().zip(rows).zip(shown).map(|((fault, mut rows), shown)| {
        rows.sort_by(|one, other| {
            (!one.hit, one.severity, &one.subject).cmp(&(!other.hit, other.severity, &other.subject))
        });
        let (verdict, reasons) = conclude(evidence, fault, &rows);
        FaultFindings {
            index: fault.index,
            kind: fault.kind.clone(),
            text: fault.text.clone(),
            effect: fault.effect.clone(),
            injected: fault.injected(),
            healed: fault.healed(),
            severities: fault.severities.iter().map(|severity| severity.text.clone()).collect(),
            periods: fault.periods.clone(),
            outcomes: (1..).zip(shown).map(|(period, shown)| shown.findings(period)).collect(),
            unsettled_ns: fault.unsettled_ns,
            verdict,
            reasons,
            rows,
        }
    });
    Ok(found.collect())
}

pub(crate) type Asked<'a> = Vec<(Force, &'a Expectation)>;

/// What all faults ask, by subject.
pub(crate) fn by_subject(faults: &[FaultRecord]) -> BTreeMap<&Subject, Asked<'_>> {
    let mut subjects: BTreeMap<&Subject, Asked<'_>> = BTreeMap::new();
    for (fault, record) in faults.iter().enumerate() {
        for (severity, of) in record.severities.iter().enumerate() {
            for expectation in &of.expectations {
                subjects.entry(&expectation.subject).or_default().push(((fault, severity), expectation));
            }
        }
    }
    subjects
}

/// What a shorter fault of links or disks does to a node's answers, its patience takes, ns; and so many cuts of the time line
/// would leave nothing over.
const BRIEF_NS: u64 = 3_000_000_000;

/// The faults that hit anything of a host: its links, its disks, itself. A node that has too little of what it needs may
/// not answer in time, though nobody asked it to be silent.
pub(crate) fn touching(faults: &[FaultRecord]) -> BTreeMap<&str, Vec<usize>> {
    let mut touching: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (fault, record) in faults.iter().enumerate() {
        let stamps = record.periods.iter().flat_map(|period| [period.injected, period.healed]).flatten();
        let stamps: Vec<u64> = stamps.map(|stamp| stamp.at_ns).collect();
        let brief = stamps.windows(2).any(|pair| pair[1] > pair[0] && pair[1] - pair[0] < BRIEF_NS);
        let asked = record.severities.iter().flat_map(|severity| &severity.expectations);
        let own = |one: &&Expectation| matches!(one.subject, Subject::Host { .. });
        for one in asked.filter(|one| one.hit && one.asked != 0.0 && (own(one) || !brief)) {
            let (host, other) = match &one.subject {
                Subject::Pair { from, to } | Subject::Overlay { from, to } => (from, Some(to)),
                Subject::Host { host } | Subject::Directory { host, .. } => (host, None),
            };
            for host in [Some(host), other].into_iter().flatten() {
                let known = touching.entry(host).or_default();
                if known.last() != Some(&fault) {
                    known.push(fault);
                }
            }
        }
    }
    touching
}

/// The windows of the trial; subjects that the same faults hit share theirs.
struct Timeline<'a> {
    evidence: &'a TrialEvidence,
    known: HashMap<(Vec<usize>, usize), Vec<Windows>>,
    windows: usize,
}

impl Timeline<'_> {
    /// When each severity of a fault has to show itself, on the time line as some faults cut it.
    fn windows(&mut self, which: Vec<usize>, fault: usize) -> &[Windows] {
        let Timeline { evidence, known, windows } = self;
        known.entry((which, fault)).or_insert_with_key(|(which, at)| {
            let record = &evidence.faults[*at];
            let segments = Segments::of(evidence, which);
            let mut of = |groups: Vec<Vec<Segment>>| -> Vec<Window> {
                let window = |segments: Vec<Segment>| {
                    *windows += 1;
                    Window { id: *windows, forces: segments[0].forces.clone(), segments }
                };
                groups.into_iter().map(window).collect()
            };
            let span = record.injected().zip(record.healed()).map(|(from, to)| (from.at_ns, to.at_ns));
            let severities = 0..record.severities.len();
            severities
                .map(|severity| Windows {
                    during: of(segments.during((*at, severity))),
                    pauses: of(span.map(|span| segments.pauses(*at, span)).unwrap_or_default()),
                    after: of(span.map(|span| segments.after(span.1)).unwrap_or_default()),
                    healed: span.is_some(),
                })
                .collect()
        })
    }
}

/// The smallest change that a severity asks of any subject, by quantity.
fn least_asked(expectations: &[Expectation]) -> HashMap<Quantity, f64> {
    let mut least = HashMap::new();
    for one in expectations.iter().filter(|one| one.hit && one.asked != 0.0) {
        let known = least.entry(one.quantity).or_insert(f64::INFINITY);
        *known = one.asked.abs().min(*known);
    }
    least
}

fn row(faults: &[FaultRecord], force: Force, asked: &Expectation, judgement: Judgement) -> ProofRow {
    ProofRow {
        subject: asked.subject.clone(),
        quantity: asked.quantity,
        hit: asked.hit,
        severity: force.1 as u32,
        asked: asked.asked,
        expected: judgement.expected,
        measured: judgement.measured,
        change: judgement.change,
        tolerance: asked.tolerance,
        allowed: judgement.allowed,
        together: judgement.together.iter().map(|other| faults[*other].index).collect(),
        sources: judgement.sources,
        verdict: judgement.verdict.unwrap_or(Proof::Unproven),
        why: judgement.why,
    }
}

/// Reasons named in words; a broken fault on ten hosts would fill the screen.
const NAMED: usize = 4;

fn conclude(evidence: &TrialEvidence, fault: &FaultRecord, rows: &[ProofRow]) -> (Proof, Vec<String>) {
    let unproven = |why: String| (Proof::Unproven, vec![why]);
    if fault.injected().is_none() {
        let came = if evidence.phase(phase::FAULT).is_some() { "" } else { ": the trial ended before it" };
        return unproven(format!("it was never injected{came}"));
    }
    if !rows.iter().any(|row| row.hit && row.asked != 0.0) {
        return unproven("the record holds no expectation of it".to_owned());
    }
    let unknown = fault.periods.iter().find(|period| period.severity as usize >= fault.severities.len());
    if let Some(period) = unknown {
        return unproven(format!("the record holds no expectation of its severity {}", period.severity));
    }
    let of = |verdict: Proof| -> Vec<String> {
        let said = rows.iter().filter(|row| row.verdict == verdict).filter_map(|row| {
            let severity = fault.severities.get(row.severity as usize).map_or("", |severity| severity.text.as_str());
            let at = if severity.is_empty() || fault.severities.len() < 2 {
                String::new()
            } else {
                format!(" (at {severity})")
            };
            row.why.as_ref().map(|why| format!("{why}{at}"))
        });
        said.collect()
    };
    let (refuted, unproven) = (of(Proof::Refuted), of(Proof::Unproven));
    let missed = fault.periods.iter().filter(|period| period.injected.is_none()).count();
    // Whether it went is a part of the proof, though the subjects of some faults need no evidence of it.
    let open = fault.healed().is_none();
    let (verdict, mut reasons) = match (refuted.is_empty(), unproven.is_empty() && missed == 0 && !open) {
        (false, _) => (Proof::Refuted, refuted),
        (true, false) => (Proof::Unproven, unproven),
        (true, true) => (Proof::Proven, Vec::new()),
    };
    if verdict == Proof::Unproven && missed > 0 {
        reasons.insert(0, format!("{missed} of its {} periods were never injected", fault.periods.len()));
    }
    if verdict == Proof::Unproven && open {
        reasons.insert(0, "the run was cut before the fault was healed".to_owned());
    }
    let more = reasons.len().saturating_sub(NAMED);
    reasons.truncate(NAMED);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    (verdict, reasons)
}
