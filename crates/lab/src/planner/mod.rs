//! Which trial comes next: a shuffled list for a design whose cells are known, a choice by what trials have shown for a search.
//!
//! A planner knows nothing but the design and what is settled, and gives the same answer whenever it is asked the same: a run that
//! goes on after an interruption reads from its record what is settled, and is where it was.

mod danger_zone;
mod matrix;
mod max_rate;

use std::{collections::BTreeMap, time::Duration};

use brownout_analysis::Lesson;
use brownout_record::{Arm, DesignDescription, FactorDescription};

pub use self::{danger_zone::DangerZone, matrix::Matrix, max_rate::MaxRate};
use crate::{
    design::{Cell, Design, PlannedTrial},
    experiment::{Factor, Method},
    shares::Labs,
};

/// Planned trials that are valid, or have been tried as often as they may be, by their number, with what a search learns from them.
pub type Settled = BTreeMap<u32, Option<Lesson>>;

/// Says which trial comes next.
#[derive(Debug, Clone)]
pub enum Planner {
    /// All cells are known.
    Matrix(Matrix),
    /// The severities at which a loss passes thresholds.
    DangerZone(DangerZone),
    /// The largest rate that keeps an objective.
    MaxRate(MaxRate),
}

/// A trial that comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// From 1, in the order of the run.
    pub number: u32,
    /// From 1.
    pub block: u32,
    /// Its cell.
    pub cell: Which,
    /// With its faults, or without.
    pub arm: Arm,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// Its number, from 0.
    Known(usize),
    /// The one with this severity or rate, which may have to be made.
    Of(String),
}

/// How long a trial takes, about, in a lab that serves alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) length: Duration,
    /// How many labs may be at work beside each other, as its file says; none: all.
    parallel: Option<u32>,
}

impl Expected {
    /// The part of it that passes on the clock, where `at_once` says how many labs work beside each other.
    pub(crate) fn shared_by(self, at_once: impl Fn(Option<u32>) -> u32) -> Duration {
        self.length / at_once(self.parallel).max(1)
    }
}

/// How long all trials of a design take, about, of a search at most; without provisioning and without those that are
/// repeated. By these labs; none: by one.
pub fn expected_duration(design: &Design, labs: Option<&Labs>) -> Duration {
    let shared = |expected: Expected| expected.shared_by(|parallel| labs.map_or(1, |labs| labs.at_once(parallel)));
    Planner::new(design).expected(design).into_values().map(shared).sum()
}

/// A design as the record keeps it, by so many labs at once; `only` is the number of the one trial that is to be run.
pub fn description(design: &Design, only: Option<u32>, labs: u32) -> DesignDescription {
    let factor = |factor: &Factor| FactorDescription {
        name: factor.name.clone(),
        levels: factor.levels.iter().map(|level| level.name.clone()).collect(),
    };
    DesignDescription {
        factors: design.variation.factors.iter().map(factor).collect(),
        blocks: design.blocks,
        without_fault: design.without_fault,
        attempts: design.attempts,
        trials: Planner::new(design).most_trials() as u32,
        only,
        labs,
        margin: Some(design.margin.fraction()),
        search: design.search.as_ref().map(|search| search.description.clone()),
    }
}

impl Planner {
    /// That of a design.
    pub fn new(design: &Design) -> Planner {
        match design.search.as_ref().map(|search| &search.method) {
            None => Planner::Matrix(Matrix::new(design)),
            Some(Method::DangerZone(zone)) => Planner::DangerZone(DangerZone::new(zone.clone(), design.seed)),
            Some(Method::MaxRate(rate)) => {
                let arm = if design.first().faults.is_empty() { Arm::None } else { Arm::Fault };
                Planner::MaxRate(MaxRate::new(rate.clone(), arm))
            }
        }
    }

    /// The same of one trial alone; a search chooses by all of its trials, and has none that stands alone.
    #[must_use]
    pub fn only(mut self, number: Option<u32>) -> Planner {
        if let Planner::Matrix(matrix) = &mut self {
            matrix.only = number;
        }
        self
    }

    /// How many trials are still to be run; of a search at most.
    pub fn missing(&self, settled: &Settled) -> usize {
        match self {
            Planner::Matrix(matrix) => matrix.missing(settled).count(),
            search if search.next(settled).is_none() => 0,
            search => search.most_trials().saturating_sub(settled.len()),
        }
    }

    /// What comes after what is settled; none: nothing more.
    pub fn next(&self, settled: &Settled) -> Option<Next> {
        let lessons = || -> Vec<Lesson> { settled.values().flatten().cloned().collect() };
        match self {
            Planner::Matrix(matrix) => matrix.next(settled),
            Planner::DangerZone(zone) => zone.next(&lessons()),
            Planner::MaxRate(rate) => rate.next(&lessons()),
        }
    }

    /// The same while some trials are under way; none as well if nothing can be said before one of them has ended.
    pub fn next_beside(&self, settled: &Settled, under_way: &[u32]) -> Option<Next> {
        match self {
            Planner::Matrix(matrix) => matrix.next_beside(settled, under_way),
            search if under_way.is_empty() => search.next(settled),
            _ => None,
        }
    }

    /// How many trials there are, without those that are repeated; of a search at most.
    pub fn most_trials(&self) -> usize {
        match self {
            Planner::Matrix(matrix) => matrix.trials().len(),
            Planner::DangerZone(zone) => zone.most_trials(),
            Planner::MaxRate(rate) => rate.most_trials(),
        }
    }

    /// How long each trial takes, about, by its number; of a search all that there may be.
    pub(crate) fn expected(&self, design: &Design) -> BTreeMap<u32, Expected> {
        let nothing = Settled::new();
        // Trials of a search are as long as each other, and come one by one.
        let of_search = |number| PlannedTrial { number, block: 1, cell: 0, arm: Arm::Fault };
        let trials: Vec<PlannedTrial> = match self {
            Planner::Matrix(matrix) => matrix.missing(&nothing).copied().collect(),
            search => (1..=search.most_trials() as u32).map(of_search).collect(),
        };
        // The layout of the stand that goes on, and how many trials it has served.
        let mut stand: Option<(usize, u32)> = None;
        let expected = |trial: PlannedTrial| {
            let Cell { plan, layout, .. } = &design.cells[trial.cell];
            let goes_on = stand.filter(|(of, served)| of == layout && *served < plan.fresh_every);
            let served = goes_on.map_or(0, |(_, served)| served);
            let stays = trial.arm == Arm::None || !plan.restarts();
            stand = stays.then_some((*layout, served + 1));
            let parallel = if matches!(self, Planner::Matrix(_)) { plan.parallel } else { Some(1) };
            (trial.number, Expected { length: plan.expected(served == 0), parallel })
        };
        trials.into_iter().map(expected).collect()
    }
}
