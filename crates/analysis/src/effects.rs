//! What the faults of a cell did: its trials against trials without a fault, block by block (`docs/statistics.md`).
//!
//! A trial's value is the logarithm of a figure of its fault phase less that of its baseline, so that only what changed within
//! the trial counts. A cell's difference in a block is its trial's value less the median of those of the block's trials without a
//! fault: what the order of the phases does by itself is in both.

use brownout_record::CellRow;
use brownout_statistics as statistics;

use crate::{
    CellEffect, CellFindings, Outcome, Quantile, Response, TrialFindings, Validity,
    cell_effect::GOODPUT,
    evidence::phase,
    family::{self, Answer, CHANGED},
    membership::{is_compared, is_own},
    stats,
    words::{bound, confidence, relative, relative_range},
};

/// A figure of a trial, on the scale on which effects add up.
struct Figure {
    name: &'static str,
    more_is_better: bool,
    /// ln(fault phase ÷ baseline).
    of: fn(&TrialFindings) -> Option<f64>,
    /// Whether its true value in a phase may be larger than the one that was seen.
    may_be_larger: fn(&TrialFindings, &str) -> bool,
}

const FIGURES: [Figure; 4] = [
    Figure { name: GOODPUT, more_is_better: true, of: |trial| trial.effect.log_ratio, may_be_larger: |_, _| false },
    Figure {
        name: "delivered",
        more_is_better: true,
        of: |trial| trial.effect.delivered_log_ratio,
        may_be_larger: |_, _| false,
    },
    Figure {
        name: "p50",
        more_is_better: false,
        of: |trial| of_response(trial, |response| response.p50),
        may_be_larger: |trial, name| is_bound(trial, name, |response| response.p50),
    },
    Figure {
        name: "p99",
        more_is_better: false,
        of: |trial| of_response(trial, |response| response.p99),
        may_be_larger: |trial, name| is_bound(trial, name, |response| response.p99),
    },
];

/// What a trial contributes to its cell's effect on a figure (`goodput`, `delivered`, `p50`, `p99`): ln(fault phase ÷ baseline).
/// None if there is no such figure, no operation in one of the phases, or if only a lower bound of one is known.
pub fn trial_effect(trial: &TrialFindings, figure: &str) -> Option<f64> {
    let figure = FIGURES.iter().find(|known| known.name == figure)?;
    let is_known = [phase::BASELINE, phase::FAULT].iter().all(|name| !(figure.may_be_larger)(trial, name));
    (figure.of)(trial).filter(|_| is_known)
}

fn response(trial: &TrialFindings, name: &str) -> Option<Response> {
    trial.phases.iter().find(|phase| phase.name == name)?.response
}

fn of_response(trial: &TrialFindings, which: fn(&Response) -> Quantile) -> Option<f64> {
    let of = |name| Some(which(&response(trial, name)?).value_ns as f64).filter(|value| *value > 0.0);
    Some((of(phase::FAULT)? / of(phase::BASELINE)?).ln())
}

fn is_bound(trial: &TrialFindings, name: &str, which: fn(&Response) -> Quantile) -> bool {
    response(trial, name).is_some_and(|response| which(&response).at_least)
}

/// Puts down for all cells of a run what their faults did.
pub(crate) fn judge(cells: &mut [CellFindings], rows: &[CellRow], trials: &[TrialFindings], margin: f64) {
    for (cell, [goodput, figures @ ..]) in cells.iter_mut().zip(effects(rows, trials, margin)) {
        cell.effect = goodput;
        cell.figures = figures.into();
    }
}

/// What the faults of each cell did to goodput, delivered operations, p50 and p99; each figure is a family of as many questions as
/// there are cells, and a change smaller than `margin` is none. All that [`crate::findings`] says of effects; by itself, so that its
/// errors can be counted over thousands of designs, of which nobody could write the runs.
#[doc(hidden)]
pub fn effects(rows: &[CellRow], trials: &[TrialFindings], margin: f64) -> Vec<[CellEffect; 4]> {
    let mut cells: Vec<[CellEffect; 4]> = rows.iter().map(|_| Default::default()).collect();
    for (at, figure) in FIGURES.iter().enumerate() {
        for (cell, effect) in cells.iter_mut().zip(of_figure(figure, rows, trials, margin)) {
            cell[at] = effect;
        }
    }
    cells
}

/// Puts down what trials of cells show that are not judged one by one.
pub(crate) fn not_judged(cells: &mut [CellFindings], rows: &[CellRow], trials: &[TrialFindings], why: &str) {
    let nothing = Blocks::default();
    for (cell, row) in cells.iter_mut().zip(rows) {
        cell.effect = CellEffect { reason: why.to_owned(), ..described(&FIGURES[0], row, &nothing, trials, 1) };
    }
}

/// What the blocks of a cell have: its own values, and those without a fault.
#[derive(Default)]
struct Blocks {
    own: Vec<f64>,
    /// By number within the block, then by block.
    without: Vec<Vec<f64>>,
    /// Of a value that it is compared with only a lower bound is known: nothing follows.
    is_unknown: bool,
    /// The same of a value of a fault phase of its own: it is larger, or larger still.
    is_bound: bool,
}

/// How many trials without a fault of each block are used, if blocks have so many: where one of many blocks has fewer, it
/// is left out, and where one of few has, the others' are not all used. By the numbers alone, whichever gives the narrower
/// interval: a block's difference has 1 + 1/M times the variance of a trial.
fn arms(counts: &[usize]) -> usize {
    let width = |arms: usize| {
        let blocks = counts.iter().filter(|count| **count >= arms).count();
        let variance = (1.0 + 1.0 / arms as f64) / blocks as f64;
        (blocks > 1).then(|| (statistics::student(1.0 - statistics::ALPHA / 2.0, blocks - 1) * variance.sqrt(), arms))
    };
    let most = counts.iter().copied().max().unwrap_or(0);
    let narrowest = (1..=most).filter_map(width).min_by(|a, b| a.0.total_cmp(&b.0));
    narrowest.map_or(counts.iter().copied().min().unwrap_or(0), |(_, arms)| arms)
}

fn blocks(figure: &Figure, row: &CellRow, trials: &[TrialFindings]) -> Blocks {
    let valid = || trials.iter().filter(|trial| trial.validity == Validity::Valid);
    let mut whole: Vec<(f64, Vec<f64>)> = Vec::new();
    for own in valid().filter(|trial| is_own(row, trial)) {
        let of_block = valid().filter(|trial| is_compared(row, trial) && trial.block == own.block);
        let without: Vec<f64> = of_block.filter_map(figure.of).collect();
        whole.extend((figure.of)(own).filter(|_| !without.is_empty()).map(|value| (value, without)));
    }
    let counts: Vec<usize> = whole.iter().map(|(_, without)| without.len()).collect();
    let arms = arms(&counts);
    whole.retain(|(_, without)| without.len() >= arms);
    let may_be_larger = |trial: &TrialFindings, name: &str| (figure.may_be_larger)(trial, name);
    Blocks {
        own: whole.iter().map(|(value, _)| *value).collect(),
        without: (0..arms).map(|arm| whole.iter().map(|(_, without)| without[arm]).collect()).collect(),
        is_unknown: valid().any(|trial| {
            let compared = is_compared(row, trial);
            (compared || is_own(row, trial)) && may_be_larger(trial, phase::BASELINE)
                || compared && may_be_larger(trial, phase::FAULT)
        }),
        is_bound: valid().any(|trial| is_own(row, trial) && may_be_larger(trial, phase::FAULT)),
    }
}

fn of_figure(figure: &Figure, rows: &[CellRow], trials: &[TrialFindings], margin: f64) -> Vec<CellEffect> {
    let asked = rows.iter().filter(|row| !row.description.faults.is_empty()).count();
    let all: Vec<Blocks> = rows.iter().map(|row| blocks(figure, row, trials)).collect();
    let compared = rows.iter().zip(&all).map(|(row, blocks)| {
        let is_judged = !row.description.faults.is_empty() && !blocks.is_unknown;
        is_judged.then(|| family::compare(&blocks.own, &blocks.without, asked, margin))?
    });
    let answers = family::answers(&compared.collect::<Vec<_>>(), asked, margin);
    let effect = |((row, blocks), answer): ((&CellRow, &Blocks), &Option<Answer>)| {
        let mut effect = described(figure, row, blocks, trials, asked);
        if let Some(answer) = answer {
            told(&mut effect, figure, answer, blocks.is_bound, asked);
        }
        effect
    };
    rows.iter().zip(&all).zip(&answers).map(effect).collect()
}

/// What can be said without judging: why not, and what single trials show.
fn described(figure: &Figure, row: &CellRow, blocks: &Blocks, trials: &[TrialFindings], asked: usize) -> CellEffect {
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
    } else if blocks.is_unknown {
        "of a percentile in a baseline, or in a trial without a fault, only a lower bound is known: it lies among operations that \
         timed out"
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
    // Many trials without a fault in one block show whether the one with it is like them.
    if let ([own], false, false) = (&blocks.own[..], row.description.faults.is_empty(), blocks.is_unknown) {
        let without: Vec<f64> = blocks.without.iter().map(|arm| arm[0]).collect();
        let alpha = CHANGED / asked.max(1) as f64;
        if let Some((low, high)) = statistics::prediction_limits(&without, alpha)
            && !(low..=high).contains(own)
        {
            effect.outcome = Outcome::Changed;
            effect.reason = format!(
                "the trial differs from {} without a fault (of those {} lie within {}); one trial cannot show by how much",
                without.len(),
                confidence(1.0 - alpha),
                relative_range((low.exp_m1(), high.exp_m1()))
            );
        }
    }
    effect
}

/// Puts down an answer. `is_bound`: in some fault phase the figure may be larger than it was seen to be.
fn told(effect: &mut CellEffect, figure: &Figure, answer: &Answer, is_bound: bool, cells: usize) {
    effect.change = Some(answer.change);
    effect.interval = Some(answer.interval);
    effect.confidence = answer.confidence;
    effect.no_larger_than = Some(answer.no_larger_than);
    effect.smallest_seen = Some(answer.smallest_seen);
    effect.p = Some(answer.p);
    effect.p_adjusted = Some(answer.p_adjusted);
    let trials = format!("{} blocks with {} without a fault in each", effect.blocks, count(effect.without_fault));
    let interval =
        format!("the {} interval of the change is {}", confidence(answer.confidence), relative_range(answer.interval));
    let beyond = relative_range(answer.unseen());
    let sees =
        format!("four of five such runs would detect a change beyond {beyond}, most would miss one half as large");
    let is_more = figure.more_is_better;
    (effect.outcome, effect.reason) = match answer.outcome {
        statistics::Outcome::More if is_bound => (
            if is_more { Outcome::Better } else { Outcome::Worse },
            format!("over {trials} {interval}, or more: in a fault phase it lies among operations that timed out"),
        ),
        // What may be larger than it was seen to be is neither the smaller nor the same.
        _ if is_bound => (
            Outcome::Inconclusive,
            format!(
                "over {trials} only a lower bound is known: in a fault phase it lies among operations that timed out"
            ),
        ),
        statistics::Outcome::NoDifference => (
            Outcome::NoDifference,
            format!("over {trials} the change is at most {}, up or down", bound(answer.no_larger_than)),
        ),
        statistics::Outcome::More => {
            (if is_more { Outcome::Better } else { Outcome::Worse }, format!("over {trials} {interval}; {sees}"))
        }
        statistics::Outcome::Less => {
            (if is_more { Outcome::Worse } else { Outcome::Better }, format!("over {trials} {interval}; {sees}"))
        }
        statistics::Outcome::Inconclusive => {
            effect.more_blocks = answer.more_blocks;
            let more = more_blocks(answer);
            let among = if answer.stands_alone {
                format!("; in one cell alone that would be significant, in one among {cells} it is not")
            } else {
                String::new()
            };
            let changed = if answer.has_changed {
                "it has changed (chance alone makes so large a difference in fewer than 1% of such runs), but "
            } else {
                ""
            };
            let text = format!(
                "{changed}over {trials} {interval}{among}; only a change beyond {beyond} would be detected by four of five such runs; \
                 {more}"
            );
            (if answer.has_changed { Outcome::Changed } else { Outcome::Inconclusive }, text)
        }
    };
}

/// How many more blocks would detect it, in words.
fn more_blocks(answer: &Answer) -> String {
    let of = format!("detect a change of {}", relative(answer.wanted()));
    match answer.more_blocks {
        Some(1) => format!("1 more block would {of}"),
        Some(more) => format!("{more} more blocks would {of}"),
        None => format!("no reasonable number of blocks would {of}"),
    }
}

fn count(trials: u32) -> String {
    format!("{trials} trial{}", if trials == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::arms;

    #[test]
    fn a_block_that_lacks_a_trial_without_a_fault_costs_as_little_as_it_can() {
        assert_eq!((arms(&[]), arms(&[3]), arms(&[2, 2, 2])), (0, 3, 2));
        // Of few blocks none can be spared, of many one can.
        assert_eq!((arms(&[2, 1]), arms(&[2, 2, 2, 2, 1])), (1, 1));
        let mut many = vec![2; 19];
        many.push(1);
        assert_eq!(arms(&many), 2);
        assert_eq!(arms(&[1, 1, 4]), 1);
    }
}
