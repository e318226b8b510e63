//! The figures that are compared: of a phase and of its operations, on the scale on which they are judged.

use brownout_statistics::{FLOOR, difference, log_odds, log_odds_floor, mean};

use super::{
    decide::Figure,
    object::{Compared, Sample},
    runs::{RunTrials, Trial},
};
use crate::{Part, PhaseFindings, Quantile, Response, evidence::phase};

/// A figure of one trial.
#[derive(Clone, Copy)]
enum Seen {
    /// On a scale of factors. True: the true value may be larger.
    Value(f64, bool),
    /// Bad ones, of all.
    Share(u64, u64),
}

/// One figure: its name, its unit, whether more is better, and where it stands.
struct Metric<F> {
    name: &'static str,
    unit: &'static str,
    more_is_better: bool,
    of: F,
}

type OfPhase = fn(&PhaseFindings) -> Option<Seen>;
type OfPart = fn(&PhaseFindings, &Part) -> Option<Seen>;

const PER_SECOND: &str = "1/s";
const NANOSECONDS: &str = "ns";
const SHARE: &str = "share";
const RATIO: &str = "ratio";

fn latency(response: Option<Response>, which: fn(&Response) -> Quantile) -> Option<Seen> {
    let quantile = which(&response?);
    Some(Seen::Value(quantile.value_ns.max(1) as f64, quantile.at_least))
}

/// A rate of so many in a phase. None at all counts as half an operation: a rate of 0 has no place on a scale of factors.
fn per_second(count: u64, phase: &PhaseFindings) -> Option<f64> {
    (phase.measured_ns > 0).then(|| (count as f64).max(0.5) / (phase.measured_ns as f64 / 1e9))
}

fn rate(count: u64, phase: &PhaseFindings) -> Option<Seen> {
    per_second(count, phase).map(|rate| Seen::Value(rate, false))
}

fn errors(phase: &PhaseFindings) -> Option<Seen> {
    let counts = &phase.counts;
    let bad = counts.failed + counts.timed_out + counts.never_sent + counts.withheld;
    let due = counts.scheduled + counts.withheld;
    (due > 0).then_some(Seen::Share(bad, due))
}

/// What the faults left of each trial's own goodput; none where there was nothing to take.
fn kept(trial: &Trial) -> Option<Seen> {
    let (baseline, fault) = (trial.phase(phase::BASELINE)?, trial.phase(phase::FAULT)?);
    let (before, during) = (per_second(baseline.counts.good, baseline)?, per_second(fault.counts.good, fault)?);
    (baseline.counts.good > 0).then_some(Seen::Value(during / before, false))
}

const OF_A_PHASE: [Metric<OfPhase>; 7] = [
    Metric { name: "goodput", unit: PER_SECOND, more_is_better: true, of: |phase| rate(phase.counts.good, phase) },
    Metric { name: "delivered", unit: PER_SECOND, more_is_better: true, of: |phase| rate(phase.counts.ok, phase) },
    Metric { name: "errors", unit: SHARE, more_is_better: false, of: errors },
    Metric { name: "p50", unit: NANOSECONDS, more_is_better: false, of: |phase| latency(phase.response, |r| r.p50) },
    Metric { name: "p95", unit: NANOSECONDS, more_is_better: false, of: |phase| latency(phase.response, |r| r.p95) },
    Metric { name: "p99", unit: NANOSECONDS, more_is_better: false, of: |phase| latency(phase.response, |r| r.p99) },
    Metric { name: "p99.9", unit: NANOSECONDS, more_is_better: false, of: |phase| latency(phase.response, |r| r.p999) },
];

const OF_AN_OPERATION: [Metric<OfPart>; 4] = [
    Metric { name: "goodput", unit: PER_SECOND, more_is_better: true, of: |phase, part| rate(part.good, phase) },
    Metric { name: "delivered", unit: PER_SECOND, more_is_better: true, of: |phase, part| rate(part.ok, phase) },
    Metric { name: "p50", unit: NANOSECONDS, more_is_better: false, of: |_, part| latency(part.response, |r| r.p50) },
    Metric { name: "p99", unit: NANOSECONDS, more_is_better: false, of: |_, part| latency(part.response, |r| r.p99) },
];

const KEPT: Metric<fn(&Trial) -> Option<Seen>> = Metric { name: "kept", unit: RATIO, more_is_better: true, of: kept };

/// A figure of one side: a value of each run.
#[derive(Default)]
struct Runs {
    /// As it is shown.
    shown: Vec<f64>,
    /// On the scale on which it is judged.
    scaled: Vec<f64>,
    at_least: bool,
    /// Of shares, the bad ones.
    bad: Vec<u64>,
}

impl Runs {
    /// None if a trial has no such figure: a mean over other trials would be of something else.
    fn of(runs: &[RunTrials], of: impl Fn(&Trial) -> Option<Seen>) -> Option<Runs> {
        let mut side = Runs::default();
        for run in runs {
            let (mut logarithms, mut bad, mut all) = (Vec::new(), 0, 0);
            for trial in &run.0 {
                match of(trial)? {
                    Seen::Value(value, at_least) => {
                        logarithms.push(value.ln());
                        side.at_least |= at_least;
                    }
                    Seen::Share(of_trial, due) => (bad, all) = (bad + of_trial, all + due),
                }
            }
            if all > 0 {
                side.shown.push(bad as f64 / all as f64);
                side.scaled.push(log_odds(bad, all));
                side.bad.push(bad);
            } else {
                side.shown.push(mean(&logarithms).exp());
                side.scaled.push(mean(&logarithms));
            }
        }
        (!side.shown.is_empty()).then_some(side)
    }

    fn sample(&self) -> Sample {
        let mean = if self.bad.is_empty() { mean(&self.scaled).exp() } else { mean(&self.shown) };
        Sample { runs: self.shown.clone(), mean, at_least: self.at_least }
    }
}

/// All figures that both sides have, of runs of one cell: of a design with several, each has its own, and all of them
/// are judged together. And the names of those that some trials have and others have not.
pub(super) fn of_cell(cell: &str, a: &[RunTrials], b: &[RunTrials]) -> (Vec<Figure>, Vec<String>) {
    let (mut all, mut lacking) = (Vec::new(), Vec::new());
    let mut add = |part: (&str, Option<&str>), figure: Result<Figure, bool>, name: &str| match figure {
        Ok(figure) => all.push(figure),
        Err(false) => {}
        Err(true) => {
            let of = part.1.map(|operation| format!(" of {operation}")).unwrap_or_default();
            lacking.push(format!("{name}{of} in the {} phase", part.0));
        }
    };
    for name in phase::MEASURED {
        for metric in &OF_A_PHASE {
            let figure = both(a, b, (name, None), metric, |trial| (metric.of)(trial.phase(name)?));
            add((name, None), figure, metric.name);
        }
        if name == phase::FAULT {
            add((name, None), both(a, b, (name, None), &KEPT, KEPT.of), KEPT.name);
        }
        for operation in operations(a, b, name) {
            for metric in &OF_AN_OPERATION {
                let of = |trial: &Trial| {
                    let phase = trial.phase(name)?;
                    let part = phase.statements.iter().find(|part| part.name == operation)?;
                    (metric.of)(phase, part)
                };
                let part = (name, Some(operation.as_str()));
                add(part, both(a, b, part, metric, of), metric.name);
            }
        }
    }
    all.iter_mut().for_each(|figure| cell.clone_into(&mut figure.compared.cell));
    (all, lacking)
}

/// A figure of both sides; else whether any trial has it.
fn both<F>(
    a: &[RunTrials],
    b: &[RunTrials],
    (phase, operation): (&str, Option<&str>),
    metric: &Metric<F>,
    of: impl Fn(&Trial) -> Option<Seen>,
) -> Result<Figure, bool> {
    let (Some(a), Some(b)) = (Runs::of(a, &of), Runs::of(b, &of)) else {
        return Err(a.iter().chain(b).flat_map(|run| &run.0).any(|trial| of(trial).is_some()));
    };
    let floor = if a.bad.is_empty() { FLOOR } else { log_odds_floor(&b.bad, &a.bad) };
    let compared = Compared {
        cell: String::new(),
        phase: phase.to_owned(),
        operation: operation.map(str::to_owned),
        figure: metric.name.to_owned(),
        unit: metric.unit.to_owned(),
        more_is_better: metric.more_is_better,
        a: a.sample(),
        b: b.sample(),
        change: (mean(&b.scaled) - mean(&a.scaled)).exp_m1(),
        interval: None,
        p: None,
        no_larger_than: None,
        smallest_seen: None,
        superiority: superiority(&a.shown, &b.shown),
        outcome: crate::Outcome::Inconclusive,
        reason: String::new(),
    };
    let never = !a.bad.is_empty() && a.bad.iter().chain(&b.bad).all(|bad| *bad == 0);
    Ok(Figure { compared, difference: difference(&a.scaled, &b.scaled, floor).filter(|_| !never), never })
}

/// Vargha and Delaney's A ("A critique and improvement of the CL common language effect size statistics", Journal of
/// Educational and Behavioral Statistics 25, 2000), of B over A.
fn superiority(a: &[f64], b: &[f64]) -> f64 {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| a.total_cmp(b)));
    let points = pairs.map(|order| match order {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 0.0,
    });
    points.sum::<f64>() / (a.len() * b.len()).max(1) as f64
}

/// Operations of a phase that both sides know, in order of their names; one alone is the whole phase.
fn operations(a: &[RunTrials], b: &[RunTrials], phase: &str) -> Vec<String> {
    let of = |runs: &[RunTrials]| {
        let trials = runs.iter().flat_map(|run| &run.0);
        let parts = trials.filter_map(|trial| trial.phase(phase)).flat_map(|phase| &phase.statements);
        let mut names: Vec<String> = parts.map(|part| part.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let (a, b) = (of(a), of(b));
    if a.len() == 1 && a == b {
        return Vec::new();
    }
    a.into_iter().filter(|name| b.contains(name)).collect()
}
