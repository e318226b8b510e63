//! Pausing, ending, starting again.

use std::time::{Duration, Instant};

use super::*;
use crate::kernel;

#[test]
fn what_a_node_already_is_cannot_be_asked_for() {
    let (_cluster, control, _directory) = run(idle);
    let said = |result: Result<brownout_base::Change, ClusterError>| result.unwrap_err().to_string();
    assert!(said(control.unpause("n1")).contains("cannot unpause n1: it is not paused"));
    assert!(said(control.start("n1")).contains("cannot start n1: it runs already"));
    control.pause("n1").unwrap();
    assert_eq!(control.state("n1").unwrap(), NodeState::Paused);
    assert!(said(control.pause("n1")).contains("cannot pause n1: it is paused already; unpause it"));
    assert!(said(control.start("n1")).contains("is paused, not down"));
    let error = control.tool("n1", &[]).unwrap_err().to_string();
    assert!(error.contains("is paused and does not answer"), "{error}");
    control.kill("n1", libc::SIGKILL).unwrap();
    assert_eq!((control.state("n1").unwrap(), control.pid("n1").unwrap()), (NodeState::Down, None));
    for (result, doing) in [
        (control.pause("n1"), "pause"),
        (control.unpause("n1"), "unpause"),
        (control.kill("n1", libc::SIGKILL), "kill"),
        (control.stop("n1", PATIENCE).map(|stopped| stopped.change), "stop"),
    ] {
        let error = said(result);
        assert!(error.starts_with(&format!("cannot {doing} n1: it is down")), "{error}");
    }
    assert!(said(control.pause("n2")).contains("no node 'n2' (did you mean n1?)"));
}

#[test]
fn signals_that_do_not_kill_are_refused() {
    let (_cluster, control, _directory) = run(idle);
    for signal in [0, -9, libc::SIGSTOP, libc::SIGCONT, libc::SIGCHLD, libc::SIGQUIT, 64, 999] {
        let error = control.kill("n1", signal).unwrap_err();
        assert!(matches!(error, ClusterError::NotDeadly { .. }), "{error}");
    }
    assert_eq!(control.state("n1").unwrap(), NodeState::Up);
}

#[test]
fn deaths_that_were_asked_for_are_told_apart_and_none_is_lost_by_a_start() {
    let (mut cluster, control, _directory) = run(idle);
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
    let (mut cluster, control, _directory) = run(deaf);
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
    let (_cluster, control, _directory) = run(idle);
    control.pause("n1").unwrap();
    assert!(!control.stop("n1", PATIENCE).unwrap().killed);
    control.start("n1").unwrap();
    assert_eq!(control.state("n1").unwrap(), NodeState::Up, "the new one is not paused");
    control.pause("n1").unwrap();
    control.kill("n1", libc::SIGTERM).unwrap();
    assert_eq!(control.state("n1").unwrap(), NodeState::Down);
}

#[test]
fn a_node_that_was_let_go_on_by_somebody_else_can_be_paused_again() {
    let (_cluster, control, _directory) = run(idle);
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
    let (_cluster, control, _directory) = run(idle);
    let error = control.wait_answers("n1", Duration::from_secs(2), &|| false).unwrap_err().to_string();
    assert!(error.contains("n1 does not answer clients") && error.contains("it is not a database"), "{error}");
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
fn variables_of_the_caller_are_set_at_every_start_and_its_directories_are_there_before_the_first() {
    let mut calls = Vec::new();
    let (_cluster, control, _directory) = run_with(|| shell("echo \"=$TOLD=\"; exec sleep 600"), &mut |directories| {
        let names: Vec<&str> = directories.disks.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["data", "commitlog", "hints"]);
        let is_there = |path: &std::path::Path| path.is_dir() && path.starts_with(&directories.home);
        assert!(directories.disks.iter().all(|(_, path)| is_there(path)));
        assert!(directories.logs.is_dir() && !directories.logs.join("console.log").exists());
        calls.push(directories.name.clone());
        Ok(vec![("TOLD".into(), "once".into())])
    });
    assert_eq!(calls, ["n1"]);
    let console = control.console_path("n1").unwrap();
    let told = || std::fs::read_to_string(&console).unwrap().matches("=once=").count();
    until(|| told() == 1);
    control.stop("n1", PATIENCE).unwrap();
    control.start("n1").unwrap();
    until(|| told() == 2);
}

#[test]
fn a_start_whose_preparation_fails_is_an_error_that_names_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let paths = Paths { scratch: directory.path().join("scratch"), logs: directory.path().join("logs"), owner: None };
    let mut no = |_: &crate::NodeDirectories| Err(std::io::Error::other("no disk"));
    let Err(error) = Cluster::start(Box::new(Chosen(idle)), &[&Here], &paths, &mut no) else {
        panic!("it was started")
    };
    assert_eq!(error.to_string(), "cannot prepare the directories of n1: no disk");
}

#[test]
fn once_the_cluster_has_ended_its_nodes_are_down_and_stay_so() {
    let (cluster, control, _directory) = spin();
    let limit = control.limit_cpu("n1", share(5)).unwrap();
    control.pause("n1").unwrap();
    let pid = control.pid("n1").unwrap().unwrap();
    drop(cluster);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!((control.state("n1").unwrap(), control.pid("n1").unwrap()), (NodeState::Down, None));
    for error in [control.start("n1").unwrap_err(), control.kill("n1", libc::SIGKILL).unwrap_err()] {
        assert!(matches!(error, ClusterError::Ended { .. }), "{error}");
    }
    until(|| control.cpu_share("n1").unwrap().is_none());
    limit.heal();
}

#[test]
fn a_paused_cluster_that_is_stopped_ends_by_itself() {
    let (cluster, control, _directory) = run(idle);
    control.pause("n1").unwrap();
    assert!(cluster.stop(PATIENCE));
}

#[test]
fn a_tool_runs_in_the_nodes_directory_and_session() {
    let (_cluster, control, _directory) = run(idle);
    let output = control.tool("n1", &["status".to_owned(), "a b".to_owned()]).unwrap().output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "status a b\n");
}

const HOLD: &str = "BROWNOUT_TEST_HOLD";

#[test]
#[ignore = "other tests run it, in a process of its own"]
fn hold_in_a_process_of_its_own() {
    let Some(told) = env::var_os(HOLD).map(PathBuf::from) else { return };
    let (_cluster, control, _directory) = run(spinning);
    let _limit = control.limit_cpu("n1", share(1)).unwrap();
    until(|| control.held_ns("n1").unwrap() > 100_000_000);
    if told.ends_with("paused") {
        control.pause("n1").unwrap();
    }
    let part = told.with_extension("part");
    std::fs::write(&part, control.pid("n1").unwrap().unwrap().to_string()).unwrap();
    std::fs::rename(part, told).unwrap();
    thread::sleep(PATIENCE);
}

/// A child that is killed whatever becomes of the test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_held_node_dies_with_the_process_that_holds_it() {
    for how in ["paused", "throttled"] {
        let directory = tempfile::tempdir().unwrap();
        let told = directory.path().join(how);
        let name = concat!(module_path!(), "::hold_in_a_process_of_its_own");
        let us = Command::new(env::current_exe().unwrap())
            .args(["--ignored", "--exact", name.split_once("::").unwrap().1])
            .env(HOLD, &told)
            // What it cannot remove, being killed, goes with ours.
            .env("TMPDIR", directory.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .map(Killed)
            .unwrap();
        until(|| told.exists());
        let pid = std::fs::read_to_string(&told).unwrap().parse().unwrap();
        assert!(kernel::state(pid).is_some());
        drop(us);
        // Dead, though perhaps not yet reaped by whoever inherited it.
        until(|| matches!(kernel::state(pid), None | Some('Z' | 'X')));
    }
}
