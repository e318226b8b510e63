//! A child process: spawned, signalled, waited for.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus},
    sync::{Arc, OnceLock, mpsc},
    thread::{self, JoinHandle},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};

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
                        let _ = died.set(brownout_base::clock::monotonic_ns());
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

    /// The place where its death will be stamped, for those who wait for it.
    pub(crate) fn died(&self) -> Arc<OnceLock<u64>> {
        Arc::clone(&self.died)
    }

    /// Waits until the death of a process that the kernel shows as dead has been stamped.
    pub(crate) fn wait_stamp(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
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
    pub(crate) fn signal(&self, signal: libc::c_int) -> io::Result<()> {
        // The process is reaped only after its death was stamped, so until then its id is its own.
        if self.died_ns().is_some() {
            return Ok(());
        }
        // The process leads a group of its own id (confine: setsid).
        let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
        Ok(kill_process_group(Pid::from_child(&self.child), signal)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // What cannot be killed is dead already.
        let _ = self.signal(libc::SIGKILL);
        self.wait_stamp();
        let _ = self.child.wait();
    }
}

fn wait_without_reaping(pid: u32) {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { return };
    let wait = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    while wait().is_err_and(|error| error == Errno::INTR) {}
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
        libc::SIGKILL => " (SIGKILL: by a user, or by the kernel when memory ran out)",
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
        let before = brownout_base::clock::monotonic_ns();
        let mut process = shell("exit 3");
        assert_eq!(end(&mut process), "exit code 3");
        assert!((before..=brownout_base::clock::monotonic_ns()).contains(&process.died_ns().unwrap()));

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
