//! What a design could see, from the noise of an earlier run's trials without a fault.

use std::collections::BTreeMap;

use brownout_record::{Arm, Run};
use brownout_statistics::{self as statistics, ALPHA, effect_factor_at};
use serde::Serialize;

use crate::{AnalysisError, Validity, findings};

/// What so many blocks show in four of five runs, if their noise is that of the pilot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Visible {
    /// Trials without a fault of the pilot that this is taken from.
    pub pilot_trials: u32,
    /// Standard deviation of ln(fault phase ÷ baseline) of the pilot's goodput among trials without a fault.
    pub deviation: f64,
    /// The smallest relative change of goodput that the blocks would detect in a cell by itself; none: without two blocks, and trials
    /// without a fault in them, there is no verdict.
    pub change: Option<f64>,
    /// The same of one cell of so many as there are, where no other changes.
    pub change_of_one: Option<f64>,
    /// Blocks, with trials without a fault, that would detect a change of 5 %; none: more than anyone plans.
    pub blocks_for_5_percent: Option<u32>,
}

/// A change that people would like to see.
const WANTED: f64 = 0.05;

/// How many times what one block's difference scatters by a change has to be so that `blocks` blocks tell it in four of
/// five runs, in the only one of so many cells that changes.
pub fn factor_of_one(blocks: usize, cells: u32) -> f64 {
    effect_factor_at(blocks, ALPHA / f64::from(cells.max(1)))
}

/// What `blocks` blocks of so many `cells` with faults, with `without_fault` trials without a fault in each, would detect; none where the
/// pilot has fewer than two such trials.
///
/// # Errors
/// The pilot cannot be read.
pub fn visible(pilot: &Run, blocks: u32, without_fault: u32, cells: u32) -> Result<Option<Visible>, AnalysisError> {
    let found = findings(pilot)?;
    let mut by_block: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for trial in found.trials.iter().filter(|trial| trial.arm == Arm::None && trial.validity == Validity::Valid) {
        by_block.entry((trial.cell, trial.block)).or_default().extend(trial.effect.log_ratio);
    }
    let mut groups: Vec<Vec<f64>> = by_block.into_values().collect();
    if groups.iter().all(|group| group.len() < 2) {
        // One a block: what blocks differ by is among the noise then, so that it is rather too large.
        groups = vec![groups.concat()];
    }
    let arms = usize::try_from(without_fault).unwrap_or(1);
    let Some(plan) = statistics::plan(&groups, arms, WANTED.ln_1p()) else { return Ok(None) };
    let is_judged = blocks > 1 && without_fault > 0;
    let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
    let seen = |cells: u32| {
        let harder = factor_of_one(blocks, cells) / factor_of_one(blocks, 1);
        is_judged.then(|| (harder * plan.visible(blocks)).exp_m1()).filter(|change| change.is_finite())
    };
    Ok(Some(Visible {
        pilot_trials: groups.iter().map(Vec::len).sum::<usize>() as u32,
        deviation: plan.deviation,
        change: seen(1),
        change_of_one: seen(cells),
        blocks_for_5_percent: plan.blocks.map(|blocks| blocks as u32),
    }))
}
