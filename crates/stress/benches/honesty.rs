//! Do the tools tell the truth? A stub that freezes for 2 s every 20 s, and one of whose three nodes takes 200 ms, at 1,000
//! writes per second: what each tool reports beside what its users would have seen, which arithmetic tells.
//!
//! `make bench` runs it. It exits with 1 if ours is more than 2 % away. `-- --quick` runs one period instead of three.
//! Each tool has a stub of its own. Ours runs first; then all peers at once, because what is measured is seconds. The
//! greatest of all times is one operation: where the stub itself answered later than it should, or ours started one
//! later, both tell by how much, and that much the greatest may be beyond the truth.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot run should say where and stop")]

mod common;

use std::{process::ExitCode, time::Duration};

use common::{
    asked, is_stub,
    process::{End, Running, Stub},
    tools::{Kind, Load, Told, Tool, When, found},
};

const RATE: u32 = 1_000;
/// How far ours may be from the truth.
const TOLERANCE: f64 = 0.02;

fn main() -> ExitCode {
    if is_stub() {
        return ExitCode::SUCCESS;
    }
    let tools = found();
    let seconds = if asked("--quick") { 20 } else { 60 };
    // A tenth of the writes falls into a freeze and waits, evenly, 2 s down to nothing: the share x of all that waits
    // longest begins at 2 s × (1 − x / 0.1).
    println!("frozen for 2 s every 20 s, {RATE} writes/s, {seconds} s");
    let frozen =
        rows(&tools, seconds, 1, &[1, 0, 9_000, 2_000, 20_000], &[(95, 1_000.0), (99, 1_800.0), (100, 2_000.0)]);
    // A third of the writes has the slow node as its coordinator.
    println!("one of three nodes takes 200 ms, {RATE} writes/s, {} s", seconds / 3);
    let slow = rows(&tools, seconds / 3, 3, &[3, 200], &[(95, 200.0), (99, 200.0), (100, 200.0)]);
    if frozen && slow { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what each tool tells; whether ours is right.
fn rows(tools: &[Tool], seconds: u64, nodes: u8, stub: &[u64], truth: &[(u32, f64)]) -> bool {
    println!("{:<18} {:>9} {:>9} {:>9} {:>9}  ms", "", "p50", "p95", "p99", "max");
    let cells: Vec<String> = truth.iter().map(|(_, ms)| format!("{ms:>9.0}")).collect();
    println!("{:<18} {:>9} {}", "the truth", "0", cells.join(" "));
    let takes_part = |tool: &&Tool| match tool.when {
        When::Always => nodes == 1 || tool.kind != Kind::ScyllaBench,
        When::Rates => true,
        When::Freezes => nodes == 1,
        When::Users => false,
    };
    let (ours, peers): (Vec<_>, Vec<_>) = tools.iter().filter(takes_part).partition(|tool| tool.ours);
    let right = run(&ours, seconds, nodes, stub, truth);
    run(&peers, seconds, nodes, stub, truth);
    right
}

fn run(tools: &[&Tool], seconds: u64, nodes: u8, stub: &[u64], truth: &[(u32, f64)]) -> bool {
    let running: Vec<_> = tools
        .iter()
        .map(|tool| {
            let (directory, stub) = (tempfile::tempdir().unwrap(), Stub::start(stub));
            let command = tool.command(Load::Rate(RATE), seconds, stub.port, nodes);
            let running = Running::start(command, None, directory.path(), "printed");
            (tool, directory, stub, running)
        })
        .collect();
    let mut right = true;
    for (tool, directory, mut stub, running) in running {
        let ended = running.end(Duration::from_secs(seconds + 60));
        let told = tool.told(directory.path(), "printed");
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        let verdict = if tool.ours {
            let (server, client) = (stub.late_ms(), told.late_max_us.unwrap_or(0.0) / 1e3);
            let good = ended != End::Badly && within(&told, truth, server + client);
            right &= good;
            let word = if good { "within" } else { "NOT within" };
            format!("{word} 2 % (late at most: the stub {server:.1} ms, the client {client:.1} ms)")
        } else {
            String::new()
        };
        println!(
            "{:<18} {:>9} {:>9} {:>9} {:>9}  {verdict}",
            tool.name,
            cell(told.p50),
            cell(told.p95),
            cell(told.p99),
            cell(told.max)
        );
    }
    right
}

fn within(told: &Told, truth: &[(u32, f64)], late: f64) -> bool {
    let close = |value: Option<f64>, truth: f64, late: f64| {
        value.is_some_and(|value| value >= truth * (1.0 - TOLERANCE) && value <= (truth + late) * (1.0 + TOLERANCE))
    };
    let of = |quantile| match quantile {
        95 => told.p95,
        99 => told.p99,
        _ => told.max,
    };
    // Half of the writes meets nothing of it.
    told.p50.is_some_and(|ms| ms < 10.0)
        && truth.iter().all(|(quantile, ms)| close(of(*quantile), *ms, if *quantile == 100 { late } else { 0.0 }))
}
