//! The verdict of a run: is the evidence valid, and if so, what did the fault cost?

use brownout_record::{Description, Event, TrialState};
use serde::Serialize;

use crate::{
    Instrument, Proof, Punctuality, Taker, TrialEvidence, TrialFindings, Validity, evidence::phase, explained, harm,
    possible, stats,
};

/// Trials below which no confidence interval is worth quoting.
pub const ENOUGH_TRIALS: usize = 5;
/// The noise floor is at least this share: shorter baselines cannot show a smaller one.
pub const LEAST_NOISE: f64 = 0.005;
/// A difference below this share is never called one.
pub const LEAST_DIFFERENCE: f64 = 0.01;

/// The fault phase beside the baseline, over all trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The fault cost goodput.
    Worse,
    /// Goodput rose.
    Better,
    /// If there is a difference, it is not larger than `threshold`.
    NoDifference,
    /// These trials cannot show it.
    Inconclusive,
    /// Not asked of this run; `reason` says why.
    NotJudged,
}

/// The effect of the faults on goodput, over all trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectVerdict {
    /// The verdict.
    pub outcome: Outcome,
    /// How it was reached, or why not.
    pub reason: String,
    /// Trials that have a baseline and a fault phase.
    pub trials: u32,
    /// Mean degradation of goodput over the trials, a share of the baseline.
    pub degradation: Option<f64>,
    /// The smallest of a trial.
    pub degradation_min: Option<f64>,
    /// The largest of a trial.
    pub degradation_max: Option<f64>,
    /// 95 % confidence interval of the mean, from five trials on (seeded bootstrap).
    pub interval: Option<(f64, f64)>,
    /// Largest difference between the two halves of a baseline, a share of its goodput; at least 0.5 %.
    pub noise_floor: f64,
    /// A difference counts from here on: twice the noise floor, at least 1 %.
    pub threshold: f64,
}

/// The objective was missed in a phase in which it must hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveMiss {
    /// The trial.
    pub trial: u32,
    /// The phase.
    pub phase: String,
    /// Good ÷ due.
    pub share: f64,
    /// What it should have been.
    pub asked: f64,
}

impl ObjectiveMiss {
    /// Both shares in per cent, with as many digits as tell them apart: what was missed never reads as what was asked.
    pub fn percents(&self) -> (String, String) {
        let shown = |digits: usize| {
            let percent = |share: f64| format!("{:.digits$}%", share * 100.0);
            (percent(self.share), percent(self.asked))
        };
        (2..=12).map(shown).find(|(share, asked)| share != asked).unwrap_or_else(|| shown(12))
    }
}

/// The verdict of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether the evidence can be used.
    pub validity: Validity,
    /// Why it is not valid.
    pub reasons: Vec<String>,
    /// The effect of the faults.
    pub effect: EffectVerdict,
    /// Where the objective was missed although it must hold there.
    pub objective_misses: Vec<ObjectiveMiss>,
    /// All of it in one sentence.
    pub sentence: String,
    /// The exit code that follows: 0, 1, 3 or 130.
    pub exit_code: u8,
}

/// The kind of event that says why a run or a trial could not go on.
const FAILED: &str = "failed";
/// The kind of event that says that a user ended the run.
const INTERRUPTED: &str = "interrupted";
/// The kind of event that says that the load's own books do not balance.
const UNBALANCED: &str = "balance";

fn of_kind<'a>(events: impl IntoIterator<Item = &'a Event>, kind: &str) -> Vec<String> {
    events.into_iter().filter(|event| event.kind == kind).map(|event| event.text.clone()).collect()
}

/// Places named that were harmed; a host that is slow is so on many pairs.
const NAMED: usize = 4;

/// Whether a trial's evidence can be used, and why not.
///
/// On a disturbed machine a fault may seem to be none, or another one, and the instrument may be late: such a trial is to be
/// repeated before anything is said of it. What a busy machine does not explain makes it invalid all the same.
pub(crate) fn of_trial(
    description: &Description,
    evidence: &TrialEvidence,
    trial: &TrialFindings,
) -> (Validity, Vec<String>) {
    let disturbed = disturbance(&trial.instrument);
    let explained = unless_disturbed(evidence, trial);
    let unexplained = broken(description, evidence, trial);
    let validity = if trial.cut {
        Validity::Interrupted
    } else if !unexplained.is_empty() {
        Validity::Invalid
    } else if disturbed.is_some() {
        Validity::Disturbed
    } else if !explained.is_empty() {
        Validity::Invalid
    } else {
        Validity::Valid
    };
    (validity, unexplained.into_iter().chain(disturbed).chain(explained).collect())
}

/// Who disturbed, and how much.
fn disturbance(instrument: &Instrument) -> Option<String> {
    if !instrument.disturbed {
        return None;
    }
    let by: Vec<String> = instrument.disturbed_by.iter().map(Taker::text).collect();
    let by_phase = instrument.punctuality.iter().filter(|phase| phase.disturbed > 0);
    let by_phase = by_phase.map(|phase| format!("; {} of {} in the {}", phase.disturbed, phase.intervals, phase.phase));
    let hindered = instrument.cpu.iter().filter(|cpu| phase::MEASURED.contains(&cpu.phase.as_str()));
    let hindered = hindered.filter_map(|cpu| cpu.hindered).fold(0.0, f64::max);
    Some(format!(
        "the machine was busy with other work: {}; {} of {} intervals were disturbed{}; it made the nodes' \
         work take up to {:.0}% longer",
        by.join(", "),
        instrument.disturbed_intervals.len(),
        instrument.intervals,
        by_phase.collect::<String>(),
        hindered * 100.0
    ))
}

/// What is wrong with a trial, and what no other program explains.
fn broken(description: &Description, evidence: &TrialEvidence, trial: &TrialFindings) -> Vec<String> {
    let mut reasons = of_kind(&evidence.events, FAILED);
    if trial.state == TrialState::Failed.to_string() {
        reasons.push("it failed before its end".to_owned());
    }
    // What is not there must not pass for what is well.
    if trial.faults.is_empty() && !description.faults.is_empty() {
        reasons.push("none of its faults was recorded".to_owned());
    }
    if trial.state == TrialState::Done.to_string() {
        let planned = description.phases.iter().filter(|phase| phase::MEASURED.contains(&phase.name.as_str()));
        for planned in planned {
            let seen = trial.phases.iter().find(|seen| seen.name == planned.name);
            if seen.is_none_or(|seen| seen.counts.scheduled == 0) {
                reasons.push(format!("its {} has no complete interval with operations", planned.name));
            }
        }
    }
    if !trial.balance.balances {
        reasons.push(format!("the balance sheet does not balance: {}", trial.balance.errors.join("; ")));
    }
    reasons.extend(of_kind(&evidence.events, UNBALANCED));
    reasons.extend(possible::impossible(description, evidence));
    reasons.extend(explained::impossible(trial.explained.as_ref()));
    for death in &trial.deaths {
        reasons.push(format!(
            "node {} died at {:.1} s, and no fault asked for it",
            death.node,
            death.at_ns as f64 / 1e9
        ));
    }
    reasons
}

/// What is wrong with a trial, unless others took the processors.
fn unless_disturbed(evidence: &TrialEvidence, trial: &TrialFindings) -> Vec<String> {
    let mut reasons = Vec::new();
    for fault in &trial.faults {
        let verdict = match fault.verdict {
            Proof::Proven => continue,
            Proof::Refuted => "refuted",
            Proof::Unproven => "not proven",
        };
        reasons.push(format!("the fault \"{}\" is {verdict}: {}", fault.text, fault.reasons.join("; ")));
    }
    let harmed = trial.harm.iter().map(|harm| harm::reason(harm, &evidence.faults));
    reasons.extend(harmed.take(NAMED));
    if trial.harm.len() > NAMED {
        reasons.push(format!("{} more places and quantities showed what no fault asked for", trial.harm.len() - NAMED));
    }
    let instrument = &trial.instrument;
    // What others did to the instrument is said in their reason.
    if instrument.too_late_by_itself {
        let by_phase = instrument.punctuality.iter().filter(|phase| phase.too_late());
        let by_phase = by_phase
            .map(|Punctuality { phase, intervals, late, .. }| format!("; {late} of {intervals} in the {phase}"));
        reasons.push(format!(
            "the instrument was late in {} of {} intervals{}",
            instrument.late_intervals.len(),
            instrument.intervals,
            by_phase.collect::<String>()
        ));
    }
    reasons
}

/// The verdict over all trials.
pub(crate) fn verdict(description: &Description, trials: &[TrialFindings], events: &[Event], seed: u64) -> Verdict {
    let planned = description.trials as usize;
    // A trial says its own events among its reasons; those of no trial in the record, before the first for instance, are
    // the run's.
    let of_run = || events.iter().filter(|event| trials.iter().all(|trial| Some(trial.trial) != event.trial));
    let mut reasons = of_kind(of_run(), FAILED);
    // What failed was not cut short by anyone: it is invalid, however few trials there are.
    let failed = events.iter().any(|event| event.kind == FAILED)
        || trials.iter().any(|trial| trial.state == TrialState::Failed.to_string());
    let cut = trials.iter().find(|trial| trial.cut);
    let ended = !of_kind(of_run(), INTERRUPTED).is_empty();
    let interrupted = !failed && (cut.is_some() || ended || trials.len() < planned);
    if cut.is_none() && ended {
        reasons.push("the run was interrupted".to_owned());
    }
    if let Some(cut) = cut {
        let how = if cut.state == TrialState::Interrupted.to_string() {
            "was interrupted"
        } else {
            "has no end: the run was killed, or is still being made"
        };
        reasons.push(format!("trial {} {how}", cut.trial));
    }
    if trials.len() < planned {
        reasons.push(format!("{} of {planned} trials were run", trials.len()));
    }
    // What the run itself came to, before what its trials did.
    let broken = !reasons.is_empty();
    for trial in trials {
        reasons.extend(trial.invalid.iter().map(|reason| format!("trial {}: {reason}", trial.trial)));
    }
    let any = |validity| trials.iter().any(|trial| trial.validity == validity);
    let validity = if interrupted {
        Validity::Interrupted
    } else if broken || any(Validity::Invalid) {
        Validity::Invalid
    } else if any(Validity::Disturbed) {
        Validity::Disturbed
    } else {
        Validity::Valid
    };
    let effect = effect(description, trials, validity, seed);
    let objective_misses = misses(description, trials);
    let exit_code = match validity {
        Validity::Interrupted => 130,
        Validity::Disturbed | Validity::Invalid => 3,
        Validity::Valid if !objective_misses.is_empty() => 1,
        Validity::Valid if effect.outcome == Outcome::Inconclusive => 3,
        Validity::Valid => 0,
    };
    let sentence = sentence(validity, &reasons, &effect, &objective_misses, !description.faults.is_empty());
    Verdict { validity, reasons, effect, objective_misses, sentence, exit_code }
}

fn effect(description: &Description, trials: &[TrialFindings], validity: Validity, seed: u64) -> EffectVerdict {
    let of_trials: Vec<f64> = trials.iter().filter_map(|trial| trial.effect.degradation).collect();
    let noise_floor = trials.iter().filter_map(|trial| trial.effect.noise).fold(LEAST_NOISE, f64::max);
    let threshold = (2.0 * noise_floor).max(LEAST_DIFFERENCE);
    let interval = stats::bootstrap_mean(&of_trials, seed);
    let (outcome, reason) = if validity != Validity::Valid {
        (Outcome::NotJudged, "the evidence is not valid".to_owned())
    } else if description.faults.is_empty() {
        (Outcome::NotJudged, "the experiment has no fault".to_owned())
    } else if let Some(trial) = trials.iter().find(|trial| trial.effect.degradation.is_none()) {
        (Outcome::Inconclusive, format!("trial {} has no baseline with good operations to compare with", trial.trial))
    } else if of_trials.len() == 1 {
        (Outcome::NotJudged, "one trial cannot distinguish an effect from chance; run at least two".to_owned())
    } else {
        match interval {
            Some(interval) => decide("the 95% interval of the mean", interval, threshold),
            None => decide("every trial", extremes(&of_trials), threshold),
        }
    };
    EffectVerdict {
        outcome,
        reason,
        trials: of_trials.len() as u32,
        degradation: stats::mean(&of_trials),
        degradation_min: of_trials.iter().copied().reduce(f64::min),
        degradation_max: of_trials.iter().copied().reduce(f64::max),
        interval,
        noise_floor,
        threshold,
    }
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// The four verdicts do not overlap: everything (all trials, or the whole interval) must lie above the threshold, below
/// its negative, or between them; else nothing can be said.
pub(crate) fn decide(what: &str, (low, high): (f64, f64), threshold: f64) -> (Outcome, String) {
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let from_to = format!("{what} lies within {} … {}", percent(low), percent(high));
    let of = format!("the threshold is ±{}", percent(threshold));
    if low > threshold {
        (Outcome::Worse, format!("{from_to}; {of}"))
    } else if high < -threshold {
        (Outcome::Better, format!("{from_to}; {of}"))
    } else if low >= -threshold && high <= threshold {
        (Outcome::NoDifference, format!("{from_to}; {of}"))
    } else {
        (Outcome::Inconclusive, format!("{from_to}, on both sides of the threshold of ±{}", percent(threshold)))
    }
}

fn misses(description: &Description, trials: &[TrialFindings]) -> Vec<ObjectiveMiss> {
    let objective = &description.objective;
    let of_trial = |trial: &TrialFindings| {
        let must = trial.phases.iter().filter(|phase| objective.phases.contains(&phase.name));
        must.filter_map(|phase| {
            let share = phase.objective_share.filter(|share| *share < objective.share)?;
            Some(ObjectiveMiss { trial: trial.trial, phase: phase.name.clone(), share, asked: objective.share })
        })
        .collect::<Vec<_>>()
    };
    trials.iter().flat_map(of_trial).collect()
}

fn sentence(
    validity: Validity,
    reasons: &[String],
    effect: &EffectVerdict,
    misses: &[ObjectiveMiss],
    faults: bool,
) -> String {
    // A reason may end in the last lines of a log: they do not fit into a sentence.
    let first = reasons.first().map_or("", String::as_str);
    let (first, end) = first.split_once('\n').map_or((first, "."), |(line, _)| (line, " …"));
    match validity {
        Validity::Interrupted => {
            return format!("Interrupted: {first}; what was measured until then is shown without a verdict.");
        }
        Validity::Invalid => {
            let about = if faults { " about the fault" } else { "" };
            return format!("Invalid: {first}{end} No conclusion can be drawn from this run{about}.");
        }
        Validity::Disturbed => {
            return format!(
                "Disturbed: {first}{end} No conclusion can be drawn from this run: stop the other work, and \
                 repeat it."
            );
        }
        Validity::Valid => {}
    }
    let percent = |share: Option<f64>| format!("{:.1}%", share.unwrap_or(0.0).abs() * 100.0);
    let mean = percent(effect.degradation);
    let over = format!("over {} trials", effect.trials);
    let mut text = match effect.outcome {
        Outcome::Worse => format!("Worse: the fault costs {mean} of the goodput {over}."),
        Outcome::Better => format!("Better: goodput is {mean} higher with the fault {over}."),
        Outcome::NoDifference => {
            format!("No difference larger than {} of the goodput {over}.", percent(Some(effect.threshold)))
        }
        Outcome::Inconclusive => format!("Inconclusive: {}.", effect.reason),
        Outcome::NotJudged if !faults => "Valid: the load ran as planned, and without a fault.".to_owned(),
        Outcome::NotJudged => format!("Valid, but the effect is not judged: {}.", effect.reason),
    };
    for miss in misses.iter().take(1) {
        let (share, asked) = miss.percents();
        text += &format!(
            " The objective is missed in the {} of trial {}: {share} good of {asked} asked.",
            miss.phase, miss.trial
        );
    }
    text
}
