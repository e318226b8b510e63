//! What is done to the processes of containers: paused, killed, stopped, started again, and held to a share of CPU time.
//!
//! A container stands by the freezer of its own control group, where it has one that we may write and that nobody else uses;
//! else by SIGSTOP to all its processes, until none is left that is not stopped. What must not outlast this process is undone
//! by a small child when it dies (`healer.rs`). Signals go to the container's processes themselves; it is started by its
//! runtime. A thread watches each container: when it is started again, by whomever, its new process is taken over.

mod cpu;
mod freezer;
mod governing;
mod groups;
mod healer;
mod life;
mod main_process;
mod runtime;
mod signals;
#[cfg(test)]
mod tests;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use brownout_base::Change;
use brownout_cluster::{ClusterError, CpuHold, Hands, NodeState, Restart, Stopped};
use brownout_units::Share;

use self::{cpu::Limit, healer::Healer, life::Shared, main_process::Main, runtime::Engine, watch::Watch};
use crate::{Container, Runtime};

/// The processes of one container. Once this is dropped, or this process is dead, nothing of what was done with it is in
/// force: a paused container goes on, a limited one is free. One that was killed stays down.
pub struct ContainerHands {
    shared: Arc<Shared>,
    /// Not of one that was named by its network namespace alone: of that no process is known, and nobody is who would tell.
    has_processes: bool,
    _watch: Watch,
}

impl ContainerHands {
    /// Takes hold of a container's processes; nothing is done to them yet. It starts a thread and a small child process, which
    /// is a copy of this one as it is now: early is better.
    ///
    /// # Errors
    /// When its main process cannot be opened, this process is one of its own, or the thread or the child cannot be started.
    pub fn new(container: &Container) -> Result<ContainerHands, ClusterError> {
        // Since it was found, it may have been started again.
        let again;
        let is_stale = container.pid.is_some() && container.pidfd().is_err();
        let container = if is_stale {
            again = container.again().map_err(|error| ClusterError::Hands {
                node: container.name.clone(),
                doing: "take hold of",
                why: error.to_string(),
            })?;
            &again
        } else {
            container
        };
        let (name, id, pid) = (container.name.clone(), container.id.clone(), container.pid);
        let mut hands = ContainerHands::of(name, id, pid, Engine::of(container))?;
        // That it is still the one that was found: then it was when it was taken hold of, too.
        if pid.is_some() {
            container.pidfd().map_err(|error| hands.shared.refused("take hold of", error))?;
        }
        hands.has_processes = pid.is_some() || !matches!(container.runtime, Runtime::None);
        Ok(hands)
    }

    fn of(name: String, id: String, pid: Option<u32>, engine: Engine) -> Result<ContainerHands, ClusterError> {
        let node = name.clone();
        let failed = |what: &str, error: std::io::Error| ClusterError::Hands {
            node: node.clone(),
            doing: "take hold of",
            why: format!("{what}: {error}; does it run, and is this root on its machine?"),
        };
        let main = pid.map(|pid| Main::open(pid, &id)).transpose();
        let main = main.map_err(|error| failed("its main process cannot be opened", error))?;
        let healer = Healer::start(main.as_ref().and_then(Main::thaw));
        let healer = healer.map_err(|error| failed("the process that would let it go on cannot be started", error))?;
        let shared = Arc::new(Shared::new(name, engine, main, healer));
        shared.check_own()?;
        let watch =
            Watch::start(&shared).map_err(|error| failed("the thread that watches it cannot be started", error))?;
        Ok(ContainerHands { shared, has_processes: true, _watch: watch })
    }

    /// What is done to it, if anything can be.
    fn known(&self, doing: &'static str) -> Result<&Arc<Shared>, ClusterError> {
        if self.has_processes {
            return Ok(&self.shared);
        }
        let why = "its processes are not known: it was named by its network namespace; name it by one of its processes \
                   (pids: [PID])";
        Err(self.shared.refused(doing, why))
    }
}

impl Hands for ContainerHands {
    fn state(&self) -> Result<NodeState, ClusterError> {
        Ok(self.known("look at")?.life().state())
    }

    fn pid(&self) -> Option<u32> {
        self.shared.life().living_pid()
    }

    fn cpu_ns(&self) -> Option<u64> {
        let mut life = self.shared.life();
        let main = life.main.as_mut().filter(|main| main.lives())?;
        Some(main.cpu_ns())
    }

    fn pause(&self) -> Result<Change, ClusterError> {
        self.known("pause")?.pause()
    }

    fn unpause(&self) -> Result<Change, ClusterError> {
        self.known("unpause")?.unpause()
    }

    fn kill(&self, signal: i32) -> Result<Change, ClusterError> {
        self.known("kill")?.kill(signal)
    }

    fn stop(&self, within: Duration) -> Result<Stopped, ClusterError> {
        self.known("stop")?.stop(within)
    }

    fn start(&self) -> Result<Change, ClusterError> {
        self.known("start")?.start()
    }

    fn limit_cpu(&self, share: Share) -> Result<Box<dyn CpuHold>, ClusterError> {
        Ok(Box::new(Limit::start(self.known("limit")?, share)?))
    }

    fn cpu_share(&self) -> Option<Share> {
        self.shared.life().cpu_share()
    }

    fn held_ns(&self) -> u64 {
        self.shared.life().held_ns()
    }

    fn restarted(&self) -> Option<Restart> {
        self.shared.life().take_restart()
    }
}

impl Drop for ContainerHands {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl fmt::Debug for ContainerHands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerHands").field("container", &self.shared.name).finish_non_exhaustive()
    }
}
