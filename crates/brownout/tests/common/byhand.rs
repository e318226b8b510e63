//! Labs by hand in tests: each test has a workspace of its own for them, and nothing outlives it.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{BROWNOUT, both, descendants, json, text};

/// A workspace for labs, and all that is in it.
pub struct Workspace {
    directory: tempfile::TempDir,
}

impl Workspace {
    pub fn new() -> Workspace {
        // Short: the path of a socket has 107 bytes.
        Workspace { directory: tempfile::Builder::new().prefix("bh-").tempdir_in("/tmp").unwrap() }
    }

    pub fn runtime(&self) -> PathBuf {
        self.directory.path().join("brownout")
    }

    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BROWNOUT);
        command.args(arguments).env("XDG_RUNTIME_DIR", self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Runs to its end, whatever it is.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs, and has to end well; gives what it printed.
    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", both(&output));
        text(&output.stdout)
    }

    /// Runs, and has to fail with this code; gives what it said.
    pub fn bad(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", both(&output));
        text(&output.stderr)
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", both(&output));
        json(&output)
    }

    /// What goes into the program, and what comes out of it.
    pub fn with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Starts a lab, and waits until it is ready.
    pub fn up(&self, name: &str, arguments: &[&str]) {
        let work = self.work();
        let mut all = vec!["up", "--name", name, "--dir", work.to_str().unwrap()];
        all.extend(arguments);
        self.good(&all);
    }

    /// Starts one, and does not wait.
    pub fn up_under_way(&self, name: &str) -> Child {
        let work = self.work();
        let all = ["up", "--name", name, "--dir", work.to_str().unwrap(), "--nodes", "1"];
        self.command(&all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The keeper of a lab.
    pub fn keeper(&self, name: &str) -> Option<u32> {
        fs::read_to_string(self.runtime().join(name).join("keeper.pid")).ok()?.trim().parse().ok()
    }

    /// The first process of a lab, by its number outside of it.
    pub fn first_process(&self, name: &str) -> u32 {
        let keeper = self.keeper(name).unwrap();
        let named =
            |pid: u32| text(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).contains("inside-lab");
        descendants(keeper).into_iter().map(|(pid, _)| pid).find(|pid| named(*pid)).unwrap()
    }

    /// Until it is so, or a minute has passed.
    pub fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < deadline, "not within a minute: {what}\n{}", both(&self.run(&["status"])));
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Also when the test has failed: nothing outlives it.
        let _ = self.run(&["destroy", "--all"]);
    }
}

/// What a lab has on the machine.
pub struct Traces {
    processes: BTreeSet<(u32, u64)>,
    namespaces: BTreeSet<PathBuf>,
    directories: Vec<PathBuf>,
}

impl Traces {
    /// Of a lab that stands, or is being made.
    pub fn of(space: &Workspace, name: &str) -> Traces {
        let keeper = space.keeper(name).unwrap();
        let own = |process: &(u32, u64)| process.0 == keeper;
        let parent = super::parent(keeper);
        let mut processes = descendants(keeper);
        processes.extend(descendants(parent).into_iter().filter(own));
        let ours: BTreeSet<PathBuf> =
            ["net", "mnt", "pid"].iter().filter_map(|kind| namespace(std::process::id(), kind)).collect();
        let all = processes.iter().flat_map(|(pid, _)| ["net", "mnt", "pid"].map(|kind| namespace(*pid, kind)));
        let namespaces = all.flatten().filter(|namespace| !ours.contains(namespace)).collect();
        Traces { processes, namespaces, directories: vec![space.runtime().join(name), space.work().join(name)] }
    }

    /// None of its processes lives, nobody is in its namespaces, and its directories are gone.
    pub fn assert_gone(&self, directories_too: bool) {
        assert!(self.processes.len() > 1, "a lab has processes");
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let alive = super::alive(&self.processes);
            let inhabited = self.inhabited();
            let left: Vec<&Path> = self
                .directories
                .iter()
                .filter(|directory| directories_too && directory.exists())
                .map(PathBuf::as_path)
                .collect();
            if alive.is_empty() && inhabited.is_empty() && left.is_empty() {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "left: processes {alive:?}, namespaces {inhabited:?}, directories {left:?}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn inhabited(&self) -> Vec<PathBuf> {
        let pids =
            fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let all: BTreeSet<PathBuf> =
            pids.flat_map(|pid: u32| ["net", "mnt", "pid"].map(|kind| namespace(pid, kind))).flatten().collect();
        self.namespaces.intersection(&all).cloned().collect()
    }
}

fn namespace(pid: u32, kind: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()
}
