//! Loss, what proves that there was one, and what a cluster with three copies tolerates.

use crate::{
    published::{Paper, Ping},
    stored::{Cell, Phase, Proof, Stored},
    table::Table,
    words::{NONE, POPULATION, change, count, interval, lost, or_none, p99, ratio, time},
};

fn phase<'a>(cell: &'a Cell, name: &str) -> Option<&'a Phase> {
    cell.phases.iter().find(|phase| phase.name == name)
}

/// A closed loop beside loss.
pub fn lossy(run: &Stored, paper: &Paper) -> String {
    let mut table = Table::new([
        "loss",
        "trials",
        "baseline op/s",
        "measured op/s",
        "threads ÷ mean latency",
        "of its baseline",
        "against no fault",
        "failed/s",
        "mean",
        "p50",
        "p99",
        "the paper's, of its baseline",
    ]);
    for cell in &run.cells {
        let loss = cell.levels.last().cloned().unwrap_or_default();
        let (baseline, fault) = (phase(cell, "baseline"), phase(cell, "fault"));
        let paper = paper.loss.iter().find(|one| one.severity == loss);
        let little = fault.and_then(|fault| Some(f64::from(cell.threads?) / (fault.mean_ns? / 1e9)));
        let against = cell.effect("delivered");
        table.row([
            loss,
            cell.trials.to_string(),
            or_none(baseline.map(Phase::throughput), count),
            or_none(fault.map(Phase::throughput), count),
            or_none(little, count),
            or_none(fault.zip(baseline).map(|(fault, before)| fault.throughput() / before.throughput()), ratio),
            interval(against.and_then(|effect| effect.interval)),
            or_none(fault.map(|fault| fault.failed), count),
            time(fault.and_then(|fault| fault.mean_ns)),
            time(fault.and_then(|fault| fault.p50_ns)),
            fault.map_or_else(|| NONE.to_owned(), p99),
            or_none(paper.map(|one| 1.0 - one.loss), ratio),
        ]);
    }
    table.text() + POPULATION
}

/// The ping that was published, and ours.
pub fn loss_proof(ping: &Ping, run: Option<&Stored>) -> String {
    match run {
        Some(run) => proofs(run, "loss", Some(ping)),
        None => format!("{}\nOurs: {}\n", of_proofs(&[], Some(ping)), super::NOT_MEASURED),
    }
}

/// What shows that the faults were there, of one quantity.
pub fn proofs(run: &Stored, quantity: &str, ping: Option<&Ping>) -> String {
    let rows: Vec<&Proof> =
        run.cells.iter().flat_map(|cell| &cell.proofs).filter(|one| one.quantity == quantity).collect();
    of_proofs(&rows, ping)
}

/// Of all quantities.
pub fn all_proofs(run: &Stored) -> String {
    of_proofs(&run.cells.iter().flat_map(|cell| &cell.proofs).collect::<Vec<_>>(), None)
}

fn of_proofs(rows: &[&Proof], ping: Option<&Ping>) -> String {
    let mut table = Table::new([
        "fault",
        "asked",
        "seen by probes",
        "probes",
        "by the emulator's count",
        "packets",
        "most elsewhere",
        "proven in",
    ]);
    if let Some(ping) = ping {
        let missing = 1.0 - f64::from(ping.answered) / f64::from(ping.sent);
        let none = || NONE.to_owned();
        table.row([
            "published: flaky cassandra_b".to_owned(),
            lost(ping.asked),
            lost(missing),
            ping.sent.to_string(),
            none(),
            none(),
            none(),
            none(),
        ]);
    }
    for proof in rows {
        let value = |value: f64| if proof.quantity == "loss" { lost(value) } else { time(Some(value)) };
        let source = |name: &str| proof.sources.iter().find(|source| source.name == name);
        let seen = |name: &str| source(name).map_or_else(|| NONE.to_owned(), |source| value(source.seen));
        let samples = |name: &str| source(name).map_or_else(|| NONE.to_owned(), |source| count(source.samples as f64));
        table.row([
            proof.text.clone(),
            value(proof.asked),
            seen("probes"),
            samples("probes"),
            seen("counters"),
            samples("counters"),
            proof.spared.map_or_else(|| NONE.to_owned(), value),
            format!("{} of {} trials", proof.proven, proof.trials),
        ]);
    }
    table.text()
}

/// Three copies, an open loop.
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
        "p50, baseline → fault",
        "p99, baseline → fault",
    ]);
    for cell in &run.cells {
        let (baseline, fault) = (phase(cell, "baseline"), phase(cell, "fault"));
        let both = |of: &dyn Fn(&Phase) -> String| match (baseline, fault) {
            (Some(baseline), Some(fault)) => format!("{} → {}", of(baseline), of(fault)),
            _ => NONE.to_owned(),
        };
        let effect = cell.effect("goodput");
        let predicted = cell.predicted.as_ref();
        table.row([
            cell.levels.last().cloned().unwrap_or_default(),
            cell.trials.to_string(),
            or_none(cell.rate, count),
            or_none(fault.map(|fault| fault.delivered), count),
            both(&|phase| count(phase.good)),
            or_none(effect.and_then(|effect| effect.change), change),
            interval(effect.and_then(|effect| effect.interval)),
            effect.map_or_else(|| NONE.to_owned(), |effect| effect.outcome.replace('-', " ")),
            predicted.map_or_else(|| NONE.to_owned(), |one| interval(Some((-one.most, -one.least)))),
            both(&|phase| time(phase.p50_ns)),
            both(&|phase| p99(phase)),
        ]);
    }
    table.text() + POPULATION
}
