//! The effect that differences show, one of each block: estimate, interval, and the smallest that could have been seen.

use std::{cell::RefCell, collections::HashMap};

use crate::{
    ALPHA, POWER,
    order::{deviation, mean, middle},
    quantiles::{beyond_student, centre_for, student},
    signed_rank,
};

/// From so many blocks on by ranks, if there are enough for an interval; t before.
const RANKED_FROM: usize = 8;

/// How it was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Student's t of the differences.
    Student,
    /// Signed ranks.
    SignedRank,
}

/// What the differences show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// How it was reached.
    pub method: Method,
    /// How many differences there are.
    pub blocks: usize,
    /// The effect, on the working scale.
    pub effect: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The two-sided p-value: the probability of an effect at least this large if there were none.
    pub p: f64,
    /// The smallest effect that would have been seen in four of five such runs, at an error of 5 %.
    pub smallest_seen: f64,
}

/// How many standard deviations of one difference an effect has to be so that as many blocks show it in four of five runs.
///
/// Up to seven exactly, by the non-central t distribution; beyond by its usual approximation, which is as good there.
pub fn effect_factor(blocks: usize) -> f64 {
    const EXACT: [f64; 6] = [11.550, 3.264, 2.128, 1.682, 1.435, 1.272];
    match blocks {
        0 | 1 => f64::INFINITY,
        few if few - 2 < EXACT.len() => EXACT[few - 2],
        many => (student(1.0 - ALPHA / 2.0, many - 1) + student(POWER, many - 1)) / (many as f64).sqrt(),
    }
}

/// The same at a two-sided error of `alpha`: what is one of several questions has to pass a smaller one.
pub fn effect_factor_at(blocks: usize, alpha: f64) -> f64 {
    thread_local! {
        /// What was asked for: a run asks for few, again and again, and each takes a millisecond.
        static ASKED: RefCell<HashMap<(u64, usize), f64>> = RefCell::default();
    }
    if blocks < 2 || alpha >= ALPHA {
        return effect_factor(blocks);
    }
    let compute = || {
        let freedom = blocks - 1;
        centre_for(POWER, student(1.0 - alpha / 2.0, freedom), freedom as f64) / (blocks as f64).sqrt()
    };
    ASKED.with_borrow_mut(|asked| *asked.entry((alpha.to_bits(), blocks)).or_insert_with(compute))
}

/// Whether so many blocks are judged by ranks, where so many cells are judged at once: the smallest chance that they can show
/// has to pass the first step of [`crate::benjamini_hochberg`] with room to spare.
pub(crate) fn is_ranked(blocks: usize, cells: usize) -> bool {
    blocks >= RANKED_FROM && 2f64.powi(1 - blocks as i32) <= ALPHA / (2.0 * cells as f64)
}

/// The 1 − `alpha` interval of the effect, from one difference of each block.
///
/// `floor` is the least standard error that counts, `cells` how many such questions are asked of one run. None of fewer than two
/// differences, or of one that is no number.
pub fn estimate(differences: &[f64], alpha: f64, floor: f64, cells: usize) -> Option<Estimate> {
    estimates(differences, [alpha], floor, cells).map(|[estimate]| estimate)
}

/// The same at several levels.
pub(crate) fn estimates<const LEVELS: usize>(
    differences: &[f64],
    alphas: [f64; LEVELS],
    floor: f64,
    cells: usize,
) -> Option<[Estimate; LEVELS]> {
    let blocks = differences.len();
    if blocks < 2 || !differences.iter().all(|one| one.is_finite()) {
        return None;
    }
    let ranks = is_ranked(blocks, cells).then(|| Ranks::of(differences, floor)).flatten();
    let by_ranks = |alpha| ranks.as_ref().and_then(|ranks| ranks.estimate(alpha));
    let mut by_t = None;
    Some(alphas.map(|alpha| {
        by_ranks(alpha).unwrap_or_else(|| by_t.get_or_insert_with(|| Student::of(differences, floor)).estimate(alpha))
    }))
}

/// By Student's t.
struct Student {
    blocks: usize,
    effect: f64,
    error: f64,
    p: f64,
}

impl Student {
    fn of(differences: &[f64], floor: f64) -> Student {
        let (blocks, effect) = (differences.len(), mean(differences));
        let error = (deviation(differences) / (blocks as f64).sqrt()).max(floor);
        Student { blocks, effect, error, p: beyond_student(effect / error, blocks - 1) }
    }

    fn estimate(&self, alpha: f64) -> Estimate {
        let Student { blocks, effect, error, p } = *self;
        let half = student(1.0 - alpha / 2.0, blocks - 1) * error;
        Estimate {
            method: Method::Student,
            blocks,
            effect,
            low: effect - half,
            high: effect + half,
            p,
            smallest_seen: effect_factor(blocks) * (blocks as f64).sqrt() * error,
        }
    }
}

/// By signed ranks.
struct Ranks {
    blocks: usize,
    averages: Vec<f64>,
    effect: f64,
    p: f64,
    floor: f64,
}

impl Ranks {
    /// None if there are too few for an interval at 5 %.
    fn of(differences: &[f64], floor: f64) -> Option<Ranks> {
        signed_rank::critical(differences.len(), ALPHA)?;
        let averages = signed_rank::walsh_averages(differences);
        Some(Ranks {
            blocks: differences.len(),
            effect: middle(&averages),
            p: signed_rank::chance(differences, &averages),
            averages,
            floor,
        })
    }

    fn ends(&self, alpha: f64) -> Option<(f64, f64)> {
        let critical = signed_rank::critical(self.blocks, alpha)?;
        let (low, high) = (self.averages[critical], self.averages[self.averages.len() - 1 - critical]);
        // Not narrower than the floor allows.
        let least = 1.96 * self.floor;
        Some(if high - low < 2.0 * least { (self.effect - least, self.effect + least) } else { (low, high) })
    }

    fn estimate(&self, alpha: f64) -> Option<Estimate> {
        let (low, high) = self.ends(alpha)?;
        let at_5_percent = self.ends(ALPHA)?;
        let freedom = self.blocks - 1;
        let further = 1.0 + student(POWER, freedom) / student(1.0 - ALPHA / 2.0, freedom);
        Some(Estimate {
            method: Method::SignedRank,
            blocks: self.blocks,
            effect: self.effect,
            low,
            high,
            p: self.p,
            smallest_seen: (at_5_percent.1 - at_5_percent.0) / 2.0 * further,
        })
    }
}
