//! What is done to nodes, on small programs in place of a database. They are confined like one, which takes root.

mod limits;
mod signals;

use std::{
    env,
    net::Ipv4Addr,
    path::PathBuf,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use brownout_units::Share;

use crate::{
    Cluster, ClusterControl, ClusterError, Database, DatabaseKind, Death, EnterableHost, NodeState, Paths, Question,
    SystemSettings,
    database::{ClusterView, Heartbeat, Looker, Member, Program, Start},
};

const PATIENCE: Duration = Duration::from_secs(60);
/// For all that one test does with a spinning node.
const SPINNING: Duration = Duration::from_secs(600);
const SPIN: &str = "BROWNOUT_TEST_SPIN";

/// A database that is a program of the test's choice.
struct Chosen(fn() -> Command);

impl Database for Chosen {
    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Cassandra
    }
    fn program(&self) -> Option<&dyn Program> {
        Some(self)
    }
    fn answers(&self, _: &[Member], _: usize) -> Result<(), String> {
        Err("it is not a database".to_owned())
    }
    fn view(&self, _: &[Member], _: usize) -> ClusterView {
        ClusterView::default()
    }
    fn rest(&self, _: &[Member], _: usize) -> ClusterView {
        ClusterView::default()
    }
    fn heartbeat(&self, _: &[Member], _: usize, _: Question) -> Box<dyn Heartbeat> {
        unreachable!("nobody asks in these tests")
    }
    fn looker(&self, _: &[Member], _: usize, _: bool) -> Option<Box<dyn Looker>> {
        None
    }
    fn settings_in_force(&self, _: &[Member]) -> SystemSettings {
        unreachable!("nobody asks in these tests")
    }
}

impl Program for Chosen {
    fn directories(&self) -> &[&str] {
        &["data", "commitlog", "hints"]
    }
    fn reads(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    fn check(&self, _: &[Member]) -> Result<(), ClusterError> {
        Ok(())
    }
    fn configure(&self, _: &[Member], _: usize) -> Result<(), ClusterError> {
        Ok(())
    }
    fn command(&self, _: &[Member], _: usize, _: Start) -> Command {
        self.0()
    }
    fn tool(&self, _: &[Member], _: usize, arguments: &[String]) -> Option<Command> {
        let mut command = Command::new("echo");
        command.args(arguments);
        Some(command)
    }
    fn log_files(&self) -> &'static [&'static str] {
        &["system.log"]
    }
}

struct Here;

impl EnterableHost for Here {
    fn name(&self) -> &str {
        "n1"
    }
    fn address(&self) -> Ipv4Addr {
        Ipv4Addr::LOCALHOST
    }
    fn enter(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// One node that runs `program`; its directories go with the second part.
fn run(program: fn() -> Command) -> (Cluster, ClusterControl, tempfile::TempDir) {
    run_with(program, &mut |_| Ok(Vec::new()))
}

fn run_with(
    program: fn() -> Command,
    prepare: &mut dyn FnMut(&crate::NodeDirectories) -> std::io::Result<crate::Variables>,
) -> (Cluster, ClusterControl, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let paths = Paths { scratch: directory.path().join("scratch"), logs: directory.path().join("logs"), owner: None };
    let cluster = Cluster::start(Box::new(Chosen(program)), &[&Here], &paths, prepare)
        .unwrap_or_else(|error| panic!("this test starts a confined process: run it as root: {error}"));
    let control = cluster.control();
    (cluster, control, directory)
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Waits for a signal.
fn idle() -> Command {
    shell("exec sleep 600")
}

/// Does not end when it is asked to, and says when it no longer will.
fn deaf() -> Command {
    shell("trap '' TERM; echo deaf; while :; do sleep 0.1; done")
}

/// More threads than this machine has processors, each of which takes all that it gets.
fn spinning() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    let name = concat!(module_path!(), "::spin_in_a_process_of_its_own");
    command.args(["--ignored", "--exact", name.split_once("::").unwrap().1]).env(SPIN, "1");
    command
}

#[test]
#[ignore = "other tests run it, in a process of its own"]
fn spin_in_a_process_of_its_own() {
    if env::var_os(SPIN).is_none() {
        return;
    }
    let until = Instant::now() + SPINNING;
    let spin = move || while Instant::now() < until {};
    let threads: Vec<_> = (0..=thread::available_parallelism().unwrap().get()).map(|_| thread::spawn(spin)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn cpu_ns(control: &ClusterControl) -> u64 {
    control.cpu_ns("n1").unwrap().unwrap()
}

fn until(mut what: impl FnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !what() {
        assert!(Instant::now() < patience, "it does not come");
        thread::sleep(Duration::from_millis(1));
    }
}

fn wait_for_death(cluster: &mut Cluster) -> Death {
    let mut deaths = Vec::new();
    until(|| {
        deaths = cluster.deaths();
        !deaths.is_empty()
    });
    assert_eq!(deaths.len(), 1, "{deaths:?}");
    deaths.remove(0)
}

/// One spinning node at a time: two would have each other's CPU.
static TURN: Mutex<()> = Mutex::new(());

/// Starts a spinning node whose threads go before whatever else runs on this machine.
fn spin() -> (Cluster, ClusterControl, (tempfile::TempDir, MutexGuard<'static, ()>)) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (cluster, control, directory) = run(spinning);
    until(|| cpu_ns(&control) > 50_000_000);
    let pid = control.pid("n1").unwrap().unwrap();
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PGRP, pid, -20) }, 0, "{}", std::io::Error::last_os_error());
    (cluster, control, (directory, turn))
}

fn share(percent: u32) -> Share {
    Share::new(f64::from(percent) / 100.0).unwrap()
}
