//! etcd beside a slow or lossy leader or follower.

use crate::{
    published::Etcd,
    stored::{Cell, Phase, Stored},
    table::Table,
    words::{NONE, POPULATION, change, count, interval, or_none, p99, time},
};

fn phase<'a>(cell: &'a Cell, name: &str) -> Option<&'a Phase> {
    cell.phases.iter().find(|phase| phase.name == name)
}

/// Of the baseline and of the fault phase.
fn both(cell: &Cell, of: impl Fn(&Phase) -> String) -> String {
    match (phase(cell, "baseline"), phase(cell, "fault")) {
        (Some(baseline), Some(fault)) => format!("{} → {}", of(baseline), of(fault)),
        _ => NONE.to_owned(),
    }
}

/// What the paper found of etcd, and where ours stands.
pub fn published(published: &Etcd) -> String {
    let mut table = Table::new(["published of etcd", "figures", "ours beside it"]);
    for finding in &published.findings {
        table.row([finding.what.clone(), finding.figures.clone(), finding.beside.clone()]);
    }
    table.text()
}

/// An open loop: what of it is answered in time, and how often a leader is elected.
pub fn tolerance(run: &Stored) -> String {
    let mut table = Table::new([
        "fault",
        "trials",
        "due/s",
        "answered/s",
        "in time, baseline → fault",
        "change of goodput",
        "interval",
        "verdict",
        "by arithmetic",
        "elections",
        "p50, baseline → fault",
        "p99, baseline → fault",
    ]);
    for cell in &run.cells {
        let effect = cell.effect("goodput");
        let predicted = cell.predicted.as_ref();
        table.row([
            cell.levels.join(", "),
            cell.trials.to_string(),
            or_none(cell.rate, count),
            or_none(phase(cell, "fault").map(|fault| fault.delivered), count),
            both(cell, |phase| count(phase.good)),
            or_none(effect.and_then(|effect| effect.change), change),
            interval(effect.and_then(|effect| effect.interval)),
            effect.map_or_else(|| NONE.to_owned(), |effect| effect.outcome.replace('-', " ")),
            predicted.map_or_else(|| NONE.to_owned(), |one| interval(Some((-one.most, -one.least)))),
            or_none(cell.elections, count),
            both(cell, |phase| time(phase.p50_ns)),
            both(cell, p99),
        ]);
    }
    table.text() + POPULATION
}

/// A closed loop: the loss of throughput, which is what was published.
pub fn throughput(run: &Stored) -> String {
    let mut table = Table::new([
        "load",
        "fault",
        "trials",
        "baseline op/s",
        "measured op/s",
        "change",
        "interval",
        "threads ÷ mean latency",
        "by arithmetic",
        "elections",
        "p50, baseline → fault",
    ]);
    for cell in &run.cells {
        let (baseline, fault) = (phase(cell, "baseline"), phase(cell, "fault"));
        let effect = cell.effect("delivered");
        let little = fault.and_then(|fault| Some(f64::from(cell.threads?) / (fault.mean_ns? / 1e9)));
        let predicted = cell.predicted.as_ref();
        let (load, what) = cell.levels.split_first().map_or(("", &[][..]), |(load, what)| (load.as_str(), what));
        table.row([
            load.to_owned(),
            what.join(", "),
            cell.trials.to_string(),
            or_none(baseline.map(Phase::throughput), count),
            or_none(fault.map(Phase::throughput), count),
            or_none(effect.and_then(|effect| effect.change), change),
            interval(effect.and_then(|effect| effect.interval)),
            or_none(little, count),
            predicted.map_or_else(|| NONE.to_owned(), |one| interval(Some((-one.most, -one.least)))),
            or_none(cell.elections, count),
            both(cell, |phase| time(phase.p50_ns)),
        ]);
    }
    table.text() + POPULATION
}
