//! A cell against trials without a fault, block by block.

use crate::{
    ALPHA,
    estimate::{Estimate, estimates},
    order::{deviation, mean, median},
    quantiles::{beyond_student, student},
};

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The value is larger with the fault.
    More,
    /// It is smaller.
    Less,
    /// If there is a difference, it is smaller than the margin.
    NoDifference,
    /// It cannot be told from these trials.
    Inconclusive,
}

/// A cell against trials without a fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// One difference of each block: the cell less the median of the block's trials without a fault.
    pub differences: Vec<f64>,
    /// The effect, with its 95 % interval.
    pub estimate: Estimate,
    /// The 90 % interval: both ends at 5 % (Schuirmann, "A comparison of the two one-sided tests procedure and the power approach
    /// for assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
    pub within: (f64, f64),
    /// No difference is larger than this: the farther end of that interval.
    pub no_larger_than: f64,
    /// What follows.
    pub outcome: Outcome,
    /// Of few blocks with two or three trials without a fault each: the p-value (the probability of an effect at least this
    /// large if there were none), by what all of them scatter. Below 1 % something has changed, even where
    /// [`Comparison::outcome`] cannot tell by how much.
    pub changed: Option<f64>,
}

/// From more blocks on [`Comparison::changed`] tells nothing that the interval does not.
const FEW_BLOCKS: usize = 4;

/// One difference of each block: the cell's value less the median of those without a fault.
///
/// `without[m][j]` is the m-th trial without a fault in block j.
pub fn differences(cell: &[f64], without: &[Vec<f64>]) -> Vec<f64> {
    let of_block = |block: usize| median(&without.iter().map(|arm| arm[block]).collect::<Vec<_>>());
    cell.iter().enumerate().map(|(block, value)| value - of_block(block)).collect()
}

/// Judges a cell; `cells` are judged at once, an effect below `margin` is none, `floor` is the least standard error.
///
/// None of fewer than two blocks, without trials without a fault, or where an arm has another number of blocks.
pub fn compare(cell: &[f64], without: &[Vec<f64>], margin: f64, floor: f64, cells: usize) -> Option<Comparison> {
    if without.is_empty() || without.iter().any(|arm| arm.len() != cell.len()) {
        return None;
    }
    let differences = differences(cell, without);
    let [shown, narrower] = estimates(&differences, [ALPHA, 2.0 * ALPHA], floor, cells)?;
    let no_larger_than = narrower.low.abs().max(narrower.high.abs());
    let outcome = match shown {
        _ if no_larger_than < margin => Outcome::NoDifference,
        Estimate { low, .. } if low > 0.0 => Outcome::More,
        Estimate { high, .. } if high < 0.0 => Outcome::Less,
        _ => Outcome::Inconclusive,
    };
    let few = cell.len() <= FEW_BLOCKS && (2..=3).contains(&without.len());
    Some(Comparison {
        changed: few.then(|| chance_of_change(cell, without)),
        estimate: shown,
        within: (narrower.low, narrower.high),
        no_larger_than,
        outcome,
        differences,
    })
}

/// By the residual of a two-way table of arms and blocks: where the fault does nothing, the cell is one arm more.
fn chance_of_change(cell: &[f64], without: &[Vec<f64>]) -> f64 {
    let (arms, blocks) = (without.len(), cell.len());
    let rows: Vec<&[f64]> = without.iter().map(Vec::as_slice).chain([cell]).collect();
    let of_rows: Vec<f64> = rows.iter().map(|row| mean(row)).collect();
    let of_blocks: Vec<f64> =
        (0..blocks).map(|block| mean(&rows.iter().map(|row| row[block]).collect::<Vec<_>>())).collect();
    let whole = mean(&of_rows);
    let residual = |(row, values): (usize, &&[f64])| -> f64 {
        let of = values.iter().zip(&of_blocks).map(|(value, block)| value - of_rows[row] - block + whole);
        of.map(|rest| rest * rest).sum()
    };
    let squares: f64 = rows.iter().enumerate().map(residual).sum();
    let freedom = arms * (blocks - 1);
    let error = (squares / freedom as f64 * (1.0 + 1.0 / arms as f64) / blocks as f64).sqrt();
    if error == 0.0 {
        return if of_rows[arms] == mean(&of_rows[..arms]) { 1.0 } else { 0.0 };
    }
    beyond_student((of_rows[arms] - mean(&of_rows[..arms])) / error, freedom)
}

/// Where one more trial lies with 1 − `alpha` if nothing differs, from trials without a fault; none of fewer than four.
pub fn prediction_limits(without: &[f64], alpha: f64) -> Option<(f64, f64)> {
    const LEAST: usize = 4;
    let count = without.len();
    (count >= LEAST).then(|| {
        let half = student(1.0 - alpha / 2.0, count - 1) * deviation(without) * (1.0 + 1.0 / count as f64).sqrt();
        (mean(without) - half, mean(without) + half)
    })
}
