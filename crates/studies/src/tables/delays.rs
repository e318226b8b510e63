//! Closed loops beside delays.

use super::NODES;
use crate::{
    published::{ClosedLoops, SlowAndFlaky},
    stored::{Cell, Effect, Phase, Stored},
    table::Table,
    words::{NONE, POPULATION, count, interval, ms, or_none, p99, ratio, time},
};

/// What a closed loop can do at most if that share of its operations waits for the delay, and nothing else takes any time.
fn at_most(threads: f64, share: f64, delay_s: f64) -> Option<f64> {
    (share * delay_s > 0.0).then(|| threads / (share * delay_s))
}

/// What was published, and what follows from its own figures.
pub fn published(published: &SlowAndFlaky) -> String {
    let mut table = Table::new([
        "slow nodes of 3",
        "delay",
        "published op/s",
        "threads ÷ mean latency",
        "at most, by the delay alone",
        "of the baseline",
        "mean",
        "median",
        "mean − share × delay",
    ]);
    for loops in [&published.delay, &published.two_nodes] {
        let (threads, share) = (f64::from(loops.threads), f64::from(loops.slow_nodes) / NODES);
        let baseline = loops.rows.first().map(|row| row.ops);
        for row in &loops.rows {
            let nodes = if row.delay_ms > 0.0 { loops.slow_nodes } else { 0 };
            table.row([
                nodes.to_string(),
                row.delay.clone(),
                count(row.ops),
                or_none(row.mean_ms.map(|mean| threads / (mean / 1e3)), count),
                or_none(at_most(threads, share, row.delay_ms / 1e3), count),
                or_none(baseline.map(|baseline| row.ops / baseline), ratio),
                ms(row.mean_ms),
                ms(row.median_ms),
                ms(row.mean_ms.map(|mean| mean - share * row.delay_ms)),
            ]);
        }
    }
    table.text()
}

fn phase<'a>(phases: &'a [Phase], name: &str) -> Option<&'a Phase> {
    phases.iter().find(|phase| phase.name == name)
}

/// Throughput of the fault phase ÷ that of the baseline.
fn kept(phases: &[Phase]) -> Option<f64> {
    Some(phase(phases, "fault")?.throughput() / phase(phases, "baseline")?.throughput())
}

fn little(threads: Option<u32>, phase: &Phase) -> Option<f64> {
    Some(f64::from(threads?) / (phase.mean_ns? / 1e9))
}

/// Ours: the cells with this level (by its number) of the first factor, beside what was published.
pub fn slow(run: &Stored, level: usize, published: &ClosedLoops) -> Option<String> {
    let mut levels: Vec<&String> = run.cells.iter().filter_map(|cell| cell.levels.first()).collect();
    levels.dedup();
    let nodes = *levels.get(level)?;
    let cells: Vec<&Cell> = run.cells.iter().filter(|cell| cell.levels.first() == Some(nodes)).collect();
    let threads = cells.first()?.threads;
    let baseline = published.rows.first().map(|row| row.ops);
    let mut table = Table::new([
        "delay",
        "published op/s",
        "of its baseline",
        "trials",
        "measured op/s",
        "threads ÷ mean latency",
        "of its baseline",
        "against no fault",
        "predicted",
        "at most, by the delay alone",
        "mean",
        "p50",
        "p99",
    ]);
    let mut row = |delay: &str, trials: u32, phases: &[Phase], against: Option<&Effect>, predicted: Option<f64>| {
        let theirs = published.rows.iter().find(|row| row.delay == delay);
        let fault = phase(phases, "fault");
        let seconds = delay.parse::<brownout_units::Delay>().map_or(0.0, |delay| delay.secs());
        let share = f64::from(published.slow_nodes) / NODES;
        table.row([
            delay.to_owned(),
            or_none(theirs.map(|row| row.ops), count),
            or_none(theirs.zip(baseline).map(|(row, baseline)| row.ops / baseline), ratio),
            trials.to_string(),
            or_none(fault.map(Phase::throughput), count),
            or_none(fault.and_then(|fault| little(threads, fault)), count),
            or_none(kept(phases), ratio),
            interval(against.and_then(|effect| effect.interval)),
            or_none(predicted, ratio),
            or_none(threads.and_then(|threads| at_most(f64::from(threads), share, seconds)), count),
            time(fault.and_then(|fault| fault.mean_ns)),
            time(fault.and_then(|fault| fault.p50_ns)),
            fault.map_or_else(|| NONE.to_owned(), p99),
        ]);
    };
    if let Some(without) = &run.without {
        row("none", without.trials, &without.phases, None, None);
    }
    for cell in cells {
        let predicted = cell.predicted.as_ref().map(|predicted| 1.0 - predicted.least);
        let against = cell.effect("delivered");
        row(cell.levels.last()?, cell.trials, &cell.phases, against, predicted);
    }
    Some(table.text() + POPULATION)
}

/// Delay ÷ mean latency of the baseline, and what is left of the baseline: the same curve, whoever measures.
pub fn ratios(published: &SlowAndFlaky, slow: Option<&Stored>, few: Option<&Stored>) -> String {
    let mut table = Table::new([
        "one slow node of three",
        "delay",
        "baseline's mean",
        "delay ÷ it",
        "of the baseline",
        "1 ÷ (1 + delay ÷ (3 × it))",
    ]);
    let mut row = |who: String, delay: &str, delay_ms: f64, mean_ms: f64, kept: f64| {
        let part = delay_ms / mean_ms;
        table.row([
            who,
            delay.to_owned(),
            ms(Some(mean_ms)),
            ratio(part),
            ratio(kept),
            ratio(1.0 / (1.0 + part / NODES)),
        ]);
    };
    let loops = &published.delay;
    if let Some((baseline, mean)) = loops.rows.first().and_then(|first| Some((first.ops, first.mean_ms?))) {
        for one in &loops.rows[1..] {
            row(format!("published, {} threads", loops.threads), &one.delay, one.delay_ms, mean, one.ops / baseline);
        }
    }
    for run in [slow, few].into_iter().flatten() {
        // Two slow nodes are another curve.
        let first = run.cells.first().map(|cell| cell.levels.clone()).unwrap_or_default();
        let alike = |cell: &&Cell| cell.levels.len() == 1 || cell.levels.first() == first.first();
        for cell in run.cells.iter().filter(alike) {
            let known = || {
                let delay = cell.levels.last()?.parse::<brownout_units::Delay>().ok()?;
                let mean = phase(&cell.phases, "baseline")?.mean_ns?;
                Some((delay.secs() * 1e3, mean / 1e6, kept(&cell.phases)?, cell.threads?))
            };
            if let Some((delay_ms, mean_ms, kept, threads)) = known() {
                let delay = cell.levels.last().map_or("", String::as_str);
                row(format!("measured, {threads} threads"), delay, delay_ms, mean_ms, kept);
            }
        }
    }
    let text = table.text();
    if slow.is_none() && few.is_none() { format!("{text}\nOurs: {}\n", super::NOT_MEASURED) } else { text }
}
