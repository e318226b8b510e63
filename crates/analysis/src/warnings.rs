//! What to check before trusting a result that is valid.

use std::collections::{BTreeMap, BTreeSet};

use brownout_record::{CellRow, Event, SearchDescription};

use crate::{
    DesignFindings, TrialFindings, Validity, drift,
    evidence::phase,
    instrument::{CHANGED_SHARE, Instrument},
};

/// All warnings: those of the plan, those of the run's events, those that follow from the trials; each once.
pub(crate) fn warnings(
    design: &DesignFindings,
    cells: &[CellRow],
    events: &[Event],
    trials: &[TrialFindings],
) -> Vec<String> {
    let told = events.iter().filter(|event| event.kind == "warning").map(|event| {
        let trial = trials.iter().find(|trial| Some(trial.trial) == event.trial);
        match trial {
            Some(trial) => format!("trial {}: {}", trial.label(), event.text),
            None => event.text.clone(),
        }
    });
    let of_trial = |trial: &TrialFindings| {
        let label = trial.label();
        of_trial(trial).into_iter().map(move |text| format!("trial {label}: {text}"))
    };
    let planned = cells.iter().flat_map(|cell| &cell.description.warnings).cloned();
    let all = planned.chain(repeated(design, trials)).chain(told).chain(trials.iter().flat_map(of_trial));
    // Where a search changes the rate, baselines differ by that.
    let is_alike = !matches!(design.search, Some(SearchDescription::MaxRate { .. }));
    let drifts = is_alike.then(|| [drift::over_run(trials), drift::within_baselines(trials)]);
    let all = all.chain(drifts.into_iter().flatten().flatten());
    let mut seen = BTreeSet::new();
    all.filter(|warning| seen.insert(warning.clone())).collect()
}

/// Trials that were tried more than once, and those of which no attempt is valid.
fn repeated(design: &DesignFindings, trials: &[TrialFindings]) -> Vec<String> {
    let mut warnings = Vec::new();
    for last in trials
        .iter()
        .filter(|trial| trials.iter().all(|other| other.planned != trial.planned || other.trial <= trial.trial))
    {
        let before = trials.iter().filter(|trial| trial.planned == last.planned && trial.trial < last.trial);
        for trial in before {
            let why = trial.invalid.first().and_then(|reason| reason.lines().next()).unwrap_or("it was cut short");
            warnings.push(format!("trial {} is {}, and was repeated: {why}", trial.label(), trial.validity.name()));
        }
        if last.validity != Validity::Valid && !last.cut && last.attempt >= design.attempts && design.trials > 1 {
            let why = last.invalid.first().and_then(|reason| reason.lines().next()).unwrap_or_default();
            warnings.push(format!("trial {} has no valid attempt: {why}", last.planned));
        }
    }
    warnings
}

fn of_trial(trial: &TrialFindings) -> Vec<String> {
    let mut warnings = machine(&trial.instrument);
    let late = &trial.instrument.late_intervals;
    let disturbed = &trial.instrument.disturbed_intervals;
    if !disturbed.is_empty() && !trial.instrument.disturbed {
        let intervals = trial.instrument.intervals;
        let by: Vec<String> = trial.instrument.disturbed_by.iter().map(|taker| taker.text()).collect();
        warnings.push(format!(
            "other work disturbed {} of {intervals} intervals, in which {}",
            disturbed.len(),
            by.join(", ")
        ));
    }
    if !late.is_empty() && !trial.instrument.too_late {
        let intervals = trial.instrument.intervals;
        warnings.push(format!("the instrument was late in {} of {intervals} intervals", late.len()));
    }
    if trial.balance.stale > 0 {
        warnings.push(format!(
            "{} reads returned an older version than one acknowledged before they were sent",
            trial.balance.stale
        ));
    }
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    let failed = trial.phases.iter().flat_map(|phase| &phase.counts.failed_by_class);
    for (class, count) in failed.filter(|(class, _)| matches!(class.as_str(), "mismatch" | "missing")) {
        *classes.entry(class).or_default() += count;
    }
    for (class, count) in classes {
        warnings.push(format!("{count} reads failed with {class}: the data is not what was written"));
    }
    warnings
}

/// A machine that was too busy, or not the same to both sides of the comparison.
fn machine(instrument: &Instrument) -> Vec<String> {
    let mut warnings = Vec::new();
    let of_phase = |name: &str| instrument.cpu.iter().find(|cpu| cpu.phase == name);
    for cpu in instrument.saturated.iter().filter_map(|phase| of_phase(phase)) {
        warnings.push(format!(
            "the machine was {:.0}% busy in the {}: latencies are queues for the processors; lower the rate",
            cpu.busy * 100.0,
            cpu.phase
        ));
    }
    let (Some(baseline), Some(fault)) = (of_phase(phase::BASELINE), of_phase(phase::FAULT)) else { return warnings };
    for (what, before, during) in [
        ("programs outside of the lab took", baseline.programs.unwrap_or(0.0), fault.programs.unwrap_or(0.0)),
        ("the hypervisor took for other machines", baseline.stolen, fault.stolen),
    ] {
        if (during - before).abs() > CHANGED_SHARE {
            warnings.push(format!(
                "{what} {:.0}% of the machine in the baseline and {:.0}% in the fault phase: part of the \
                 difference may come from that; stop other work and repeat",
                before * 100.0,
                during * 100.0
            ));
        }
    }
    warnings
}
