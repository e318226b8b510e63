//! What is done to containers, on processes that stand for them: with control groups of their own where such can be made here,
//! and without. They take root.

use std::{
    env,
    fs::{self, OpenOptions},
    io::Write,
    iter,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::hands;
use brownout_machine::Processors;
use rustix::process::{Pid, Signal, kill_process_group};

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);
const HOLD: &str = "BROWNOUT_TEST_HOLD";

/// A process that leads a group, which is killed at the end, and its control group if it has one.
struct Process {
    child: Child,
    group: Option<PathBuf>,
}

impl Process {
    fn shell(script: &str) -> Process {
        Process::start(None, script).unwrap()
    }

    /// In a control group below `base`, if there is to be one and it has a freezer.
    fn start(base: Option<&Path>, script: &str) -> Option<Process> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // It begins when it is told to: in its group, so that all that it starts is there, too.
        let mut command = Command::new("sh");
        command.args(["-c", &format!("read go; {script}")]).process_group(0).stdin(Stdio::piped());
        let group = base.map(|base| {
            base.join(format!("brownout-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
        });
        if let Some(group) = &group {
            fs::create_dir(group).ok()?;
        }
        let mut process = Process { child: command.spawn().unwrap(), group };
        if let Some(group) = &process.group {
            let has_freezer = ["cgroup.freeze", "freezer.state"].iter().any(|file| group.join(file).exists());
            // Where the first version is mounted below, the directory above it is no group, and would keep a file of this name.
            let mut members =
                OpenOptions::new().write(true).open(group.join("cgroup.procs")).ok().filter(|_| has_freezer)?;
            members.write_all(process.pid().to_string().as_bytes()).ok()?;
        }
        process.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        Some(process)
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn id(&self) -> String {
        let name = self.group.as_ref().and_then(|group| group.file_name());
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn hands(&self) -> ContainerHands {
        ContainerHands::of("c1".to_owned(), self.id(), Some(self.pid()), Engine::Nobody).unwrap()
    }

    /// Whether it uses no CPU time at all for a while.
    fn stands(&self, hands: &ContainerHands) -> bool {
        let before = hands.cpu_ns();
        thread::sleep(Duration::from_millis(150));
        hands.cpu_ns() == before
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        for (file, word) in [("cgroup.freeze", "0"), ("freezer.state", "THAWED")] {
            let _ = self
                .group
                .as_ref()
                .map(|group| OpenOptions::new().write(true).open(group.join(file))?.write_all(word.as_bytes()));
        }
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
        if let Some(group) = &self.group {
            let begun = Instant::now();
            while fs::remove_dir(group).is_err() && begun.elapsed() < Duration::from_secs(5) {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn until(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A shell that spins, beside a child of it that does.
const SPIN: &str = "(while :; do :; done) & while :; do :; done";
/// One that starts a process after the other.
const BREED: &str = "while :; do /bin/true & sleep 0.001; done";

fn share(percent: u32) -> Share {
    Share::new(f64::from(percent) / 100.0).unwrap()
}

/// Processes without a control group of their own, and in one of each kind that can be made here; one after the other.
fn each_kind(script: &'static str) -> impl Iterator<Item = Process> {
    let groups =
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"].map(|base| Some(Path::new(base)));
    iter::once(None).chain(groups).filter_map(move |base| Process::start(base, script))
}

#[test]
fn a_paused_container_stands_with_all_its_processes_until_it_is_let_go_on() {
    for process in each_kind(SPIN) {
        let hands = process.hands();
        until(|| hands.cpu_ns().unwrap() > 20_000_000);
        let before = monotonic_ns();
        let change = hands.pause().unwrap();
        assert!(change.at_ns - change.error_ns >= before && change.at_ns + change.error_ns <= monotonic_ns() + 1);
        assert_eq!(hands.state().unwrap(), NodeState::Paused);
        assert!(process.stands(&hands), "{:?}", process.group);
        let error = hands.pause().unwrap_err().to_string();
        assert!(error.contains("cannot pause c1: it is paused already"), "{error}");
        hands.unpause().unwrap();
        assert_eq!(hands.state().unwrap(), NodeState::Up);
        let before = hands.cpu_ns().unwrap();
        until(|| hands.cpu_ns().unwrap() > before + 20_000_000);
        let error = hands.unpause().unwrap_err().to_string();
        assert!(error.contains("is not paused"), "{error}");
    }
}

#[test]
fn one_that_starts_processes_all_the_while_is_stopped_until_none_is_left() {
    let process = Process::shell(BREED);
    let hands = process.hands();
    thread::sleep(Duration::from_millis(100));
    for _ in 0..5 {
        hands.pause().unwrap();
        let mut main = Main::open(process.pid(), "").unwrap();
        let before = main.pids(true);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(main.pids(true), before, "none came, none went");
        for pid in before {
            let states = hands::threads(pid).unwrap_or_default();
            // One that waits for a child to run its program is D, and stops when it goes on.
            assert!(states.chars().all(|state| matches!(state, 'T' | 'D' | 'Z' | 'X')), "{pid}: {states}");
        }
        hands.unpause().unwrap();
    }
}

#[test]
fn a_container_goes_on_when_nobody_has_its_hands_any_more() {
    for process in each_kind(SPIN) {
        let hands = process.hands();
        hands.pause().unwrap();
        drop(hands);
        let hands = process.hands();
        assert_eq!(hands.state().unwrap(), NodeState::Up, "{:?}", process.group);
        let before = hands.cpu_ns().unwrap();
        until(|| hands.cpu_ns().unwrap() > before);
    }
}

#[test]
#[ignore = "other tests run it, in a process of its own"]
fn hold_in_a_process_of_its_own() {
    let Ok(held) = env::var(HOLD) else { return };
    let (pid, id) = held.split_once(' ').unwrap();
    let hands = ContainerHands::of("c1".to_owned(), id.to_owned(), Some(pid.parse().unwrap()), Engine::Nobody).unwrap();
    hands.pause().unwrap();
    thread::sleep(10 * PATIENCE);
}

#[test]
fn a_container_goes_on_when_the_process_that_paused_it_is_killed() {
    let name = concat!(module_path!(), "::hold_in_a_process_of_its_own").split_once("::").unwrap().1;
    for process in each_kind(SPIN) {
        let mut holder = Command::new(env::current_exe().unwrap());
        holder.args(["--ignored", "--exact", name]).env(HOLD, format!("{} {}", process.pid(), process.id()));
        let mut holder = holder.spawn().unwrap();
        let hands = process.hands();
        until(|| hands.state().unwrap() == NodeState::Paused);
        holder.kill().unwrap();
        holder.wait().unwrap();
        until(|| hands.state().unwrap() == NodeState::Up);
        let before = hands.cpu_ns().unwrap();
        until(|| hands.cpu_ns().unwrap() > before);
    }
}

#[test]
fn a_killed_container_is_down_whatever_held_it_and_its_end_is_seen() {
    for process in each_kind(SPIN) {
        let hands = process.hands();
        hands.pause().unwrap();
        let before = monotonic_ns();
        let change = hands.kill(libc::SIGKILL).unwrap();
        assert!(change.at_ns - change.error_ns >= before, "{:?}", process.group);
        assert_eq!((hands.state().unwrap(), hands.pid(), hands.cpu_ns()), (NodeState::Down, None, None));
        for error in [hands.kill(libc::SIGKILL).unwrap_err(), hands.stop(PATIENCE).unwrap_err()] {
            assert!(error.to_string().contains("is down already"), "{error}");
        }
        assert!(hands.pause().unwrap_err().to_string().contains("is down"));
        let error = hands.start().unwrap_err().to_string();
        assert!(error.contains("cannot start c1") && error.contains("start it where it was started"), "{error}");
        let error = hands.kill(libc::SIGCONT).unwrap_err().to_string();
        assert!(error.contains("cannot kill"), "{error}");
    }
}

#[test]
fn a_container_that_is_stopped_may_end_by_itself_and_is_killed_when_it_does_not() {
    let willing = Process::shell("exec sleep 600");
    let hands = willing.hands();
    hands.pause().unwrap();
    assert!(!hands.stop(PATIENCE).unwrap().killed, "it was let go on, to be able to end");
    let directory = tempfile::tempdir().unwrap();
    let deaf = directory.path().join("deaf");
    let process = Process::shell(&format!("trap '' TERM; touch {}; while :; do sleep 0.05; done", deaf.display()));
    until(|| deaf.exists());
    let hands = process.hands();
    assert!(hands.stop(Duration::from_millis(300)).unwrap().killed);
    assert_eq!(hands.state().unwrap(), NodeState::Down);
}

#[test]
fn a_container_that_was_started_again_is_taken_over_and_told_once_with_the_gap() {
    let (first, second) = (Process::shell(SPIN), Process::shell(SPIN));
    let hands = first.hands();
    assert_eq!(hands.restarted(), None);
    let limit = hands.limit_cpu(share(1)).unwrap();
    hands.kill(libc::SIGKILL).unwrap();
    let down_ns = monotonic_ns();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(hands.restarted(), None, "it is down");
    let third = Process::shell(SPIN);
    hands.shared.adopt(third.pid(), "").unwrap();
    // What is known to live is not given up for another.
    hands.shared.adopt(second.pid(), "").unwrap();
    let restart = hands.restarted().unwrap();
    assert_eq!((restart.pid, hands.pid()), (third.pid(), Some(third.pid())));
    // The kernel tells its start to a tick.
    assert!(restart.at_ns + 15_000_000 >= down_ns + 100_000_000 && restart.at_ns <= monotonic_ns(), "{restart:?}");
    assert!(restart.gap_ns >= 80_000_000 && restart.gap_ns < 60_000_000_000, "{restart:?}");
    assert_eq!(hands.restarted(), None, "it was told");
    // The limit stays.
    let held = hands.held_ns();
    until(|| hands.held_ns() > held + 100_000_000);
    assert_eq!(hands.cpu_share(), Some(share(1)));
    limit.heal();
    assert_eq!(hands.cpu_share(), None);
}

#[test]
fn a_limited_container_gets_no_more_than_its_share_and_all_again_without() {
    // A fifth of a processor, of which two are wanted.
    let capacity = Processors::of_this_process().capacity();
    let share = Share::new((0.2 / capacity).clamp(0.01, 0.5)).unwrap();
    let limited = share.fraction() * capacity;
    for process in each_kind(SPIN) {
        let hands = process.hands();
        until(|| hands.cpu_ns().unwrap() > 20_000_000);
        let limit = hands.limit_cpu(share).unwrap();
        // What it used too much in the first period is paid back in the next ones.
        thread::sleep(Duration::from_secs(1));
        let (from_ns, from, held) = (monotonic_ns(), hands.cpu_ns().unwrap(), hands.held_ns());
        thread::sleep(Duration::from_secs(3));
        let used = (hands.cpu_ns().unwrap() - from) as f64 / (monotonic_ns() - from_ns) as f64;
        // On a busy machine it may get less, and its governor be late by some periods.
        let group = &process.group;
        assert!(used < 1.5 * limited && used > 0.1 * limited, "{used} processors, not {limited}, in {group:?}");
        assert!(hands.held_ns() > held + 500_000_000, "it stood for much of the time");
        assert_eq!(hands.state().unwrap(), NodeState::Up, "slow is not paused");
        hands.pause().unwrap();
        assert!(process.stands(&hands), "paused under a limit");
        let healed = limit.heal();
        assert!(healed.error_ns < 1_000_000_000);
        assert!(process.stands(&hands), "and when its limit was healed");
        hands.unpause().unwrap();
        let before = hands.cpu_ns().unwrap();
        until(|| hands.cpu_ns().unwrap() > before + 100_000_000);
    }
    let process = Process::shell("exec sleep 600");
    let error = process.hands().limit_cpu(Share::new(0.005).unwrap()).unwrap_err().to_string();
    assert!(error.contains("0.5%") && error.contains("least is 1%"), "{error}");
}

#[test]
fn one_of_its_own_processes_takes_no_hold_of_a_container_and_one_that_is_gone_is_none() {
    let of = |pid| ContainerHands::of("c1".to_owned(), String::new(), Some(pid), Engine::Nobody);
    let error = of(std::process::id()).unwrap_err().to_string();
    assert!(error.contains("would stop itself"), "{error}");
    let error = of(1 << 27).unwrap_err().to_string();
    assert!(error.contains("cannot take hold of c1"), "{error}");
}
