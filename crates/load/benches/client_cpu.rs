//! What an operation costs the client: CPU, context switches and memory of the engine and of latte at one rate.
//!
//! `cargo bench -p brownout-load` runs it, in five minutes; `-- 3000` measures that rate alone, `-- 0` as fast as one core
//! can with 256 operations open at a time. It needs `latte` 0.29
//! (`cargo install latte-cli --version 0.29 --locked`) on the PATH or named by `LATTE`; without it only the engine is
//! measured. Each client is a process of its own on CPU 0, the stub server is one on CPU 1, both 50/50 reads and
//! writes of 100-byte values over 100,000 keys.
//!
//! Every client runs for two lengths of time, and what counts is the slope: the CPU time and the switches that the
//! longer run used beyond the shorter, divided by the operations that the *stub* received beyond it. CPU time is user
//! and system in one: the kernel counts the sum exactly, but splits it by sampling. Connecting, compiling scripts and
//! reporting are in both runs and drop out. Clients alternate; figures are medians over the rounds.
//!
//! The engine runs twice: as it is, and with the 1 ms tick that latte's timer has, so that the cost of starting
//! operations more exactly than latte can is told apart from the rest. In a virtual machine that is most of it: a
//! timer that wakes a sleeping CPU costs some 18 µs, a send that wakes the server's CPU 12 µs, and the engine does one
//! of each per start, 3,000 times a second, where latte does both once a millisecond for three operations. Only
//! starting later would save that, and lateness is what the engine is there to avoid.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot run should say where and stop")]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use brownout_load::{Arrivals, Consistency, Coordinator, Engine, EngineConfig, KeyValue, Pace, stub::Stub};
use brownout_units::Rate;

/// Operations per second; 0 for as many as one core can send and receive.
const RATES: [u32; 3] = [3_000, 20_000, 0];
/// Operations open at a time without a rate.
const USERS: u32 = 256;
/// The two lengths of a run.
const SECONDS: [u64; 2] = [3, 8];
const ROUNDS: usize = 3;
/// The engine should cost at most this part of what latte costs.
const AIM: f64 = 0.5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("stub") => stub(),
        Some("engine") => {
            let number = |place: usize| arguments[place].parse().unwrap();
            engine(&arguments[2], number(3), number(4), number(5));
        }
        _ => {
            let chosen: Vec<u32> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
            bench(if chosen.is_empty() { &RATES } else { &chosen });
        }
    }
}

/// The server process: prints its address, then answers every line with how many operations it has received.
fn stub() {
    pin(1);
    let stub = Stub::local(1).unwrap();
    println!("{}", stub.addresses()[0]);
    for _ in std::io::stdin().lock().lines() {
        println!("{}", stub.executed());
    }
}

/// The client process: our engine for as long as latte runs.
fn engine(address: &str, rate: u64, tick_us: u64, seconds: u64) {
    let engine = connect(address);
    engine.set_coalescing(Duration::from_micros(tick_us));
    let pace = match Rate::per_second(rate as f64) {
        Some(rate) => Pace::Open { rate, arrivals: Arrivals::Constant },
        None => Pace::Closed { threads: USERS },
    };
    engine.set_pace(pace).unwrap();
    let (mut lateness, mut service) = (brownout_load::histogram(), brownout_load::histogram());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        // As the lab does it: buckets every second.
        sleep(Duration::from_secs(1));
        for bucket in engine.drain().iter().filter(|bucket| bucket.settled) {
            lateness.add(&bucket.lateness).unwrap();
            bucket.series.iter().for_each(|series| service.add(&series.service).unwrap());
        }
    }
    let (_, balance) = engine.stop(Duration::from_secs(2));
    assert!(balance.balances() && balance.answered_ok == balance.scheduled && balance.empty == 0, "{balance:#?}");
    for quantile in [0.5, 0.99] {
        println!("{} {}", lateness.value_at_quantile(quantile), service.value_at_quantile(quantile));
    }
}

fn connect(address: &str) -> Engine {
    let workload = KeyValue {
        keyspace: "stub".into(),
        table: "kv".into(),
        replication: 1,
        data_centres: Default::default(),
        consistency: Consistency::LocalQuorum,
        read: 1,
        write: 1,
        population: 100_000,
        value_size: 100,
    };
    let node = Coordinator { name: "stub".into(), address: address.parse().unwrap() };
    Engine::start(EngineConfig::new(vec![node]), workload).unwrap()
}

fn pin(cpu: usize) {
    // SAFETY: the set is a plain bit mask, made and passed here; pid 0 is this process.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// What one run of a client used, or what a longer run used beyond a shorter one.
struct Cell {
    operations: f64,
    cpu_us: f64,
    switches: f64,
    rss_mib: f64,
    /// What the engine printed: lateness and service time in ns, first their medians, then their p99s.
    output: Vec<f64>,
}

impl Cell {
    fn beyond(self, shorter: Cell) -> Cell {
        Cell {
            operations: self.operations - shorter.operations,
            cpu_us: self.cpu_us - shorter.cpu_us,
            switches: self.switches - shorter.switches,
            ..self
        }
    }
}

/// The resources of exactly one child, from wait4.
fn wait(child: Child) -> (bool, libc::rusage) {
    let mut status = 0;
    // SAFETY: both out-pointers are valid; the child is ours and not waited for elsewhere.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage);
        usage
    };
    (status == 0, usage)
}

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start() -> Self {
        let this = std::env::current_exe().unwrap();
        let mut child = Command::new(this).arg("stub").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        output.read_line(&mut address).unwrap();
        let server = Server { child, input, output, address: address.trim().to_owned() };
        // Reads should find rows.
        let engine = connect(&server.address);
        engine.set_pace(Pace::Populate { in_flight: 64 }).unwrap();
        while !engine.populated().complete() {
            sleep(Duration::from_millis(10));
        }
        server
    }

    fn executed(&mut self) -> f64 {
        writeln!(self.input).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }

    fn measure(&mut self, mut command: Command) -> Cell {
        use std::{io::Read, os::unix::process::CommandExt};
        // SAFETY: sched_setaffinity is async-signal-safe; nothing is allocated between fork and exec.
        unsafe {
            command.pre_exec(|| {
                pin(0);
                Ok(())
            })
        };
        let before = self.executed();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        let (succeeded, usage) = wait(child);
        assert!(succeeded, "{command:?} failed: {output}");
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Cell {
            operations: self.executed() - before,
            cpu_us: (seconds(usage.ru_utime) + seconds(usage.ru_stime)) * 1e6,
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as f64,
            rss_mib: usage.ru_maxrss as f64 / 1024.0,
            output: output.split_whitespace().filter_map(|number| number.parse().ok()).collect(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The child is this benchmark's own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn latte() -> Option<String> {
    let name = std::env::var("LATTE").unwrap_or_else(|_| "latte".into());
    let found = Command::new(&name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success()).then_some(name)
}

fn median(cells: &[Cell], value: impl Fn(&Cell) -> f64) -> f64 {
    let mut values: Vec<f64> = cells.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn bench(rates: &[u32]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/client.rn");
    let reports = tempfile::tempdir().unwrap();
    let latte = latte();
    if latte.is_none() {
        println!(
            "latte is not installed (cargo install latte-cli --version 0.29 --locked): measuring the engine alone"
        );
    }
    let this = std::env::current_exe().unwrap();
    let [short, long] = SECONDS;
    println!("what {long} s use beyond {short} s, medians of {ROUNDS} rounds");
    println!(
        "asked/s  client           received/s  CPU µs/op  switches/op  RSS MiB  late p50/p99 µs  service p50/p99 µs"
    );
    for rate in rates {
        // One each: latte's values would not pass the engine's verification.
        let (mut server, mut other) = (Server::start(), Server::start());
        let (mut fine, mut coarse, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            for (tick_us, cells) in [("100", &mut fine), ("1000", &mut coarse)] {
                if *rate == 0 && tick_us == "1000" {
                    // A closed loop has no ticks.
                    continue;
                }
                let [shorter, longer] = SECONDS.map(|seconds| {
                    let mut command = Command::new(&this);
                    command.args(["engine", &server.address, &rate.to_string(), tick_us, &seconds.to_string()]);
                    server.measure(command)
                });
                cells.push(longer.beyond(shorter));
            }
            if let Some(latte) = &latte {
                let [shorter, longer] = SECONDS.map(|seconds| {
                    let mut command = Command::new(latte);
                    command.args(["run", script, "--quiet", "--threads", "1", "--warmup", "1"]);
                    match rate {
                        0 => command.args(["--concurrency", &USERS.to_string()]),
                        rate => command.args(["--rate", &rate.to_string()]),
                    };
                    command.args(["--duration", &format!("{seconds}s"), "--output"]);
                    command.arg(reports.path().join(format!("{rate}-{round}-{seconds}.json"))).arg(&other.address);
                    // It writes a log where it stands.
                    command.current_dir(reports.path()).stderr(Stdio::null());
                    other.measure(command)
                });
                theirs.push(longer.beyond(shorter));
            }
        }
        row(*rate, "brownout", &fine);
        if *rate > 0 {
            row(*rate, "brownout, 1 ms", &coarse);
        }
        if theirs.is_empty() {
            continue;
        }
        row(*rate, "latte", &theirs);
        if *rate == 0 {
            let ratio = median(&fine, operations) / median(&theirs, operations);
            let verdict = if ratio >= 2.0 { "met" } else { "missed" };
            println!("         brownout ÷ latte: {ratio:.2} of its operations (aim ≥ 2: {verdict})");
            continue;
        }
        for (name, cells) in [("brownout", &fine), ("brownout, 1 ms", &coarse)] {
            let ratio = median(cells, cpu) / median(&theirs, cpu);
            let verdict = if ratio <= AIM { "met" } else { "missed" };
            println!("         {name} ÷ latte: {ratio:.2} of its CPU (aim ≤ {AIM}: {verdict})");
        }
    }
}

fn operations(cell: &Cell) -> f64 {
    cell.operations
}

fn cpu(cell: &Cell) -> f64 {
    cell.cpu_us / cell.operations
}

fn row(rate: u32, name: &str, cells: &[Cell]) {
    let told = |place: usize| median(cells, |cell| cell.output[place]) / 1e3;
    let told = if name == "latte" {
        "not told".to_owned()
    } else {
        format!("{:>6.0} / {:<6.0} {:>9.0} / {:<6.0}", told(0), told(2), told(1), told(3))
    };
    println!(
        "{rate:>7}  {name:<15} {:>11.0} {:>10.2} {:>12.2} {:>8.1}  {told}",
        median(cells, |cell| cell.operations / (SECONDS[1] - SECONDS[0]) as f64),
        median(cells, cpu),
        median(cells, |cell| cell.switches / cell.operations),
        median(cells, |cell| cell.rss_mib),
    );
}
