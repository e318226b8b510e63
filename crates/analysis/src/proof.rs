//! Was each fault in force, on the pairs it was meant to hit and on no other?
//!
//! A fault that is not proven did not happen. Two sources that know nothing of each other have to
//! show it: the probes, which cross the network like any packet, and the emulator's own counters.

use brownout_record::{Expectation, FaultRecord, Quantity, Stamp};
use serde::Serialize;

use crate::{
    TrialEvidence,
    evidence::phase,
    window::{Windows, counters, probes},
};

/// Probes (or packets) a window needs before it says anything.
pub const ENOUGH: u64 = 30;

/// What the evidence says of a fault, or of one pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// Every hit pair shows what was asked, every spared pair nothing, and all are back after healing.
    Proven,
    /// There is enough evidence, and it shows something else.
    Refuted,
    /// There is not enough evidence.
    Unproven,
}

/// What one source saw on one pair before, during and after the fault.
///
/// Values are the median one-way delay (probes) or the median time in the emulator (counters), ns;
/// or the share of probes or wire packets lost, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Seen {
    /// Before the first injection.
    pub before: Option<f64>,
    /// While in force, after the margin.
    pub during: Option<f64>,
    /// After the last healing and the margin.
    pub after: Option<f64>,
    /// during − before.
    pub change: Option<f64>,
    /// after − before.
    pub after_change: Option<f64>,
    /// Probes or packets behind `before`, `during` and `after`.
    pub samples: [u64; 3],
    /// Of a share: half-width of the 99 % interval of `change`, added to the tolerance; else 0.
    pub error: f64,
    /// The same of `after_change`.
    pub after_error: f64,
}

/// One ordered pair of hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairProof {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// `one-way-delay` (ns) or `loss` (share of probes).
    pub quantity: Quantity,
    /// Whether this fault is meant to hit the pair.
    pub hit: bool,
    /// The change this fault asks for; 0 on a spared pair.
    pub asked: f64,
    /// The change to be seen, with the other faults in force at the same time.
    pub expected: f64,
    /// How far the measured change may lie from it.
    pub tolerance: f64,
    /// What the probes saw.
    pub probes: Seen,
    /// What the emulator counted.
    pub counters: Seen,
    /// What that says.
    pub verdict: Proof,
    /// Why it is not proven.
    pub why: Option<String>,
}

/// One fault of one trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultFindings {
    /// Its place in the experiment's list, from 0.
    pub index: u32,
    /// `slow`, …
    pub kind: String,
    /// "everything n2 sends is 100ms late".
    pub text: String,
    /// Its effect on round-trip times, in words.
    pub effect: String,
    /// When it came into force.
    pub injected: Option<Stamp>,
    /// When it was healed.
    pub healed: Option<Stamp>,
    /// Left out after each change, ns: the delay asked for (packets already on their way) and a margin to settle.
    pub margin_ns: u64,
    /// The verdict.
    pub verdict: Proof,
    /// Why it is not proven: which pair showed what.
    pub reasons: Vec<String>,
    /// Every pair, hit ones first.
    pub pairs: Vec<PairProof>,
}

/// Judges every fault of a trial.
pub(crate) fn proofs(evidence: &TrialEvidence) -> Vec<FaultFindings> {
    evidence.faults.iter().map(|fault| prove(evidence, fault)).collect()
}

fn prove(evidence: &TrialEvidence, fault: &FaultRecord) -> FaultFindings {
    let windows = Windows::of(evidence, fault);
    let mut pairs: Vec<PairProof> = fault
        .expectations
        .iter()
        .map(|expectation| {
            let expected = expected(evidence, fault, expectation);
            let seen = probes(evidence, expectation, &windows);
            let counted = counters(evidence, expectation, &windows);
            let (verdict, why) = judge(expectation, expected, least_asked(fault, expectation), &seen, &counted);
            PairProof {
                from: expectation.from.clone(),
                to: expectation.to.clone(),
                quantity: expectation.quantity,
                hit: expectation.hit,
                asked: expectation.asked,
                expected,
                tolerance: expectation.tolerance,
                probes: seen,
                counters: counted,
                verdict,
                why,
            }
        })
        .collect();
    pairs.sort_by_key(|pair| !pair.hit);
    let (verdict, reasons) = conclude(evidence, fault, &pairs);
    FaultFindings {
        index: fault.index,
        kind: fault.kind.clone(),
        text: fault.text.clone(),
        effect: fault.effect.clone(),
        injected: fault.injected,
        healed: fault.healed,
        margin_ns: windows.margin_ns,
        verdict,
        reasons,
        pairs,
    }
}

/// The change a pair has to show: this fault's, and that of every other fault in force at the same time.
fn expected(evidence: &TrialEvidence, fault: &FaultRecord, pair: &Expectation) -> f64 {
    let others = evidence.faults.iter().filter(|other| other.index != fault.index && overlap(fault, other));
    let same = others
        .flat_map(|other| &other.expectations)
        .filter(|other| other.from == pair.from && other.to == pair.to && other.quantity == pair.quantity);
    match pair.quantity {
        Quantity::OneWayDelay => pair.asked + same.map(|other| other.asked).sum::<f64>(),
        // A packet has to survive each of them.
        Quantity::Loss => 1.0 - (1.0 - pair.asked) * same.map(|other| 1.0 - other.asked).product::<f64>(),
    }
}

/// Whether two faults were in force at the same time.
pub(crate) fn overlap(one: &FaultRecord, other: &FaultRecord) -> bool {
    let span = |fault: &FaultRecord| {
        fault.injected.map(|injected| (injected.at_ns, fault.healed.map_or(u64::MAX, |healed| healed.at_ns)))
    };
    let (Some((from, to)), Some((other_from, other_to))) = (span(one), span(other)) else { return false };
    from < other_to && other_from < to
}

/// The smallest change that the fault asks of any pair: evidence that cannot tell it from none says
/// nothing, neither of a hit pair nor of a spared one.
fn least_asked(fault: &FaultRecord, pair: &Expectation) -> f64 {
    let hit = fault.expectations.iter().filter(|other| other.hit && other.quantity == pair.quantity);
    hit.map(|other| other.asked.abs()).fold(f64::INFINITY, f64::min)
}

fn judge(pair: &Expectation, expected: f64, least: f64, seen: &Seen, counted: &Seen) -> (Proof, Option<String>) {
    let name = format!("{} → {}", pair.from, pair.to);
    let number = |value: f64| show(pair.quantity, value);
    let unproven = |why: String| (Proof::Unproven, Some(format!("{name}: {why}")));
    let refuted = |why: String| (Proof::Refuted, Some(format!("{name}: {why}")));
    let role = if pair.hit { "" } else { " (spared)" };

    // What is shown comes before what is missing: one clear contradiction refutes. Neither source may contradict, and one
    // of them has to tell the fault from none: a loss of 1 % takes more packets than there are probes.
    let mut missing = None;
    let mut told = false;
    let mut untold = None;
    for (source, of, required) in
        [("probes", seen, true), ("the emulator's counters", counted, pair.hit || counted.change.is_some())]
    {
        if !required {
            continue;
        }
        let allowed = pair.tolerance + of.error;
        match of.change {
            None => missing = missing.or(Some(lacking(source, of, &["before", "during"]))),
            Some(change) if (change - expected).abs() > allowed => {
                return refuted(format!(
                    "{source}{role} show a change of {} where {} ± {} was to be seen",
                    number(change),
                    number(expected),
                    number(allowed)
                ));
            }
            Some(change) if allowed >= least || (pair.hit && change.abs() <= allowed) => {
                untold = untold.or(Some(format!(
                    "{source} show a change of {}, but ± {} cannot tell {} from none",
                    number(change),
                    number(allowed),
                    number(least)
                )));
            }
            Some(_) => told = true,
        }
    }
    missing = missing.or(untold.filter(|_| !told));
    match seen.after_change {
        Some(change) if change.abs() > pair.tolerance + seen.after_error => {
            return refuted(format!(
                "probes{role} show {} more than before although the fault was healed (± {} allowed)",
                number(change),
                number(pair.tolerance + seen.after_error)
            ));
        }
        Some(_) => {}
        None => missing = missing.or(Some(lacking("probes", seen, &["before", "after"]))),
    }
    match missing {
        Some(why) => unproven(why),
        None => (Proof::Proven, None),
    }
}

/// Which of the windows has too little in it.
fn lacking(source: &str, of: &Seen, windows: &[&str]) -> String {
    const NAMES: [&str; 3] = ["before", "during", "after"];
    let few: Vec<String> = NAMES
        .iter()
        .zip(of.samples)
        .filter(|(name, samples)| windows.contains(name) && *samples < ENOUGH)
        .map(|(name, samples)| format!("{samples} {name}"))
        .collect();
    format!("not enough evidence from {source}: {} ({ENOUGH} are needed)", few.join(", "))
}

/// A change in words.
pub(crate) fn show(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::OneWayDelay => brownout_units::format_ns(value),
        Quantity::Loss => format!("{:.2}%", value * 100.0),
    }
}

/// Reasons named in words; a broken fault on ten hosts would fill the screen.
const NAMED: usize = 4;

fn conclude(evidence: &TrialEvidence, fault: &FaultRecord, pairs: &[PairProof]) -> (Proof, Vec<String>) {
    if fault.injected.is_none() {
        let came = if evidence.phase(phase::FAULT).is_some() { "" } else { ": the trial ended before it" };
        return (Proof::Unproven, vec![format!("it was never injected{came}")]);
    }
    if !pairs.iter().any(|pair| pair.hit) {
        return (Proof::Unproven, vec!["the record says of no pair what it must show".to_owned()]);
    }
    let of = |verdict: Proof| -> Vec<String> {
        pairs.iter().filter(|pair| pair.verdict == verdict).filter_map(|pair| pair.why.clone()).collect()
    };
    let (refuted, unproven) = (of(Proof::Refuted), of(Proof::Unproven));
    let (verdict, mut reasons) = match (refuted.is_empty(), unproven.is_empty()) {
        (false, _) => (Proof::Refuted, refuted),
        (true, false) => (Proof::Unproven, unproven),
        (true, true) => (Proof::Proven, Vec::new()),
    };
    if verdict == Proof::Unproven && fault.healed.is_none() {
        reasons.insert(0, "the run was cut before the fault was healed".to_owned());
    }
    let more = reasons.len().saturating_sub(NAMED);
    reasons.truncate(NAMED);
    if more > 0 {
        reasons.push(format!("and {more} more pairs"));
    }
    (verdict, reasons)
}
