//! Pausing, resuming and ending a node by signals, and when the kernel shows it.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use brownout_base::{Change, clock::monotonic_ns};

use crate::{ClusterError, NodeState, hands::check_deadly, kernel, supervisor::Supervisor};

/// For the kernel to show that all threads stand, or that a killed process is dead: it takes a millisecond, but on a
/// machine that is swamped, or with a disk that hangs, it can take long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Signals that end a process which does not catch them, and what a kill may be made of.
pub const DEADLY: [libc::c_int; 9] = [
    libc::SIGKILL,
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGABRT,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
];

/// How a node was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// From the request (SIGTERM) to the death: it may take seconds, through all of which the node was leaving.
    pub change: Change,
    /// It did not end by the deadline and was killed (SIGKILL).
    pub killed: bool,
}

/// The end of a process that was asked for.
struct Asked {
    at_ns: u64,
    died: Arc<OnceLock<u64>>,
}

impl Asked {
    /// Waits for the death; `None` when it does not come by `deadline`.
    fn wait(&self, deadline: Duration) -> Option<Change> {
        let died_ns = Supervisor::look_until(deadline, || self.died.get().copied())?;
        Some(Change::between(self.at_ns, died_ns))
    }
}

impl Supervisor {
    /// Stops all its threads, and waits until the kernel shows them stopped.
    pub(crate) fn pause(&self) -> Result<Change, ClusterError> {
        let (asked_ns, pid) = {
            let mut life = self.open()?;
            match (life.state(), life.living_pid()) {
                (NodeState::Up, Some(pid)) => {
                    let asked_ns = monotonic_ns();
                    life.signal(libc::SIGSTOP).map_err(self.refused(libc::SIGSTOP))?;
                    life.paused = true;
                    (asked_ns, pid)
                }
                (NodeState::Paused, _) => return Err(self.not_now("pause", "is paused already", "unpause it first")),
                _ => return Err(self.not_now("pause", "is down", "start it first")),
            }
        };
        let mut threads = String::new();
        let seen = Supervisor::look_until(PATIENCE, || {
            threads = kernel::threads(pid).unwrap_or_default();
            let done_ns = monotonic_ns();
            let life = self.life();
            match life.living_pid() {
                // Dead, or another process already: either way this one will not be seen to stop.
                alive if alive != Some(pid) => Some(None),
                _ if !life.paused => Some(None),
                _ => kernel::stopped(&threads).then_some(Some(done_ns)),
            }
        });
        match seen {
            Some(Some(done_ns)) => return Ok(Change::between(asked_ns, done_ns)),
            Some(None) => {}
            None => {
                // What was not proven is taken back.
                let mut life = self.life();
                if life.living_pid() == Some(pid) && life.paused {
                    life.paused = false;
                    if !life.throttled() {
                        let _ = life.signal(libc::SIGCONT);
                    }
                }
                let wanted = format!("as stopped (its threads are in the states {threads}); it was resumed");
                return Err(self.not_shown(wanted));
            }
        }
        match self.death() {
            Some(death) => Err(ClusterError::NodeDied(death)),
            None => Err(self.not_now("pause", "was resumed or restarted at the same time", "pause it again")),
        }
    }

    /// Lets it go on. While its CPU share is limited it does so when its governor lets it, too.
    pub(crate) fn unpause(&self) -> Result<Change, ClusterError> {
        let (asked_ns, pid) = {
            let mut life = self.open()?;
            let asked_ns = monotonic_ns();
            match (life.state(), life.living_pid()) {
                (NodeState::Paused, Some(pid)) => {
                    life.paused = false;
                    if !life.throttled() {
                        life.signal(libc::SIGCONT).map_err(self.refused(libc::SIGCONT))?;
                    }
                    (asked_ns, pid)
                }
                (NodeState::Up, _) => return Err(self.not_now("unpause", "is not paused", "pause it first")),
                _ => return Err(self.not_now("unpause", "is down", "start it")),
            }
        };
        // Sending the signal is what wakes the threads; this is to see it.
        let going = || {
            let threads = kernel::threads(pid).unwrap_or_default();
            let done_ns = monotonic_ns();
            (!threads.contains('T') || self.life().throttled()).then_some(done_ns)
        };
        match Supervisor::look_until(PATIENCE, going) {
            Some(done_ns) => Ok(Change::between(asked_ns, done_ns)),
            None => Err(self.not_shown("as running".to_owned())),
        }
    }

    /// Ends it by `signal`, and waits for its death.
    pub(crate) fn kill(&self, signal: libc::c_int) -> Result<Change, ClusterError> {
        check_deadly(&self.name, signal)?;
        let asked = self.ask_end("kill", signal)?;
        asked.wait(PATIENCE).ok_or_else(|| self.not_shown(format!("as dead of signal {signal}")))
    }

    /// Asks it to end, and kills it when it has not by `deadline`.
    pub(crate) fn stop(&self, deadline: Duration) -> Result<Stopped, ClusterError> {
        let asked = self.ask_end("stop", libc::SIGTERM)?;
        if let Some(change) = asked.wait(deadline) {
            return Ok(Stopped { change, killed: false });
        }
        {
            let life = self.life();
            // Not yet dead under this lock: so it has not been started again, and this is the process that was asked.
            if asked.died.get().is_none() {
                life.signal(libc::SIGKILL).map_err(self.refused(libc::SIGKILL))?;
            }
        }
        let change = asked.wait(PATIENCE).ok_or_else(|| self.not_shown("as dead of SIGKILL".to_owned()))?;
        Ok(Stopped { change, killed: true })
    }

    /// Sends a signal that is to end it. A stopped process would keep any but SIGKILL for later, so it is let go on.
    fn ask_end(&self, doing: &'static str, signal: libc::c_int) -> Result<Asked, ClusterError> {
        let mut life = self.open()?;
        let state = life.state();
        let Some(died) = life.process().filter(|_| state != NodeState::Down).map(|process| process.died()) else {
            return Err(self.not_now(doing, "is down already", "start it first"));
        };
        life.asked = true;
        let at_ns = monotonic_ns();
        life.signal(signal).map_err(self.refused(signal))?;
        if state == NodeState::Paused && signal != libc::SIGKILL {
            life.paused = false;
            if !life.throttled() {
                life.signal(libc::SIGCONT).map_err(self.refused(libc::SIGCONT))?;
            }
        }
        Ok(Asked { at_ns, died })
    }

    fn not_shown(&self, wanted: String) -> ClusterError {
        ClusterError::NotShown { node: self.name.clone(), wanted, after: PATIENCE }
    }
}
