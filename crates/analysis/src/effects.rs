//! What the faults of a cell did: its trials against trials without a fault, block by block (`docs/statistics.md`).
//!
//! A trial's value is the logarithm of a figure of its fault phase less that of its baseline, so that only what changed within
//! the trial counts. A cell's difference in a block is its trial's value less the median of those of the block's trials without a
//! fault: what the order of the phases does by itself is in both.

use brownout_record::CellRow;
use brownout_statistics::{self as statistics, benjamini_hochberg, effect_factor};
use serde::Serialize;

use crate::{
    CellFindings, Outcome, PhaseFindings, TrialFindings, Validity,
    cells::{is_compared, is_own},
    evidence::phase,
    stats, words,
};

/// A relative change that is smaller is none.
pub const MARGIN: f64 = 0.01;
/// Something has changed, even if nobody can say by how much, where chance alone would show it this rarely.
const CHANGED: f64 = 0.01;
/// More trials are not promised to tell.
const MOST_BLOCKS: usize = 200;

/// What the faults of a cell did to one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellEffect {
    /// `goodput`, `delivered`, `p50`, `p99`.
    pub figure: String,
    /// What follows.
    pub outcome: Outcome,
    /// How it was reached, or why not.
    pub reason: String,
    /// Blocks that have a valid trial with the faults and one or more without.
    pub blocks: u32,
    /// Trials without a fault in each of them.
    pub without_fault: u32,
    /// (with − without) ÷ without; of a cell that is not judged the mean of its trials' fault phase against their baseline.
    pub change: Option<f64>,
    /// The smallest of a trial, against its own baseline.
    pub change_min: Option<f64>,
    /// The largest of a trial, against its own baseline.
    pub change_max: Option<f64>,
    /// The interval of `change`.
    pub interval: Option<(f64, f64)>,
    /// Its confidence: 0.95, or more where one of several cells is called different.
    pub confidence: f64,
    /// If there is a difference, it is not larger than this, with 95 % confidence.
    pub no_larger_than: Option<f64>,
    /// The smallest change that four of five such runs would show.
    pub smallest_seen: Option<f64>,
    /// The chance of as much without an effect, two-sided, of this cell alone.
    pub p: Option<f64>,
    /// The same for one cell of several (Benjamini and Hochberg).
    pub p_adjusted: Option<f64>,
    /// Where it is not told: how many more blocks would show an effect of this size in four of five runs.
    pub more_blocks: Option<u32>,
}

impl Default for CellEffect {
    fn default() -> Self {
        CellEffect {
            figure: GOODPUT.to_owned(),
            outcome: Outcome::NotJudged,
            reason: String::new(),
            blocks: 0,
            without_fault: 0,
            change: None,
            change_min: None,
            change_max: None,
            interval: None,
            confidence: 0.95,
            no_larger_than: None,
            smallest_seen: None,
            p: None,
            p_adjusted: None,
            more_blocks: None,
        }
    }
}

/// A figure of a trial, on the scale on which effects add up.
struct Figure {
    name: &'static str,
    more_is_better: bool,
    /// ln(fault phase ÷ baseline).
    of: fn(&TrialFindings) -> Option<f64>,
}

const FIGURES: [Figure; 4] = [
    Figure { name: GOODPUT, more_is_better: true, of: |trial| trial.effect.log_ratio },
    Figure { name: "delivered", more_is_better: true, of: |trial| trial.effect.delivered_log_ratio },
    Figure { name: "p50", more_is_better: false, of: |trial| of_response(trial, |response| response.p50) },
    Figure { name: "p99", more_is_better: false, of: |trial| of_response(trial, |response| response.p99) },
];
const GOODPUT: &str = "goodput";

/// What a trial contributes to its cell's effect on a figure (`goodput`, `delivered`, `p50`, `p99`): ln(fault phase ÷ baseline).
/// None if there is no such figure, or no operation in one of the phases.
pub fn trial_effect(trial: &TrialFindings, figure: &str) -> Option<f64> {
    FIGURES.iter().find(|known| known.name == figure).and_then(|known| (known.of)(trial))
}

fn of_response(trial: &TrialFindings, which: fn(&crate::Response) -> crate::Quantile) -> Option<f64> {
    let of = |name: &str| {
        let phase: &PhaseFindings = trial.phases.iter().find(|phase| phase.name == name)?;
        Some(which(&phase.response?).value_ns as f64).filter(|value| *value > 0.0)
    };
    Some((of(phase::FAULT)? / of(phase::BASELINE)?).ln())
}

/// Puts down for all cells of a run what their faults did.
pub(crate) fn judge(cells: &mut [CellFindings], rows: &[CellRow], trials: &[TrialFindings]) {
    for (cell, [goodput, figures @ ..]) in cells.iter_mut().zip(effects(rows, trials)) {
        cell.effect = goodput;
        cell.figures = figures.into();
    }
}

/// What the faults of each cell did to goodput, delivered operations, p50 and p99; each figure is a family of as many questions as
/// there are cells. All that [`crate::findings`] says of effects; by itself, so that its errors can be counted over thousands of
/// designs, of which nobody could write the runs.
#[doc(hidden)]
pub fn effects(rows: &[CellRow], trials: &[TrialFindings]) -> Vec<[CellEffect; 4]> {
    let mut cells: Vec<[CellEffect; 4]> = rows.iter().map(|_| Default::default()).collect();
    for (at, figure) in FIGURES.iter().enumerate() {
        for (cell, effect) in cells.iter_mut().zip(family(figure, rows, trials)) {
            cell[at] = effect;
        }
    }
    cells
}

/// Puts down what trials of cells show that are not judged one by one.
pub(crate) fn not_judged(cells: &mut [CellFindings], rows: &[CellRow], trials: &[TrialFindings], why: &str) {
    let nothing = Blocks { own: Vec::new(), without: Vec::new() };
    for (cell, row) in cells.iter_mut().zip(rows) {
        cell.effect = CellEffect { reason: why.to_owned(), ..described(&FIGURES[0], row, &nothing, trials) };
    }
}

/// What the blocks of a cell have: its own values, and those without a fault.
struct Blocks {
    own: Vec<f64>,
    /// By number within the block, then by block.
    without: Vec<Vec<f64>>,
}

fn blocks(figure: &Figure, row: &CellRow, trials: &[TrialFindings]) -> Blocks {
    let valid = || trials.iter().filter(|trial| trial.validity == Validity::Valid);
    let mut whole: Vec<(f64, Vec<f64>)> = Vec::new();
    for own in valid().filter(|trial| is_own(row, trial)) {
        let of_block = valid().filter(|trial| is_compared(row, trial) && trial.block == own.block);
        let without: Vec<f64> = of_block.filter_map(figure.of).collect();
        whole.extend((figure.of)(own).filter(|_| !without.is_empty()).map(|value| (value, without)));
    }
    // Each block as many: the least that one of them has.
    let arms = whole.iter().map(|(_, without)| without.len()).min().unwrap_or(0);
    Blocks {
        own: whole.iter().map(|(value, _)| *value).collect(),
        without: (0..arms).map(|arm| whole.iter().map(|(_, without)| without[arm]).collect()).collect(),
    }
}

fn family(figure: &Figure, rows: &[CellRow], trials: &[TrialFindings]) -> Vec<CellEffect> {
    let asked = rows.iter().filter(|row| !row.description.faults.is_empty()).count();
    let all: Vec<Blocks> = rows.iter().map(|row| blocks(figure, row, trials)).collect();
    let compared: Vec<Option<statistics::Comparison>> = rows
        .iter()
        .zip(&all)
        .map(|(row, blocks)| {
            let judged = !row.description.faults.is_empty();
            judged.then(|| statistics::compare(&blocks.own, &blocks.without, MARGIN, statistics::FLOOR, asked))?
        })
        .collect();
    let places: Vec<usize> = (0..rows.len()).filter(|at| compared[*at].is_some()).collect();
    let p: Vec<f64> = places.iter().filter_map(|at| Some(compared[*at].as_ref()?.estimate.p)).collect();
    let selection = benjamini_hochberg(&p, statistics::ALPHA);
    let mut effects = Vec::new();
    for (at, ((row, blocks), compared)) in rows.iter().zip(&all).zip(&compared).enumerate() {
        let mut effect = described(figure, row, blocks, trials);
        if let (Some(compared), Some(place)) = (compared, places.iter().position(|place| *place == at)) {
            let selected = selection.selected.contains(&place);
            let alpha = if selected { selection.interval_alpha } else { statistics::ALPHA };
            effect.p_adjusted = Some(selection.adjusted[place]);
            told(&mut effect, figure, compared, selected, alpha, asked);
        }
        effects.push(effect);
    }
    effects
}

/// What can be said without judging: why not, and what single trials show.
fn described(figure: &Figure, row: &CellRow, blocks: &Blocks, trials: &[TrialFindings]) -> CellEffect {
    let own = trials.iter().filter(|trial| is_own(row, trial));
    let valid: Vec<&TrialFindings> = own.filter(|trial| trial.validity == Validity::Valid).collect();
    let changes: Vec<f64> = valid.iter().filter_map(|trial| (figure.of)(trial)).map(f64::exp_m1).collect();
    let without = trials.iter().any(|trial| is_compared(row, trial));
    let reason = if row.description.faults.is_empty() {
        "the cell has no fault"
    } else if valid.is_empty() {
        "the cell has no valid trial"
    } else if changes.is_empty() {
        "no trial has a baseline and a fault phase with operations to compare"
    } else if !without {
        "there are no trials without a fault to compare with; write trials: 2 or more, and without-fault: 1"
    } else if blocks.own.is_empty() {
        "no block has both a valid trial with the faults and one without"
    } else {
        "one block cannot distinguish an effect from chance; run at least two (trials: 2)"
    };
    let mut effect = CellEffect {
        figure: figure.name.to_owned(),
        reason: reason.to_owned(),
        blocks: blocks.own.len() as u32,
        without_fault: blocks.without.len() as u32,
        change: stats::mean(&changes),
        change_min: changes.iter().copied().reduce(f64::min),
        change_max: changes.iter().copied().reduce(f64::max),
        ..CellEffect::default()
    };
    // Many trials without a fault in one block tell whether the one with it is like them.
    if let ([own], false) = (&blocks.own[..], row.description.faults.is_empty()) {
        let without: Vec<f64> = blocks.without.iter().map(|arm| arm[0]).collect();
        if let Some((low, high)) = statistics::prediction_limits(&without)
            && !(low..=high).contains(own)
        {
            effect.outcome = Outcome::Changed;
            effect.reason = format!(
                "the trial differs from {} without a fault (of those 99% lie within {} … {}); one trial does not tell by \
                 how much",
                without.len(),
                percent(low.exp_m1()),
                percent(high.exp_m1())
            );
        }
    }
    effect
}

/// Puts down what a comparison says.
fn told(
    effect: &mut CellEffect,
    figure: &Figure,
    compared: &statistics::Comparison,
    selected: bool,
    alpha: f64,
    cells: usize,
) {
    let estimate = &compared.estimate;
    // The interval agrees with the verdict: of one that is selected among many it is wider.
    let shown = statistics::estimate(&compared.differences, alpha, statistics::FLOOR, cells).unwrap_or(*estimate);
    effect.change = Some(estimate.effect.exp_m1());
    effect.interval = Some((shown.low.exp_m1(), shown.high.exp_m1()));
    effect.confidence = 1.0 - alpha;
    effect.no_larger_than = Some(compared.no_larger_than.exp_m1());
    effect.smallest_seen = Some(estimate.smallest_seen.exp_m1());
    effect.p = Some(estimate.p);
    let trials = format!("{} blocks with {} without a fault in each", effect.blocks, count(effect.without_fault));
    let interval = format!(
        "the {:.4}% interval of the change is {} … {}",
        effect.confidence * 100.0,
        percent(shown.low.exp_m1()),
        percent(shown.high.exp_m1())
    )
    .replace(".0000%", "%");
    (effect.outcome, effect.reason) = match compared.outcome {
        statistics::Outcome::NoDifference => (
            Outcome::NoDifference,
            format!("over {trials} the change is at most {}", percent(compared.no_larger_than.exp_m1())),
        ),
        statistics::Outcome::More if selected => {
            (if figure.more_is_better { Outcome::Better } else { Outcome::Worse }, format!("over {trials} {interval}"))
        }
        statistics::Outcome::Less if selected => {
            (if figure.more_is_better { Outcome::Worse } else { Outcome::Better }, format!("over {trials} {interval}"))
        }
        _ => {
            let deviation = statistics::deviation(&compared.differences);
            let wanted = estimate.effect.abs().max(MARGIN);
            let enough = (compared.differences.len() + 1..=MOST_BLOCKS)
                .find(|blocks| effect_factor(*blocks) * deviation <= wanted)
                .map(|blocks| blocks - compared.differences.len());
            effect.more_blocks = enough.map(|more| more as u32);
            let smallest = percent(estimate.smallest_seen.exp_m1());
            let more = enough.map_or_else(
                || "no reasonable number of trials would tell".to_owned(),
                |more| format!("{more} more block{} would", if more == 1 { "" } else { "s" }),
            );
            let changed = compared.changed.is_some_and(|chance| chance < CHANGED);
            let what = if changed {
                format!(
                    "it has changed (chance alone makes so large a difference in fewer than 1% of such runs), but over {trials}"
                )
            } else {
                format!("over {trials}")
            };
            let text = format!("{what} {interval}; only a change of {smallest} or more would have been seen: {more}");
            (if changed { Outcome::Changed } else { Outcome::Inconclusive }, text)
        }
    };
}

fn count(trials: u32) -> String {
    format!("{trials} trial{}", if trials == 1 { "" } else { "s" })
}

/// A relative change with its sign; a change that more than doubles as a factor.
pub(crate) fn percent(change: f64) -> String {
    match change {
        change if change > 1.0 => words::factor(change + 1.0),
        share => format!("{}{:.1}%", if share > 0.0 { "+" } else { "" }, share * 100.0),
    }
}
