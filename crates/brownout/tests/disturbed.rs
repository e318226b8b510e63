//! A run beside a program that spins on all processors shows the machine, and says so.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
};

use common::{Running, both, brownout, json, only_run, require_root, text};
use serde_json::Value;

/// Programs that do nothing but use processors, one for each.
struct Spinners(Vec<Child>);

impl Spinners {
    /// A shell under a name of its own, and in a session of its own, as from another terminal: kernels share processors out among
    /// sessions (`sched_autogroup`), and those that spin would get but what `brownout` leaves of its own share.
    fn start(directory: &Path) -> Self {
        let program = directory.join("spin");
        fs::copy("/bin/sh", &program).unwrap();
        let spin = |_| {
            let mut command = Command::new("setsid");
            command.arg(&program).args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
            command.spawn().unwrap()
        };
        Spinners((0..thread::available_parallelism().unwrap().get()).map(spin).collect())
    }

    fn pids(&self) -> Vec<u64> {
        self.0.iter().map(|child| u64::from(child.id())).collect()
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A closed loop, and settings that are not the usual ones; of a fault nothing is asked.
const FILE: &str = "\
network: { congestion-control: reno }
cluster: { nodes: 1, jit: c1 }
load: { replication: 1, consistency: one, threads: 4, population: 2_000 }
phases: { warm-up: 16s, baseline: 5s }
objective: { p95: 1s }
attempts: 1
";

/// That run beside processes that spin from its warm-up on.
struct Busy {
    code: Option<i32>,
    /// What it said on the terminal.
    seen: String,
    findings: Value,
    /// What `show` prints of it, its lines joined.
    summary: String,
    /// Whether the data of a node was kept.
    is_kept: bool,
    spinning: Vec<u64>,
}

fn busy() -> &'static Busy {
    static RUN: OnceLock<Busy> = OnceLock::new();
    RUN.get_or_init(|| {
        require_root();
        let out = tempfile::tempdir().unwrap();
        let programs = tempfile::tempdir().unwrap();
        let file = programs.path().join("busy.yaml");
        fs::write(&file, FILE).unwrap();
        let mut running = Running::start(&[file.to_str().unwrap(), "--out", out.path().to_str().unwrap(), "--keep"]);
        // Nothing is measured before, and a node takes twice as long to start beside them.
        running.wait_for("warm-up (filling)");
        let spinners = Spinners::start(programs.path());
        let (code, seen) = running.finish();
        let run = only_run(out.path());
        let shown = brownout(&["show", run.to_str().unwrap()]);
        assert_eq!(shown.status.code(), code, "{}", both(&shown));
        Busy {
            findings: json(&brownout(&["show", run.to_str().unwrap(), "--json"])),
            code,
            seen,
            summary: text(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" "),
            is_kept: run.join("scratch/stand-1/n1").is_dir(),
            spinning: spinners.pids(),
        }
    })
}

#[test]
fn a_run_beside_spinning_programs_is_disturbed_and_names_them() {
    let Busy { code, seen, findings, summary, spinning, .. } = busy();
    assert_eq!(*code, Some(3), "{seen}");
    let verdict = &findings["verdict"];
    assert_eq!(verdict["validity"], "disturbed", "{verdict}");
    let trial = &findings["trials"][0];
    assert_eq!(trial["validity"], "disturbed");
    // Whatever else the machine does: nothing takes more than programs that never sleep.
    let takers = trial["instrument"]["disturbed_by"].as_array().unwrap();
    let spin = takers.iter().find(|taker| taker["name"] == "spin").unwrap_or_else(|| panic!("{takers:?}"));
    for pid in spinning {
        assert!(spin["pids"].as_array().unwrap().iter().any(|seen| seen == pid), "{pid} is not in {spin}");
    }
    let cpu = trial["instrument"]["cpu"].as_array().unwrap();
    let baseline = cpu.iter().find(|cpu| cpu["phase"] == "baseline").unwrap();
    assert!(baseline["waited"]["n1"].as_f64().unwrap() > 0.0, "{baseline}");
    let named = format!("spin ({} processes) took", spinning.len());
    let alone = format!("spin (pid {}) took", spinning[0]);
    assert!(summary.contains("Disturbed: trial 1: "), "{summary}");
    assert!(summary.contains(&named) || summary.contains(&alone), "{summary}");
}

#[test]
fn a_closed_loop_runs_and_its_arithmetic_is_shown_and_what_is_set_is_in_force() {
    let Busy { findings, is_kept, .. } = busy();
    let environment = &findings["environment"];
    assert_eq!(environment["congestion_control"], "reno");
    assert!(is_kept, "--keep keeps the nodes' data");
    let trial = &findings["trials"][0];
    assert_eq!(trial["closed_loop"]["threads"], 4, "{}", trial["closed_loop"]);
    // Whatever becomes of the latency, four users never have more than four operations open: with eight, twice as many would
    // be done as four can do in such times. What the last ones of a phase take beyond its end counts in it.
    let phases = trial["closed_loop"]["phases"].as_array().unwrap();
    assert!(!phases.is_empty());
    for phase in phases {
        let most = 1.5 * phase["predicted"].as_f64().unwrap();
        assert!(phase["measured"].as_f64().unwrap() < most, "{phase}");
    }
    assert!(trial["balance"]["balances"].as_bool().unwrap(), "{}", trial["balance"]);
}
