//! How far does a run over many machines go? The real controller, its record, analysis and report, on machines, pods and loads that
//! are simulated: each is a process that tells and records what a real one would, and does nothing else.
//!
//! `make bench` runs it on 60 pods; `-- --large` on 500 pods of 100 nodes with 50 loads, `-- --large --hour` for an hour. BROWNOUT names
//! the program. All parts are on this machine: what is measured is the controller, not they.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot run should say where and stop")]

mod fleet;
mod part;

use std::{
    env, fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use fleet::Fleet;

/// Where parts write what they have told and heard.
pub const COUNTS: &str = "FLEET_COUNTS";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().collect();
    if let Some(at) = words.iter().position(|word| word == "--part") {
        let numbers: Vec<usize> = words[at + 1..at + 5].iter().map(|word| word.parse().unwrap()).collect();
        part::part(&Fleet { pods: numbers[1], nodes: numbers[2], loads: numbers[3] }, numbers[0]);
        return ExitCode::SUCCESS;
    }
    let asked = |word: &str| words.iter().any(|one| one == word);
    let fleet = match asked("--large") {
        true => Fleet { pods: 500, nodes: 100, loads: 50 },
        false => Fleet { pods: 60, nodes: 12, loads: 6 },
    };
    let phase_s = if asked("--hour") { 3_580 } else { 360 };
    run(&fleet, phase_s)
}

fn run(fleet: &Fleet, phase_s: u64) -> ExitCode {
    let brownout = env::var("BROWNOUT").expect("BROWNOUT names the program");
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let own = env::current_exe().unwrap();
    fs::write(path("fleet.yaml"), fleet.experiment(own.to_str().unwrap(), phase_s)).unwrap();
    fs::create_dir(path("counts")).unwrap();
    let Fleet { pods, nodes, loads } = fleet;
    println!("{pods} pods on {nodes} nodes, {loads} loads, {} s", phase_s + 20);

    let measured = |what: &str, words: &[&str]| {
        let begun = Instant::now();
        let mut command = Command::new(&brownout);
        command.args(words).current_dir(directory.path()).env(COUNTS, path("counts"));
        #[expect(clippy::zombie_processes, reason = "it is waited for by a call that tells what it used")]
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(path("said")).unwrap())
            .spawn()
            .unwrap();
        let (code, most_kib) = wait(child.id());
        let seconds = begun.elapsed().as_secs_f64();
        println!("{what:<28} {seconds:>8.1} s   {:>8.0} MiB at most   exit code {code}", most_kib as f64 / 1024.0);
        (code, seconds)
    };
    let (code, _) = measured("the run", &["run", "fleet.yaml", "--json", "--out", "runs"]);
    let Some(run) = fs::read_dir(path("runs")).ok().and_then(|mut all| all.next()?.ok()) else {
        println!(
            "there is no run: {brownout} run fleet.yaml ended with {code}:\n{}",
            fs::read_to_string(path("said")).unwrap()
        );
        return ExitCode::FAILURE;
    };
    let run = run.path();
    let name = run.to_str().unwrap();
    measured("its findings (show --json)", &["show", "--json", name]);
    measured("its report (report)", &["report", name]);
    for file in ["run.db", "report.html"] {
        let bytes = fs::metadata(run.join(file)).map_or(0, |file| file.len());
        println!("{file:<28} {:>8.1} MiB", bytes as f64 / f64::from(1 << 20));
    }
    let [told, told_bytes, heard] = counted(&path("counts"));
    let parts = (nodes + loads) as f64;
    println!(
        "parts told {:.1} messages and {:.1} KiB a second each, beside their records; and heard {:.1} messages",
        told / parts / phase_s as f64,
        told_bytes / parts / phase_s as f64 / 1024.0,
        heard / parts / phase_s as f64
    );
    // 3: with so few processors as here, what is simulated may be disturbed.
    if matches!(code, 0 | 1 | 3) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Waits for a child, and for all that it has waited for: its exit code, and what the largest of them had in memory, KiB.
fn wait(pid: u32) -> (i32, i64) {
    let mut status = 0;
    // SAFETY: a zeroed rusage is one, and both are written to by the kernel.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage), pid.cast_signed());
        usage
    };
    (if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }, usage.ru_maxrss)
}

/// What all parts together have told (messages, bytes) and heard.
fn counted(directory: &Path) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for file in fs::read_dir(directory).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        for (sum, number) in sums.iter_mut().zip(text.split_whitespace()) {
            *sum += number.parse::<f64>().unwrap();
        }
    }
    sums
}
