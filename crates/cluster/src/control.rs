//! Operations on the nodes of a running cluster.

use std::{
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use brownout_base::Change;
use brownout_units::Share;

use crate::{
    ClusterError, CpuLimit, NodeState, Stopped, clock,
    error::unknown,
    host::Network,
    logs,
    parts::Parts,
    readiness,
    supervisor::Supervisor,
    system::{Member, Start},
};

/// A handle to the nodes of a [`crate::Cluster`], by name: cheap to clone, usable from any thread, also while somebody
/// else waits for the cluster. It does not keep the cluster alive: once that has ended, all that would change a node is
/// an error, and every node is down.
///
/// Everything that changes a node returns when the kernel shows it, with the time from asking to seeing it. What a node
/// already is cannot be asked for again: pausing a paused node is an error.
#[derive(Clone)]
pub struct ClusterControl(Arc<Parts>);

impl ClusterControl {
    pub(crate) fn new(parts: Arc<Parts>) -> ClusterControl {
        ClusterControl(parts)
    }

    /// The names of the nodes, in the order of the places given at the start.
    pub fn names(&self) -> Vec<String> {
        self.0.members.iter().map(|member| member.name.clone()).collect()
    }

    /// Stops all threads of the node (SIGSTOP to its process group). Its connections stay open and are silent.
    ///
    /// # Errors
    /// When it is paused already or down, dies meanwhile, or does not stop (it then goes on).
    pub fn pause(&self, name: &str) -> Result<Change, ClusterError> {
        self.supervisor(name)?.pause()
    }

    /// Lets a paused node go on (SIGCONT), also one that somebody else has stopped. One whose CPU share is limited goes on
    /// when its limit allows.
    ///
    /// # Errors
    /// When it is not paused.
    pub fn unpause(&self, name: &str) -> Result<Change, ClusterError> {
        self.supervisor(name)?.unpause()
    }

    /// Ends the node by `signal` (`libc::SIGKILL`, SIGTERM, SIGABRT …: one that ends a process) and waits, ten seconds at
    /// most, until the kernel shows it dead. A paused node dies of SIGKILL as it stands; any other signal would wait in
    /// the kernel until the node goes on, so it is let go on.
    ///
    /// # Errors
    /// When it is down already, `signal` does not end processes, or it lives on.
    pub fn kill(&self, name: &str, signal: i32) -> Result<Change, ClusterError> {
        self.supervisor(name)?.kill(signal)
    }

    /// Asks the node to end (SIGTERM) and waits for that up to `deadline`, then kills it (SIGKILL). A paused node is let go
    /// on, so that it can end by itself.
    ///
    /// # Errors
    /// When it is down already, or does not even die of SIGKILL.
    pub fn stop(&self, name: &str, deadline: Duration) -> Result<Stopped, ClusterError> {
        self.supervisor(name)?.stop(deadline)
    }

    /// Starts a node that is down, on its own data, by the same command; it does not answer yet (see
    /// [`ClusterControl::wait_answers`]). Unlike at the first start it waits, as Cassandra is shipped, until gossip has
    /// settled before it takes clients: some eight seconds more.
    ///
    /// # Errors
    /// When it runs, or cannot be started.
    pub fn start(&self, name: &str) -> Result<Change, ClusterError> {
        let (asked_ns, done_ns) = self.0.start(self.find(name)?, Start::Again)?;
        Ok(Change::between(asked_ns, done_ns))
    }

    /// What the kernel shows of the node at this moment.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn state(&self, name: &str) -> Result<NodeState, ClusterError> {
        Ok(self.supervisor(name)?.life().state())
    }

    /// The node's process, in the PID namespace we are in; `None` while it is down.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn pid(&self, name: &str) -> Result<Option<u32>, ClusterError> {
        Ok(self.supervisor(name)?.life().living_pid())
    }

    /// CPU time used by all threads of the node since its last start, in nanoseconds; `None` while it is down.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn cpu_ns(&self, name: &str) -> Result<Option<u64>, ClusterError> {
        Ok(self.pid(name)?.and_then(clock::process_cpu_ns))
    }

    /// Waits until the node answers clients; says how long that took. It may not know its peers yet.
    ///
    /// # Errors
    /// At once when it is down or dies (the death is told by `Cluster::deaths` as well) or `interrupted` says so; when
    /// `deadline` (from now) passes.
    pub fn wait_answers(
        &self,
        name: &str,
        deadline: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Duration, ClusterError> {
        let index = self.find(name)?;
        let supervisor = &self.0.supervisors[index];
        if supervisor.life().state() == NodeState::Down {
            return Err(supervisor.not_now("wait for", "is down", "start it first"));
        }
        let begun = Instant::now();
        let answers = || self.0.system.answers(&self.0.members, index);
        readiness::ask_one(&self.0.networks[index], &answers, |last| {
            if let Some(death) = supervisor.death() {
                return Err(ClusterError::NodeDied(death));
            }
            if supervisor.life().ended() {
                return Err(ClusterError::Ended { node: name.to_owned() });
            }
            if interrupted() {
                return Err(ClusterError::Interrupted);
            }
            let after = begun.elapsed();
            if after < deadline {
                return Ok(());
            }
            let logs = supervisor.logs.display().to_string();
            Err(ClusterError::NoAnswer { node: name.to_owned(), after, why: last.to_owned(), logs })
        })?;
        Ok(begun.elapsed())
    }

    /// Limits the CPU time of the node to `share` of that of all processors which the lab may use, in every 100 ms, until
    /// the guard goes. Several limits may be in force: the least counts. A node that is down is limited once it starts.
    ///
    /// # Errors
    /// When `share` is below 1 %, or the thread that keeps the limit cannot be started.
    pub fn limit_cpu(&self, name: &str, share: Share) -> Result<CpuLimit, ClusterError> {
        CpuLimit::start(self.supervisor(name)?, share)
    }

    /// The least of the limits that are kept for the node at this moment; `None`: it is not limited.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn cpu_share(&self, name: &str) -> Result<Option<Share>, ClusterError> {
        Ok(self.supervisor(name)?.life().cpu_share())
    }

    /// Time for which limits have held the node since the cluster was started, in nanoseconds.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn held_ns(&self, name: &str) -> Result<u64, ClusterError> {
        Ok(self.supervisor(name)?.life().held_ns())
    }

    /// A command that asks or tells the node by its own tool of administration: `nodetool` with these arguments. It runs as
    /// the node does (its network, user, directory, no rights), in a session of its own, and dies with the thread that spawns
    /// it. The caller sets its stdin, stdout and stderr, and spawns it.
    ///
    /// # Errors
    /// When the node is down or paused: it could not answer.
    pub fn nodetool(&self, name: &str, arguments: &[String]) -> Result<Command, ClusterError> {
        let index = self.find(name)?;
        let supervisor = &self.0.supervisors[index];
        let state = supervisor.open()?.state();
        match state {
            NodeState::Up => {}
            NodeState::Paused => {
                return Err(supervisor.not_now("ask", "is paused and does not answer", "unpause it first"));
            }
            NodeState::Down => return Err(supervisor.not_now("ask", "is down", "start it first")),
        }
        let mut command = self.0.system.tool(&self.0.members, index, arguments);
        let program = PathBuf::from(command.get_program());
        let failed = |source| ClusterError::Spawn { node: name.to_owned(), program, source };
        self.0.confine(index, &mut command).map_err(failed)?;
        Ok(command)
    }

    /// The node's own log. Every start goes on in it.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn log_path(&self, name: &str) -> Result<PathBuf, ClusterError> {
        let directory = &self.0.members[self.find(name)?].logs;
        Ok(directory.join(self.0.system.log_files().last().unwrap_or(&logs::CONSOLE)))
    }

    /// What the node's process itself prints: the words of its JVM.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn console_path(&self, name: &str) -> Result<PathBuf, ClusterError> {
        Ok(self.0.members[self.find(name)?].logs.join(logs::CONSOLE))
    }

    /// Every node with the network that it is in.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&Member, &Network)> {
        self.0.members.iter().zip(&self.0.networks)
    }

    fn supervisor(&self, name: &str) -> Result<&Arc<Supervisor>, ClusterError> {
        Ok(&self.0.supervisors[self.find(name)?])
    }

    fn find(&self, name: &str) -> Result<usize, ClusterError> {
        let members = &self.0.members;
        members.iter().position(|member| member.name == name).ok_or_else(|| unknown(name, self.names()))
    }
}

impl std::fmt::Debug for ClusterControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ClusterControl").field(&self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_node_is_an_error_with_the_nearest_name_and_all_names() {
        let known = || vec!["n1".to_owned(), "n2".to_owned(), "seed".to_owned()];
        for (asked, said) in [
            ("n22", "no node 'n22' (did you mean n2?); the nodes are n1, n2, seed"),
            ("sed", "no node 'sed' (did you mean seed?)"),
            ("n9", "no node 'n9' (did you mean n1?)"),
            ("zzzzzz", "no node 'zzzzzz'; the nodes are"),
        ] {
            let error = unknown(asked, known()).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
