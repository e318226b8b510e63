//! The tools that are compared: how each is told what to do, and what it tells afterwards.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What a tool is to do.
#[derive(Clone, Copy, PartialEq)]
pub enum Load {
    /// Operations per second.
    Rate(u32),
    /// As fast as it can, with so many open at a time.
    Users(u32),
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// `open=`, our own way to keep a rate.
    Brownout,
    /// cassandra-stress's language; a tool that takes it gets the same words as ours.
    CassandraStress,
    Latte,
    ScyllaBench,
}

/// With which loads a tool is measured.
#[derive(Clone, Copy, PartialEq)]
pub enum When {
    Always,
    /// With rates only.
    Rates,
    /// In closed loops only.
    Users,
    /// With a rate and a server that freezes.
    Freezes,
}

pub struct Tool {
    pub name: &'static str,
    pub kind: Kind,
    pub ours: bool,
    pub path: PathBuf,
    /// What its command line ends with.
    pub more: &'static str,
    pub when: When,
}

/// What a tool says about a run, ms; the lateness of its starts in µs.
#[derive(Default, Debug)]
pub struct Told {
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
    pub late_p50_us: Option<f64>,
    pub late_p99_us: Option<f64>,
    pub late_max_us: Option<f64>,
}

/// Users of a tool that keeps a rate with a bounded number of them.
const USERS: u32 = 200;

/// The tick of latte's timer: with it, ours starts operations as coarsely.
pub const COARSE: &str = "brownout, 1 ms";

/// Ours in its ways, then the peers that are here; of the others it says in a line how to have them.
pub fn found() -> Vec<Tool> {
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let path = named("BROWNOUT").expect("BROWNOUT names the brownout to measure; `make bench` does all of it");
    let ours = |name, kind, more, when| Tool { name, kind, ours: true, path: path.clone(), more, when };
    let mut tools = vec![
        ours("brownout, open", Kind::Brownout, "", When::Always),
        ours(COARSE, Kind::Brownout, "--tick 1ms", When::Rates),
        ours("brownout, as c-s", Kind::CassandraStress, "", When::Rates),
    ];
    let peers = [
        ("latte", Kind::Latte, "LATTE", "scripts/peers builds it"),
        ("scylla-bench", Kind::ScyllaBench, "BROWNOUT_SCYLLA_BENCH", "scripts/peers builds it"),
        ("cassandra-stress", Kind::CassandraStress, "BROWNOUT_CASSANDRA_STRESS", "Cassandra's tools/bin"),
        (
            "cql-stress",
            Kind::CassandraStress,
            "BROWNOUT_CQL_STRESS",
            "cql-stress-cassandra-stress of scylladb/cql-stress",
        ),
    ];
    for (name, kind, variable, source) in peers {
        match named(variable).filter(|path| runs(path)) {
            Some(path) => {
                let peer = |name, more, when| Tool { name, kind, ours: false, path: path.clone(), more, when };
                tools.push(peer(name, "", When::Always));
                // In a closed loop each peer may use as many connections as ours does, if that suits it better.
                match kind {
                    Kind::Latte => {
                        tools.push(peer("latte, 8 connect.", "--connections 8", When::Users));
                        // By default it stops starting at 128, and a freeze hides behind them: here it has room for all.
                        tools.push(peer("latte, 4096 open", "--concurrency 4096", When::Freezes));
                    }
                    Kind::ScyllaBench => tools.push(peer("scylla-b., 8 conn.", "-connection-count 8", When::Users)),
                    _ => {}
                }
            }
            None => println!("{name} is not measured: {variable} names none that runs ({source})"),
        }
    }
    tools
}

fn runs(path: &Path) -> bool {
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not all know the word; what matters is that there is a program.
    command.status().is_ok()
}

impl Tool {
    /// Has it write rows of one 10-byte key and 5 × 34 bytes (or as many bytes in one column) for some seconds.
    pub fn command(&self, load: Load, seconds: u64, port: u16, nodes: u8) -> Command {
        let mut command = Command::new(&self.path);
        let hosts: Vec<String> = (1..=nodes).map(|node| format!("127.0.0.{node}")).collect();
        let text = match self.kind {
            Kind::Brownout | Kind::CassandraStress => {
                let rate = match (load, self.kind) {
                    (Load::Rate(rate), Kind::Brownout) => format!("open={rate}/s"),
                    (Load::Rate(rate), _) => format!("threads={USERS} fixed={rate}/s"),
                    (Load::Users(users), _) => format!("threads={users}"),
                };
                let words = format!(
                    "write duration={seconds}s no-warmup cl=ONE -rate {rate} -node {} -port native={port}",
                    hosts.join(",")
                );
                if self.ours {
                    command.arg("stress");
                    format!("{words} -log json=told.json")
                } else {
                    words
                }
            }
            Kind::Latte => {
                let rate = match load {
                    Load::Rate(rate) => format!("--rate {rate}"),
                    Load::Users(users) => format!("--concurrency {users}"),
                };
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/write.rn");
                let hosts: Vec<String> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
                command.args(["run", script]);
                format!(
                    "--quiet --threads 1 --warmup 0 --consistency ONE {rate} --duration {seconds}s --output told.json {}",
                    hosts.join(" ")
                )
            }
            Kind::ScyllaBench => {
                let hosts: Vec<String> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
                let rate = match load {
                    Load::Rate(rate) => format!("-concurrency {USERS} -max-rate {rate}"),
                    Load::Users(users) => format!("-concurrency {users}"),
                };
                format!(
                    "-mode write -workload uniform -partition-count 1000000 -clustering-row-count 1 -clustering-row-size 170 \
                     -rows-per-request 1 -replication-factor 1 -consistency-level one {rate} -duration {seconds}s \
                     -client-compression=false -nodes {}",
                    hosts.join(",")
                )
            }
        };
        // latte's hosts come last, and its options may stand anywhere before.
        command.args(self.more.split_whitespace()).args(text.split_whitespace());
        command
    }

    /// Reads what it left in `directory`: its report, or what it printed to `output`.
    pub fn told(&self, directory: &Path, output: &str) -> Told {
        let printed = fs::read_to_string(directory.join(output)).unwrap_or_default();
        match self.kind {
            _ if self.ours => ours(&json(directory)),
            Kind::Latte => latte(&json(directory)),
            Kind::ScyllaBench => Told {
                p50: after(&printed, "median:"),
                p95: after(&printed, "95th:"),
                p99: after(&printed, "99th:"),
                max: after(&printed, "max:"),
                ..Told::default()
            },
            _ => Told {
                p50: after(&printed, "Latency median"),
                p95: after(&printed, "Latency 95th percentile"),
                p99: after(&printed, "Latency 99th percentile"),
                max: after(&printed, "Latency max"),
                ..Told::default()
            },
        }
    }
}

fn json(directory: &Path) -> serde_json::Value {
    let text = fs::read_to_string(directory.join("told.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn ours(told: &serde_json::Value) -> Told {
    let at = |latency: &serde_json::Value, field: &str, unit: f64| latency[field].as_f64().map(|ns| ns / unit);
    let (response, late) = (&told["total"]["outcomes"]["ok"]["response"], &told["client"]["lateness"]);
    Told {
        p50: at(response, "p50_ns", 1e6),
        p95: at(response, "p95_ns", 1e6),
        p99: at(response, "p99_ns", 1e6),
        max: at(response, "max_ns", 1e6),
        late_p50_us: at(late, "p50_ns", 1e3),
        late_p99_us: at(late, "p99_ns", 1e3),
        late_max_us: at(late, "max_ns", 1e3),
    }
}

/// The time from a cycle's turn to its end, as its report has it: pairs of a percentile's name and its value.
fn latte(told: &serde_json::Value) -> Told {
    let percentiles = &told["result"]["cycle_latency"]["percentiles"];
    let at = |place: usize| percentiles[place]["value"].as_f64();
    Told { p50: at(6), p95: at(9), p99: at(11), max: at(14), ..Told::default() }
}

/// The number after a word, in ms: `Latency max : 12.3 [WRITE: 12.3]`, or a Go duration, `max: 1.2s`.
fn after(text: &str, word: &str) -> Option<f64> {
    let rest = text.lines().rev().find_map(|line| line.split_once(word))?.1;
    let rest = rest.trim_start_matches([' ', ':']).split_whitespace().next()?.replace(',', "");
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number: f64 = rest[..end].parse().ok()?;
    Some(match &rest[end..] {
        "µs" | "us" => number / 1e3,
        "ns" => number / 1e6,
        "s" => number * 1e3,
        _ => number,
    })
}
