//! How many trials it takes, from the noise of earlier ones.

use crate::{
    POWER,
    estimate::effect_factor,
    order::mean,
    quantiles::{chi_squared, power_of_student, student},
};

/// What a number of blocks can see.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Standard deviation of trials without a fault within their block.
    pub deviation: f64,
    /// Its degrees of freedom.
    pub freedom: usize,
    /// Standard deviation of one difference, as large as four of five such pilots would not exceed.
    pub of_difference: f64,
    /// The least number of blocks that sees the effect in four of five runs; none: more than [`MOST_BLOCKS`].
    pub blocks: Option<usize>,
}

/// More are not planned.
const MOST_BLOCKS: usize = 30;
/// The upper bound of the noise is exceeded by this share of pilots.
const OPTIMISM: f64 = 0.2;

impl Plan {
    /// The smallest effect that so many blocks see in four of five runs.
    pub fn visible(&self, blocks: usize) -> f64 {
        // Ranks see a little less than t does.
        let ranked = if blocks >= 8 { 1.04 } else { 1.0 };
        effect_factor(blocks) * ranked * self.of_difference
    }
}

/// Plans for an effect, from a pilot: the trials without a fault of each of its blocks. `arms` is how many trials without a fault a
/// block will have, 1 to 3. None if no block of the pilot has two.
pub fn plan(pilot: &[Vec<f64>], arms: usize, effect: f64) -> Option<Plan> {
    let freedom: usize = pilot.iter().map(|block| block.len().saturating_sub(1)).sum();
    if freedom == 0 {
        return None;
    }
    let squares: f64 =
        pilot.iter().map(|block| block.iter().map(|value| (value - mean(block)).powi(2)).sum::<f64>()).sum();
    let deviation = (squares / freedom as f64).sqrt();
    let likely = deviation * (freedom as f64 / chi_squared(OPTIMISM, freedom)).sqrt();
    // Variance of the median of so many, in that of one: of three 0.4487 (order statistics of the normal distribution).
    let of_median = [1.0, 0.5, 0.4487][arms.clamp(1, 3) - 1];
    let mut plan = Plan { deviation, freedom, of_difference: likely * (1.0f64 + of_median).sqrt(), blocks: None };
    plan.blocks = (2..=MOST_BLOCKS).find(|blocks| plan.visible(*blocks) <= effect);
    Some(plan)
}

/// With how many blocks an effect is told in four of five runs, at a two-sided error of `alpha`, where one difference scatters by
/// `deviation`: the least number above `have`; none: more than `most`.
pub fn enough_blocks(effect: f64, deviation: f64, alpha: f64, have: usize, most: usize) -> Option<usize> {
    let of_one = effect.abs() / deviation.max(f64::MIN_POSITIVE);
    let tells = |blocks: usize| {
        let freedom = blocks - 1;
        let centre = (of_one * (blocks as f64).sqrt()).min(1e9);
        power_of_student(centre, student(1.0 - alpha / 2.0, freedom), freedom as f64) >= POWER
    };
    // More blocks never tell less.
    let (mut enough, mut few) = (most, have.max(1));
    if enough <= few || !tells(enough) {
        return None;
    }
    while enough - few > 1 {
        let middle = usize::midpoint(few, enough);
        if tells(middle) { enough = middle } else { few = middle }
    }
    Some(enough)
}
