//! Pausing, resuming, ending and starting a container, and when the kernel shows it.

use std::{os::fd::OwnedFd, sync::Arc, thread, time::Duration};

use brownout_base::{Change, clock::monotonic_ns};
use brownout_cluster::{ClusterError, NodeState, Stopped, hands::check_deadly};
use rustix::process::{Signal, pidfd_send_signal};

use super::{
    life::Shared,
    main_process::{has_died, send},
};

/// For the kernel to show what was asked for, and the runtime to have done it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions to the runtime.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// The end of a container that was asked for.
struct Asked {
    at_ns: u64,
    pid: u32,
    pidfd: Arc<OwnedFd>,
}

impl Asked {
    /// Waits for the death; `None` when it does not come by `deadline`.
    fn wait(&self, deadline: Duration) -> Option<Change> {
        let until_ns = self.at_ns.saturating_add(u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
            if has_died(&self.pidfd, left) {
                return Some(Change::between(self.at_ns, monotonic_ns()));
            }
            if left.is_zero() {
                return None;
            }
        }
    }
}

/// A signal of this number; STOPSIGNAL may be one of real time.
fn known(signal: i32) -> Option<Signal> {
    Signal::from_named_raw(signal).or_else(|| {
        let is_real_time = (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal);
        // SAFETY: the kernel has it, and the C library does not keep it for itself.
        is_real_time.then(|| unsafe { Signal::from_raw_unchecked(signal) })
    })
}

impl Shared {
    /// Stops all its processes, and waits until the kernel shows them stopped.
    pub(super) fn pause(&self) -> Result<Change, ClusterError> {
        let (asked_ns, pid) = {
            let mut life = self.life();
            match (life.state(), life.living_pid()) {
                (NodeState::Up, Some(pid)) => {
                    let asked_ns = monotonic_ns();
                    life.paused = true;
                    if let Err(error) = life.hold(true) {
                        life.paused = false;
                        if !life.throttled() {
                            let _ = life.let_go();
                        }
                        return Err(self.refused("pause", error));
                    }
                    (asked_ns, pid)
                }
                (NodeState::Paused, _) => return Err(self.not_now("pause", "is paused already", "unpause it first")),
                _ => return Err(self.not_now("pause", "is down", "start it first")),
            }
        };
        let mut shown = String::new();
        let seen = Shared::look_until(PATIENCE, || {
            let mut life = self.life();
            // Dead, or another process already, or let go on by somebody: it will not be seen to stop.
            if life.living_pid() != Some(pid) || !life.paused {
                return Some(None);
            }
            match life.stands() {
                Ok(Ok(())) => return Some(Some(monotonic_ns())),
                Ok(Err(states)) => shown = states,
                Err(error) => shown = error.to_string(),
            }
            None
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
                        let _ = life.let_go();
                    }
                }
                return Err(self.not_shown(format!("as stopped ({shown}); it was resumed"), PATIENCE));
            }
        }
        match self.life().living_pid() {
            None => Err(self.not_now("pause", "ended at the same time", "start it first")),
            Some(_) => Err(self.not_now("pause", "was resumed or restarted at the same time", "pause it again")),
        }
    }

    /// Lets it go on. While its CPU share is limited it does so when its governor lets it, too.
    pub(super) fn unpause(&self) -> Result<Change, ClusterError> {
        let (asked_ns, pid) = {
            let mut life = self.life();
            let asked_ns = monotonic_ns();
            match (life.state(), life.living_pid()) {
                (NodeState::Paused, Some(pid)) => {
                    if !life.paused && life.main.as_ref().is_some_and(|main| main.is_frozen()) {
                        let why = "somebody else has frozen it: let it go on there (docker unpause, podman unpause)";
                        return Err(self.refused("unpause", why));
                    }
                    let was_paused = std::mem::replace(&mut life.paused, false);
                    if !life.throttled()
                        && let Err(error) = life.let_go()
                    {
                        life.paused = was_paused;
                        return Err(self.refused("unpause", error));
                    }
                    (asked_ns, pid)
                }
                (NodeState::Up, _) => return Err(self.not_now("unpause", "is not paused", "pause it first")),
                _ => return Err(self.not_now("unpause", "is down", "start it")),
            }
        };
        // Thawing and the signal are what wakes the threads; this is to see it.
        let going = || {
            let life = self.life();
            let goes = life.throttled() || life.living_pid() != Some(pid) || life.state() != NodeState::Paused;
            goes.then(monotonic_ns)
        };
        match Shared::look_until(PATIENCE, going) {
            Some(done_ns) => Ok(Change::between(asked_ns, done_ns)),
            None => Err(self.not_shown("as running".to_owned(), PATIENCE)),
        }
    }

    /// Ends it by `signal`, and waits for its death.
    pub(super) fn kill(&self, signal: i32) -> Result<Change, ClusterError> {
        check_deadly(&self.name, signal)?;
        let asked = self.ask_end("kill", signal)?;
        asked.wait(PATIENCE).ok_or_else(|| {
            let first = "the first process of a container ignores what it does not catch, except SIGKILL";
            self.not_shown(format!("as dead of signal {signal} ({first})"), PATIENCE)
        })
    }

    /// Asks it to end in its own way (STOPSIGNAL), and kills it when it has not by `deadline`.
    pub(super) fn stop(&self, deadline: Duration) -> Result<Stopped, ClusterError> {
        let asked = self.ask_end("stop", self.engine.stop_signal())?;
        if let Some(change) = asked.wait(deadline) {
            return Ok(Stopped { change, killed: false });
        }
        // It may have ended by itself at this moment, and even have been started again: that one was not asked for.
        if self.life().living_pid() == Some(asked.pid) && !has_died(&asked.pidfd, Duration::ZERO) {
            let sent = self.ask_end("stop", libc::SIGKILL);
            if let Err(error) = sent
                && !has_died(&asked.pidfd, Duration::ZERO)
            {
                return Err(error);
            }
        }
        let patience = deadline.saturating_add(PATIENCE);
        let change = asked.wait(patience).ok_or_else(|| self.not_shown("as dead of SIGKILL".to_owned(), PATIENCE))?;
        Ok(Stopped { change, killed: true })
    }

    /// Sends a signal that is to end it. One that stands would keep any but SIGKILL for later, so it is let go on.
    fn ask_end(&self, doing: &'static str, signal: i32) -> Result<Asked, ClusterError> {
        let asked = {
            let life = self.life();
            let main = life.main.as_ref().filter(|main| main.lives());
            let main = main.ok_or_else(|| self.not_now(doing, "is down already", "start it first"))?;
            Asked { at_ns: monotonic_ns(), pid: main.pid, pidfd: Arc::clone(&main.pidfd) }
        };
        if self.engine.ends() {
            // The runtime waits for the death.
            self.free_to_end(doing, signal, &asked)?;
        }
        if let Some(sent) = self.engine.kill(signal) {
            // The runtime says so, too, of one that has just ended by itself.
            if let Err(error) = sent
                && !has_died(&asked.pidfd, Duration::ZERO)
            {
                return Err(self.refused(doing, error));
            }
        } else {
            self.send(&asked, signal)?;
        }
        self.free_to_end(doing, signal, &asked)?;
        Ok(asked)
    }

    /// Lets it go on if it stands, and the signal would have to wait for that.
    fn free_to_end(&self, doing: &'static str, signal: i32, asked: &Asked) -> Result<(), ClusterError> {
        let mut life = self.life();
        let Some(main) = life.main.as_ref().filter(|main| main.pid == asked.pid) else { return Ok(()) };
        let (is_held, outlasts_kills) = (life.paused || life.throttled(), main.outlasts_kills());
        if (!is_held && !main.is_standing()) || (signal == libc::SIGKILL && !outlasts_kills) {
            return Ok(());
        }
        life.paused = false;
        // What only its governor holds goes on in its next period; a frozen one would not even die until then.
        if !life.throttled() || outlasts_kills {
            life.let_go().map_err(|error| self.refused(doing, error))?;
        }
        Ok(())
    }

    /// Sends a signal to what belongs to it. The first process of a container takes its others along, and hands on what they
    /// are to know; but not where its PID namespace is everybody's, and not one that is in no container at all.
    fn send(&self, asked: &Asked, signal: i32) -> Result<(), ClusterError> {
        let failed = |source| ClusterError::Signal { node: self.name.clone(), signal, source };
        let signal_of = known(signal).ok_or_else(|| failed(rustix::io::Errno::INVAL.into()))?;
        let mut life = self.life();
        let Some(main) = life.main.as_mut().filter(|main| main.pid == asked.pid) else { return Ok(()) };
        let takes_all = main.is_first() || (signal != libc::SIGKILL && main.has_group());
        let others: Vec<u32> = if takes_all { Vec::new() } else { main.pids(true).into_iter().skip(1).collect() };
        drop(life);
        // By its descriptor: its number may be another's by now.
        match pidfd_send_signal(&asked.pidfd, signal_of) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        others.into_iter().try_for_each(|pid| send(pid, signal_of)).map_err(failed)
    }

    /// Starts it again by the runtime, and waits until its main process is there.
    pub(super) fn start(&self) -> Result<Change, ClusterError> {
        match self.life().state() {
            NodeState::Down => {}
            NodeState::Up => return Err(self.not_now("start", "runs already", "restart it, or stop it first")),
            NodeState::Paused => return Err(self.not_now("start", "is paused, not down", "unpause it")),
        }
        let asked_ns = monotonic_ns();
        self.engine.start().map_err(|why| self.refused("start", why))?;
        let mut last = String::new();
        let started = Shared::look_until(PATIENCE, || {
            if self.life().living_pid().is_some() {
                return Some(monotonic_ns());
            }
            last = match self.engine.main() {
                Ok(Some((pid, id))) => match self.adopt(pid, &id) {
                    Ok(()) => format!("process {pid} has ended already"),
                    Err(error) => error.to_string(),
                },
                Ok(None) => "the runtime does not show it running".to_owned(),
                Err(error) => error,
            };
            thread::sleep(ASK_EVERY);
            None
        });
        let done_ns = started.ok_or_else(|| self.not_shown(format!("as running ({last})"), PATIENCE))?;
        Ok(Change::between(asked_ns, done_ns))
    }

    /// Whether its main process can be signalled by us at all.
    pub(super) fn check_own(&self) -> Result<(), ClusterError> {
        let mut life = self.life();
        let Some(main) = life.main.as_mut() else { return Ok(()) };
        if main.pids(true).contains(&std::process::id()) {
            let why = "this process is one of it, and would stop itself: give the process of the database";
            return Err(self.refused("take hold of", why));
        }
        Ok(())
    }
}
