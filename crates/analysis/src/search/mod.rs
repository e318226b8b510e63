//! Searches: from the trials that were made to the one that comes next, and to what a search has found.
//!
//! All of it is a pure function of the record. The lab asks the same functions for the next trial that the findings come from, so a
//! search that goes on after an interruption goes on where it was.

mod amount;
mod max_rate;
mod zone;

use brownout_record::{Arm, CellRow, RecordError, SearchDescription, TrialState};
use brownout_statistics::median;
use serde::Serialize;

use crate::{AnalysisError, CellFindings, DesignFindings, TrialFindings, Validity, evidence::phase};

pub use amount::Amount;
pub use max_rate::{CapacityFindings, CapacityOutcome, MaxRate};
pub use zone::{DangerZone, ThresholdFindings, ThresholdOutcome};

/// What a planned trial has shown once it is valid, or has been tried as often as it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    /// The severity or rate of its cell, as written.
    pub level: String,
    /// With the faults, or without.
    pub arm: Arm,
    /// ln(goodput of the fault phase ÷ that of the baseline); none: not valid, or without such phases.
    pub log_ratio: Option<f64>,
    /// Whether the objective of a search for a rate was kept; none: not valid, or not asked.
    pub kept: Option<bool>,
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchFindings {
    /// `danger-zone` or `max-rate`.
    pub kind: &'static str,
    /// The key or variable that is varied.
    pub factor: String,
    /// Whether it came to its end.
    pub is_over: bool,
    /// Whether it has an answer: every threshold is passed within an interval, or already at the mildest severity, or surely not at
    /// all; the largest rate is known, or lies beyond an end.
    pub is_told: bool,
    /// Planned trials that it has used, those without a fault among them ...
    pub trials: u32,
    /// ... of so many at most.
    pub most_trials: u32,
    /// Of them valid ones without a fault.
    pub without_fault: u32,
    /// Of a danger zone: the standard deviation of a trial's ln(fault phase ÷ baseline); none before three trials without a fault.
    pub deviation: Option<f64>,
    /// Where the loss passes each threshold; empty in a search for a rate.
    pub thresholds: Vec<ThresholdFindings>,
    /// The largest rate; none in a search for a danger zone.
    pub capacity: Option<CapacityFindings>,
    /// What was tried: from the mildest severity to the most severe one, or from the lowest rate to the highest.
    pub levels: Vec<LevelFindings>,
    /// All of it in words.
    pub sentence: String,
}

/// One severity or rate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelFindings {
    /// As written.
    pub level: String,
    /// Planned trials at it that are valid.
    pub trials: u32,
    /// Planned trials at it of which no attempt is.
    pub untold: u32,
    /// The median loss of goodput, a share, against trials without a fault; none in a search for a rate.
    pub loss: Option<f64>,
    /// That of each valid trial, in their order.
    pub losses: Vec<f64>,
    /// Of the valid trials those that kept the objective; none in a search for a danger zone.
    pub kept: Option<u32>,
}

/// By what was tried, in the order of `position`.
fn levels(
    lessons: &[&Lesson],
    position: impl Fn(&str) -> Option<f64>,
    value: impl Fn(&Lesson) -> Option<f64>,
) -> Vec<LevelFindings> {
    let mut names: Vec<&String> = Vec::new();
    for lesson in lessons {
        if !names.contains(&&lesson.level) {
            names.push(&lesson.level);
        }
    }
    names.sort_by(|one, other| position(one).partial_cmp(&position(other)).unwrap_or(std::cmp::Ordering::Equal));
    let of = |name: &String| {
        let own: Vec<&Lesson> = lessons.iter().copied().filter(|lesson| lesson.level == *name).collect();
        let values: Vec<f64> = own.iter().filter_map(|lesson| value(lesson)).collect();
        let kept: Vec<bool> = own.iter().filter_map(|lesson| lesson.kept).collect();
        let trials = values.len().max(kept.len());
        LevelFindings {
            level: name.clone(),
            trials: trials as u32,
            untold: (own.len() - trials) as u32,
            loss: (!values.is_empty()).then(|| -median(&values).exp_m1()),
            losses: values.iter().map(|value| -value.exp_m1()).collect(),
            kept: (!kept.is_empty()).then(|| kept.iter().filter(|kept| **kept).count() as u32),
        }
    };
    names.into_iter().map(of).collect()
}

/// What a trial of a cell shows to a search.
pub(crate) fn lesson(search: &SearchDescription, cell: &CellRow, trial: &TrialFindings) -> Lesson {
    let level = cell.levels.first().cloned().unwrap_or_default();
    let is_valid = trial.validity == Validity::Valid && trial.state == TrialState::Done.to_string();
    let told = |kept, log_ratio| Lesson { level, arm: trial.arm, kept, log_ratio };
    match search {
        _ if !is_valid => told(None, None),
        SearchDescription::DangerZone { .. } => told(None, trial.effect.log_ratio),
        SearchDescription::MaxRate { share, response_ns, .. } => {
            let name = if cell.description.faults.is_empty() { phase::BASELINE } else { phase::FAULT };
            told(kept(trial, name, *share, *response_ns), None)
        }
    }
}

/// Whether so many of all that was due in a phase were answered right in time; none: nothing was due.
fn kept(trial: &TrialFindings, name: &str, share: f64, response_ns: u64) -> Option<bool> {
    let due = trial.phases.iter().find(|phase| phase.name == name)?.due?;
    let quantiles = [(0.5, due.p50), (0.95, due.p95), (0.99, due.p99), (0.999, due.p999)];
    let (_, quantile) = quantiles.into_iter().find(|(of, _)| (of - share).abs() < 1e-9)?;
    Some(quantile.is_some_and(|quantile| quantile.value_ns <= response_ns && !quantile.at_least))
}

/// What all planned trials have shown that are settled, in their order, up to the first that is not.
fn lessons(search: &SearchDescription, attempts: u32, cells: &[CellRow], trials: &[TrialFindings]) -> Vec<Lesson> {
    let settled = |number: u32| {
        let ended = |trial: &&TrialFindings| {
            trial.planned == number
                && [TrialState::Done, TrialState::Failed].iter().any(|state| trial.state == state.to_string())
        };
        let tried: Vec<&TrialFindings> = trials.iter().filter(ended).collect();
        let valid = tried.iter().find(|trial| trial.validity == Validity::Valid);
        let last = valid.or_else(|| tried.last().filter(|_| tried.len() >= attempts as usize))?;
        Some(lesson(search, cells.iter().find(|cell| cell.cell == last.cell)?, last))
    };
    (1..).map_while(settled).collect()
}

/// What a search has found; none where nothing is searched.
///
/// # Errors
/// The record says of the search what cannot be.
pub(crate) fn search(
    design: &DesignFindings,
    cells: &[CellRow],
    trials: &[TrialFindings],
) -> Result<Option<SearchFindings>, AnalysisError> {
    let Some(description) = &design.search else { return Ok(None) };
    let damaged = || RecordError::Damaged { what: "search", why: "its ends are not amounts of one kind".to_owned() };
    let lessons = lessons(description, design.attempts, cells, trials);
    let factor = design.factors.first().map(|factor| factor.name.clone()).unwrap_or_default();
    let without = lessons.iter().filter(|lesson| lesson.arm == Arm::None && lesson.log_ratio.is_some());
    let mut found = SearchFindings {
        kind: "danger-zone",
        is_over: false,
        is_told: false,
        trials: lessons.len() as u32,
        most_trials: design.trials,
        without_fault: without.count() as u32,
        deviation: None,
        thresholds: Vec::new(),
        capacity: None,
        levels: Vec::new(),
        sentence: String::new(),
        factor,
    };
    match description {
        SearchDescription::DangerZone { thresholds, from, to } => {
            let zone = DangerZone::new(from, to, thresholds).ok_or_else(damaged)?;
            found.is_over = zone.is_over(&lessons);
            found.deviation = zone.learnt(&lessons).map(|learnt| learnt.deviation());
            found.levels = zone.levels(&lessons);
            found.thresholds = zone.thresholds(&lessons);
            found.is_told = found.thresholds.iter().all(|one| one.outcome != ThresholdOutcome::Undetermined);
            found.sentence = zone.sentence(&found.factor, &found.thresholds, &lessons);
        }
        SearchDescription::MaxRate { share, response_ns, from, to, precision } => {
            let rate = MaxRate::new(from, to, *precision).ok_or_else(damaged)?;
            let answer = rate.answer(&lessons);
            let faulty = cells.iter().any(|cell| !cell.description.faults.is_empty());
            found.kind = "max-rate";
            found.is_over = rate.next(&lessons).is_none();
            found.is_told = answer.outcome != CapacityOutcome::Undetermined;
            found.levels = rate.levels(&lessons);
            found.sentence = rate.sentence((*share, *response_ns), faulty, &answer);
            found.capacity = Some(answer);
        }
    }
    Ok(Some(found))
}

impl SearchFindings {
    /// Whether no trial says anything, or too few say how trials scatter.
    pub(crate) fn is_blind(&self) -> bool {
        self.levels.iter().all(|level| level.trials == 0) || (self.capacity.is_none() && self.deviation.is_none())
    }

    /// What is to be said of one of its cells.
    pub(crate) fn of_cell(&self, cell: &CellFindings) -> String {
        let level = self.levels.iter().find(|level| cell.levels.first() == Some(&level.level));
        let count = |trials: u32| format!("{trials} valid trial{}", if trials == 1 { "" } else { "s" });
        match level {
            Some(LevelFindings { loss: Some(loss), trials, .. }) => {
                format!("Lost {:.1}% of the goodput, by {}.", loss * 100.0, count(*trials))
            }
            Some(LevelFindings { kept: Some(kept), trials, .. }) => {
                format!("Kept the objective of the search in {kept} of {}.", count(*trials))
            }
            _ => "Undetermined: it has no valid trial.".to_owned(),
        }
    }
}
