//! What a factor does: its levels against its first one, over all cells that differ in nothing else; and how two factors act
//! together. Each from one number a block, as an effect of a cell is (`docs/statistics.md`).

use brownout_record::CellRow;
use brownout_statistics as statistics;
use serde::Serialize;

use crate::{
    DesignFindings, TrialFindings, Validity,
    evidence::phase,
    family::{self, Answer},
    membership::{is_compared, is_own},
    stats,
};

/// One contrast between levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorFindings {
    /// The factor, or both of an interaction.
    pub factors: Vec<String>,
    /// The level of each that is compared with its first one.
    pub levels: Vec<String>,
    /// The level that it is compared with, of each.
    pub against: Vec<String>,
    /// `goodput, baseline`, `p50, baseline`, `p99, baseline`, or `goodput, fault ÷ baseline`.
    pub figure: String,
    /// `more` or `less`, `no-difference`, `inconclusive`.
    pub outcome: FactorOutcome,
    /// Blocks that it is taken from.
    pub blocks: u32,
    /// (this level − first level) ÷ first level; of an interaction the factor by which one contrast is larger at the other's
    /// level, less 1.
    pub change: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// The confidence of that.
    pub confidence: f64,
    /// If there is a difference, it is not larger than this, with 95 % confidence.
    pub no_larger_than: f64,
    /// The smallest change that four of five such runs would detect, of one of as many contrasts.
    pub smallest_seen: f64,
    /// The p-value, for one of as many contrasts (Benjamini and Hochberg): the probability of an effect at least this large
    /// if there were none.
    pub p_adjusted: f64,
    /// Where it is inconclusive: how many more blocks would detect a change of this size (or of the margin, if that is larger) in four of
    /// five runs.
    pub more_blocks: Option<u32>,
}

/// What follows for a contrast; whether more is better depends on the figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactorOutcome {
    /// It is more.
    More,
    /// It is less.
    Less,
    /// If there is a difference, it is smaller than the margin.
    NoDifference,
    /// It cannot be told.
    Inconclusive,
}

/// A figure of a trial.
struct Figure {
    name: &'static str,
    /// Its logarithm.
    of: fn(&TrialFindings) -> Option<f64>,
    /// Whether it is what a fault did: then what the same phases of the block's trials without a fault show by themselves, at the
    /// same levels, is no part of it.
    is_effect: bool,
}

const FIGURES: [Figure; 4] = [
    Figure {
        name: "goodput, baseline",
        of: |trial| trial.effect.baseline.filter(|rate| *rate > 0.0).map(f64::ln),
        is_effect: false,
    },
    Figure { name: "p50, baseline", of: |trial| baseline(trial, |response| response.p50), is_effect: false },
    Figure { name: "p99, baseline", of: |trial| baseline(trial, |response| response.p99), is_effect: false },
    Figure { name: "goodput, fault ÷ baseline", of: |trial| trial.effect.log_ratio, is_effect: true },
];

/// None where only a lower bound of it is known.
fn baseline(trial: &TrialFindings, which: fn(&crate::Response) -> crate::Quantile) -> Option<f64> {
    let phase = trial.phases.iter().find(|one| one.name == phase::BASELINE)?;
    let quantile = which(&phase.response?);
    (quantile.value_ns > 0 && !quantile.at_least).then(|| (quantile.value_ns as f64).ln())
}

/// The contrasts of all factors, and of all pairs of them.
///
/// All that [`crate::findings`] says of factors; by itself, so that its errors can be counted over thousands of designs.
#[doc(hidden)]
pub fn factors(design: &DesignFindings, rows: &[CellRow], trials: &[TrialFindings]) -> Vec<FactorFindings> {
    let mut all = Vec::new();
    for figure in &FIGURES {
        let values = Values::read(design, rows, trials, figure);
        let mut contrasts = Vec::new();
        for (at, factor) in design.factors.iter().enumerate() {
            contrasts.extend((1..factor.levels.len()).map(|level| Contrast { of: vec![(at, level)] }));
            for (with, other) in design.factors.iter().enumerate().skip(at + 1) {
                for level in 1..factor.levels.len() {
                    let both = |second| Contrast { of: vec![(at, level), (with, second)] };
                    contrasts.extend((1..other.levels.len()).map(both));
                }
            }
        }
        all.extend(judged(design, figure.name, contrasts, &values));
    }
    all
}

/// Levels against the first ones: of one factor, or of two.
struct Contrast {
    /// Number of the factor, number of its level.
    of: Vec<(usize, usize)>,
}

/// Of each block and cell one value.
struct Values<'a> {
    rows: &'a [CellRow],
    /// By block, by the cell's index.
    of: Vec<Vec<Option<f64>>>,
    design: &'a DesignFindings,
}

impl<'a> Values<'a> {
    fn read(design: &'a DesignFindings, rows: &'a [CellRow], trials: &[TrialFindings], figure: &Figure) -> Values<'a> {
        let valid =
            |block: u32| trials.iter().filter(move |trial| trial.block == block && trial.validity == Validity::Valid);
        let value = |row: &CellRow, block: u32| {
            let own = valid(block).filter(|trial| is_own(row, trial)).find_map(figure.of)?;
            if !figure.is_effect || row.description.faults.is_empty() {
                return Some(own);
            }
            let mut without: Vec<f64> =
                valid(block).filter(|trial| is_compared(row, trial)).filter_map(figure.of).collect();
            stats::middle(&mut without).map(|without| own - without)
        };
        let of_block = |block| rows.iter().map(|row| value(row, block)).collect();
        Values { rows, of: (1..=design.blocks).map(of_block).collect(), design }
    }

    /// One number of each block that has all cells that it takes; none if there is no such cell.
    fn of(&self, contrast: &Contrast) -> Vec<f64> {
        // Every combination of the others' levels, at this level and at the first.
        let groups = self.groups(contrast);
        let of_block = |values: &Vec<Option<f64>>| -> Option<f64> {
            let mut sum = 0.0;
            for group in &groups {
                for (cell, sign) in group {
                    sum += sign * values[*cell]?;
                }
            }
            (!groups.is_empty()).then(|| sum / groups.len() as f64)
        };
        self.of.iter().filter_map(of_block).collect()
    }

    /// Cells that belong together, with their signs: those that differ in the contrast's factors alone.
    fn groups(&self, contrast: &Contrast) -> Vec<Vec<(usize, f64)>> {
        let level = |factor: usize, number: usize| &self.design.factors[factor].levels[number];
        let is_this =
            |row: &CellRow| contrast.of.iter().all(|(factor, at)| row.levels[*factor] == *level(*factor, *at));
        let mut groups = Vec::new();
        for (index, row) in self.rows.iter().enumerate().filter(|(_, row)| is_this(row)) {
            let mut group = vec![(index, 1.0)];
            // All ways to take factors of the contrast back to their first level.
            for back in 1..1_usize << contrast.of.len() {
                let mut levels = row.levels.clone();
                let taken = contrast.of.iter().enumerate().filter(|(bit, _)| back >> bit & 1 == 1);
                let count = taken.map(|(_, (factor, _))| levels[*factor].clone_from(level(*factor, 0))).count();
                let sign = if count % 2 == 1 { -1.0 } else { 1.0 };
                group.extend(self.rows.iter().position(|other| other.levels == levels).map(|other| (other, sign)));
            }
            if group.len() == 1 << contrast.of.len() {
                groups.push(group);
            }
        }
        groups
    }
}

fn judged(design: &DesignFindings, figure: &str, contrasts: Vec<Contrast>, values: &Values<'_>) -> Vec<FactorFindings> {
    let asked = contrasts.len();
    let compared: Vec<Option<statistics::Comparison>> = contrasts
        .iter()
        .map(|contrast| {
            let differences = values.of(contrast);
            family::compare(&differences, &[vec![0.0; differences.len()]], asked, design.margin)
        })
        .collect();
    let answers = family::answers(&compared, asked, design.margin);
    contrasts
        .iter()
        .zip(&answers)
        .filter_map(|(contrast, answer)| Some(finding(design, figure, contrast, answer.as_ref()?)))
        .collect()
}

fn finding(design: &DesignFindings, figure: &str, contrast: &Contrast, answer: &Answer) -> FactorFindings {
    let of = |level: fn(&(usize, usize)) -> usize| -> Vec<String> {
        contrast.of.iter().map(|one| design.factors[one.0].levels[level(one)].clone()).collect()
    };
    FactorFindings {
        factors: contrast.of.iter().map(|(factor, _)| design.factors[*factor].name.clone()).collect(),
        levels: of(|one| one.1),
        against: of(|_| 0),
        figure: figure.to_owned(),
        outcome: match answer.outcome {
            statistics::Outcome::More => FactorOutcome::More,
            statistics::Outcome::Less => FactorOutcome::Less,
            statistics::Outcome::NoDifference => FactorOutcome::NoDifference,
            statistics::Outcome::Inconclusive => FactorOutcome::Inconclusive,
        },
        blocks: answer.blocks,
        change: answer.change,
        interval: answer.interval,
        confidence: answer.confidence,
        no_larger_than: answer.no_larger_than,
        smallest_seen: answer.smallest_seen,
        p_adjusted: answer.p_adjusted,
        more_blocks: answer.more_blocks,
    }
}
