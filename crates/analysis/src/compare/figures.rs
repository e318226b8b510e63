//! The figures that are compared: of a phase and of its operations.

use super::{
    decide::{Unit, decided},
    object::{Compared, Sample},
    trials::Trial,
};
use crate::{Part, PhaseFindings, Quantile, Rates, Response, evidence::phase, stats};

/// A value, and whether the true one may be larger.
type Value = (f64, bool);

/// A figure of a trial; and of the halves of its phase, if they have it.
type InTrial = (Value, Option<[Value; 2]>);

/// One figure: its name, its unit, whether more is better, and where it stands.
struct Metric<T: ?Sized> {
    name: &'static str,
    unit: Unit,
    more_is_better: bool,
    of: fn(&T) -> Option<Value>,
}

fn latency(response: Option<Response>, which: fn(&Response) -> Quantile) -> Option<Value> {
    let quantile = which(&response?);
    Some((quantile.value_ns as f64, quantile.at_least))
}

fn errors(phase: &PhaseFindings) -> Option<Value> {
    let counts = &phase.counts;
    let bad = counts.failed + counts.timed_out + counts.never_sent + counts.withheld;
    let due = counts.scheduled + counts.withheld;
    (due > 0).then(|| (bad as f64 / due as f64, false))
}

fn rate(phase: &PhaseFindings, which: fn(&Rates) -> f64) -> Option<Value> {
    phase.rates.as_ref().map(|rates| (which(rates), false))
}

const OF_A_PHASE: [Metric<PhaseFindings>; 7] = {
    use Unit::{Nanoseconds, PerSecond, Share};
    [
        Metric { name: "goodput", unit: PerSecond, more_is_better: true, of: |phase| rate(phase, |rates| rates.good) },
        Metric {
            name: "delivered",
            unit: PerSecond,
            more_is_better: true,
            of: |phase| rate(phase, |rates| rates.delivered),
        },
        Metric { name: "errors", unit: Share, more_is_better: false, of: errors },
        Metric {
            name: "p50",
            unit: Nanoseconds,
            more_is_better: false,
            of: |phase| latency(phase.response, |r| r.p50),
        },
        Metric {
            name: "p95",
            unit: Nanoseconds,
            more_is_better: false,
            of: |phase| latency(phase.response, |r| r.p95),
        },
        Metric {
            name: "p99",
            unit: Nanoseconds,
            more_is_better: false,
            of: |phase| latency(phase.response, |r| r.p99),
        },
        Metric {
            name: "p99.9",
            unit: Nanoseconds,
            more_is_better: false,
            of: |phase| latency(phase.response, |r| r.p999),
        },
    ]
};

const OF_AN_OPERATION: [Metric<Part>; 4] = {
    use Unit::{Nanoseconds, PerSecond};
    let rate = |part: &Part| part.goodput.map(|rate| (rate, false));
    let delivered = |part: &Part| part.delivered.map(|rate| (rate, false));
    [
        Metric { name: "goodput", unit: PerSecond, more_is_better: true, of: rate },
        Metric { name: "delivered", unit: PerSecond, more_is_better: true, of: delivered },
        Metric { name: "p50", unit: Nanoseconds, more_is_better: false, of: |part| latency(part.response, |r| r.p50) },
        Metric { name: "p99", unit: Nanoseconds, more_is_better: false, of: |part| latency(part.response, |r| r.p99) },
    ]
};

/// What the faults took, of each trial's own baseline.
const DEGRADATION: Metric<Trial> = Metric {
    name: "degradation",
    unit: Unit::Share,
    more_is_better: false,
    of: |trial| Some((trial.degradation?, false)),
};

/// A figure of one side: the values of its trials, and the noise within one.
struct Seen {
    values: Vec<f64>,
    at_least: bool,
    noise: f64,
}

impl Seen {
    /// None if a trial has no such figure: a mean over other trials would be of something else.
    fn of(trials: &[Trial], unit: Unit, value: impl Fn(&Trial) -> Option<InTrial>) -> Option<Seen> {
        let mut seen = Seen { values: Vec::new(), at_least: false, noise: 0.0 };
        for trial in trials {
            let ((whole, at_least), halves) = value(trial)?;
            seen.values.push(whole);
            seen.at_least |= at_least;
            if let Some([(first, _), (second, _)]) = halves {
                let apart = (first - second).abs();
                let noise = if unit == Unit::Share { apart } else { apart / whole.max(f64::MIN_POSITIVE) };
                seen.noise = seen.noise.max(noise);
            }
        }
        (!seen.values.is_empty()).then_some(seen)
    }

    fn sample(&self) -> Sample {
        let mean = stats::mean(&self.values).unwrap_or_default();
        Sample { trials: self.values.clone(), mean, at_least: self.at_least }
    }
}

/// A value of a phase, and those of its halves.
fn in_phase(trial: &Trial, name: &str, value: impl Fn(&PhaseFindings) -> Option<Value>) -> Option<InTrial> {
    let phase = trial.phase(name)?;
    let [first, second] = &phase.halves;
    let halves = value(first).zip(value(second)).map(|(first, second)| [first, second]);
    Some((value(&phase.whole)?, halves))
}

/// All figures that both sides have.
pub(super) fn figures(a: &[Trial], b: &[Trial], seed: u64) -> Vec<Compared> {
    let mut all = Vec::new();
    for name in phase::MEASURED {
        for figure in &OF_A_PHASE {
            all.extend(both(a, b, (name, None), figure, |trial| in_phase(trial, name, figure.of), seed));
        }
        if name == phase::FAULT {
            let of = |trial: &Trial| Some(((DEGRADATION.of)(trial)?, None));
            all.extend(both(a, b, (name, None), &DEGRADATION, of, seed));
        }
        for operation in operations(a, b, name) {
            for figure in &OF_AN_OPERATION {
                let part = |phase: &PhaseFindings| {
                    let part = phase.statements.iter().find(|part| part.name == operation)?;
                    (figure.of)(part)
                };
                all.extend(both(a, b, (name, Some(&operation)), figure, |trial| in_phase(trial, name, part), seed));
            }
        }
    }
    all
}

fn both<T: ?Sized>(
    a: &[Trial],
    b: &[Trial],
    (phase, operation): (&str, Option<&str>),
    figure: &Metric<T>,
    of: impl Fn(&Trial) -> Option<InTrial>,
    seed: u64,
) -> Option<Compared> {
    let (a, b) = (Seen::of(a, figure.unit, &of)?, Seen::of(b, figure.unit, &of)?);
    let noise = a.noise.max(b.noise);
    let blank = Compared {
        phase: phase.to_owned(),
        operation: operation.map(str::to_owned),
        figure: figure.name.to_owned(),
        unit: figure.unit.word().to_owned(),
        more_is_better: figure.more_is_better,
        a: a.sample(),
        b: b.sample(),
        change: None,
        interval: None,
        superiority: 0.0,
        noise_floor: noise,
        threshold: 0.0,
        outcome: crate::Outcome::NotJudged,
        reason: String::new(),
    };
    Some(decided(blank, figure.unit, seed))
}

/// Operations of a phase that both sides know, in order of their names; one alone is the whole phase.
fn operations(a: &[Trial], b: &[Trial], phase: &str) -> Vec<String> {
    let of = |trials: &[Trial]| {
        let parts = trials.iter().filter_map(|trial| trial.phase(phase)).flat_map(|phase| &phase.whole.statements);
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
