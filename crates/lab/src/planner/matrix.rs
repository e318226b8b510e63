//! The trials of a design whose cells are all known.

use brownout_base::random::{Random, derive};
use brownout_record::Arm;

use super::{Next, Settled, Which};
use crate::design::{Design, GROUPS, LAYOUTS, ORDER, PlannedTrial};

/// All trials, in the order in which they are to be run.
#[derive(Debug, Clone)]
pub struct Matrix {
    trials: Vec<PlannedTrial>,
    /// The number of the one that is to be run; none: all.
    pub(super) only: Option<u32>,
}

impl Matrix {
    /// Those of a design: in each block every cell, and trials without a fault, in an order of the block's own. Where
    /// cells differ in how many labs work at once, those that have as many come together, one group after the other, in
    /// an order of the block's own; and so do, within a group, those of the same network and cluster, which then share a
    /// stand: what that stand has of its own is in one block only, and blocks are what is compared.
    pub fn new(design: &Design) -> Matrix {
        let mut trials = Vec::new();
        let mut groups: Vec<Option<u32>> = Vec::new();
        for cell in &design.cells {
            if !groups.contains(&cell.plan.parallel) {
                groups.push(cell.plan.parallel);
            }
        }
        for block in 1..=design.blocks {
            let mut arms: Vec<(usize, Arm)> = Vec::new();
            for (number, cell) in design.cells.iter().enumerate() {
                arms.push((number, if cell.plan.faults.is_empty() { Arm::None } else { Arm::Fault }));
                // A cell without faults is what others are compared with itself.
                if cell.sharing == number && !design.is_compared_with_a_cell(number) {
                    arms.extend((0..design.without_fault).map(|_| (number, Arm::None)));
                }
            }
            Random::new(derive(derive(design.seed, ORDER), u64::from(block))).shuffle(&mut arms);
            let mut order = groups.clone();
            Random::new(derive(derive(design.seed, GROUPS), u64::from(block))).shuffle(&mut order);
            let mut layouts: Vec<usize> = (0..design.layouts().len()).collect();
            Random::new(derive(derive(design.seed, LAYOUTS), u64::from(block))).shuffle(&mut layouts);
            let group = |cell: usize| {
                let cell = &design.cells[cell];
                let by_labs = order.iter().position(|group| *group == cell.plan.parallel);
                (by_labs, layouts.iter().position(|layout| *layout == cell.layout))
            };
            // Within a group the order stays.
            arms.sort_by_key(|(cell, _)| group(*cell));
            for (cell, arm) in arms {
                trials.push(PlannedTrial { number: trials.len() as u32 + 1, block, cell, arm });
            }
        }
        Matrix { trials, only: None }
    }

    /// All of them.
    pub fn trials(&self) -> &[PlannedTrial] {
        &self.trials
    }

    /// Those that are to be run and not settled.
    pub(super) fn missing<'a>(&'a self, settled: &'a Settled) -> impl Iterator<Item = &'a PlannedTrial> {
        let is_wanted = |trial: &PlannedTrial| self.only.is_none_or(|only| only == trial.number);
        self.trials.iter().filter(move |trial| is_wanted(trial) && !settled.contains_key(&trial.number))
    }

    /// The first that is not settled.
    pub fn next(&self, settled: &Settled) -> Option<Next> {
        self.next_beside(settled, &[])
    }

    /// The first that is neither settled nor under way.
    pub(super) fn next_beside(&self, settled: &Settled, under_way: &[u32]) -> Option<Next> {
        let open = self.missing(settled).find(|trial| !under_way.contains(&trial.number))?;
        Some(Next { number: open.number, block: open.block, cell: Which::Known(open.cell), arm: open.arm })
    }
}
