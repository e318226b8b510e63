//! One host, one building, three cities: cassandra-stress's closed loop, and an open one.

use crate::{
    published::{Ran, TopologiesAndClocks, Topology},
    stored::{Cell, Phase, Stored},
    table::Table,
    words::{NONE, POPULATION, count, ms, or_none, p99, time},
};

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Every third operation, or fourth, takes each of the round trips: that alone is the least mean, in ms.
fn by_distance(topology: &Topology) -> Option<f64> {
    mean(&topology.round_trips_ms).filter(|mean| *mean > 0.0)
}

/// What was published, and what follows from its own figures.
pub fn published(published: &TopologiesAndClocks) -> String {
    let mut table = Table::new([
        "topology",
        "load",
        "op/s",
        "threads ÷ mean latency",
        "at most, by distance alone",
        "mean",
        "at least, by distance alone",
        "median",
        "p95",
        "p99",
    ]);
    let threads = f64::from(published.threads);
    for topology in &published.topologies {
        let least = by_distance(topology);
        for Ran { load, ops, mean_ms, median_ms, p95_ms, p99_ms } in &topology.rows {
            table.row([
                topology.name.clone(),
                load.clone(),
                or_none(*ops, count),
                or_none(mean_ms.map(|mean| threads / (mean / 1e3)), count),
                or_none(least.map(|least| threads / (least / 1e3)), count),
                ms(*mean_ms),
                ms(least),
                ms(*median_ms),
                ms(*p95_ms),
                ms(*p99_ms),
            ]);
        }
    }
    table.text()
}

fn baseline(cell: &Cell) -> Option<&Phase> {
    cell.phases.iter().find(|phase| phase.name == "baseline")
}

/// Ours in their set-up, beside what was published.
pub fn closed(run: &Stored, published: &TopologiesAndClocks) -> String {
    let mut table = Table::new([
        "topology",
        "load",
        "published op/s",
        "published mean",
        "trials",
        "measured op/s",
        "threads ÷ mean latency",
        "at most, by distance alone",
        "mean",
        "p50",
        "p95",
        "p99",
    ]);
    for cell in &run.cells {
        let (name, load) = names(cell);
        let topology = published.topologies.iter().find(|topology| topology.name == name);
        let theirs = topology.and_then(|topology| topology.rows.iter().find(|row| row.load == load));
        let found = baseline(cell);
        let threads = cell.threads.map(f64::from);
        let little = found.and_then(|found| Some(threads? / (found.mean_ns? / 1e9)));
        let most = topology.and_then(by_distance).and_then(|least| Some(threads? / (least / 1e3)));
        table.row([
            name.to_owned(),
            load.to_owned(),
            or_none(theirs.and_then(|row| row.ops), count),
            ms(theirs.and_then(|row| row.mean_ms)),
            cell.trials.to_string(),
            or_none(found.map(Phase::throughput), count),
            or_none(little, count),
            or_none(most, count),
            time(found.and_then(|found| found.mean_ns)),
            time(found.and_then(|found| found.p50_ns)),
            time(found.and_then(|found| found.p95_ns)),
            found.map_or_else(|| NONE.to_owned(), p99),
        ]);
    }
    table.text() + POPULATION
}

/// Ours by the clock, with three copies.
pub fn open(run: &Stored) -> String {
    let mut table = Table::new([
        "topology",
        "load",
        "trials",
        "due/s",
        "answered/s",
        "within the objective/s",
        "mean",
        "p50",
        "p95",
        "p99",
    ]);
    for cell in &run.cells {
        let (name, load) = names(cell);
        let found = baseline(cell);
        table.row([
            name.to_owned(),
            load.to_owned(),
            cell.trials.to_string(),
            or_none(cell.rate, count),
            or_none(found.map(|found| found.delivered), count),
            or_none(found.map(|found| found.good), count),
            time(found.and_then(|found| found.mean_ns)),
            time(found.and_then(|found| found.p50_ns)),
            time(found.and_then(|found| found.p95_ns)),
            found.map_or_else(|| NONE.to_owned(), p99),
        ]);
    }
    table.text() + POPULATION
}

/// Topology and load of a cell.
fn names(cell: &Cell) -> (&str, &str) {
    let level = |at: usize| cell.levels.get(at).map_or("", String::as_str);
    (level(0), level(1))
}
