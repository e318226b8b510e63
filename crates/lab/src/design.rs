//! The design: an experiment file with its factors, as cells that are run in blocks.
//!
//! A block holds each cell once, and beside them trials without a fault, all in an order of their own that is drawn from the file's
//! seed: what changes in the course of a run hits all of them alike, and what a block's trials have in common cancels out. Cells
//! that differ in nothing but their faults share the trials without a fault.

use brownout_base::random::derive;
use brownout_record::{Arm, CellRow};
use brownout_units::Share;
use brownout_yaml::Node;

use crate::{
    experiment::{ClusterSection, FileError, Search, Source, Variation},
    faults::Needs,
    plan::{Layout, Plan},
};

/// An experiment, cell by cell.
pub struct Design {
    /// What varies.
    pub variation: Variation,
    /// In the order of the variation; of a search those that were chosen so far, and the ends of its range.
    pub cells: Vec<Cell>,
    /// How often each cell is run.
    pub blocks: u32,
    /// Trials without a fault in each block, for all cells that share them.
    pub without_fault: u32,
    /// Times that a trial is tried, until one is valid.
    pub attempts: u32,
    /// A relative change that is smaller is none.
    pub margin: Share,
    /// What all randomness is drawn from.
    pub seed: u64,
    /// What is searched; none: all cells are known.
    pub search: Option<Search>,
    /// The file.
    source: Source,
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
    /// What its file has beside its faults.
    rest: Node,
    /// What of its file makes the layout.
    made_of: Vec<Option<Node>>,
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
pub(crate) const ORDER: u64 = u64::from_be_bytes(*b"   order");
/// The part of the seed that orders groups of trials with as many labs at once.
pub(crate) const GROUPS: u64 = u64::from_be_bytes(*b"  groups");
/// The part of the seed that orders trials of one network and cluster among those of others.
pub(crate) const LAYOUTS: u64 = u64::from_be_bytes(*b" layouts");
/// The part of a trial's seed that it draws from again.
const REDRAWN: u64 = u64::from_be_bytes(*b" redrawn");
/// So often; a file of which no draw can be run is wrong.
const MOST_REDRAWN: u64 = 20;
/// What of the file makes a layout.
const OF_A_LAYOUT: [&str; 3] = ["network", "cluster", "ground"];

/// What a file says of all of its cells together.
fn of_all_cells(plan: &Plan) -> [(&'static str, Option<u64>); 5] {
    [
        ("trials", Some(plan.trials.into())),
        ("without-fault", plan.without_fault.map(u64::from)),
        ("attempts", Some(plan.attempts.into())),
        ("margin", Some(plan.margin.fraction().to_bits())),
        ("seed", Some(plan.experiment.seed.0)),
    ]
}

impl Design {
    /// Checks an experiment file, each of its cells by itself.
    ///
    /// # Errors
    /// The first cell that cannot be run.
    pub fn new(source: &Source) -> Result<Design, FileError> {
        let search = source.search()?;
        let variation = match &search {
            Some(search) => source.searched(&search.factor),
            None => source.variation()?,
        };
        let mut design = Design {
            cells: Vec::new(),
            blocks: 1,
            without_fault: search.as_ref().map_or(0, Search::without_fault),
            attempts: 1,
            margin: Share::ZERO,
            seed: 1,
            source: source.clone(),
            variation,
            search,
        };
        match design.search.clone() {
            Some(search) => {
                for level in search.beforehand() {
                    design.cell_of(&level)?;
                }
                // What comes in the middle of a run must not be found wrong only there.
                let mut aside = design.variation.clone();
                for level in search.likely() {
                    let cell = aside.cell_of(&level);
                    Plan::new(&source.of_cell(&aside, cell)?)?;
                }
            }
            None => {
                for number in 0..design.variation.cells.len() {
                    design.add(number)?;
                }
            }
        }
        let first = design.first().clone();
        let differs = |cell: &Cell| {
            let mut keys = of_all_cells(&first).into_iter().zip(of_all_cells(&cell.plan));
            keys.find(|(one, other)| one != other).map(|((key, _), _)| key)
        };
        if let Some(key) = design.cells.iter().find_map(differs) {
            let message = format!("{key} is of all cells together, so it cannot vary; write one value");
            return Err(source.complain(key, message));
        }
        if design.search.is_none() {
            let faulty = design.cells.iter().any(|cell| !cell.plan.faults.is_empty());
            design.blocks = first.trials;
            design.without_fault = first.without_fault.unwrap_or(u32::from(faulty && first.trials > 1));
        }
        design.attempts = first.attempts;
        design.margin = first.margin;
        design.seed = first.experiment.seed.0;
        design.check_parallel()?;
        design.check_external()?;
        Ok(design)
    }

    /// Whether it can be said how many labs work at once.
    fn check_parallel(&self) -> Result<(), FileError> {
        let asked = || self.cells.iter().map(|cell| cell.plan.parallel);
        if self.search.is_some() && asked().flatten().any(|labs| labs > 1) {
            let message =
                "a search chooses each trial by those before it, so it has one lab; leave parallel out, or write 1";
            return Err(self.source.complain("parallel", message.to_owned()));
        }
        if asked().any(|labs| labs.is_none()) && asked().any(|labs| labs.is_some()) {
            let message = "auto is another number on each machine, perhaps that of another level; write numbers";
            return Err(self.source.complain("vary.parallel", message.to_owned()));
        }
        Ok(())
    }

    /// A cluster that runs already is that of all cells, and of one trial at a time.
    fn check_external(&self) -> Result<(), FileError> {
        let is_external = |cell: &&Cell| cell.plan.layout.is_external();
        let external = self.cells.iter().filter(is_external).count();
        if external == 0 {
            return Ok(());
        }
        let are_unlike = self.cells.iter().any(|cell| cell.layout > 0);
        if let Some(found) = self.first().layout.containers.as_ref().filter(|_| are_unlike) {
            let message = format!(
                "cells differ in their network, cluster or ground, and those are the containers' own ({}); vary the load or the \
                 faults, or leave ground out for a lab",
                found.words()
            );
            return Err(self.source.complain("vary", message));
        }
        if external < self.cells.len() {
            let message = "some cells are of a cluster that runs already, and others of one in a lab; write two files, \
                           and compare their runs (brownout compare A B)";
            return Err(self.source.complain("cluster.external", message.to_owned()));
        }
        if self.cells.iter().any(|cell| cell.plan.parallel != Some(1)) {
            let message = "an external cluster serves one trial at a time, as loads beside each other would measure each \
                           other; leave parallel out";
            return Err(self.source.complain("parallel", message.to_owned()));
        }
        Ok(())
    }

    /// Makes the plan of a cell of the variation.
    fn add(&mut self, number: usize) -> Result<(), FileError> {
        let source = self.source.of_cell(&self.variation, number)?;
        let plan = Plan::new(&source)?;
        let rest = source.without_faults();
        let made_of = OF_A_LAYOUT.map(|key| source.node(key).cloned()).to_vec();
        let sharing = self.cells.iter().position(|other| other.rest == rest).unwrap_or(number);
        let known = self.cells.iter().find(|other| other.made_of == made_of).map(|other| other.layout);
        let next = || self.cells.iter().map(|cell| cell.layout + 1).max().unwrap_or(0);
        let layout = known.unwrap_or_else(next);
        self.cells.push(Cell { plan, source, sharing, layout, rest, made_of });
        Ok(())
    }

    /// The number of the cell of a search with this severity or rate, made if there is none yet.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn cell_of(&mut self, level: &str) -> Result<usize, FileError> {
        let number = self.variation.cell_of(level);
        if number == self.cells.len() {
            self.add(number)?;
        }
        Ok(number)
    }

    /// The plan of the first cell, for what all have in common.
    pub fn first(&self) -> &Plan {
        &self.cells[0].plan
    }

    /// Whether one of the cells that share their trials without a fault has no fault itself.
    pub(crate) fn is_compared_with_a_cell(&self, cell: usize) -> bool {
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

    /// The seed and the plan of an attempt at a trial.
    ///
    /// A chaos may draw what cannot be, as two ends of one node at once, though its file is right: then it draws again, from another
    /// seed that follows from the trial's. Else the run could neither make this trial nor go on without it.
    ///
    /// # Errors
    /// Nothing that is drawn can be run.
    pub fn drawn(&self, trial: PlannedTrial, attempt: u32) -> Result<(u64, Plan), FileError> {
        let own = self.seed_of(trial, attempt);
        let more = (1..=MOST_REDRAWN).map(|again| derive(derive(own, REDRAWN), again));
        let drawn = |seed| self.plan_of(trial, seed).map(|plan| (seed, plan));
        more.fold(drawn(own), |made, seed| made.or_else(|refused| drawn(seed).map_err(|_| refused)))
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

    /// The cluster of every cell.
    pub fn clusters(&self) -> Vec<&ClusterSection> {
        self.cells.iter().map(|cell| &cell.plan.layout.cluster).collect()
    }

    /// The cells as the record keeps them; `database` names the database of each cluster.
    pub fn cell_rows(&self, database: impl Fn(&ClusterSection) -> String) -> Vec<CellRow> {
        (0..self.cells.len()).map(|number| self.cell_row(number, &database)).collect()
    }

    /// One of them.
    pub fn cell_row(&self, number: usize, database: impl Fn(&ClusterSection) -> String) -> CellRow {
        let plan = &self.cells[number].plan;
        let levels = self.variation.factors.iter().zip(&self.variation.cells[number]);
        CellRow {
            cell: number as u32 + 1,
            levels: levels.map(|(factor, level)| factor.levels[*level].name.clone()).collect(),
            compared_with: self.compared_with(number) as u32 + 1,
            description: plan.description(&database(&plan.layout.cluster)),
        }
    }

    /// What a cell of a search is searched at, as written.
    pub(crate) fn level(&self, cell: usize) -> &str {
        self.variation.factors.last().and_then(|factor| factor.levels.get(cell)).map_or("", |level| &level.name)
    }

    /// What a trial is called: `trial 3 of 12 (delay 10ms)`.
    pub fn title(&self, trial: PlannedTrial, trials: usize) -> String {
        let mut words = self.variation.words(trial.cell);
        if trial.arm == Arm::None && !self.cells[trial.cell].plan.faults.is_empty() {
            words = if words.is_empty() { "without fault".to_owned() } else { format!("{words}; without fault") };
        }
        let of = if words.is_empty() { String::new() } else { format!(" ({words})") };
        let at_most = if self.search.is_some() { "at most " } else { "" };
        format!("trial {} of {at_most}{trials}{of}", trial.number)
    }
}
