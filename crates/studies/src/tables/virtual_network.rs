//! What carries packets, and who encrypts: transports against each other, by the width of a column.

use std::collections::BTreeMap;

use brownout_statistics::{self as statistics, estimate};

use crate::{
    published::VirtualNetwork,
    stored::{Baseline, Cell, Processors, Stored},
    table::Table,
    words::{NONE, change, count, interval, or_none, percent, time},
};

/// Levels of our factor `transport`, each with one that it is compared with, and what was published of that comparison.
const COMPARED: [(&str, &str, Option<&str>); 8] = [
    ("WireGuard", "native", Some("unencrypted")),
    ("VXLAN", "native", None),
    ("WireGuard", "OpenVPN", Some("encrypted")),
    ("WireGuard", "TLS of nodes and clients", Some("encrypted")),
    ("WireGuard", "TLS of nodes", Some("node only encryption")),
    ("OpenVPN", "native", None),
    ("TLS of nodes and clients", "native", None),
    ("TLS of nodes", "native", None),
];

/// From this share on the processors are what a closed loop waits for.
const PROCESSORS_BUSY: f64 = 0.9;

/// How a load was paced, and so what is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Users who wait: throughput, as published.
    Closed,
    /// By the clock: the mean response time.
    Open,
}

impl Pace {
    fn figure(self, baseline: &Baseline) -> Option<f64> {
        match self {
            Pace::Closed => Some(baseline.throughput),
            Pace::Open => baseline.mean_ns,
        }
    }
}

/// The pace and the replication that a table is of: `closed-r3-one`.
pub fn of(name: &str) -> Option<(Pace, u32)> {
    let (pace, rest) = name.split_once('-')?;
    let pace = match pace {
        "closed" => Pace::Closed,
        "open" => Pace::Open,
        _ => return None,
    };
    match rest {
        "r1" => Some((pace, 1)),
        "r3-one" | "r3-quorum" => Some((pace, 3)),
        _ => None,
    }
}

/// What was published.
pub fn published(published: &VirtualNetwork) -> String {
    let head = ["replication", "virtual network v."].map(str::to_owned).into_iter();
    let widths = published.widths.iter().map(|width| format!("{width} byte"));
    let mut table = Table::of(head.chain(widths).chain(["all".to_owned(), "mean of the row".to_owned()]).collect());
    for row in &published.rows {
        let mean = row.changes.iter().sum::<f64>() / row.changes.len() as f64;
        let head = [row.replication.to_string(), row.against.clone()].into_iter();
        let changes = row.changes.iter().map(|change| signed(*change));
        table.row(head.chain(changes).chain([signed(row.all), signed(mean)]));
    }
    table.text()
}

/// A share with its sign, to a tenth of a percent, as published.
fn signed(value: f64) -> String {
    format!("{:+.1}%", value * 100.0)
}

/// Ours, with what was published above it.
pub fn compared(run: &Stored, published: &VirtualNetwork, pace: Pace, replication: u32) -> String {
    let mut widths: Vec<&str> = Vec::new();
    for width in run.cells.iter().filter_map(|cell| cell.levels.last()) {
        if !widths.contains(&width.as_str()) {
            widths.push(width);
        }
    }
    let what = match pace {
        Pace::Closed => "throughput",
        Pace::Open => "mean response",
    };
    let head = [format!("change of the {what}"), "blocks".to_owned()].into_iter();
    let of_widths = widths.iter().map(|width| (*width).to_owned());
    let mut table = Table::of(head.chain(of_widths).chain(["all widths".to_owned()]).collect());
    let mut told: Vec<&str> = Vec::new();
    for (one, other, against) in COMPARED {
        let theirs = published.rows.iter().find(|row| row.replication == replication && Some(&*row.against) == against);
        // What was published is of throughputs.
        if let Some(theirs) = theirs.filter(|row| pace == Pace::Closed && !told.contains(&row.against.as_str())) {
            told.push(&theirs.against);
            let of_width = |width: &&str| {
                let at = published.widths.iter().position(|known| width.trim_end_matches('B') == known.to_string());
                at.and_then(|at| theirs.changes.get(at)).map_or_else(|| NONE.to_owned(), |change| signed(*change))
            };
            let head = [format!("published: virtual network v. {}", theirs.against), NONE.to_owned()].into_iter();
            table.row(head.chain(widths.iter().map(of_width)).chain([signed(theirs.all)]));
        }
        let of = |widths: &[&str]| differences(run, pace, (one, other), widths);
        let all = of(&widths);
        let head = [format!("{one} v. {other}"), all.len().to_string()].into_iter();
        let each = widths.iter().map(|width| words(&of(&[*width])));
        table.row(head.chain(each).chain([words(&all)]));
    }
    table.text()
}

/// The cell of a transport at a width.
fn cell<'a>(run: &'a Stored, transport: &str, width: &str) -> Option<&'a Cell> {
    run.cells.iter().find(|cell| cell.levels.len() == 2 && cell.levels[0] == transport && cell.levels[1] == width)
}

/// ln(one ÷ other), mean over the widths, of each block that has all of it.
fn differences(run: &Stored, pace: Pace, (one, other): (&str, &str), widths: &[&str]) -> Vec<f64> {
    let value = |transport: &str, width: &str, block: u32| {
        let baselines = &cell(run, transport, width)?.baselines;
        let own = baselines.iter().find(|baseline| baseline.block == block)?;
        pace.figure(own).filter(|value| *value > 0.0).map(f64::ln)
    };
    let mut blocks: Vec<u32> =
        run.cells.iter().flat_map(|cell| &cell.baselines).map(|baseline| baseline.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let of_block = |block: u32| -> Option<f64> {
        let each = widths.iter().map(|width| Some(value(one, width, block)? - value(other, width, block)?));
        let all: Vec<f64> = each.collect::<Option<_>>()?;
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    blocks.into_iter().filter_map(of_block).collect()
}

/// "+5.2% (+3.1% … +7.4%)"; of one block without an interval.
fn words(differences: &[f64]) -> String {
    let estimate = estimate(differences, statistics::ALPHA, statistics::FLOOR, 1);
    match (estimate, differences) {
        (Some(found), _) => {
            let both = interval(Some((found.low.exp_m1(), found.high.exp_m1())));
            format!("{} ({both})", change(found.effect.exp_m1()))
        }
        (None, [only]) => change(only.exp_m1()),
        (None, _) => NONE.to_owned(),
    }
}

/// Who used the processors, by transport, over all widths: what tells a limit by processors from one by delays.
pub fn processors(findings: &BTreeMap<String, Stored>) -> Option<String> {
    let mut table = Table::new([
        "findings",
        "transport",
        "op/s",
        "mean response",
        "processors in use",
        "limit",
        "CPU per operation",
        "nodes",
        "load",
        "emulator",
        "overlay",
        "probes",
        "kernel",
        "more than native",
    ]);
    let mut rows = 0;
    for (name, run) in findings.iter().filter(|(name, _)| of(name).is_some()) {
        let mut transports: Vec<&str> = Vec::new();
        for transport in run.cells.iter().filter_map(|cell| cell.levels.first()) {
            if !transports.contains(&transport.as_str()) {
                transports.push(transport);
            }
        }
        let native = Used::of(run, "native");
        for transport in transports {
            let Some(used) = Used::of(run, transport) else { continue };
            let more = native.as_ref().map(|native| used.per_operation / native.per_operation - 1.0);
            rows += 1;
            table.row([
                name.clone(),
                transport.to_owned(),
                count(used.throughput),
                time(used.mean_ns),
                percent(used.busy),
                match of(name) {
                    Some((Pace::Closed, _)) if used.busy >= PROCESSORS_BUSY => "processors",
                    Some((Pace::Closed, _)) => "delays",
                    _ => "the rate",
                }
                .to_owned(),
                time(Some(used.per_operation)),
                time(Some(used.nodes)),
                time(Some(used.load)),
                time(Some(used.emulator)),
                time(Some(used.overlay).filter(|overlay| *overlay > 0.0)),
                time(Some(used.watching)),
                time(Some(used.outside)),
                or_none(more, change),
            ]);
        }
    }
    (rows > 0).then(|| table.text())
}

/// What a transport used, means over its trials at all widths.
struct Used {
    throughput: f64,
    mean_ns: Option<f64>,
    busy: f64,
    /// CPU time of an operation, ns …
    per_operation: f64,
    /// … and whose it is: the nodes', …
    nodes: f64,
    /// … the load's, …
    load: f64,
    /// … the emulator's, …
    emulator: f64,
    /// … the overlay's, …
    overlay: f64,
    /// … that of Brownout's other threads, most of it for probes, …
    watching: f64,
    /// … and nobody's of these: the kernel's, and what else runs on the machine.
    outside: f64,
}

impl Used {
    fn of(run: &Stored, transport: &str) -> Option<Used> {
        let cells = run.cells.iter().filter(|cell| cell.levels.first().is_some_and(|level| level == transport));
        let known: Vec<(&Baseline, Processors)> = cells
            .flat_map(|cell| &cell.baselines)
            .filter_map(|baseline| Some((baseline, baseline.processors?)))
            .filter(|(baseline, processors)| baseline.throughput > 0.0 && processors.busy > 0.0)
            .collect();
        let mean = |of: &dyn Fn(&(&Baseline, Processors)) -> Option<f64>| {
            let values: Vec<f64> = known.iter().filter_map(of).collect();
            brownout_analysis::stats::mean(&values)
        };
        let per_operation = |share: fn(&Processors) -> f64| {
            mean(&|one| Some(share(&one.1).max(0.0) * one.1.cores / one.0.throughput * 1e9))
        };
        Some(Used {
            throughput: mean(&|one| Some(one.0.throughput))?,
            mean_ns: mean(&|one| one.0.mean_ns),
            busy: mean(&|one| Some(one.1.busy))?,
            per_operation: per_operation(|used| used.busy)?,
            nodes: per_operation(|used| used.nodes)?,
            load: per_operation(|used| used.load)?,
            emulator: per_operation(|used| used.emulator)?,
            overlay: per_operation(|used| used.overlay)?,
            watching: per_operation(|used| used.instrument - used.load - used.emulator - used.overlay)?,
            outside: per_operation(|used| used.busy - used.nodes - used.instrument)?,
        })
    }
}
