//! What is done to nodes, on small programs in place of a database. They are confined like one, which takes root.

use std::{
    env,
    net::Ipv4Addr,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use brownout_network::monotonic_ns;
use brownout_units::Share;

use crate::{
    Cluster, ClusterControl, ClusterError, Death, InForce, NodeState, Paths, Place,
    system::{Member, Start, System, View},
};

const PATIENCE: Duration = Duration::from_secs(60);
const SPIN: &str = "BROWNOUT_TEST_SPIN";

/// A database that is a program of the test's choice.
struct Program(fn() -> Command);

impl System for Program {
    fn folders(&self) -> &[&str] {
        &["data", "commitlog", "hints"]
    }
    fn log_files(&self) -> &'static [&'static str] {
        &["system.log"]
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
    fn tool(&self, _: &[Member], _: usize, arguments: &[String]) -> Command {
        let mut command = Command::new("echo");
        command.args(arguments);
        command
    }
    fn view(&self, _: &[Member], _: usize) -> View {
        View::default()
    }
    fn answers(&self, _: &[Member], _: usize) -> Result<(), String> {
        Err("it is no database".to_owned())
    }
    fn in_force(&self, _: &[Member]) -> InForce {
        unreachable!("nobody asks in these tests")
    }
}

struct Here;

impl Place for Here {
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

/// One node that runs `program`; its folders go with the second part.
fn run(program: fn() -> Command) -> (Cluster, ClusterControl, tempfile::TempDir) {
    run_with(program, &mut |_| Ok(Vec::new()))
}

fn run_with(
    program: fn() -> Command,
    prepare: &mut dyn FnMut(&crate::NodeFolders) -> std::io::Result<crate::Variables>,
) -> (Cluster, ClusterControl, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths { scratch: folder.path().join("scratch"), logs: folder.path().join("logs"), owner: None };
    let cluster = Cluster::start_system(Box::new(Program(program)), &[&Here], &paths, prepare)
        .unwrap_or_else(|error| panic!("this test starts a confined process: run it as root: {error}"));
    let control = cluster.control();
    (cluster, control, folder)
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
    let until = Instant::now() + PATIENCE;
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

/// Starts a spinning node whose threads go before whatever else runs on this machine.
fn spin() -> (Cluster, ClusterControl, tempfile::TempDir) {
    let (cluster, control, folder) = run(spinning);
    until(|| cpu_ns(&control) > 50_000_000);
    let pid = control.pid("n1").unwrap().unwrap();
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PGRP, pid, -20) }, 0, "{}", std::io::Error::last_os_error());
    (cluster, control, folder)
}

fn share(percent: u32) -> Share {
    Share::new(f64::from(percent) / 100.0).unwrap()
}

/// The part of all processors' time that the node takes over 40 periods; measured from the outside.
fn measure(control: &ClusterControl, percent: u32) -> f64 {
    let begin = cpu_ns(control);
    let limit = control.limit_cpu("n1", share(percent)).unwrap();
    // From the middle of a period's standstill to that of another, so that whole quotas are counted.
    thread::sleep(Duration::from_millis(480));
    let (from_ns, from) = (monotonic_ns(), cpu_ns(control));
    while monotonic_ns() < from_ns + 4_000_000_000 {
        thread::sleep(Duration::from_millis(10));
        assert_eq!(control.state("n1").unwrap(), NodeState::Up, "slow is not paused");
    }
    let (to_ns, to) = (monotonic_ns(), cpu_ns(control));
    let sample = limit.sample();
    assert!(sample.kept && sample.throttled_ns > 0, "{sample:?}");
    assert!((43..=47).contains(&sample.periods) && sample.throttled_periods + 2 >= sample.periods, "{sample:?}");
    assert!(sample.ran_ns.abs_diff(to - begin) < (to - begin) / 5, "{sample:?}, {}", to - begin);
    let found = (to - from) as f64 / ((to_ns - from_ns) * u64::from(limit.processors())) as f64;
    eprintln!("asked {percent} %, measured {:.2} %: {sample:?}, {:?}", found * 100.0, limit.scheduling());
    limit.heal();
    found
}

#[test]
fn a_spinning_node_gets_the_share_it_is_limited_to() {
    let (_cluster, control, _folder) = spin();
    for percent in [10, 30, 50] {
        // Another load of real-time priority on this machine can spoil a measurement, not three in a row.
        let near = |found: &f64| (found * 100.0 / f64::from(percent) - 1.0).abs() < 0.05;
        let mut found = Vec::new();
        while found.len() < 3 && !found.last().is_some_and(near) {
            found.push(measure(&control, percent));
        }
        assert!(found.last().is_some_and(near), "asked {percent} %, measured {found:?}");
    }
}

#[test]
fn a_healed_limit_lets_the_node_take_all_it_can_and_of_two_the_lesser_counts() {
    let (_cluster, control, _folder) = spin();
    let used = |length_ms: u64| {
        let (at, before) = (monotonic_ns(), cpu_ns(&control));
        thread::sleep(Duration::from_millis(length_ms));
        (cpu_ns(&control) - before) as f64 / (monotonic_ns() - at) as f64
    };
    let processors = thread::available_parallelism().unwrap().get() as f64;
    let loose = control.limit_cpu("n1", share(60)).unwrap();
    let tight = control.limit_cpu("n1", share(5)).unwrap();
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(5)));
    thread::sleep(Duration::from_millis(1_000));
    let both = used(1_000);
    drop(tight);
    assert_eq!(control.cpu_share("n1").unwrap(), Some(share(60)));
    let healed = loose.heal();
    assert_eq!(control.cpu_share("n1").unwrap(), None);
    assert!(healed.error_ns < 1_000_000_000);
    let free = used(1_000);
    eprintln!("{both} with the limits, {free} without");
    assert!(both < 0.10 * processors && free > 3.0 * both, "{both}, {free}");
    assert_eq!(control.state("n1").unwrap(), NodeState::Up);
}

#[test]
fn a_paused_node_stays_paused_whatever_its_limit_does() {
    let (_cluster, control, _folder) = spin();
    let stands = || {
        let before = cpu_ns(&control);
        thread::sleep(Duration::from_millis(350));
        cpu_ns(&control) == before && control.state("n1").unwrap() == NodeState::Paused
    };
    let limit = control.limit_cpu("n1", share(20)).unwrap();
    thread::sleep(Duration::from_millis(150));
    let before = monotonic_ns();
    let paused = control.pause("n1").unwrap();
    assert!(paused.at_ns - paused.error_ns >= before && paused.at_ns + paused.error_ns <= monotonic_ns() + 1);
    assert!(stands(), "under a limit");
    limit.heal();
    assert!(stands(), "when its limit was healed");
    let limit = control.limit_cpu("n1", share(20)).unwrap();
    assert!(stands(), "when it was limited while paused");
    control.unpause("n1").unwrap();
    let before = cpu_ns(&control);
    until(|| cpu_ns(&control) > before);
    assert_eq!(control.state("n1").unwrap(), NodeState::Up);
    limit.heal();
}

#[test]
fn a_node_goes_on_when_its_governor_dies() {
    let (_cluster, control, _folder) = spin();
    let node = control.node("n1").unwrap();
    let limit = control.limit_cpu("n1", share(1)).unwrap();
    // Its thread meets a poisoned wait by a panic of our making, in place of a defect.
    node.supervisor.life().governing.sabotage();
    node.supervisor.changed.notify_all();
    until(|| !limit.sample().kept);
    assert_eq!(control.cpu_share("n1").unwrap(), None, "nobody keeps it");
    let (at, before) = (monotonic_ns(), cpu_ns(&control));
    thread::sleep(Duration::from_millis(500));
    let used = (cpu_ns(&control) - before) as f64 / (monotonic_ns() - at) as f64;
    assert!(used > 0.1, "{used}: it was held");
    // A new limit is kept again.
    drop(limit);
    let limit = control.limit_cpu("n1", share(1)).unwrap();
    assert!(limit.sample().kept);
}

#[test]
fn a_limit_stays_through_a_restart() {
    let (_cluster, control, _folder) = spin();
    let limit = control.limit_cpu("n1", share(5)).unwrap();
    control.kill("n1", libc::SIGKILL).unwrap();
    control.start("n1").unwrap();
    until(|| limit.sample().throttled_periods > 5);
    let before = limit.sample();
    thread::sleep(Duration::from_millis(1_000));
    let sample = limit.sample();
    assert!(sample.ran_ns > before.ran_ns && sample.periods > before.periods, "{before:?}, {sample:?}");
    assert_eq!(limit.share(), share(5));
    drop(limit);
}

#[test]
fn too_small_a_share_is_refused() {
    let (_cluster, control, _folder) = run(idle);
    let error = control.limit_cpu("n1", Share::new(0.005).unwrap()).unwrap_err().to_string();
    assert!(error.contains("0.5%") && error.contains("least is 1%"), "{error}");
    assert_eq!(control.cpu_share("n1").unwrap(), None);
}

#[test]
fn what_a_node_already_is_cannot_be_asked_for() {
    let (_cluster, control, _folder) = run(idle);
    let said = |result: Result<brownout_network::Change, ClusterError>| result.unwrap_err().to_string();
    assert!(said(control.unpause("n1")).contains("cannot unpause n1: it is not paused"));
    assert!(said(control.start("n1")).contains("cannot start n1: it runs already"));
    control.pause("n1").unwrap();
    assert_eq!(control.state("n1").unwrap(), NodeState::Paused);
    assert!(said(control.pause("n1")).contains("cannot pause n1: it is paused already; unpause it"));
    assert!(said(control.start("n1")).contains("is paused, not down"));
    let error = control.nodetool("n1", &[]).unwrap_err().to_string();
    assert!(error.contains("is paused and answers nobody"), "{error}");
    control.kill("n1", libc::SIGKILL).unwrap();
    assert_eq!((control.state("n1").unwrap(), control.pid("n1").unwrap()), (NodeState::Down, None));
    for (result, doing) in [
        (control.pause("n1"), "pause"),
        (control.unpause("n1"), "unpause"),
        (control.kill("n1", libc::SIGKILL), "kill"),
        (control.stop("n1", PATIENCE).map(|stopped| stopped.change), "stop"),
        (control.restart("n1", PATIENCE).map(|restarted| restarted.started), "restart"),
    ] {
        let error = said(result);
        assert!(error.starts_with(&format!("cannot {doing} n1: it is down")), "{error}");
    }
    assert!(said(control.pause("n2")).contains("no node 'n2' (did you mean n1?)"));
}

#[test]
fn signals_that_do_not_kill_are_refused() {
    let (_cluster, control, _folder) = run(idle);
    for signal in [0, -9, libc::SIGSTOP, libc::SIGCONT, libc::SIGCHLD, libc::SIGQUIT, 64, 999] {
        let error = control.kill("n1", signal).unwrap_err();
        assert!(matches!(error, ClusterError::NotDeadly { .. }), "{error}");
    }
    assert_eq!(control.state("n1").unwrap(), NodeState::Up);
}

#[test]
fn deaths_that_were_asked_for_are_told_apart_and_none_is_lost_by_a_start() {
    let (mut cluster, control, _folder) = run(idle);
    let killed = control.kill("n1", libc::SIGKILL).unwrap();
    let first = control.pid("n1").unwrap();
    let started = control.start("n1").unwrap();
    assert!(started.at_ns > killed.at_ns && first != control.pid("n1").unwrap());
    assert_eq!(cluster.nodes()[0].pid(), control.pid("n1").unwrap().unwrap(), "handles follow");
    assert!(cluster.nodes()[0].started_ns() >= started.at_ns - started.error_ns);
    let pid = control.pid("n1").unwrap().unwrap() as libc::pid_t;
    // SAFETY: the process is ours and not yet reaped.
    unsafe { libc::kill(pid, libc::SIGSEGV) };
    let mut deaths = Vec::new();
    until(|| {
        deaths.extend(cluster.deaths());
        deaths.len() == 2
    });
    assert!(deaths[0].asked && deaths[0].status.starts_with("killed by signal 9"), "{deaths:?}");
    assert!(deaths[0].at_ns.abs_diff(killed.at_ns) <= killed.error_ns, "{deaths:?}, {killed:?}");
    assert!(!deaths[1].asked && deaths[1].status.starts_with("killed by signal 11"), "{deaths:?}");
    assert_eq!(cluster.deaths(), []);
    control.start("n1").unwrap();
    assert!(control.stop("n1", PATIENCE).is_ok_and(|stopped| !stopped.killed));
    let death = wait_for_death(&mut cluster);
    assert!(death.asked && death.status.starts_with("killed by signal 15"), "{death:?}");
}

#[test]
fn a_node_that_does_not_end_when_asked_is_killed_after_the_deadline() {
    let (mut cluster, control, _folder) = run(deaf);
    let console = control.console_path("n1").unwrap();
    until(|| std::fs::read_to_string(&console).unwrap().contains("deaf"));
    let begun = Instant::now();
    let stopped = control.stop("n1", Duration::from_millis(300)).unwrap();
    assert!(stopped.killed && begun.elapsed() >= Duration::from_millis(300), "{stopped:?}");
    assert!(stopped.change.error_ns >= 150_000_000, "it may have been leaving all the while: {stopped:?}");
    assert!(wait_for_death(&mut cluster).asked);
}

#[test]
fn a_paused_node_that_is_stopped_ends_by_itself() {
    let (_cluster, control, _folder) = run(idle);
    control.pause("n1").unwrap();
    let restarted = control.restart("n1", PATIENCE).unwrap();
    assert!(!restarted.stopped.killed);
    assert_eq!(control.state("n1").unwrap(), NodeState::Up, "the new one is not paused");
    control.pause("n1").unwrap();
    control.kill("n1", libc::SIGTERM).unwrap();
    assert_eq!(control.state("n1").unwrap(), NodeState::Down);
}

#[test]
fn a_node_that_was_let_go_on_by_somebody_else_can_be_paused_again() {
    let (_cluster, control, _folder) = run(idle);
    let signal = |signal| {
        let pid = control.pid("n1").unwrap().unwrap() as libc::pid_t;
        // SAFETY: the process is ours and not yet reaped.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    };
    control.pause("n1").unwrap();
    signal(libc::SIGCONT);
    until(|| control.state("n1").unwrap() == NodeState::Up);
    control.pause("n1").unwrap();
    control.unpause("n1").unwrap();
    signal(libc::SIGSTOP);
    until(|| control.state("n1").unwrap() == NodeState::Paused);
    control.unpause("n1").unwrap();
    assert_eq!(control.state("n1").unwrap(), NodeState::Up);
}

#[test]
fn waiting_for_an_answer_ends_with_the_deadline_the_death_or_the_interruption() {
    let (_cluster, control, _folder) = run(idle);
    let error = control.wait_answers("n1", Duration::from_millis(100), &|| false).unwrap_err().to_string();
    assert!(error.contains("n1 does not answer clients") && error.contains("it is no database"), "{error}");
    let error = control.wait_answers("n1", PATIENCE, &|| true).unwrap_err();
    assert!(matches!(error, ClusterError::Interrupted), "{error}");
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            control.kill("n1", libc::SIGKILL).unwrap();
        });
        control.wait_answers("n1", PATIENCE, &|| false).unwrap_err()
    });
    assert!(matches!(error, ClusterError::NodeDied(Death { asked: true, .. })), "{error}");
    assert!(control.wait_answers("n1", PATIENCE, &|| false).unwrap_err().to_string().contains("is down"));
}

#[test]
fn variables_of_the_caller_are_set_at_every_start_and_its_folders_are_there_before_the_first() {
    let mut calls = Vec::new();
    let (_cluster, control, _folder) = run_with(|| shell("echo \"=$TOLD=\"; exec sleep 600"), &mut |folders| {
        assert!([&folders.data, &folders.commitlog, &folders.hints, &folders.logs].iter().all(|path| path.is_dir()));
        assert!(folders.data.starts_with(&folders.home) && !folders.logs.join("console.log").exists());
        calls.push(folders.name.clone());
        Ok(vec![("TOLD".into(), "once".into())])
    });
    assert_eq!(calls, ["n1"]);
    let console = control.console_path("n1").unwrap();
    let told = || std::fs::read_to_string(&console).unwrap().matches("=once=").count();
    until(|| told() == 1);
    control.restart("n1", PATIENCE).unwrap();
    until(|| told() == 2);
}

#[test]
fn a_start_whose_preparation_fails_is_an_error_that_names_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths { scratch: folder.path().join("scratch"), logs: folder.path().join("logs"), owner: None };
    let mut no = |_: &crate::NodeFolders| Err(std::io::Error::other("no disk"));
    let Err(error) = Cluster::start_system(Box::new(Program(idle)), &[&Here], &paths, &mut no) else {
        panic!("it was started")
    };
    assert_eq!(error.to_string(), "cannot prepare the folders of n1: no disk");
}

#[test]
fn once_the_cluster_has_ended_its_nodes_are_down_and_stay_so() {
    let (cluster, control, _folder) = spin();
    let limit = control.limit_cpu("n1", share(5)).unwrap();
    control.pause("n1").unwrap();
    let pid = control.pid("n1").unwrap().unwrap();
    cluster.kill();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!((control.state("n1").unwrap(), control.pid("n1").unwrap()), (NodeState::Down, None));
    for error in [control.start("n1").unwrap_err(), control.kill("n1", libc::SIGKILL).unwrap_err()] {
        assert!(matches!(error, ClusterError::Ended { .. }), "{error}");
    }
    until(|| !limit.sample().kept);
    limit.heal();
}

#[test]
fn a_paused_cluster_that_is_stopped_ends_by_itself() {
    let (cluster, control, _folder) = run(idle);
    control.pause("n1").unwrap();
    assert!(cluster.stop(PATIENCE));
}

#[test]
fn a_tool_runs_in_the_nodes_folder_and_session() {
    let (_cluster, control, _folder) = run(idle);
    let output = control.nodetool("n1", &["status".to_owned(), "a b".to_owned()]).unwrap().output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "status a b\n");
}
