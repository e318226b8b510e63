//! What single trials of a cell have shown: what comparisons over blocks, and figures other than those of a fault, are made of.

use brownout_analysis::{Leadership, TrialFindings, phase, stats};
use brownout_record::CellRow;

use crate::{
    number::{rounded, short},
    stored::{Baseline, ClockPair, Clocks, Lost, Processors, Writes},
};

/// What the load writes, where the plan knows: all writes together, over as many rows as the first of them.
pub(crate) fn writes(row: &CellRow) -> Option<Writes> {
    let operations = &row.description.placement.as_ref()?.operations;
    let writes = || operations.iter().filter(|operation| !operation.reads);
    let share = writes().map(|operation| operation.share).sum::<Option<f64>>()?;
    Some(Writes { rows: writes().next()?.rows, share: short(share) })
}

/// What a trial showed in its baseline; none if it has none.
pub(crate) fn baseline(trial: &TrialFindings) -> Option<Baseline> {
    let found = trial.phases.iter().find(|one| one.name == phase::BASELINE)?;
    let rates = found.rates?;
    let cpu = trial.instrument.cpu.iter().find(|cpu| cpu.phase == phase::BASELINE);
    Some(Baseline {
        block: trial.block,
        throughput: rounded(rates.delivered + rates.timed_out),
        mean_ns: found.response.map(|response| response.mean_ns.round()),
        p99_ns: found.response.map(|response| response.p99.value_ns as f64),
        processors: cpu.map(|cpu| Processors {
            cores: short(cpu.cores),
            busy: short(cpu.busy),
            nodes: short(cpu.nodes.values().sum()),
            instrument: short(cpu.instrument),
            load: short(cpu.load),
            emulator: short(cpu.emulator),
            overlay: short(cpu.overlay),
        }),
    })
}

/// What a trial lost of what it had acknowledged; none without a fault phase, or where nothing was looked for.
pub(crate) fn lost(trial: &TrialFindings) -> Option<Lost> {
    let found = trial.phases.iter().find(|one| one.name == phase::FAULT)?;
    let lost = Lost {
        looked_for: found.counts.looked_for,
        lost: found.counts.lost,
        seconds: rounded(found.measured_ns as f64 / 1e9),
    };
    (lost.looked_for > 0).then_some(lost)
}

/// How far hosts and their clocks were apart in a trial.
pub(crate) fn clocks(trial: &TrialFindings) -> Vec<Clocks> {
    let pair = |pair: &brownout_analysis::ClockPair| ClockPair {
        host: pair.host.clone(),
        server: pair.server.clone(),
        round_trip_ns: pair.round_trip_ns.round(),
        offset_ns: pair.offset_ns.round(),
        bound_ns: pair.bound_ns.round(),
        drift_ppb: pair.drift_ppb.map(f64::round),
    };
    let of = |matrix: &brownout_analysis::ClockMatrix| Clocks {
        phase: matrix.phase.clone(),
        pairs: matrix.pairs.iter().map(pair).collect(),
    };
    trial.clocks.iter().map(of).collect()
}

/// Elections that somebody won in the fault phases of these trials, their mean; none where nobody leads.
pub(crate) fn elections(valid: &[&TrialFindings]) -> Option<f64> {
    let of = |trial: &&TrialFindings| {
        let phases = &trial.database.as_ref()?.phases;
        phases.iter().find(|one| one.phase == phase::FAULT)?.led.as_ref()?;
        let is_in_it = |one: &&Leadership| one.phase.as_deref() == Some(phase::FAULT);
        Some(won(trial).into_iter().filter(is_in_it).count() as f64)
    };
    let counts: Vec<f64> = valid.iter().filter_map(of).collect();
    stats::mean(&counts).map(rounded)
}

/// When leaders were elected in a trial, ns since the run's zero.
pub(crate) fn elected(trial: &TrialFindings) -> Vec<u64> {
    won(trial).into_iter().map(|one| one.at_ns).collect()
}

/// Each time that somebody leads in a newer term.
fn won(trial: &TrialFindings) -> Vec<&Leadership> {
    let leaders = trial.database.iter().flat_map(|database| &database.leaders);
    let mut newest: Option<u64> = None;
    let mut won = Vec::new();
    for one in leaders.filter(|one| one.node.is_some()) {
        // The first of them led already when the nodes were first asked.
        if newest.is_some_and(|term| one.term > term) {
            won.push(one);
        }
        newest = newest.max(Some(one.term));
    }
    won
}
