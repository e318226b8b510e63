//! The verdict of a run: is the evidence valid, and if so, what did the fault cost?

use std::collections::BTreeSet;

use brownout_record::{Description, Event, TrialState};
use serde::Serialize;

use crate::{
    CellFindings, DesignFindings, EncryptionFindings, Instrument, ObjectiveMiss, Outcome, Proof, Punctuality,
    SearchFindings, Taker, TrialEvidence, TrialFindings, Validity,
    evidence::phase,
    explained, harm,
    missed::{DoubtfulMiss, doubtful_misses},
    possible,
    words::{bound, confidence, percent, relative_range, share},
};

/// The verdict of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether the evidence can be used.
    pub validity: Validity,
    /// Why it is not valid.
    pub reasons: Vec<String>,
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

/// Subjects named that were harmed; a host that is slow is so on many pairs.
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
    let (by_others, by_itself): (Vec<DoubtfulMiss>, Vec<DoubtfulMiss>) =
        doubtful_misses(description, evidence, trial).into_iter().partition(|miss| miss.by_others);
    let texts = |misses: Vec<DoubtfulMiss>| misses.into_iter().map(|miss| miss.text);
    let disturbed: Vec<String> = disturbance(&trial.instrument).into_iter().chain(texts(by_others)).collect();
    let mut explained = unless_disturbed(evidence, trial);
    explained.extend(texts(by_itself));
    let unexplained = broken(description, evidence, trial);
    let validity = if trial.cut {
        Validity::Interrupted
    } else if !unexplained.is_empty() {
        Validity::Invalid
    } else if !disturbed.is_empty() {
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
    let how_much = match instrument.waits_unknown {
        0 => format!("it made the nodes' work take up to {:.0}% longer", hindered * 100.0),
        unknown => format!("in {unknown} of them it is not known how long the nodes waited"),
    };
    Some(format!(
        "the machine was busy with other work: {}; {} of {} intervals were disturbed{}; {how_much}",
        by.join(", "),
        instrument.disturbed_intervals.len(),
        instrument.intervals,
        by_phase.collect::<String>(),
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
    reasons.extend(trial.encryption.as_ref().and_then(unencrypted));
    reasons.extend(possible::impossible(description, evidence));
    reasons.extend(explained::impossible(trial.explained.as_ref()));
    let lost = trial.machines.iter().filter_map(|machine| Some((machine, machine.lost.as_ref()?)));
    reasons.extend(lost.filter(|(_, lost)| lost.too_much()).map(|(machine, lost)| lost.words(&machine.machine)));
    for death in trial.deaths.iter().filter(|death| !death.of_its_disk) {
        reasons.push(format!(
            "node {} died at {:.1} s, and no fault asked for it",
            death.node,
            death.at_ns as f64 / 1e9
        ));
    }
    reasons
}

/// That the encryption is not proven, and why.
fn unencrypted(encryption: &EncryptionFindings) -> Option<String> {
    let verdict = match encryption.verdict {
        Proof::Proven => return None,
        Proof::Refuted => "refuted",
        Proof::Unproven => "not proven",
    };
    Some(format!("the encryption is {verdict}: {}", encryption.reasons.join("; ")))
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
        reasons.push(format!("{} more showed what no fault asked for", trial.harm.len() - NAMED));
    }
    reasons.extend(harm::unseen(evidence));
    let instrument = &trial.instrument;
    // What others did to the instrument is said in their reason.
    if instrument.too_late_by_itself {
        let by_phase = instrument.punctuality.iter().filter(|phase| phase.too_late());
        let by_phase = by_phase
            .map(|Punctuality { phase, intervals, late, .. }| format!("; {late} of {intervals} in the {phase}"));
        let unwitnessed = match instrument.unwitnessed {
            0 => String::new(),
            some => format!("; of {some} it is not known how long the emulator waited for a processor"),
        };
        reasons.push(format!(
            "the instrument was late in {} of {} intervals{}{unwitnessed}",
            instrument.late_intervals.len(),
            instrument.intervals,
            by_phase.collect::<String>()
        ));
    }
    reasons
}

/// The fewest complete blocks that a cell is judged by, of a design that has as many.
const LEAST_BLOCKS: u32 = 2;

/// The verdict over all trials; gives each cell its sentence.
pub(crate) fn verdict(
    design: &DesignFindings,
    search: Option<&SearchFindings>,
    cells: &mut [CellFindings],
    trials: &[TrialFindings],
    events: &[Event],
) -> Verdict {
    for cell in cells.iter_mut() {
        cell.sentence = search.map_or_else(|| cell_sentence(cell), |search| search.of_cell(cell));
    }
    // A trial says its own events among its reasons; those of no trial in the record, before the first for instance, are
    // the run's.
    let of_run = || events.iter().filter(|event| trials.iter().all(|trial| Some(trial.trial) != event.trial));
    let mut reasons = of_kind(of_run(), FAILED);
    let failed = !reasons.is_empty();
    let numbers = match search {
        // Which trials there are, a search itself decides.
        Some(_) => 1..=trials.iter().map(|trial| trial.planned).max().unwrap_or(0),
        None => design.only.map_or(1..=design.trials, |only| only..=only),
    };
    let planned = numbers.clone().count();
    // Of each planned trial the last attempt; a valid one is the last.
    let last: Vec<&TrialFindings> =
        numbers.filter_map(|number| trials.iter().rfind(|trial| trial.planned == number)).collect();
    let cut = last.iter().find(|trial| trial.cut && trial.state != TrialState::Failed.to_string());
    let is_missing = search.map_or(last.len() < planned, |search| !search.is_over);
    let interrupted = !failed && (cut.is_some() || is_missing);
    if interrupted && cut.is_none() && !of_kind(of_run(), INTERRUPTED).is_empty() {
        reasons.push("the run was interrupted".to_owned());
    }
    if let Some(cut) = cut {
        let how = if cut.state == TrialState::Interrupted.to_string() {
            "was interrupted"
        } else {
            "has no end: the run was killed, or is still being made"
        };
        reasons.push(format!("trial {} {how}", cut.label()));
    }
    match search {
        Some(search) if is_missing => reasons.push(format!("the search has not ended after {} trials", search.trials)),
        None if is_missing => reasons.push(format!("{} of {planned} trials were run", last.len())),
        _ => {}
    }
    let is_lacking = search.map_or_else(|| !lacking(design, cells, trials).is_empty(), SearchFindings::is_blind);
    for trial in last.iter().filter(|trial| trial.validity != Validity::Valid && (interrupted || is_lacking)) {
        reasons.extend(trial.invalid.iter().map(|reason| format!("trial {}: {reason}", trial.label())));
    }
    let any = |validity| last.iter().any(|trial| trial.validity == validity);
    let validity = if interrupted {
        Validity::Interrupted
    } else if failed || (is_lacking && (any(Validity::Invalid) || any(Validity::Interrupted))) {
        Validity::Invalid
    } else if is_lacking && (search.is_none() || any(Validity::Disturbed)) {
        Validity::Disturbed
    } else {
        Validity::Valid
    };
    // A search for a rate has to miss what it asks for; what else is asked is no part of it.
    let is_of_rates = search.is_some_and(|search| search.capacity.is_some());
    let objective_misses = if is_of_rates { Vec::new() } else { misses(cells, trials) };
    let asked: Vec<&CellFindings> = match search {
        Some(_) => Vec::new(),
        None => cells.iter().filter(|cell| compares(design, cell) && design.blocks >= LEAST_BLOCKS).collect(),
    };
    let is_untold = |cell: &&CellFindings| matches!(cell.effect.outcome, Outcome::Inconclusive | Outcome::NotJudged);
    let exit_code = match validity {
        Validity::Interrupted => 130,
        Validity::Disturbed | Validity::Invalid => 3,
        Validity::Valid if !objective_misses.is_empty() => 1,
        Validity::Valid if search.is_some_and(|search| !search.is_told) => 3,
        Validity::Valid if !asked.is_empty() && asked.iter().all(is_untold) => 3,
        Validity::Valid => 0,
    };
    let all = search.map(|search| search.sentence.as_str());
    let sentence = sentence(validity, &reasons, (design, cells), all, &objective_misses);
    Verdict { validity, reasons, objective_misses, sentence, exit_code }
}

/// Whether a cell is to be compared with trials without a fault.
fn compares(design: &DesignFindings, cell: &CellFindings) -> bool {
    design.only.is_none() && design.without_fault > 0 && !cell.planned_faults.is_empty()
}

/// Blocks that have a valid trial of a cell, and one that it is compared with.
fn complete_blocks(cell: &CellFindings, trials: &[TrialFindings]) -> u32 {
    let blocks = |numbers: &[u32]| -> BTreeSet<u32> {
        trials.iter().filter(|trial| numbers.contains(&trial.trial)).map(|trial| trial.block).collect()
    };
    blocks(&cell.valid_trials).intersection(&blocks(&cell.compared_with)).count() as u32
}

/// Cells with fewer valid trials than it takes to say anything of them.
fn lacking<'a>(design: &DesignFindings, cells: &'a [CellFindings], trials: &[TrialFindings]) -> Vec<&'a CellFindings> {
    let of_only = |cell: &&CellFindings| {
        let only = trials.iter().find(|trial| Some(trial.planned) == design.only);
        only.is_none_or(|only| only.cell == cell.cell)
    };
    let lacks = |cell: &&CellFindings| {
        if design.only.is_some() {
            return !trials.iter().any(|trial| Some(trial.planned) == design.only && trial.validity == Validity::Valid);
        }
        // Without trials to compare with, nothing is judged, and every trial counts by itself.
        match compares(design, cell) {
            true => complete_blocks(cell, trials) < LEAST_BLOCKS.min(design.blocks),
            false => (cell.valid_trials.len() as u32) < design.blocks,
        }
    };
    cells.iter().filter(of_only).filter(lacks).collect()
}

fn misses(cells: &[CellFindings], trials: &[TrialFindings]) -> Vec<ObjectiveMiss> {
    let of_trial = |trial: &TrialFindings| {
        let objective = cells.iter().find(|cell| cell.cell == trial.cell).map(|cell| &cell.objective);
        let must = trial.phases.iter().filter(|phase| objective.is_some_and(|one| one.phases.contains(&phase.name)));
        must.filter_map(|phase| {
            let asked = objective?.share;
            let share = phase.objective_share.filter(|share| *share < asked)?;
            Some(ObjectiveMiss { trial: trial.label(), phase: phase.name.clone(), share, asked })
        })
        .collect::<Vec<_>>()
    };
    trials.iter().filter(|trial| trial.validity == Validity::Valid).flat_map(of_trial).collect()
}

/// What follows for a cell, without its name.
fn cell_sentence(cell: &CellFindings) -> String {
    let effect = &cell.effect;
    let size = share(effect.change.unwrap_or(0.0).abs());
    let over = format!("with {} confidence, over {} blocks", confidence(effect.confidence), effect.blocks);
    let (low, high) = effect.interval.unwrap_or_default();
    match effect.outcome {
        Outcome::Worse => {
            format!("Worse: the fault costs {size} of the goodput ({} … {} {over}).", share(-high), share(-low))
        }
        Outcome::Better => {
            format!("Better: goodput is {size} higher with the fault ({} {over}).", relative_range((low, high)))
        }
        Outcome::NoDifference => {
            let most = bound(effect.no_larger_than.unwrap_or(0.0));
            format!(
                "No difference larger than {most} of the goodput, with 95% confidence, over {} blocks.",
                effect.blocks
            )
        }
        Outcome::Changed => format!("Changed by an unknown amount: {}.", effect.reason),
        Outcome::Inconclusive => format!("Inconclusive: {}.", effect.reason),
        Outcome::NotJudged if cell.valid_trials.is_empty() => "Not judged: it has no valid trial.".to_owned(),
        Outcome::NotJudged if cell.planned_faults.is_empty() => {
            "Valid: the load ran as planned, and without a fault.".to_owned()
        }
        Outcome::NotJudged => format!("Valid, but the effect is not judged: {}.", effect.reason),
    }
}

/// `found` is what a search has found.
fn sentence(
    validity: Validity,
    reasons: &[String],
    (design, cells): (&DesignFindings, &[CellFindings]),
    found: Option<&str>,
    misses: &[ObjectiveMiss],
) -> String {
    // A reason may end in the last lines of a log: they do not fit into a sentence.
    let first = reasons.first().map_or("", String::as_str);
    let (first, end) = first.split_once('\n').map_or((first, "."), |(line, _)| (line, " …"));
    let faults = cells.iter().any(|cell| !cell.planned_faults.is_empty());
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
    let mut text = match (found, cells) {
        (Some(found), _) => found.to_owned(),
        (None, [cell]) => cell.sentence.clone(),
        (None, cells) => over_cells(cells, design.margin),
    };
    if let Some(miss) = misses.first() {
        let (share, asked) = miss.percents();
        text += &format!(
            " The objective is missed in the {} of trial {}: {share} good of {asked} asked.",
            miss.phase, miss.trial
        );
    }
    text
}

/// How many cells came to what.
fn over_cells(cells: &[CellFindings], margin: f64) -> String {
    const BE: [&str; 2] = ["is", "are"];
    const KINDS: [(Outcome, [&str; 2], &str); 6] = [
        (Outcome::Worse, BE, "worse with the fault"),
        (Outcome::Better, BE, "better with the fault"),
        (Outcome::Changed, ["has", "have"], "changed by an unknown amount"),
        (Outcome::NoDifference, ["shows", "show"], "no difference of"),
        (Outcome::Inconclusive, BE, "inconclusive"),
        (Outcome::NotJudged, BE, "not judged"),
    ];
    let parts = KINDS.into_iter().filter_map(|(outcome, [one, several], words)| {
        let count = cells.iter().filter(|cell| cell.effect.outcome == outcome).count();
        let verb = if count == 1 { one } else { several };
        let size = match outcome {
            Outcome::NoDifference => format!(" {} or more", percent(margin)),
            _ => String::new(),
        };
        (count > 0).then(|| format!("{count} {verb} {words}{size}"))
    });
    format!("Of {} cells {}.", cells.len(), parts.collect::<Vec<_>>().join(", "))
}
