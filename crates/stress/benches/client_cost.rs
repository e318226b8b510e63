//! What an operation costs the client: `brownout stress` beside its peers, each a process on CPU 0, against a stub on CPU 1.
//!
//! `make bench` runs it, or `BROWNOUT=target/release/brownout cargo bench -p brownout-stress --bench client_cost`; the
//! variables that name the peers are in `docs/benchmarks.md`. `-- --quick` measures each cell once and briefly, numbers
//! (`-- 1000 0`) choose rates, of which 0 is a closed loop, and names (`-- latte`) choose peers.
//!
//! A cell is one run: the tool connects, warms up, and then counts what the process uses in a window, by the stub's
//! count of the writes received in it: CPU time (user and system) from the process's CPU clock, to the nanosecond; context switches
//! of its threads from `/proc`. In the second after the window `perf` counts its system calls, so that counting costs
//! the window nothing. Memory is the most that was resident until then. Rounds go through the tools in a random
//! order; figures are medians, with their least and greatest.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot run should say where and stop")]

mod common;

use std::{collections::BTreeMap, thread::sleep, time::Duration};

use brownout_base::random::Random;
use common::{
    asked, is_stub,
    process::{End, Running, Stub, sleeper},
    tools::{COARSE, Kind, Load, Tool, When, found},
};

/// Users of the closed loop: many in one write, few beside what a machine has.
const USERS: u32 = 256;
/// Users with which memory is judged.
const MANY: u32 = 1_000;

#[derive(Default)]
struct Cell {
    received: Vec<f64>,
    cpu_us: Vec<f64>,
    switches: Vec<f64>,
    syscalls: Vec<f64>,
    memory: Vec<f64>,
    late_p50: Vec<f64>,
    late_p99: Vec<f64>,
    p99: Vec<f64>,
    doubtful: bool,
}

fn main() {
    if is_stub() {
        return;
    }
    let (rounds, warm_up, window) = if asked("--quick") { (1, 1, 2) } else { (3, 2, 3) };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u32> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let mut tools = found();
    if arguments.iter().any(|argument| tools.iter().any(|tool| tool.name == argument)) {
        tools.retain(|tool| tool.ours || arguments.iter().any(|argument| tool.name == argument));
    }
    let mut loads: Vec<Load> = [1_000, 5_000, 20_000, 50_000].map(Load::Rate).to_vec();
    loads.extend([Load::Users(USERS), Load::Users(MANY)]);
    if !numbers.is_empty() {
        loads.retain(|load| match load {
            Load::Rate(rate) => numbers.contains(rate),
            Load::Users(_) => numbers.contains(&0),
        });
    }
    let [cpu, p50, p99] = sleeper();
    println!(
        "a thread that only sleeps, 1 ms at a time: {cpu:.1} µs of CPU per wake-up, late by {p50:.0} µs (p50), {p99:.0} µs (p99)"
    );
    println!("{window} s after {warm_up} s of warm-up, medians of {rounds} (least..greatest)");
    println!(
        "{:>11}  {:<17} {:>9} {:>21} {:>11} {:>9} {:>8} {:>17} {:>9}",
        "asked", "tool", "received/s", "CPU µs/op", "switches/op", "calls/op", "RSS MiB", "late p50/p99 µs", "p99 ms"
    );
    for load in loads {
        let mut cells: BTreeMap<usize, Cell> = BTreeMap::new();
        for _ in 0..rounds {
            for place in shuffled(tools.len()) {
                let tool = &tools[place];
                let only = if matches!(load, Load::Users(_)) { When::Users } else { When::Rates };
                if tool.when != When::Always && tool.when != only {
                    continue;
                }
                if !measure(tool, load, warm_up, window, cells.entry(place).or_default()) {
                    println!("{:>11}  {:<17} did not write, or ended early", name(load), tool.name);
                }
            }
        }
        cells.retain(|_, cell| !cell.cpu_us.is_empty());
        for (place, cell) in &cells {
            row(load, tools[*place].name, cell);
        }
        judge(load, &tools, &cells);
    }
}

/// `false` if the tool does not live through the window.
fn measure(tool: &Tool, load: Load, warm_up: u64, window: u64, cell: &mut Cell) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let mut stub = Stub::start(&[1, 0]);
    // Connecting may count as running: a JVM takes a while.
    let seconds = warm_up + window + 3;
    let mut command = tool.command(load, seconds, stub.port, 1);
    if let (Kind::ScyllaBench, Load::Rate(rate)) = (tool.kind, load) {
        // All of its goroutines start their operations at the same moments. With one for every 1,000 a second that is
        // once a millisecond, as latte does; 200 at once, 200 ms apart, would be cheap, and another load.
        command.args(["-concurrency", &(rate / 1_000).max(1).to_string()]);
    }
    let mut running = Running::start(command, Some(0), directory.path(), "printed");
    if !running.writes(&mut stub) {
        let printed = std::fs::read_to_string(directory.path().join("printed")).unwrap_or_default();
        let last: Vec<&str> = printed.lines().rev().filter(|line| !line.is_empty()).take(3).collect();
        eprintln!("{}: {}", tool.name, last.join(" | "));
        return false;
    }
    sleep(Duration::from_secs(warm_up));
    let before = running.used(&mut stub);
    sleep(Duration::from_secs(window));
    let after = running.used(&mut stub);
    let operations = after.executed - before.executed;
    let per_second = operations / (after.at_ns - before.at_ns) * 1e9;
    if operations <= 0.0 || after.cpu_ns <= before.cpu_ns {
        return false;
    }
    cell.received.push(per_second);
    cell.cpu_us.push((after.cpu_ns - before.cpu_ns) / 1e3 / operations);
    cell.switches.push((after.switches - before.switches).max(0.0) / operations);
    cell.memory.push(running.memory_mib());
    if let Some(calls) = running.syscalls_per_second() {
        cell.syscalls.push(calls / per_second);
    }
    let end = running.end(Duration::from_secs(seconds + 40));
    cell.doubtful |= end == End::Doubtful;
    if end != End::Badly {
        let told = tool.told(directory.path(), "printed");
        cell.late_p50.extend(told.late_p50_us);
        cell.late_p99.extend(told.late_p99_us);
        cell.p99.extend(told.p99);
    }
    true
}

/// Places below `count` in an order that differs from run to run.
fn shuffled(count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    Random::new(brownout_base::clock::realtime_ns()).shuffle(&mut places);
    places
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn name(load: Load) -> String {
    match load {
        Load::Rate(rate) => format!("{rate}/s"),
        Load::Users(users) => format!("{users} users"),
    }
}

/// A figure, or a dash where nobody told any.
fn figure(values: &[f64], digits: usize) -> String {
    if values.is_empty() { "-".to_owned() } else { format!("{:.digits$}", median(values)) }
}

fn row(load: Load, tool: &str, cell: &Cell) {
    let least = cell.cpu_us.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = cell.cpu_us.iter().copied().fold(0.0, f64::max);
    println!(
        "{:>11}  {tool:<17} {:>9.0} {:>21} {:>11} {:>9} {:>8} {:>17} {:>9}{}",
        name(load),
        median(&cell.received),
        format!("{:.2} ({least:.2}..{greatest:.2})", median(&cell.cpu_us)),
        figure(&cell.switches, 2),
        figure(&cell.syscalls, 2),
        figure(&cell.memory, 1),
        format!("{} / {}", figure(&cell.late_p50, 0), figure(&cell.late_p99, 0)),
        figure(&cell.p99, 2),
        if cell.doubtful { "  (it was late itself)" } else { "" },
    );
}

/// Our aims, and how far they are met.
fn judge(load: Load, tools: &[Tool], cells: &BTreeMap<usize, Cell>) {
    let Some(our) = cells.get(&0) else { return };
    let peers = || cells.iter().filter(|(place, _)| !tools[**place].ours);
    let say = |what: &str, value: f64, aim: f64, below: bool| {
        let met = if below { value <= aim } else { value >= aim };
        let sign = if below { "≤" } else { "≥" };
        let verdict = match value {
            value if value.is_nan() => "unknown",
            _ if met => "met",
            _ => "MISSED",
        };
        println!("             {what}: {value:.2} (aim {sign} {aim}: {verdict})");
    };
    let cpu = median(&our.cpu_us);
    let coarse = cells.iter().find(|(place, _)| tools[**place].name == COARSE).map(|(_, cell)| median(&cell.cpu_us));
    match load {
        Load::Rate(rate) => {
            // Whoever does not keep up is no measure.
            let keeping = peers().filter(|(_, cell)| median(&cell.received) >= 0.95 * f64::from(rate));
            if let Some((place, best)) =
                keeping.min_by(|one, other| median(&one.1.cpu_us).total_cmp(&median(&other.1.cpu_us)))
            {
                let (peer, best) = (tools[*place].name, median(&best.cpu_us));
                say(&format!("CPU ÷ that of {peer}"), cpu / best, 0.5, true);
                if let Some(coarse) = coarse {
                    say(&format!("with a tick of 1 ms, CPU ÷ that of {peer}"), coarse / best, 0.5, true);
                }
            } else if peers().next().is_some() {
                println!("             no peer keeps this rate");
            }
            if rate == 50_000 {
                say("CPU µs per operation", cpu, 3.0, true);
                coarse.inspect(|coarse| say("with a tick of 1 ms, CPU µs per operation", *coarse, 3.0, true));
            }
            say("lateness p99, µs", median(&our.late_p99), 200.0, true);
        }
        Load::Users(users) => {
            if let Some((place, best)) =
                peers().max_by(|one, other| median(&one.1.received).total_cmp(&median(&other.1.received)))
            {
                let ratio = median(&our.received) / median(&best.received);
                say(&format!("operations ÷ those of {}", tools[*place].name), ratio, 2.0, false);
            }
            if users == MANY {
                say("RSS, MiB", median(&our.memory), 30.0, true);
            }
        }
    }
}
