//! A run beside a program that spins on all processors shows the machine, and says so.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use common::{SHORT, both, brownout, experiment, json, only_run, require_root, text};

/// Programs that do nothing but use processors, one for each.
struct Spinners(Vec<Child>);

impl Spinners {
    /// A shell under a name of its own.
    fn start(directory: &Path) -> Self {
        let program = directory.join("spin");
        fs::copy("/bin/sh", &program).unwrap();
        let spin = |_| {
            let mut command = Command::new(&program);
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
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

#[test]
fn a_run_beside_spinning_programs_is_disturbed_and_names_them() {
    require_root();
    let out = tempfile::tempdir().unwrap();
    let file = experiment("slow-replica.yaml");
    let mut arguments = vec!["run", file.to_str().unwrap(), "--out", out.path().to_str().unwrap(), "--json"];
    arguments.extend(SHORT);
    let programs = tempfile::tempdir().unwrap();
    let spinners = Spinners::start(programs.path());
    let output = brownout(&arguments);
    assert_eq!(output.status.code(), Some(3), "{}", both(&output));
    let findings = json(&output);
    let verdict = &findings["verdict"];
    assert_eq!(verdict["validity"], "disturbed", "{verdict}");
    let trial = &findings["trials"][0];
    assert_eq!(trial["validity"], "disturbed");
    // Whatever else the machine does: nothing takes more than programs that never sleep.
    let takers = trial["instrument"]["disturbed_by"].as_array().unwrap();
    let spinning = takers.iter().find(|taker| taker["name"] == "spin").unwrap_or_else(|| panic!("{takers:?}"));
    for pid in spinners.pids() {
        assert!(spinning["pids"].as_array().unwrap().iter().any(|seen| *seen == pid), "{pid} is not in {spinning}");
    }
    let cpu = trial["instrument"]["cpu"].as_array().unwrap();
    let fault = cpu.iter().find(|cpu| cpu["phase"] == "fault").unwrap();
    for node in ["n1", "n2", "n3"] {
        assert!(fault["waited"][node].as_f64().unwrap() > 0.0, "{fault}");
    }
    let shown = brownout(&["show", only_run(out.path()).to_str().unwrap()]);
    assert_eq!(shown.status.code(), Some(3));
    let summary = text(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let named = format!("spin ({} processes) took", spinners.0.len());
    let alone = format!("spin (pid {}) took", spinners.pids()[0]);
    assert!(summary.contains("Disturbed: trial 1: "), "{summary}");
    assert!(summary.contains(&named) || summary.contains(&alone), "{summary}");
}
