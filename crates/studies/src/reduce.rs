//! From a run to what a study keeps of it: a pure function of the run's file.

use brownout_analysis as analysis;
use brownout_analysis::{
    CellEffect, CellFindings, Findings, PhaseFindings, TrialEvidence, TrialFindings, Validity, phase,
};
use brownout_record::{Arm, CellRow, Objective, Run};
use chrono::DateTime;
use serde::Serialize;
use serde_json::Value;

use crate::{
    StudyError, each,
    number::{rounded, short},
    stored::{Cell, Effect, FORMAT, Machine, Phase, Predicted, Proof, Series, Source, Stored, Without},
    zone,
};

/// Reduces a run that `command` has made.
///
/// # Errors
/// The run cannot be read.
pub fn reduce(run: &Run, command: &str) -> Result<Stored, StudyError> {
    let findings = analysis::findings(run)?;
    let without = without(run, &findings)?;
    let rows = run.cells()?;
    let cells = findings.cells.iter().map(|one| cell(run, &findings, one, &rows)).collect::<Result<Vec<_>, _>>()?;
    let count = |is: fn(&TrialFindings) -> bool| findings.trials.iter().filter(|trial| is(trial)).count() as u32;
    let started = DateTime::from_timestamp_millis(findings.started_unix_ms as i64).unwrap_or_default();
    Ok(Stored {
        format: FORMAT,
        name: findings.name.clone(),
        command: command.to_owned(),
        date: started.format("%Y-%m-%d").to_string(),
        environment: machine(&findings),
        validity: findings.verdict.validity.name().to_owned(),
        sentence: findings.verdict.sentence.clone(),
        planned: findings.design.trials,
        run: findings.trials.len() as u32,
        valid: count(|trial| trial.validity == Validity::Valid),
        factors: findings.design.factors.iter().map(|factor| factor.name.clone()).collect(),
        without,
        cells,
        zone: zone::zone(&findings),
    })
}

fn machine(findings: &Findings) -> Machine {
    let system = findings.cells.first().map(|cell| cell.database.clone()).unwrap_or_default();
    let Some(known) = &findings.environment else { return Machine { system, ..Machine::default() } };
    Machine {
        brownout: known.version.clone(),
        system,
        // Behind it stands where this machine keeps it, which is nobody's business.
        java: known.java.split(',').next().unwrap_or_default().to_owned(),
        kernel: known.kernel.clone(),
        cpu: known.cpu.clone(),
        cores: known.cores,
        memory: known.memory,
        privilege: known.privilege.clone(),
        congestion_control: known.congestion_control.clone(),
        seed: known.seed,
    }
}

/// The trials with these numbers.
fn trials<'a>(findings: &'a Findings, numbers: &[u32]) -> Vec<&'a TrialFindings> {
    findings.trials.iter().filter(|trial| numbers.contains(&trial.trial)).collect()
}

fn cell(run: &Run, findings: &Findings, cell: &CellFindings, rows: &[CellRow]) -> Result<Cell, StudyError> {
    let valid = trials(findings, &cell.valid_trials);
    // One that was cut short, as a resumed run has them, had no chance to prove anything.
    let own = |trial: &&TrialFindings| trial.cell == cell.cell && trial.arm == Arm::Fault && !trial.cut;
    let tried: Vec<&TrialFindings> = findings.trials.iter().filter(own).collect();
    Ok(Cell {
        levels: cell.levels.clone(),
        threads: cell.load.threads,
        rate: cell.load.rate,
        replication: cell.load.replication,
        writes: rows.iter().find(|row| row.cell == cell.cell).and_then(each::writes),
        trials: valid.len() as u32,
        baselines: valid.iter().filter_map(|trial| each::baseline(trial)).collect(),
        phases: if valid.is_empty() { Vec::new() } else { cell.phases.iter().filter_map(measured).collect() },
        effects: std::iter::once(&cell.effect).chain(&cell.figures).map(effect).collect(),
        predicted: predicted(cell, &valid),
        proofs: proofs(&tried),
        lost: valid.iter().filter_map(|trial| each::lost(trial)).collect(),
        clocks: valid.first().map(|trial| each::clocks(trial)).unwrap_or_default(),
        elections: each::elections(&valid),
        sentence: cell.sentence.clone(),
        series: valid.first().map(|trial| series(run, trial, &cell.objective)).transpose()?.flatten(),
    })
}

fn without(run: &Run, findings: &Findings) -> Result<Option<Without>, StudyError> {
    let Some(first) = findings.cells.first() else { return Ok(None) };
    let valid = trials(findings, &first.compared_with);
    let Some(shown) = valid.first() else { return Ok(None) };
    let of = |name: &str| -> Vec<Phase> {
        let all = valid.iter().flat_map(|trial| &trial.phases);
        all.filter(|one| one.name == name).filter_map(measured).collect()
    };
    let phases = phase::MEASURED.iter().filter_map(|name| mean_of(&of(name)));
    Ok(Some(Without {
        trials: valid.len() as u32,
        phases: phases.collect(),
        lost: valid.iter().filter_map(|trial| each::lost(trial)).collect(),
        series: series(run, shown, &first.objective)?,
    }))
}

fn measured(found: &PhaseFindings) -> Option<Phase> {
    let rates = found.rates.filter(|_| phase::MEASURED.contains(&found.name.as_str()))?;
    let response = found.response.as_ref();
    Some(Phase {
        name: found.name.clone(),
        delivered: rounded(rates.delivered),
        good: rounded(rates.good),
        failed: rounded(rates.failed),
        timed_out: rounded(rates.timed_out),
        mean_ns: response.map(|response| response.mean_ns.round()),
        p50_ns: response.map(|response| response.p50.value_ns as f64),
        p95_ns: response.map(|response| response.p95.value_ns as f64),
        p99_ns: response.map(|response| response.p99.value_ns as f64),
        p99_at_least: response.is_some_and(|response| response.p99.at_least),
    })
}

/// Trials are alike here: means over them tell enough.
fn mean_of(phases: &[Phase]) -> Option<Phase> {
    let first = phases.first()?;
    let mean = |of: fn(&Phase) -> f64| rounded(phases.iter().map(of).sum::<f64>() / phases.len() as f64);
    let some = |of: fn(&Phase) -> Option<f64>| {
        let known: Vec<f64> = phases.iter().filter_map(of).collect();
        analysis::stats::mean(&known).map(f64::round)
    };
    Some(Phase {
        name: first.name.clone(),
        delivered: mean(|phase| phase.delivered),
        good: mean(|phase| phase.good),
        failed: mean(|phase| phase.failed),
        timed_out: mean(|phase| phase.timed_out),
        mean_ns: some(|phase| phase.mean_ns),
        p50_ns: some(|phase| phase.p50_ns),
        p95_ns: some(|phase| phase.p95_ns),
        p99_ns: some(|phase| phase.p99_ns),
        p99_at_least: phases.iter().any(|phase| phase.p99_at_least),
    })
}

fn effect(effect: &CellEffect) -> Effect {
    Effect {
        figure: effect.figure.clone(),
        outcome: word(&effect.outcome),
        change: effect.change.map(short),
        interval: effect.interval.map(|(low, high)| (short(low), short(high))),
        blocks: effect.blocks,
    }
}

/// The word that stands for a value in `--json`.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

fn predicted(cell: &CellFindings, valid: &[&TrialFindings]) -> Option<Predicted> {
    let figure = if cell.load.threads.is_some() { "throughput" } else { "goodput" };
    let predictions = valid.iter().filter_map(|trial| trial.explained.as_ref()?.prediction.as_ref());
    let known: Vec<(f64, f64, f64)> = predictions
        .filter_map(|one| {
            let loss = one.losses.iter().find(|loss| loss.figure == figure)?;
            Some((one.least.share, loss.least, loss.most))
        })
        .collect();
    let mean = |of: fn(&(f64, f64, f64)) -> f64| analysis::stats::mean(&known.iter().map(of).collect::<Vec<f64>>());
    Some(Predicted {
        figure: figure.to_owned(),
        share: short(mean(|one| one.0)?),
        least: short(mean(|one| one.1)?),
        most: short(mean(|one| one.2)?),
    })
}

/// Of each fault and quantity what all places saw, in all trials that came to their end: one that is not proven counts, too.
fn proofs(tried: &[&TrialFindings]) -> Vec<Proof> {
    let mut proofs: Vec<Proof> = Vec::new();
    let Some(first) = tried.first() else { return proofs };
    for fault in &first.faults {
        let same = || tried.iter().flat_map(|trial| &trial.faults).filter(|other| other.index == fault.index);
        let mut quantities: Vec<_> = fault.rows.iter().filter(|row| row.hit).map(|row| row.quantity).collect();
        quantities.dedup();
        for quantity in quantities {
            let rows = || same().flat_map(|one| &one.rows).filter(move |row| row.quantity == quantity);
            let mut sources: Vec<Source> = Vec::new();
            for seen in rows().filter(|row| row.hit).flat_map(|row| &row.sources) {
                // Of a delay what it grew by, of a share what was lost.
                let samples = seen.samples[1];
                let Some(value) = seen.change.or(seen.during).filter(|_| samples > 0) else { continue };
                match sources.iter_mut().find(|known| known.name == seen.source) {
                    Some(known) => {
                        let all = known.samples + samples;
                        known.seen += (value - known.seen) * samples as f64 / all as f64;
                        known.samples = all;
                    }
                    None => sources.push(Source { name: seen.source.clone(), seen: value, samples }),
                }
            }
            sources.iter_mut().for_each(|source| source.seen = short(source.seen));
            let spared = rows().filter(|row| !row.hit).filter_map(|row| row.measured).map(short);
            proofs.push(Proof {
                text: fault.text.clone(),
                quantity: word(&quantity),
                proven: same().filter(|one| one.verdict == analysis::Proof::Proven).count() as u32,
                trials: tried.len() as u32,
                asked: rows().find(|row| row.hit).map_or(0.0, |row| row.asked),
                sources,
                spared: spared.reduce(|one, other| if other.abs() > one.abs() { other } else { one }),
            });
        }
    }
    proofs
}

fn series(run: &Run, trial: &TrialFindings, objective: &Objective) -> Result<Option<Series>, StudyError> {
    let rows = run.trials()?;
    let Some(row) = rows.iter().find(|row| row.trial == trial.trial) else { return Ok(None) };
    let evidence = TrialEvidence::read(run, row)?;
    let (Some(from), Some(fault)) = (evidence.phase(phase::BASELINE), evidence.phase(phase::FAULT)) else {
        return Ok(None);
    };
    let ends = evidence.phase(phase::RECOVERY).unwrap_or(fault).ends_ns;
    let since = |at: u64| rounded((at as f64 - from.starts_ns as f64) / 1e9);
    let mut series =
        Series { trial: trial.trial, fault: (since(fault.starts_ns), since(fault.ends_ns)), ..Series::default() };
    let inside =
        |point: &analysis::Point| point.starts_ns >= from.starts_ns && point.starts_ns + point.length_ns <= ends;
    for point in analysis::timeline(&evidence, objective).iter().filter(|point| inside(point)) {
        let ended = point.response.filter(|_| point.settled);
        series.seconds.push(since(point.starts_ns));
        series.delivered.push(point.settled.then_some(rounded(point.delivered)));
        series.mean_ms.push(ended.map(|response| rounded(response.mean_ns / 1e6)));
        series.p99_ms.push(ended.map(|response| rounded(response.p99.value_ns as f64 / 1e6)));
    }
    let shown = from.starts_ns..ends;
    series.elections = each::elected(trial).into_iter().filter(|at| shown.contains(at)).map(since).collect();
    Ok(Some(series))
}
