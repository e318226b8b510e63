//! The figures of a run.

use std::collections::{BTreeMap, BTreeSet};

use brownout_analysis::{
    Latencies, Point, Quantile, Response, TrialEvidence, TrialFindings, phase, phase_latencies, timeline,
};
use brownout_record::Population;
use brownout_units::{Delay, format_ns};

use crate::{
    consensus,
    figure::{Axis, Band, Beyond, Figure, Ink, Rule, Scale, Series, Unit},
    frame::Frame,
    scale::{from_zero, log_range},
    scope::Scope,
    scores, text, witnesses,
};

/// The figures of a trial over time: throughput, latency, latency by coordinator; how coordinators scored replicas, where
/// there is a fault; and what witnesses saw, where it needs them.
pub fn over_time(scope: &Scope<'_>, evidence: &TrialEvidence, trial: &TrialFindings) -> Vec<Figure> {
    let mut points = timeline(evidence, &scope.objective);
    // After the recovery the load is idle: that is no fall to nothing.
    let ends = evidence.phase(phase::RECOVERY).map_or(u64::MAX, |recovery| recovery.ends_ns);
    points.retain(|point| point.starts_ns.saturating_add(point.length_ns) <= ends);
    let frame = Frame { evidence, trial };
    let mut figures = vec![
        throughput(scope, &frame, &points),
        latency(scope, &frame, &points),
        parts(scope, &frame, &points, &COORDINATORS),
    ];
    // A single operation would be the curve of all, once more.
    if operations(scope).len() > 1 {
        figures.push(parts(scope, &frame, &points, &OPERATIONS));
    }
    figures.extend(scores::figure(&frame));
    figures.extend(consensus::figures(&frame));
    figures.extend(witnesses::figures(&frame));
    figures
}

fn all(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|series| series.points.iter().filter_map(|(_, y)| *y))
}

fn throughput(scope: &Scope<'_>, frame: &Frame<'_>, points: &[Point]) -> Figure {
    let good = format!("good: ok within {}", Delay::from_ns(scope.objective.response_ns));
    // What is still open has not had its chance; its interval has no value yet.
    let settled = |point: &Point, value: f64| point.settled.then_some(value);
    let mut series = vec![
        frame.series("offered", Ink::Gray, true, points, |point| Some(point.offered)),
        frame.series("delivered: answered ok", Ink::Blue, false, points, |point| settled(point, point.delivered)),
        frame.series(&good, Ink::Green, false, points, |point| settled(point, point.good)),
    ];
    if points.iter().any(|point| point.bad > 0.0) {
        series.push(frame.series("failed or timed out", Ink::Red, false, points, |point| Some(point.bad)));
    }
    let (from, to) = from_zero(frame.measured(&series));
    let y = Axis { label: "operations per second".to_owned(), scale: Scale::Linear, unit: Unit::Rate, from, to };
    let beyond = beyond(&series, &y, |most| format!("the warm-up's flood: up to {}/s", text::rate(most)));
    let said = "Operations per second over time: offered, delivered, and good ones.".to_owned();
    let figure = frame.figure("throughput", "Throughput over time", said, y, series);
    Figure { lane: true, lanes: frame.lanes(), beyond, ..figure }
}

/// Where the series leave the axis at its top, with the largest value in words.
fn beyond(series: &[Series], y: &Axis, say: impl Fn(f64) -> String) -> Option<Beyond> {
    let above = || {
        let points = series.iter().flat_map(|series| series.points.iter().map(|point| (series.reach, point)));
        points.filter_map(|(reach, (x, value))| value.filter(|value| *value > y.to).map(|value| (reach, *x, value)))
    };
    let from = above().map(|(reach, x, _)| x - reach).reduce(f64::min)?;
    let to = above().map(|(reach, x, _)| x + reach).reduce(f64::max)?;
    let most = above().map(|(.., value)| value).fold(0.0, f64::max);
    Some(Beyond { from, to, label: say(most) })
}

/// An axis for response times. It begins below the smallest of all, so that nothing can leave it there unseen, and ends
/// above the largest of `tops`.
fn times(series: &[Series], tops: impl Iterator<Item = f64>) -> Axis {
    let tops: Vec<f64> = tops.collect();
    let top = tops.iter().copied().fold(0.0, f64::max);
    let (from, to) = log_range(all(series).filter(|value| *value <= top).chain(tops));
    Axis {
        label: format!("response, {} (log)", Population::OkAndTimedOut),
        scale: Scale::Log,
        unit: Unit::Nanoseconds,
        from,
        to,
    }
}

/// A figure's title with the operations that its times are of.
fn of_shown(title: &str) -> String {
    format!("{title}, of those {}", text::SHOWN)
}

fn slow_warm_up(most: f64) -> String {
    format!("the warm-up: up to {}", format_ns(most))
}

fn objective_rule(scope: &Scope<'_>) -> Rule {
    let limit = scope.objective.response_ns;
    let what = if scope.objective.share > 0.0 { "objective" } else { "good within" };
    Rule { y: limit as f64, label: format!("{what} {}", Delay::from_ns(limit)) }
}

fn latency(scope: &Scope<'_>, frame: &Frame<'_>, points: &[Point]) -> Figure {
    let at = |which: fn(&Response) -> Quantile| {
        move |point: &Point| point.response.filter(|_| point.settled).map(|response| which(&response).value_ns as f64)
    };
    let series = vec![
        frame.series("p50", Ink::Blue, false, points, at(|response| response.p50)),
        frame.series("p99", Ink::Orange, false, points, at(|response| response.p99)),
        frame.series("max", Ink::Red, true, points, at(|response| response.max)),
    ];
    let y = times(&series, frame.measured(&series).chain([scope.objective.response_ns as f64]));
    let beyond = beyond(&series, &y, slow_warm_up);
    let said = format!(
        "Response time from the intended start over time, of operations {}: median, 99th percentile and maximum.",
        text::SHOWN
    );
    let title = of_shown("Response time over time");
    let figure = frame.figure("latency", &title, said, y, series);
    Figure { rules: vec![objective_rule(scope)], beyond, ..figure }
}

/// A figure of parts of the load, side by side.
struct Parts {
    name: &'static str,
    title: &'static str,
    said: &'static str,
    of: fn(&Point) -> &BTreeMap<String, Quantile>,
    /// Only those that the measured phases have: what fills the tables is not among them.
    measured: bool,
}

const COORDINATORS: Parts = Parts {
    name: "coordinators",
    title: "Response time by coordinator",
    said: "Median response time over time, by the node that was asked",
    of: |point| &point.coordinators,
    measured: false,
};
const OPERATIONS: Parts = Parts {
    name: "operations",
    title: "Response time by operation",
    said: "Median response time over time, by operation",
    of: |point| &point.operations,
    measured: true,
};

/// The operations of the measured phases, by name.
fn operations<'a>(scope: &'a Scope<'_>) -> BTreeSet<&'a str> {
    let measured = scope.phases.iter().filter(|phase| phase::MEASURED.contains(&phase.name.as_str()));
    measured.flat_map(|phase| &phase.statements).map(|part| part.name.as_str()).collect()
}

fn parts(scope: &Scope<'_>, frame: &Frame<'_>, points: &[Point], parts: &Parts) -> Figure {
    let known = operations(scope);
    let names: BTreeSet<&String> = points
        .iter()
        .flat_map(|point| (parts.of)(point).keys())
        .filter(|name| !parts.measured || known.contains(name.as_str()))
        .collect();
    let series: Vec<Series> = names
        .into_iter()
        .zip(Ink::CYCLE.into_iter().cycle())
        .enumerate()
        .map(|(at, (name, ink))| {
            frame.series(&format!("{name} p50"), ink, at >= Ink::CYCLE.len(), points, |point| {
                (parts.of)(point).get(name).filter(|_| point.settled).map(|median| median.value_ns as f64)
            })
        })
        .collect();
    let y = times(&series, frame.measured(&series).chain([scope.objective.response_ns as f64]));
    let beyond = beyond(&series, &y, slow_warm_up);
    let said = format!("{}, of operations {}.", parts.said, text::SHOWN);
    let figure = frame.figure(parts.name, &of_shown(parts.title), said, y, series);
    Figure { rules: vec![objective_rule(scope)], beyond, ..figure }
}

/// Percentile curves of the phases: the union of all trials as a line, the trials' spread as a band.
pub fn percentiles(scope: &Scope<'_>, evidence: &[&TrialEvidence]) -> Figure {
    let mut series = Vec::new();
    let mut bands = Vec::new();
    let mut most = 10;
    for (name, ink) in phase::MEASURED.into_iter().zip([Ink::Blue, Ink::Red, Ink::Green]) {
        let mut union = Latencies::new();
        let mut trials = Vec::new();
        for one in evidence {
            let Some(window) = one.phase(name) else { continue };
            let own = phase_latencies(one, window);
            union.add(&own);
            trials.push(own);
        }
        if union.count() == 0 {
            continue;
        }
        most = most.max(union.count());
        let value = |of: &Latencies, share: f64| of.quantile(share).map(|value| value.value_ns as f64);
        let points = shares(union.count()).map(|share| (share, value(&union, share))).collect();
        // Beyond its own count a trial's curve is only its maximum again.
        let least = trials.iter().map(Latencies::count).min().unwrap_or(0);
        let spread = shares(least).filter_map(|share| {
            let values: Vec<f64> = trials.iter().filter_map(|trial| value(trial, share)).collect();
            let low = values.iter().copied().reduce(f64::min)?;
            Some((share, low, values.iter().copied().reduce(f64::max)?))
        });
        if trials.len() > 1 {
            bands.push(Band { ink, points: spread.collect() });
        }
        series.push(Series { name: name.to_owned(), ink, dashed: false, reach: 0.0, points });
    }
    let y = times(&series, all(&series).chain([scope.objective.response_ns as f64]));
    let over = if evidence.len() > 1 { "; band: smallest to largest of the trials" } else { "" };
    Figure {
        id: "percentiles".to_owned(),
        title: of_shown("Response time by percentile"),
        description: format!(
            "Percentile curves of the response time of operations {}, one per phase{over}.",
            text::SHOWN
        ),
        x: Axis {
            label: format!("percentile{over}"),
            scale: Scale::Nines,
            unit: Unit::Percentile,
            from: 0.0,
            to: 1.0 - 1.0 / most as f64,
        },
        y,
        series,
        bands,
        spans: Vec::new(),
        lanes: Vec::new(),
        marks: Vec::new(),
        rules: vec![objective_rule(scope)],
        beyond: None,
        lane: false,
        wide: false,
    }
}

/// Shares from 0 up to the last that `count` operations can tell from 1, evenly by their nines.
fn shares(count: u64) -> impl Iterator<Item = f64> {
    let steps = (count.max(1) as f64).log10() * 40.0;
    (0..=steps as u32).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / 40.0))
}
