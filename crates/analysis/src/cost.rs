//! Whether the work of one trial took more CPU time than the same work in the others.
//!
//! A processor at a lower frequency, or one whose core somebody else uses too, takes longer for the same work. Nothing is
//! stolen then, and nobody waits for others: `disturbance` shows nothing of it, nor need the instrument be late. But trials
//! of one plan do the same work up to the end of their baselines, in which no fault is in force.

use brownout_record::CellRow;
use brownout_statistics::median;

use crate::{TrialFindings, Validity, evidence::phase};

/// A trial is told if an operation of its baseline took more CPU time than in the median of the others by this share.
/// In seven runs of `experiments/slow-replica.yaml` on a virtual machine of two processors, four trials each, none took
/// more than 13 % more (16 % where the others lay far apart), but for two with 19 and 20 %.
const DEARER: f64 = 0.15;
/// The same where the others are fewer than [`ENOUGH`]: nobody knows how far equal ones lie apart, and it may be one of
/// them that is off.
const DEARER_THAN_FEW: f64 = 0.25;
/// So many others say how far equal trials lie apart.
const ENOUGH: usize = 3;
/// Three of their standard deviations, each of which is 1.4826 median deviations from the median, if they are normal.
const APART: f64 = 3.0 * 1.4826;

/// A trial of which an operation took more CPU time than in the others of its plan; shares of what it took in these.
#[derive(Debug)]
pub(crate) struct Dearer<'a> {
    pub(crate) trial: &'a TrialFindings,
    /// How much more.
    pub(crate) by: f64,
    /// The same of the nodes alone ...
    nodes: f64,
    /// ... and of all of Brownout; none where the record does not tell.
    instrument: Option<f64>,
    /// How many it was compared with.
    others: usize,
}

impl<'a> Dearer<'a> {
    fn of(trial: &'a TrialFindings, own: Cost, others: &[Cost]) -> Option<Self> {
        let usual = |part: fn(&Cost) -> f64| median(&others.iter().map(part).collect::<Vec<f64>>());
        let more = |part: fn(&Cost) -> f64| part(&own) / usual(part) - 1.0;
        let all = usual(Cost::all);
        let limit = if others.len() < ENOUGH {
            DEARER_THAN_FEW
        } else {
            let apart: Vec<f64> = others.iter().map(|other| (other.all() - all).abs()).collect();
            DEARER.max(APART * median(&apart) / all)
        };
        let by = more(Cost::all);
        // Where there are no others, their median is no number, and nothing is more than that.
        (by > limit).then(|| Dearer {
            trial,
            by,
            nodes: more(|cost| cost.nodes),
            instrument: Some(more(|cost| cost.instrument)).filter(|more| more.is_finite()),
            others: others.len(),
        })
    }

    /// How much more, and what it can be.
    pub(crate) fn text(&self) -> String {
        let others = match self.others {
            1 => "the other trial".to_owned(),
            some => format!("the median of {some} other trials"),
        };
        let own = self.instrument.map_or_else(String::new, |more| format!(", Brownout itself {:+.0}%", more * 100.0));
        // Brownout runs the same code in each trial: it takes longer for that where the processor does.
        let why = if self.instrument.is_none_or(|more| more > self.by / 2.0) {
            "the processors themselves may have been slower (a lower frequency, a neighbour on the same core), and \
             what it differs by from other trials may come from that"
        } else {
            "its nodes may have done more for each (compiled, as after a short warm-up; compacted)"
        };
        format!(
            "an operation of its baseline took {:.0}% more CPU time than in {others} (nodes {:+.0}%{own}): {why}",
            self.by * 100.0,
            self.nodes * 100.0
        )
    }
}

/// What an operation of a trial's baseline took, s of CPU time.
#[derive(Debug, Clone, Copy)]
struct Cost {
    nodes: f64,
    /// All of Brownout, the emulator and the load among it.
    instrument: f64,
}

impl Cost {
    /// None where the record does not tell what nodes used, as of a cluster that was there before the run.
    fn of(trial: &TrialFindings) -> Option<Self> {
        let used = trial.instrument.cpu.iter().find(|cpu| cpu.phase == phase::BASELINE)?;
        let rates = trial.phases.iter().find(|one| one.name == phase::BASELINE)?.rates?;
        let answered = rates.delivered + rates.failed;
        let nodes: f64 = used.nodes.values().sum();
        let each = |share: f64| share * used.cores / answered;
        (nodes > 0.0 && answered > 0.0).then(|| Cost { nodes: each(nodes), instrument: each(used.instrument) })
    }

    fn all(&self) -> f64 {
        self.nodes + self.instrument
    }
}

/// The valid trials of which an operation of the baseline took more CPU time than in the other valid ones that plan the
/// same up to its end.
pub(crate) fn dearer<'a>(cells: &[CellRow], trials: &'a [TrialFindings]) -> Vec<Dearer<'a>> {
    // Cells that share their trials without a fault differ in nothing but their faults.
    let plan = |trial: &TrialFindings| Some(cells.iter().find(|cell| cell.cell == trial.cell)?.compared_with);
    let valid = trials.iter().filter(|trial| trial.validity == Validity::Valid);
    let known = valid.filter_map(|trial| Some((plan(trial)?, trial, Cost::of(trial)?)));
    let known: Vec<(u32, &'a TrialFindings, Cost)> = known.collect();
    let told = known.iter().filter_map(|&(plan, trial, own)| {
        let others = known.iter().filter(|(of, other, _)| *of == plan && other.trial != trial.trial);
        let others: Vec<Cost> = others.map(|(_, _, cost)| *cost).collect();
        Dearer::of(trial, own, &others)
    });
    told.collect()
}
