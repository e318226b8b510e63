//! Running the real `brownout`, and looking at what it leaves behind.

#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod byhand;
pub mod cassandra;
pub mod certificates;
pub mod packed;
#[path = "../../../network/tests/machine/not_judged.rs"]
pub mod unjudged;

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use self::unjudged::not_judged;

pub const BROWNOUT: &str = env!("CARGO_BIN_EXE_brownout");

/// The whole repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// An experiment of the repository.
pub fn experiment(name: &str) -> PathBuf {
    repository().join("experiments").join(name)
}

/// `--set` that make the slow-replica experiment as short as its proof allows. A fifth of a phase may be late: two seconds
/// of these. There is little to fill, so that a slow machine gets through its warm-up, too.
pub const SHORT: [&str; 4] = [
    "--set=phases={warm-up: 16s, baseline: 8s, fault: 9s, recovery: 6s}",
    "--set=trials=1",
    "--set=attempts=1",
    "--set=load.population=2_000",
];

/// `--set` that make it a cluster of one node, where the size of the cluster is not what a test asks about.
pub const ONE_NODE: [&str; 3] =
    ["--set=cluster.nodes=1", "--set=load.replication=1", "--set=faults=[{slow: {host: n1, delay: 100ms}}]"];

/// The tests make namespaces and become other users.
pub fn require_root() {
    // SAFETY: geteuid has no preconditions.
    assert!(unsafe { libc::geteuid() } == 0, "this test has to run as root: sudo make test");
}

/// Runs `brownout` to its end.
pub fn brownout(arguments: &[&str]) -> Output {
    Command::new(BROWNOUT).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs `script` as root in a mount namespace of its own, in which `mount` is harmless.
pub fn in_private_mounts(script: &str) -> Output {
    require_root();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-euc", script]).env("BROWNOUT", BROWNOUT).stdin(Stdio::null());
    command.output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn both(output: &Output) -> String {
    format!("{}\n---- stderr:\n{}", text(&output.stdout), text(&output.stderr))
}

/// The only thing on stdout has to be one JSON object.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", both(output)))
}

/// Runs an experiment into a new directory; again for as long as the run itself says that the machine spoiled it.
///
/// On a machine with other work a run may be disturbed, or its instrument late. That is no defect if the run says so, and
/// ends with 3: what it would have shown is then asked of the next one, of three at most, once the machine is quiet again. The
/// first run that does not say so has to be as asked. None if all three were spoiled and the machine itself says that it was
/// busy, which is no defect either: the test is then in the list of those that nobody judged. A lab that finds each run spoiled
/// on a machine that is quiet by itself is one.
pub fn undisturbed(run: impl Fn(&Path) -> Output) -> Option<(TempDir, Output, Value)> {
    let mut is_busy = false;
    for attempt in 1..=3 {
        let directory = tempfile::tempdir().unwrap();
        let before = Processors::now();
        let output = run(directory.path());
        let stolen = before.stolen();
        let findings = json(&output);
        if !is_spoiled(&findings) {
            return Some((directory, output, findings));
        }
        let verdict = &findings["verdict"];
        assert_eq!(output.status.code(), Some(3), "a spoiled run is no result: {verdict}");
        eprintln!("Run {attempt}, {:.1}% of the processors stolen: {verdict}", stolen * 100.0);
        is_busy |= stolen > STOLEN || !becomes_quiet();
    }
    assert!(is_busy, "three runs say that the machine spoiled them, and the machine is quiet");
    not_judged("the machine spoiled three runs");
    None
}

/// A machine of which other machines take more than this is busy, whatever the lab says of it.
pub const STOLEN: f64 = 0.01;

/// What all processors did since the machine began, in ticks.
pub struct Processors {
    all: u64,
    stolen: u64,
}

impl Processors {
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        // user nice system idle iowait irq softirq steal: proc(5). What guests use is in the first two.
        let ticks = stat.lines().next().unwrap().split_whitespace().skip(1).take(8).map(|word| word.parse().unwrap());
        let ticks: Vec<u64> = ticks.collect();
        Processors { all: ticks.iter().sum(), stolen: ticks[7] }
    }

    /// The share that the hypervisor gave to other machines since then.
    pub fn stolen(&self) -> f64 {
        let now = Processors::now();
        (now.stolen - self.stolen) as f64 / (now.all - self.all).max(1) as f64
    }
}

/// Whether a run says that other programs or the machine spoiled it: none does that is valid because it tried again.
pub fn is_spoiled(findings: &Value) -> bool {
    let all = |of: &Value, key: &str| of[key].as_array().cloned().unwrap_or_default();
    // A period of a tenth of a second was over before the lab had a processor.
    let missed = |fault: &Value| {
        all(fault, "reasons").iter().any(|why| why.as_str().unwrap().ends_with("periods were never injected"))
    };
    let late = |trial: &Value| trial["instrument"]["too_late"] == true || all(trial, "faults").iter().any(missed);
    match findings["verdict"]["validity"].as_str() {
        Some("valid") => false,
        validity => validity == Some("disturbed") || all(findings, "trials").iter().any(late),
    }
}

/// A machine on which a thread that only sleeps is later than this is not quiet.
pub const TOO_LATE: Duration = Duration::from_millis(5);

/// However the work ends, by a panic too, what goes on beside it does.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work`, and says how late a thread that only sleeps was at most meanwhile.
pub fn beside_a_sleeper<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let is_over = AtomicBool::new(false);
    let sleep = || {
        let (mut most, nap) = (Duration::ZERO, Duration::from_millis(2));
        while !is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            thread::sleep(nap);
            most = most.max(begun.elapsed().saturating_sub(nap));
        }
        most
    };
    thread::scope(|scope| {
        let sleeper = scope.spawn(sleep);
        let over = Over(&is_over);
        let result = work();
        drop(over);
        (result, sleeper.join().unwrap())
    })
}

/// Waits until a thread that only sleeps is nearly on time for five seconds, but not for longer than a minute, and says
/// whether it was: what disturbed a run may disturb the next one just as well.
pub fn becomes_quiet() -> bool {
    let begun = Instant::now();
    let mut quiet_since = begun;
    while quiet_since.elapsed() < Duration::from_secs(5) {
        let due = Instant::now() + Duration::from_millis(1);
        thread::sleep(Duration::from_millis(1));
        if due.elapsed() > TOO_LATE {
            quiet_since = Instant::now();
        }
        if begun.elapsed() > Duration::from_secs(60) {
            return false;
        }
    }
    true
}

/// A `brownout run` under way, its progress read line by line.
pub struct Running {
    pub child: Child,
    lines: BufReader<std::process::ChildStdout>,
    pub seen: String,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Running {
        Running::start_with(arguments, Stdio::inherit())
    }

    /// The same, with what it says on stderr in a file.
    pub fn start_telling(arguments: &[&str], stderr: &Path) -> Running {
        Running::start_with(arguments, fs::File::create(stderr).unwrap().into())
    }

    fn start_with(arguments: &[&str], stderr: Stdio) -> Running {
        let mut child = Command::new(BROWNOUT)
            .arg("run")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { child, lines, seen: String::new() }
    }

    /// Reads on until a line contains `sign`.
    pub fn wait_for(&mut self, sign: &str) {
        self.wait_for_any(&[sign]);
    }

    /// Reads on until a line contains one of `signs`: what is told every second leaves one out if it is late.
    pub fn wait_for_any(&mut self, signs: &[&str]) {
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "the run ended before it said one of {signs:?}:\n{}", self.seen);
            self.seen.push_str(&line);
            if signs.iter().any(|sign| line.contains(sign)) {
                return;
            }
        }
    }

    /// Reads to the end and returns the exit code; none if a signal ended it.
    pub fn finish(mut self) -> (Option<i32>, String) {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            self.seen.push_str(&line);
            line.clear();
        }
        (self.child.wait().unwrap().code(), self.seen)
    }

    pub fn signal(&self, signal: i32) {
        kill(self.child.id(), signal);
    }
}

pub fn kill(pid: u32, signal: i32) {
    // SAFETY: a signal to a process that this test started.
    unsafe { libc::kill(i32::try_from(pid).unwrap(), signal) };
}

/// Whether a process has a handler of its own for a signal (`SigCgt`, proc(5)).
pub fn catches(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught & (1 << (signal - 1)) != 0
}

/// Those of these processes whose command lines hold this.
pub fn with_command_line(processes: &BTreeSet<(u32, u64)>, part: &str) -> Vec<u32> {
    let holds = |pid: &u32| text(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).contains(part);
    processes.iter().map(|(pid, _)| *pid).filter(holds).collect()
}

/// All processes below `root`, with their start times: a number may be used again, a pair is not.
pub fn descendants(root: u32) -> BTreeSet<(u32, u64)> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        if let Some((parent, started)) = parent_and_start(pid) {
            all.push((pid, parent, started));
        }
    }
    let mut found = BTreeSet::new();
    let mut frontier = vec![root];
    while let Some(above) = frontier.pop() {
        for (pid, parent, started) in &all {
            if *parent == above && found.insert((*pid, *started)) {
                frontier.push(*pid);
            }
        }
    }
    found
}

/// The parent of a process that lives.
pub fn parent(pid: u32) -> u32 {
    parent_and_start(pid).unwrap().0
}

/// Those of them that live.
pub fn alive(processes: &BTreeSet<(u32, u64)>) -> Vec<u32> {
    let lives = |(pid, started): &&(u32, u64)| parent_and_start(*pid).is_some_and(|(_, now)| now == *started);
    processes.iter().filter(lives).map(|(pid, _)| *pid).collect()
}

/// Cassandra's process on a node.
pub fn cassandra(of: u32, node: &str) -> u32 {
    let is_it = |pid: &u32| {
        let line = text(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
        line.contains(&format!("/{node}/")) && line.contains("CassandraDaemon")
    };
    let processes = descendants(of);
    let found = processes.iter().map(|(pid, _)| *pid).find(is_it);
    found.unwrap_or_else(|| panic!("no process of {node} in {processes:?}"))
}

/// Parent and start time of a process; none for one that has ended, a zombie too.
fn parent_and_start(pid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (fields[0] != "Z").then_some(())?;
    Some((fields[1].parse().ok()?, fields[19].parse().ok()?))
}

/// What a lab could leave on the machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    interfaces: BTreeSet<String>,
    mounts: BTreeSet<String>,
    routes: String,
}

impl Machine {
    pub fn now() -> Machine {
        let interfaces = fs::read_dir("/sys/class/net").unwrap().flatten();
        Machine {
            interfaces: interfaces.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
            mounts: fs::read_to_string("/proc/self/mounts").unwrap().lines().map(str::to_owned).collect(),
            routes: fs::read_to_string("/proc/net/route").unwrap(),
        }
    }
}

/// Network namespaces that some process lives in.
pub fn network_namespaces() -> BTreeSet<PathBuf> {
    let links = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("ns/net"));
    links.filter_map(|link| fs::read_link(link).ok()).collect()
}

/// Within two seconds none of `processes` may live, and the machine must be as it was. Seconds are counted in looks: on
/// a machine that stands still meanwhile, what ends has not had them either.
pub fn assert_nothing_is_left(processes: &BTreeSet<(u32, u64)>, machine: &Machine, namespaces: &BTreeSet<PathBuf>) {
    let mut looks = 0..100;
    loop {
        let alive = alive(processes);
        let new: Vec<PathBuf> = network_namespaces().difference(namespaces).cloned().collect();
        if alive.is_empty() && new.is_empty() && Machine::now() == *machine {
            return;
        }
        assert!(
            looks.next().is_some(),
            "after 2 s there are still processes {alive:?}, network namespaces {new:?}, machine {:?} against {machine:?}",
            Machine::now()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// The one run below `out`.
pub fn only_run(out: &Path) -> PathBuf {
    let runs: Vec<PathBuf> = fs::read_dir(out).unwrap().flatten().map(|entry| entry.path()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].clone()
}

/// The hosts that send what a fault hits.
pub fn senders(fault: &Value) -> Vec<&str> {
    let rows = fault["rows"].as_array().unwrap().iter().filter(|row| row["hit"] == true);
    let mut senders: Vec<&str> = rows.map(|row| row["subject"]["from"].as_str().unwrap()).collect();
    senders.sort_unstable();
    senders.dedup();
    senders
}

/// Who led when something began, by what the members of a trial's cluster say; before they said it, who was told of first. A
/// leader that is stopped hands over before it has ended: what counts is the beginning of the stamp's error.
pub fn leader_at<'a>(trial: &'a Value, stamp: &Value) -> &'a Value {
    let ns = |key: &str| stamp[key].as_u64().unwrap_or_else(|| panic!("no {key} in {stamp}"));
    let begun_ns = ns("at_ns").saturating_sub(ns("error_ns"));
    let leaders = trial["database"]["leaders"].as_array().unwrap();
    let before = leaders.iter().rfind(|led| led["at_ns"].as_u64().unwrap() <= begun_ns);
    &before.or(leaders.first()).unwrap_or_else(|| panic!("nobody says who leads"))["node"]
}

/// What the rows of a fault say of the delay on the way from one host to another, below (`pair`) or above (`overlay`).
pub fn delay_row<'a>(fault: &'a Value, layer: &str, from: &str, to: &str) -> &'a Value {
    let is = |row: &&Value| {
        let subject = &row["subject"];
        subject["kind"] == layer && subject["from"] == from && subject["to"] == to && row["quantity"] == "one-way-delay"
    };
    fault["rows"].as_array().unwrap().iter().find(is).unwrap_or_else(|| panic!("no {layer} {from} → {to} in {fault}"))
}
