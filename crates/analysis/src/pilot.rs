//! What a design could see, from the noise of an earlier run's trials without a fault.

use std::collections::BTreeMap;

use brownout_record::{Arm, Run};
use brownout_statistics as statistics;
use serde::Serialize;

use crate::{AnalysisError, Validity, findings};

/// What so many blocks show in four of five runs, if their noise is that of the pilot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Visible {
    /// Trials without a fault of the pilot that this is taken from.
    pub pilot_trials: u32,
    /// Standard deviation of ln(fault phase ÷ baseline) of the pilot's goodput among trials without a fault.
    pub deviation: f64,
    /// The smallest relative change of goodput that the blocks would show.
    pub change: f64,
    /// Blocks that would show a change of 5 %; none: more than anyone plans.
    pub blocks_for_5_percent: Option<u32>,
}

/// A change that people would like to see.
const WANTED: f64 = 0.05;

/// What `blocks` blocks with `without_fault` trials without a fault in each would see; none where the pilot has fewer than two such trials.
///
/// # Errors
/// The pilot cannot be read.
pub fn visible(pilot: &Run, blocks: u32, without_fault: u32) -> Result<Option<Visible>, AnalysisError> {
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
    let Some(plan) = statistics::plan(&groups, arms, WANTED) else { return Ok(None) };
    let seen = plan.visible(usize::try_from(blocks).unwrap_or(usize::MAX));
    Ok(Some(Visible {
        pilot_trials: groups.iter().map(Vec::len).sum::<usize>() as u32,
        deviation: plan.deviation,
        change: seen.exp_m1(),
        blocks_for_5_percent: plan.blocks.map(|blocks| blocks as u32),
    }))
}
