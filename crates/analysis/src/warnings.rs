//! What to check before trusting a result that is valid.

use std::collections::{BTreeMap, BTreeSet};

use brownout_record::{CellRow, Event, SearchDescription};

use crate::{
    DesignFindings, TrialFindings, Validity, cost, drift,
    evidence::phase,
    instrument::{CHANGED_SHARE, Instrument},
    stats::ENOUGH,
};

/// All warnings: those of the plan, those of the run's events, those that follow from the trials; each once.
pub(crate) fn warnings(
    design: &DesignFindings,
    cells: &[CellRow],
    events: &[Event],
    trials: &[TrialFindings],
) -> Vec<String> {
    let told = events.iter().filter(|event| event.kind == "warning");
    let (of_trials, of_run): (Vec<&Event>, Vec<&Event>) = told.partition(|event| event.trial.is_some());
    let told = of_trials.into_iter().filter_map(|event| {
        let trial = trials.iter().find(|trial| Some(trial.trial) == event.trial)?;
        // What the lab says is the same but for its figures.
        let kind = event.text.split(|letter: char| letter.is_ascii_digit()).next().unwrap_or_default();
        Some(OfTrial { label: trial.label(), kind: kind.to_owned(), size: 0.0, text: event.text.clone() })
    });
    let of_trials = gathered(told.chain(trials.iter().flat_map(of_trial)).chain(dearer(cells, trials)).collect());
    let planned = cells.iter().flat_map(|cell| &cell.description.warnings).cloned();
    let of_run = of_run.into_iter().map(|event| event.text.clone());
    let all = planned.chain(repeated(design, trials)).chain(of_run).chain(of_trials);
    // Where a search changes the rate, baselines differ by that.
    let is_alike = !matches!(design.search, Some(SearchDescription::MaxRate { .. }));
    let drifts = is_alike.then(|| [drift::over_run(trials), drift::within_baselines(trials)]);
    let all = all.chain(drifts.into_iter().flatten().flatten());
    let mut seen = BTreeSet::new();
    all.filter(|warning| seen.insert(warning.clone())).collect()
}

/// So many trials with the same to say are told one by one.
const FEW: usize = 3;

/// A warning of one trial.
struct OfTrial {
    label: String,
    /// What trials have in common that warn of the same.
    kind: String,
    /// The larger, the worse.
    size: f64,
    text: String,
}

/// Trial by trial, or, where many have the same to say, the worst of them: of a matrix nobody reads a hundred lines.
fn gathered(warnings: Vec<OfTrial>) -> Vec<String> {
    let mut kinds: Vec<Vec<OfTrial>> = Vec::new();
    for warning in warnings {
        match kinds.iter_mut().find(|kind| kind[0].kind == warning.kind) {
            Some(kind) => kind.push(warning),
            None => kinds.push(vec![warning]),
        }
    }
    let mut told = Vec::new();
    for kind in kinds {
        // Of equals the first.
        let worst = kind.iter().reduce(|worst, other| if other.size > worst.size { other } else { worst });
        match worst {
            Some(OfTrial { label, text, size, .. }) if kind.len() > FEW => {
                let which = if *size > 0.0 { "at worst" } else { "first" };
                told.push(format!("in {} trials, {which} in trial {label}: {text}", kind.len()));
            }
            _ => told.extend(kind.iter().map(|OfTrial { label, text, .. }| format!("trial {label}: {text}"))),
        }
    }
    told
}

/// Trials that were tried more than once, and those of which no attempt is valid.
fn repeated(design: &DesignFindings, trials: &[TrialFindings]) -> Vec<String> {
    let (mut again, mut warnings) = (Vec::new(), Vec::new());
    for last in trials
        .iter()
        .filter(|trial| trials.iter().all(|other| other.planned != trial.planned || other.trial <= trial.trial))
    {
        let before = trials.iter().filter(|trial| trial.planned == last.planned && trial.trial < last.trial);
        for trial in before {
            let why = trial.invalid.first().and_then(|reason| reason.lines().next()).unwrap_or("it was cut short");
            again.push(format!("trial {} is {}, and was repeated: {why}", trial.label(), trial.validity.name()));
        }
        if last.validity != Validity::Valid && !last.cut && last.attempt >= design.attempts && design.trials > 1 {
            let why = last.invalid.first().and_then(|reason| reason.lines().next()).unwrap_or_default();
            warnings.push(format!("trial {} has no valid attempt: {why}", last.planned));
        }
    }
    if again.len() > FEW {
        again = vec![format!("{} attempts were repeated, of which {}", again.len(), again[0])];
    }
    again.append(&mut warnings);
    again
}

fn of_trial(trial: &TrialFindings) -> Vec<OfTrial> {
    let mut warnings = machine(&trial.instrument);
    let mut warn = |kind: &'static str, size: usize, text: String| warnings.push((kind, size as f64, text));
    let late = &trial.instrument.late_intervals;
    let disturbed = &trial.instrument.disturbed_intervals;
    if !disturbed.is_empty() && !trial.instrument.disturbed {
        let intervals = trial.instrument.intervals;
        let by: Vec<String> = trial.instrument.disturbed_by.iter().map(|taker| taker.text()).collect();
        let (count, by) = (disturbed.len(), by.join(", "));
        warn("disturbed", count, format!("other work disturbed {count} of {intervals} intervals, in which {by}"));
    }
    if !late.is_empty() && !trial.instrument.too_late {
        let intervals = trial.instrument.intervals;
        warn("late", late.len(), format!("the instrument was late in {} of {intervals} intervals", late.len()));
    }
    let unjudged = trial.harm_not_judged;
    if unjudged > 0 {
        let text = format!(
            "on {unjudged} ordered pairs of hosts nobody looked for harm: fewer than {ENOUGH} of their probes were sent in \
             the baseline; make it longer"
        );
        warn("unjudged", unjudged as usize, text);
    }
    for machine in &trial.machines {
        // Where it is too much, it is why the trial is invalid.
        if let Some(lost) = machine.lost.as_ref().filter(|lost| !lost.too_much()) {
            warn(
                "load-lost",
                1,
                format!("{}; it counts as what the database did not do", lost.words(&machine.machine)),
            );
        }
    }
    let stale = trial.balance.stale;
    if stale > 0 {
        let text = format!("{stale} reads returned an older version than one acknowledged before they were sent");
        warn("stale", stale as usize, text);
    }
    let (looked_for, lost) = (trial.balance.looked_for, trial.balance.lost);
    if lost > 0 {
        let text = format!(
            "{lost} of {looked_for} acknowledged writes that a later read looked for were not there: it returned one made before"
        );
        warn("lost", lost as usize, text);
    }
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    let failed = trial.phases.iter().flat_map(|phase| &phase.counts.failed_by_class);
    for (class, count) in failed.filter(|(class, _)| matches!(class.as_str(), "mismatch" | "missing")) {
        *classes.entry(class).or_default() += count;
    }
    for (class, count) in classes {
        let kind = if class == "mismatch" { "mismatch" } else { "missing" };
        warn(kind, count as usize, format!("{count} reads failed with {class}: the data is not what was written"));
    }
    let label = trial.label();
    let of_trial =
        |(kind, size, text): (&str, f64, String)| OfTrial { label: label.clone(), kind: kind.to_owned(), size, text };
    warnings.into_iter().map(of_trial).collect()
}

/// Trials in which the same work took more CPU time than in others.
fn dearer(cells: &[CellRow], trials: &[TrialFindings]) -> Vec<OfTrial> {
    let told = |one: cost::Dearer<'_>| {
        let (label, text) = (one.trial.label(), one.text());
        OfTrial { label, kind: "dearer".to_owned(), size: one.by, text }
    };
    cost::dearer(cells, trials).into_iter().map(told).collect()
}

/// A machine that was too busy, or not the same to both sides of the comparison: kind, size, text.
fn machine(instrument: &Instrument) -> Vec<(&'static str, f64, String)> {
    let mut warnings = Vec::new();
    let of_phase = |name: &str| instrument.cpu.iter().find(|cpu| cpu.phase == name);
    let saturated: Vec<_> = instrument.saturated.iter().filter_map(|phase| of_phase(phase)).collect();
    if !saturated.is_empty() {
        let busiest = saturated.iter().map(|cpu| cpu.busy).fold(0.0, f64::max);
        let phases: Vec<String> =
            saturated.iter().map(|cpu| format!("{:.0}% busy in the {}", cpu.busy * 100.0, cpu.phase)).collect();
        let phases = phases.join(", ");
        let text = format!("the machine was {phases}: latencies are queues for the processors; lower the rate");
        warnings.push(("saturated", busiest, text));
    }
    let (Some(baseline), Some(fault)) = (of_phase(phase::BASELINE), of_phase(phase::FAULT)) else { return warnings };
    for (kind, what, before, during) in [
        (
            "programs",
            "programs outside of the lab took",
            baseline.programs.unwrap_or(0.0),
            fault.programs.unwrap_or(0.0),
        ),
        ("stolen", "the hypervisor took for other machines", baseline.stolen, fault.stolen),
    ] {
        let change = (during - before).abs();
        if change > CHANGED_SHARE {
            let text = format!(
                "{what} {:.0}% of the machine in the baseline and {:.0}% in the fault phase: part of the difference may come \
                 from that; stop other work and repeat",
                before * 100.0,
                during * 100.0
            );
            warnings.push((kind, change, text));
        }
    }
    warnings
}
