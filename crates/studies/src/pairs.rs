//! How often equal trials are called different: A/A pairs of a run's trials without a fault.
//!
//! A pair is a whole design of its own: so many blocks of two trials each, of which one plays the part of the fault. Every trial is
//! used once, so pairs know nothing of each other but what the machine does to all. They are judged as cells are
//! (`docs/statistics.md`): the same values, the same rule, the same margin.

use brownout_analysis::{Findings, MARGIN, Validity, trial_effect};
use brownout_base::random::{Random, derive};
use brownout_record::Arm;
use brownout_statistics::{self as statistics, Outcome};

/// Pairs that are judged.
pub const PAIRS: usize = 20;
/// So many of them may be called different.
pub const MOST_DIFFERENT: usize = 1;
/// What the rule's error is kept below, in each pair.
pub const ALPHA: f64 = statistics::ALPHA;
/// What is judged: figures that cells are judged by.
pub const FIGURES: [&str; 3] = ["goodput", "p50", "p99"];
/// Designs: so many blocks each.
pub const BLOCKS: [usize; 2] = [2, 3];
/// The one count that is held to [`MOST_DIFFERENT`], figure and blocks: of six that have their trials in common, one would miss
/// it by chance rather often.
pub const CRITERION: (&str, usize) = ("goodput", 3);

/// The part of the run's seed that says which trial plays the part of the fault.
const PART: u64 = u64::from_be_bytes(*b"   pairs");

/// A pair, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The trials that play the part of the fault, and those beside them, block by block.
    pub trials: Vec<(u32, u32)>,
    /// What a user would have been told.
    pub outcome: Outcome,
    /// The change that was found: (with − without) ÷ without.
    pub change: f64,
    /// The smallest change that four of five such designs would show.
    pub smallest_seen: f64,
}

impl Pair {
    /// It says that there is a difference, which there is not.
    pub fn is_different(&self) -> bool {
        matches!(self.outcome, Outcome::More | Outcome::Less)
    }
}

/// All pairs of one figure and one design.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// One of [`FIGURES`].
    pub figure: &'static str,
    /// Blocks of each design.
    pub blocks: usize,
    /// Each pair.
    pub pairs: Vec<Pair>,
}

impl Judged {
    /// How many are called different.
    pub fn different(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.is_different()).count()
    }

    /// Whether there are enough pairs to say anything.
    pub fn is_complete(&self) -> bool {
        self.pairs.len() >= PAIRS
    }

    /// Whether no more are called different than may be.
    pub fn is_met(&self) -> bool {
        self.different() <= MOST_DIFFERENT
    }
}

/// What is held to the criterion, if there is enough of it.
pub fn criterion(judged: &[Judged]) -> Option<&Judged> {
    judged.iter().find(|one| (one.figure, one.blocks) == CRITERION).filter(|one| one.is_complete())
}

/// Makes pairs of a run's valid trials without a fault, in the order in which they were run, and judges them.
pub fn pairs(findings: &Findings) -> Vec<Judged> {
    let seed = findings.environment.as_ref().map_or(0, |environment| environment.seed);
    let alike = findings.trials.iter().filter(|trial| trial.arm == Arm::None && trial.validity == Validity::Valid);
    let designs = BLOCKS.iter().flat_map(|blocks| FIGURES.iter().map(move |figure| (*blocks, *figure)));
    let judged = |(blocks, figure): (usize, &'static str)| {
        let values = alike.clone().filter_map(|trial| Some((trial.trial, trial_effect(trial, figure)?)));
        Judged { figure, blocks, pairs: judge(&values.collect::<Vec<_>>(), blocks, seed) }
    };
    designs.map(judged).collect()
}

/// The first [`PAIRS`] pairs of these trials and their values; fewer, if there are too few trials.
pub fn judge(values: &[(u32, f64)], blocks: usize, seed: u64) -> Vec<Pair> {
    // Who plays the fault is drawn as the order of a block is, and for all figures alike.
    let mut random = Random::new(derive(derive(seed, PART), blocks as u64));
    let designs = values.chunks_exact(2 * blocks).take(PAIRS);
    designs
        .filter_map(|design| {
            let drawn = design
                .chunks_exact(2)
                .map(|two| if random.below(2) == 0 { (two[0], two[1]) } else { (two[1], two[0]) });
            let drawn: Vec<((u32, f64), (u32, f64))> = drawn.collect();
            let fault: Vec<f64> = drawn.iter().map(|(played, _)| played.1).collect();
            let without: Vec<f64> = drawn.iter().map(|(_, beside)| beside.1).collect();
            let compared = statistics::compare(&fault, &[without], MARGIN.ln_1p(), statistics::FLOOR, 1)?;
            Some(Pair {
                trials: drawn.iter().map(|(played, beside)| (played.0, beside.0)).collect(),
                outcome: compared.outcome,
                change: compared.estimate.effect.exp_m1(),
                smallest_seen: compared.estimate.smallest_seen.exp_m1(),
            })
        })
        .collect()
}

/// The chance that of `count` things, each with this chance, at least `least` happen (the binomial distribution).
pub fn at_least(least: usize, count: usize, chance: f64) -> f64 {
    let mut term = (1.0 - chance).powi(count as i32);
    let mut below = 0.0;
    for happened in 0..least {
        below += term;
        term *= (count - happened) as f64 / (happened + 1) as f64 * chance / (1.0 - chance);
    }
    (1.0 - below).max(0.0)
}
