//! One node's process, and the single owner of whether it runs, is stopped, or is gone.

use std::{
    path::PathBuf,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use brownout_base::{Change, clock::monotonic_ns};

use crate::{ClusterError, Death, NodeState, governing::Governing, kernel, logs, process::Process};

/// Between two looks at whether the kernel shows what was asked for.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// All that is done to a node's process goes through here: by the cluster, by whoever controls it, by its governor.
pub(crate) struct Supervisor {
    pub(crate) name: String,
    pub(crate) logs: PathBuf,
    log_files: &'static [&'static str],
    life: Mutex<Life>,
    /// The governor has something to do, or has begun to do it.
    pub(crate) changed: Condvar,
}

/// A node's process at this moment. It is stopped while it is paused, or throttled, or both.
#[derive(Default)]
pub(crate) struct Life {
    process: Option<Process>,
    /// When it was last started, in nanoseconds of CLOCK_MONOTONIC.
    pub(crate) started_ns: u64,
    /// Somebody paused it.
    pub(crate) paused: bool,
    /// Its governor holds it until its next period.
    throttled: bool,
    /// Its end was asked for.
    pub(crate) asked: bool,
    /// How it ended, once that was noticed, and whether it was told.
    death: Option<Death>,
    told: bool,
    /// Deaths that were followed by a start before anybody asked for them.
    untold: Vec<Death>,
    pub(crate) governing: Governing,
    /// The cluster has ended: nothing is started any more.
    ended: bool,
}

impl Supervisor {
    pub(crate) fn new(name: String, logs: PathBuf, log_files: &'static [&'static str]) -> Supervisor {
        Supervisor { name, logs, log_files, life: Mutex::default(), changed: Condvar::new() }
    }

    /// A thread that panicked while it looked at a life has broken nothing in it: each change is one assignment.
    pub(crate) fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless the cluster has ended.
    pub(crate) fn open(&self) -> Result<MutexGuard<'_, Life>, ClusterError> {
        let life = self.life();
        if life.ended { Err(ClusterError::Ended { node: self.name.clone() }) } else { Ok(life) }
    }

    /// Starts the node by `spawn`; says when its program began to run.
    pub(crate) fn start(&self, spawn: impl FnOnce() -> Result<Process, ClusterError>) -> Result<Change, ClusterError> {
        let mut life = self.open()?;
        match life.state() {
            NodeState::Down => {}
            NodeState::Up => return Err(self.not_now("start", "runs already", "restart it, or stop it first")),
            NodeState::Paused => return Err(self.not_now("start", "is paused, not down", "unpause it")),
        }
        if let Some(mut dead) = life.process.take() {
            dead.wait_stamp();
            life.process = Some(dead);
            self.notice_death(&mut life);
            if !life.told {
                let death = life.death.take();
                life.untold.extend(death);
            }
            life.process = None;
        }
        let asked_ns = monotonic_ns();
        let process = spawn()?;
        let started = Change::between(asked_ns, monotonic_ns());
        let fresh = Life { process: Some(process), started_ns: asked_ns, ..Life::default() };
        let old = std::mem::replace(&mut *life, fresh);
        (life.untold, life.governing) = (old.untold, old.governing);
        life.governing.started();
        Ok(started)
    }

    /// How it ended; `None` while it lives. Asked for again, it is told again.
    pub(crate) fn death(&self) -> Option<Death> {
        let mut life = self.life();
        self.notice_death(&mut life);
        life.death.clone()
    }

    /// The same, and takes it for told.
    pub(crate) fn tell_death(&self) -> Option<Death> {
        let mut life = self.life();
        self.notice_death(&mut life);
        life.told |= life.death.is_some();
        life.death.clone()
    }

    /// The deaths that were not told.
    pub(crate) fn take_deaths(&self) -> Vec<Death> {
        let mut life = self.life();
        self.notice_death(&mut life);
        let mut deaths = std::mem::take(&mut life.untold);
        if !life.told {
            deaths.extend(life.death.clone());
            life.told = life.death.is_some();
        }
        deaths
    }

    fn notice_death(&self, life: &mut Life) {
        let Some(process) = life.process.as_mut().filter(|_| life.death.is_none()) else { return };
        if let (Some(at_ns), Some(status)) = (process.died_ns(), process.status()) {
            let log_tail = logs::tail(&self.logs, self.log_files);
            life.death = Some(Death { node: self.name.clone(), at_ns, status, asked: life.asked, log_tail });
        }
    }

    /// Asks the process to end, as the cluster's own end begins; one that is stopped is let go on, to be able to.
    pub(crate) fn ask_to_end(&self) {
        let mut life = self.life();
        life.ended = true;
        life.asked = true;
        life.paused = false;
        life.throttle(false);
        // A process that cannot be signalled is dead.
        let _ = life.signal(libc::SIGTERM);
        let _ = life.signal(libc::SIGCONT);
        self.changed.notify_all();
    }

    /// Kills the process, for good; waits for nothing.
    pub(crate) fn end(&self) {
        let mut life = self.life();
        life.ended = true;
        let _ = life.signal(libc::SIGKILL);
        self.changed.notify_all();
    }

    /// Kills the process, waits for its death and reaps it.
    pub(crate) fn reap(&self) {
        let process = {
            let mut life = self.life();
            life.ended = true;
            life.process.take()
        };
        drop(process);
    }

    /// An error that says why something cannot be done to the node now.
    pub(crate) fn not_now(&self, doing: &'static str, state: &str, remedy: &str) -> ClusterError {
        ClusterError::NotNow { node: self.name.clone(), doing, state: state.to_owned(), remedy: remedy.to_owned() }
    }

    /// An error that says that the kernel refused a signal.
    pub(crate) fn refused(&self, signal: libc::c_int) -> impl FnOnce(std::io::Error) -> ClusterError {
        let node = self.name.clone();
        move |source| ClusterError::Signal { node, signal, source }
    }

    /// Looks until `look` sees something or `deadline` has passed.
    pub(crate) fn look_until<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let begun = Instant::now();
        loop {
            match look() {
                None if begun.elapsed() < deadline => thread::sleep(LOOK_EVERY),
                seen => return seen,
            }
        }
    }
}

impl Life {
    /// The process of the last start, dead or alive.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// The same while it lives.
    pub(crate) fn living_pid(&self) -> Option<u32> {
        self.process.as_ref().filter(|process| process.died_ns().is_none()).map(Process::pid)
    }

    pub(crate) fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// What the kernel shows. A process that only its governor has stopped counts as up: it is slow, not paused.
    pub(crate) fn state(&self) -> NodeState {
        match self.living_pid().and_then(kernel::state) {
            None | Some('Z' | 'X') => NodeState::Down,
            Some('T') if self.paused || !self.throttled => NodeState::Paused,
            Some(_) => NodeState::Up,
        }
    }

    /// Sends `signal` to the node's process group; nothing when it is dead.
    pub(crate) fn signal(&self, signal: libc::c_int) -> std::io::Result<()> {
        self.process.as_ref().map_or(Ok(()), |process| process.signal(signal))
    }

    pub(crate) fn throttled(&self) -> bool {
        self.throttled
    }

    /// For the governor: holds the process, or lets it go on unless somebody paused it.
    pub(crate) fn throttle(&mut self, on: bool) {
        if self.throttled == on || (on && self.living_pid().is_none()) {
            return;
        }
        self.throttled = on;
        // A process that cannot be signalled is dead.
        let _ = match (on, self.paused) {
            (true, _) => self.signal(libc::SIGSTOP),
            (false, false) => self.signal(libc::SIGCONT),
            (false, true) => Ok(()),
        };
    }
}
