//! A running node: its process, its death.

use std::{
    fs, io,
    net::Ipv4Addr,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    sync::{Arc, OnceLock, mpsc},
    thread::{self, JoinHandle},
};

use brownout_units::Bytes;
use serde::Serialize;

use crate::{clock, logs};

/// A node of the cluster.
#[derive(Debug)]
pub struct Node {
    /// Its name, which is its host's: `n1`.
    pub name: String,
    /// Where it listens.
    pub address: Ipv4Addr,
    /// Its process, in the PID namespace we are in.
    pub pid: u32,
    /// When it was started, in nanoseconds of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// The folder of its logs, which outlives it.
    pub logs: PathBuf,
    pub(crate) process: Process,
    /// Its death has been told by `Cluster::deaths` or an error.
    pub(crate) told: bool,
}

impl Node {
    /// CPU time used by all its threads since its start, in nanoseconds; `None` once it is dead.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.alive().then(|| clock::process_cpu_ns(self.pid)).flatten()
    }

    /// Its resident memory, mapped files included; `None` once it is dead.
    pub fn rss(&self) -> Option<Bytes> {
        if !self.alive() {
            return None;
        }
        // The second field of statm is resident pages (proc(5)).
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        // SAFETY: sysconf has no preconditions.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        Some(Bytes(pages * page))
    }

    /// How it died, with the last lines of its logs (`files` in their folder); `None` while it lives.
    pub(crate) fn death(&mut self, files: &[&str]) -> Option<Death> {
        let at_ns = self.process.died_ns()?;
        let status = self.process.status()?;
        Some(Death { node: self.name.clone(), at_ns, status, log_tail: logs::tail(&self.logs, files) })
    }

    /// Whether its process is there. A process that was stopped by a signal is.
    pub fn alive(&self) -> bool {
        self.process.died_ns().is_none()
    }
}

/// The end of a node's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Death {
    /// The node.
    pub node: String,
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// How: "exit code 3", "killed by signal 9".
    pub status: String,
    /// The last lines of its logs.
    pub log_tail: String,
}

/// A child process with a thread of its own, which spawns it, waits for its end and stamps it.
///
/// The kernel's "kill me when my parent dies" means the parent *thread*: a child spawned from a thread
/// that ends too early would die with it. Here that thread ends when the child has.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    died: Arc<OnceLock<u64>>,
    keeper: Option<JoinHandle<()>>,
}

impl Process {
    /// Spawns `command`; returns once the program runs (or could not be run).
    pub(crate) fn spawn(mut command: Command, name: &str) -> io::Result<Process> {
        let died = Arc::new(OnceLock::new());
        let (to_caller, from_keeper) = mpsc::sync_channel(1);
        let keeper = thread::Builder::new().name(format!("keeper-{name}")).spawn({
            let died = Arc::clone(&died);
            move || match command.spawn() {
                Ok(child) => {
                    let pid = child.id();
                    // When the caller is gone, the process group dies with this thread: by its death signal.
                    if to_caller.send(Ok(child)).is_ok() {
                        wait_without_reaping(pid);
                        let _ = died.set(brownout_network::monotonic_ns());
                    }
                }
                Err(error) => drop(to_caller.send(Err(error))),
            }
        })?;
        let child = from_keeper.recv().map_err(|_| io::Error::other("the thread that spawns the node panicked"))??;
        Ok(Process { child, died, keeper: Some(keeper) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// When it died; `None` while it lives.
    pub(crate) fn died_ns(&self) -> Option<u64> {
        self.died.get().copied()
    }

    /// How it died; never blocks. `None` while it lives.
    pub(crate) fn status(&mut self) -> Option<String> {
        self.died_ns()?;
        Some(match self.child.try_wait() {
            Ok(Some(status)) => describe(status),
            // An init process that reaps everything may have been faster.
            Ok(None) | Err(_) => "its exit status was lost".to_owned(),
        })
    }

    /// Sends `signal` to the process and what it started; nothing when it is dead.
    pub(crate) fn signal(&self, signal: libc::c_int) {
        // The process is reaped only after its death was stamped, so until then its id is its own.
        if self.died_ns().is_none() {
            // SAFETY: kill has no memory effects; the process leads a group of its own id (confine: setsid).
            unsafe { libc::kill(-(self.pid() as libc::pid_t), signal) };
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        let _ = self.child.wait();
    }
}

fn wait_without_reaping(pid: u32) {
    loop {
        // SAFETY: a siginfo_t may be all zeros, and is a valid place for the answer.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}{}", name_of(signal)),
        (None, None) => status.to_string(),
    }
}

fn name_of(signal: i32) -> &'static str {
    match signal {
        libc::SIGKILL => " (SIGKILL: by someone, or by the kernel for want of memory)",
        libc::SIGTERM => " (SIGTERM)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGABRT => " (SIGABRT)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0);
        Process::spawn(command, "test").unwrap()
    }

    fn end(process: &mut Process) -> String {
        loop {
            if let Some(status) = process.status() {
                return status;
            }
            thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    #[test]
    fn a_death_is_stamped_and_described() {
        let before = brownout_network::monotonic_ns();
        let mut process = shell("exit 3");
        assert_eq!(end(&mut process), "exit code 3");
        assert!((before..=brownout_network::monotonic_ns()).contains(&process.died_ns().unwrap()));

        let mut process = shell("kill -9 $$");
        assert!(end(&mut process).starts_with("killed by signal 9 (SIGKILL"));
    }

    #[test]
    fn the_status_of_a_dead_process_can_be_asked_for_again() {
        let mut process = shell("exit 0");
        assert_eq!(end(&mut process), "exit code 0");
        assert_eq!(process.status().unwrap(), "exit code 0");
    }

    #[test]
    fn a_dropped_process_is_killed_and_reaped() {
        let process = shell("sleep 600");
        let pid = process.pid();
        drop(process);
        // SAFETY: signal 0 only asks whether the process exists.
        assert_eq!(unsafe { libc::kill(pid as libc::pid_t, 0) }, -1);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_and_no_process() {
        assert!(Process::spawn(Command::new("/no/such/program"), "test").is_err());
    }
}
