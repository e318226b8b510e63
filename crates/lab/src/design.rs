//! The design: an experiment file with its factors, as cells that are run in blocks.
//!
//! A block holds each cell once, and beside them trials without a fault, all in an order of their own that is drawn from the file's
//! seed: what changes in the course of a run hits all of them alike, and what a block's trials have in common cancels out. Cells
//! that differ in nothing but their faults share the trials without a fault.

use std::time::Duration;

use brownout_base::random::{Random, derive};
use brownout_record::{Arm, CellRow, DesignDescription, FactorDescription};
use brownout_yaml::Node;

use crate::{
    experiment::{CassandraChoice, FileError, Source, Variation},
    faults::Needs,
    plan::{Layout, Phase, Plan, PlannedPhase},
};

/// An experiment, cell by cell.
pub struct Design {
    /// What varies.
    pub variation: Variation,
    /// In the order of the variation.
    pub cells: Vec<Cell>,
    /// How often each cell is run.
    pub blocks: u32,
    /// Trials without a fault in each block, for all cells that share them.
    pub without_fault: u32,
    /// Times that a trial is tried, until one is valid.
    pub attempts: u32,
    /// What all randomness is drawn from.
    pub seed: u64,
}

/// One combination of levels.
pub struct Cell {
    /// Its plan, with what the file's own seed draws.
    pub plan: Plan,
    /// Its file.
    source: Source,
    /// The first cell that differs from it in nothing but its faults.
    pub sharing: usize,
    /// The number of its layout: cells of one layout can be tried on the same stand.
    pub layout: usize,
}

/// A trial that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedTrial {
    /// From 1, in the order of the run.
    pub number: u32,
    /// From 1.
    pub block: u32,
    /// The number of its cell, from 0; of a trial without a fault that of the first cell that it is for.
    pub cell: usize,
    /// With its faults, or without.
    pub arm: Arm,
}

/// The part of the seed that orders trials; trials themselves draw from the parts that are their numbers.
const ORDER: u64 = u64::from_be_bytes(*b"   order");
/// What a trial takes beside its phases: a cluster that becomes ready, and the last probes. Only for the expected duration.
const ON_A_NEW_STAND: Duration = Duration::from_secs(15);
/// The same where a cluster goes on.
const ON_THE_SAME_STAND: Duration = Duration::from_secs(5);
/// What of the file makes a layout.
const OF_A_LAYOUT: [&str; 2] = ["network", "cluster"];

impl Design {
    /// Checks an experiment file, each of its cells by itself.
    ///
    /// # Errors
    /// The first cell that cannot be run.
    pub fn new(source: &Source) -> Result<Design, FileError> {
        let variation = source.variation()?;
        let mut cells: Vec<Cell> = Vec::new();
        let (mut without, mut layouts): (Vec<Node>, Vec<Vec<Option<Node>>>) = Default::default();
        for cell in 0..variation.cells.len() {
            let source = source.of_cell(&variation, cell)?;
            let plan = Plan::new(&source)?;
            let rest = source.without_faults();
            let sharing = without.iter().position(|other| *other == rest).unwrap_or(cell);
            let made_of = OF_A_LAYOUT.map(|key| source.node(key).cloned()).to_vec();
            let known = layouts.iter().position(|other| *other == made_of);
            let layout = known.unwrap_or(layouts.len());
            if known.is_none() {
                layouts.push(made_of);
            }
            without.push(rest);
            cells.push(Cell { plan, source, sharing, layout });
        }
        let first = &cells[0].plan;
        let faulty = cells.iter().any(|cell| !cell.plan.faults.is_empty());
        Ok(Design {
            blocks: first.trials,
            without_fault: first.without_fault.unwrap_or(u32::from(faulty && first.trials > 1)),
            attempts: first.attempts,
            seed: first.experiment.seed.0,
            variation,
            cells,
        })
    }

    /// The plan of the first cell, for what all have in common.
    pub fn first(&self) -> &Plan {
        &self.cells[0].plan
    }

    /// All trials, in the order in which they are to be run.
    pub fn trials(&self) -> Vec<PlannedTrial> {
        let mut trials = Vec::new();
        for block in 1..=self.blocks {
            let mut arms: Vec<(usize, Arm)> = Vec::new();
            for (number, cell) in self.cells.iter().enumerate() {
                arms.push((number, if cell.plan.faults.is_empty() { Arm::None } else { Arm::Fault }));
                // A cell without faults is what others are compared with itself.
                if cell.sharing == number && !self.is_compared_with_a_cell(number) {
                    arms.extend((0..self.without_fault).map(|_| (number, Arm::None)));
                }
            }
            Random::new(derive(derive(self.seed, ORDER), u64::from(block))).shuffle(&mut arms);
            for (cell, arm) in arms {
                trials.push(PlannedTrial { number: trials.len() as u32 + 1, block, cell, arm });
            }
        }
        trials
    }

    /// Whether one of the cells that share their trials without a fault has no fault itself.
    fn is_compared_with_a_cell(&self, cell: usize) -> bool {
        let sharing = self.cells[cell].sharing;
        self.cells.iter().any(|other| other.sharing == sharing && other.plan.faults.is_empty())
    }

    /// The number of the cell under which the trials are that a cell is compared with.
    fn compared_with(&self, cell: usize) -> usize {
        let sharing = self.cells[cell].sharing;
        let is_one = |other: &Cell| other.sharing == sharing && other.plan.faults.is_empty();
        self.cells.iter().position(is_one).unwrap_or(sharing)
    }

    /// The seed of a trial: another one for each attempt.
    pub fn seed_of(&self, trial: PlannedTrial, attempt: u32) -> u64 {
        let seed = derive(self.seed, u64::from(trial.number));
        if attempt <= 1 { seed } else { derive(seed, u64::from(attempt)) }
    }

    /// The plan of a trial: what its faults draw, they draw from its own seed.
    ///
    /// # Errors
    /// What this seed draws cannot be run.
    pub fn plan_of(&self, trial: PlannedTrial, seed: u64) -> Result<Plan, FileError> {
        let mut source = self.cells[trial.cell].source.clone();
        source.set(&format!("seed={seed}"))?;
        let mut plan = Plan::new(&source)?;
        if trial.arm == Arm::None {
            plan.faults.clear();
        }
        Ok(plan)
    }

    /// One of each layout, by its number.
    pub fn layouts(&self) -> Vec<&Layout> {
        let count = self.cells.iter().map(|cell| cell.layout + 1).max().unwrap_or(0);
        let of = |number| self.cells.iter().find(|cell| cell.layout == number).map(|cell| &cell.plan.layout);
        (0..count).filter_map(of).collect()
    }

    /// What the faults of all cells of a layout need of a stand from its start.
    pub fn needs(&self, layout: usize) -> Needs {
        let cells = self.cells.iter().filter(|cell| cell.layout == layout);
        cells.map(|cell| cell.plan.needs()).fold(Needs::default(), Needs::and)
    }

    /// Every Cassandra that is run.
    pub fn cassandras(&self) -> Vec<&CassandraChoice> {
        self.cells.iter().map(|cell| &cell.plan.layout.cluster.cassandra).collect()
    }

    /// How long all trials take, about, without provisioning and without those that are repeated.
    pub fn expected_duration(&self) -> Duration {
        self.trials().iter().map(|trial| self.expected_of(*trial)).sum()
    }

    /// How long one takes, about: a cluster that is warm is not flooded, so that its warm-up takes half of its limit at most.
    pub fn expected_of(&self, trial: PlannedTrial) -> Duration {
        let Plan { phases, fresh_every, .. } = &self.cells[trial.cell].plan;
        let is_fresh = (trial.number - 1).is_multiple_of(*fresh_every);
        let length = |planned: &PlannedPhase| match planned.phase {
            Phase::WarmUp if !is_fresh => planned.length.duration() / 2,
            _ => planned.length.duration(),
        };
        let beside = if is_fresh { ON_A_NEW_STAND } else { ON_THE_SAME_STAND };
        phases.iter().map(length).sum::<Duration>() + beside
    }

    /// The design as the record keeps it; `only` is the number of the one trial that is to be run.
    pub fn description(&self, only: Option<u32>) -> DesignDescription {
        let factor = |factor: &crate::experiment::Factor| FactorDescription {
            name: factor.name.clone(),
            levels: factor.levels.iter().map(|level| level.name.clone()).collect(),
        };
        DesignDescription {
            factors: self.variation.factors.iter().map(factor).collect(),
            blocks: self.blocks,
            without_fault: self.without_fault,
            attempts: self.attempts,
            trials: self.trials().len() as u32,
            only,
        }
    }

    /// The cells as the record keeps them; `system` names the database of each.
    pub fn cell_rows(&self, system: impl Fn(&CassandraChoice) -> String) -> Vec<CellRow> {
        let row = |(number, cell): (usize, &Cell)| {
            let levels = self.variation.factors.iter().zip(&self.variation.cells[number]);
            CellRow {
                cell: number as u32 + 1,
                levels: levels.map(|(factor, level)| factor.levels[*level].name.clone()).collect(),
                compared_with: self.compared_with(number) as u32 + 1,
                description: cell.plan.description(&system(&cell.plan.layout.cluster.cassandra)),
            }
        };
        self.cells.iter().enumerate().map(row).collect()
    }

    /// What a trial is called: `trial 3 of 12 (delay 10ms)`.
    pub fn title(&self, trial: PlannedTrial, trials: usize) -> String {
        let mut words = self.variation.words(trial.cell);
        if trial.arm == Arm::None && !self.cells[trial.cell].plan.faults.is_empty() {
            words = if words.is_empty() { "without fault".to_owned() } else { format!("{words}; without fault") };
        }
        let of = if words.is_empty() { String::new() } else { format!(" ({words})") };
        format!("trial {} of {trials}{of}", trial.number)
    }
}
