//! Operations on the nodes of a running cluster.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use brownout_base::Change;
use brownout_units::Share;

use crate::{
    Access, ClusterError, CpuLimit, DatabaseKind, Hands, NodeState, Question, Restart, Stopped, clock,
    database::{Heartbeat, Led, Looker, Member, Roles, Start},
    election::elected,
    error::unknown,
    governor::Limit,
    host::Network,
    logs,
    parts::Parts,
    readiness,
    supervisor::Supervisor,
};

/// A handle to the nodes of a [`crate::Cluster`], by name: cheap to clone, usable from any thread, also while somebody
/// else waits for the cluster. It does not keep the cluster alive: once that has ended, all that would change a node is
/// an error, and every node is down.
///
/// Everything that changes a node returns when the kernel shows it, with the time from asking to seeing it. What a node
/// already is cannot be asked for again: pausing a paused node is an error.
///
/// Nodes that are not ours (of [`crate::Cluster::attach`]) are changed by those who have their [`Hands`]. Those of which nobody
/// has are only asked: all that would change one is [`ClusterError::NotOurs`].
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

    /// Which database its nodes run.
    pub fn kind(&self) -> DatabaseKind {
        self.0.database.kind()
    }

    /// Whether the nodes were started here; else they are only asked, except those of which somebody has the [`Hands`].
    pub fn is_ours(&self) -> bool {
        self.0.database.program().is_some()
    }

    /// Whether the node was not started here, and its processes can be touched all the same.
    pub fn has_hands(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|index| self.0.hands[index].is_some())
    }

    /// Where the node answers clients.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn client(&self, name: &str) -> Result<SocketAddr, ClusterError> {
        Ok(self.0.members[self.find(name)?].client)
    }

    /// What a client needs beside addresses.
    pub fn access(&self) -> Access {
        self.0.database.access()
    }

    /// The node that leads at this moment, by name: all nodes are asked at once, and the newest election counts. Takes a second
    /// at most.
    ///
    /// # Errors
    /// When the database has no leader, no node that answers knows one, or more have lost it than follow it.
    pub fn leader(&self) -> Result<String, ClusterError> {
        let Parts { database, members, networks, .. } = &*self.0;
        let roles: &dyn Roles = database.roles().ok_or(ClusterError::NoRoles { database: database.kind() })?;
        let ask = |index: usize| {
            networks[index].enter().map_err(|error| format!("its network cannot be entered: {error}"))?;
            roles.leader(members, index)
        };
        let ask = &ask;
        let answers: Vec<Result<Option<Led>, String>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..members.len()).map(|index| scope.spawn(move || ask(index))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("its thread ended".into()))).collect()
        });
        elected(members, &answers)
    }

    /// Stops all threads of the node (SIGSTOP to its process group). Its connections stay open and are silent.
    ///
    /// # Errors
    /// When it is paused already or down, dies meanwhile, or does not stop (it then goes on).
    pub fn pause(&self, name: &str) -> Result<Change, ClusterError> {
        match self.reach(name)? {
            Reach::Ours(supervisor) => supervisor.pause(),
            Reach::Hands(hands) => hands.pause(),
        }
    }

    /// Lets a paused node go on (SIGCONT), also one that somebody else has stopped. One whose CPU share is limited goes on
    /// when its limit allows.
    ///
    /// # Errors
    /// When it is not paused.
    pub fn unpause(&self, name: &str) -> Result<Change, ClusterError> {
        match self.reach(name)? {
            Reach::Ours(supervisor) => supervisor.unpause(),
            Reach::Hands(hands) => hands.unpause(),
        }
    }

    /// Ends the node by `signal` (`libc::SIGKILL`, SIGTERM, SIGABRT …: one that ends a process) and waits, ten seconds at
    /// most, until the kernel shows it dead. A paused node dies of SIGKILL as it stands; any other signal would wait in
    /// the kernel until the node goes on, so it is let go on.
    ///
    /// # Errors
    /// When it is down already, `signal` does not end processes, or it lives on.
    pub fn kill(&self, name: &str, signal: i32) -> Result<Change, ClusterError> {
        match self.reach(name)? {
            Reach::Ours(supervisor) => supervisor.kill(signal),
            Reach::Hands(hands) => hands.kill(signal),
        }
    }

    /// Asks the node to end (SIGTERM) and waits for that up to `deadline`, then kills it (SIGKILL). A paused node is let go
    /// on, so that it can end by itself.
    ///
    /// # Errors
    /// When it is down already, or does not even die of SIGKILL.
    pub fn stop(&self, name: &str, deadline: Duration) -> Result<Stopped, ClusterError> {
        match self.reach(name)? {
            Reach::Ours(supervisor) => supervisor.stop(deadline),
            Reach::Hands(hands) => hands.stop(deadline),
        }
    }

    /// Starts a node that is down, on its own data, by the same command; it does not answer yet (see
    /// [`ClusterControl::wait_answers`]). Unlike at the first start a node of Cassandra waits, as it is shipped, until gossip
    /// has settled before it takes clients: some eight seconds more.
    ///
    /// # Errors
    /// When it runs, or cannot be started.
    pub fn start(&self, name: &str) -> Result<Change, ClusterError> {
        let index = self.find(name)?;
        if let Some(hands) = &self.0.hands[index] {
            return hands.start();
        }
        self.0.start(index, Start::Again)
    }

    /// What the kernel shows of the node at this moment.
    ///
    /// # Errors
    /// For a name that no node bears, and for a node that is nobody's here: this kernel does not know it.
    pub fn state(&self, name: &str) -> Result<NodeState, ClusterError> {
        match self.reach(name)? {
            Reach::Ours(supervisor) => Ok(supervisor.life().state()),
            Reach::Hands(hands) => hands.state(),
        }
    }

    /// The node's process, in the PID namespace we are in; `None` while it is down.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn pid(&self, name: &str) -> Result<Option<u32>, ClusterError> {
        let index = self.find(name)?;
        let hands = self.0.hands[index].as_ref();
        Ok(hands.map_or_else(|| self.0.supervisors[index].life().living_pid(), |hands| hands.pid()))
    }

    /// CPU time used by all threads of the node since its last start, in nanoseconds; `None` while it is down.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn cpu_ns(&self, name: &str) -> Result<Option<u64>, ClusterError> {
        match &self.0.hands[self.find(name)?] {
            Some(hands) => Ok(hands.cpu_ns()),
            None => Ok(self.pid(name)?.and_then(clock::process_cpu_ns)),
        }
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
        let is_down = || match &self.0.hands[index] {
            Some(hands) => hands.state().is_ok_and(|state| state == NodeState::Down),
            None => self.is_ours() && supervisor.life().state() == NodeState::Down,
        };
        let down = || supervisor.not_now("wait for", "is down", "start it first");
        if is_down() {
            return Err(down());
        }
        let begun = Instant::now();
        let answers = || self.0.database.answers(&self.0.members, index);
        readiness::ask_one(&self.0.networks[index], &answers, |last| {
            if let Some(death) = supervisor.death() {
                return Err(ClusterError::NodeDied(death));
            }
            if supervisor.life().ended() {
                return Err(ClusterError::Ended { node: name.to_owned() });
            }
            // How a node of others died, nobody here can say.
            if self.0.hands[index].is_some() && is_down() {
                return Err(down());
            }
            if interrupted() {
                return Err(ClusterError::Interrupted);
            }
            let after = begun.elapsed();
            if after < deadline {
                return Ok(());
            }
            let is_here = !supervisor.logs.as_os_str().is_empty();
            let logs = if is_here { supervisor.logs.display().to_string() } else { "places of its own".to_owned() };
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
        match self.reach(name)? {
            Reach::Ours(supervisor) => Ok(CpuLimit(Box::new(Limit::start(supervisor, share)?))),
            Reach::Hands(hands) => Ok(CpuLimit(hands.limit_cpu(share)?)),
        }
    }

    /// The least of the limits that are kept for the node at this moment; `None`: it is not limited.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn cpu_share(&self, name: &str) -> Result<Option<Share>, ClusterError> {
        let index = self.find(name)?;
        let hands = self.0.hands[index].as_ref();
        Ok(hands.map_or_else(|| self.0.supervisors[index].life().cpu_share(), |hands| hands.cpu_share()))
    }

    /// Time for which limits have held the node since the cluster was started, in nanoseconds.
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn held_ns(&self, name: &str) -> Result<u64, ClusterError> {
        let index = self.find(name)?;
        let hands = self.0.hands[index].as_ref();
        Ok(hands.map_or_else(|| self.0.supervisors[index].life().held_ns(), |hands| hands.held_ns()))
    }

    /// Of a node of others: that it was started again since this was last asked, by whomever. `None` of all others, and while
    /// nobody has its [`Hands`].
    ///
    /// # Errors
    /// Only for a name that no node bears.
    pub fn restarted(&self, name: &str) -> Result<Option<Restart>, ClusterError> {
        Ok(self.0.hands[self.find(name)?].as_ref().and_then(|hands| hands.restarted()))
    }

    /// A command that asks or tells the node by its own tool of administration with these arguments: `nodetool`, `etcdctl`.
    /// It runs as the node does (its network, user, directory, no rights), in a session of its own, and dies with the thread that
    /// spawns it. The caller sets its stdin, stdout and stderr, and spawns it.
    ///
    /// # Errors
    /// When the node is down or paused (it could not answer), is not ours, or there is no such tool.
    pub fn tool(&self, name: &str, arguments: &[String]) -> Result<Command, ClusterError> {
        let index = self.find(name)?;
        let program = self.0.program(index)?;
        let supervisor = &self.0.supervisors[index];
        let state = supervisor.open()?.state();
        match state {
            NodeState::Up => {}
            NodeState::Paused => {
                return Err(supervisor.not_now("ask", "is paused and does not answer", "unpause it first"));
            }
            NodeState::Down => return Err(supervisor.not_now("ask", "is down", "start it first")),
        }
        let mut command = program.tool(&self.0.members, index, arguments).ok_or_else(|| ClusterError::NoTool {
            node: name.to_owned(),
            why: format!("what there is of {} on this machine brings none", self.kind()),
        })?;
        let program = PathBuf::from(command.get_program());
        let failed = |source| ClusterError::Spawn { node: name.to_owned(), program, source };
        self.0.confine(index, &mut command).map_err(failed)?;
        Ok(command)
    }

    /// The node's own log. Every start goes on in it.
    ///
    /// # Errors
    /// For a name that no node bears, and for a node that is not ours.
    pub fn log_path(&self, name: &str) -> Result<PathBuf, ClusterError> {
        let index = self.find(name)?;
        let files = self.0.program(index)?.log_files();
        Ok(self.0.members[index].logs.join(files.last().unwrap_or(&logs::CONSOLE)))
    }

    /// What the node's process itself prints: the words of its JVM, the log of etcd.
    ///
    /// # Errors
    /// For a name that no node bears, and for a node that is not ours.
    pub fn console_path(&self, name: &str) -> Result<PathBuf, ClusterError> {
        let index = self.find(name)?;
        self.0.program(index)?;
        Ok(self.0.members[index].logs.join(logs::CONSOLE))
    }

    /// Who asks a node whether it answers.
    pub(crate) fn heartbeat(&self, index: usize, question: Question) -> Box<dyn Heartbeat> {
        self.0.database.heartbeat(&self.0.members, index, question)
    }

    /// Who looks at what a node tells of itself.
    pub(crate) fn looker(&self, index: usize, clock_is_right: bool) -> Option<Box<dyn Looker>> {
        self.0.database.looker(&self.0.members, index, clock_is_right)
    }

    /// Every node with the network that it is in.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&Member, &Network)> {
        self.0.members.iter().zip(&self.0.networks)
    }

    /// By whom a node can be changed.
    fn reach(&self, name: &str) -> Result<Reach<'_>, ClusterError> {
        let index = self.find(name)?;
        if let Some(hands) = &self.0.hands[index] {
            return Ok(Reach::Hands(hands.as_ref()));
        }
        self.0.program(index)?;
        Ok(Reach::Ours(&self.0.supervisors[index]))
    }

    fn find(&self, name: &str) -> Result<usize, ClusterError> {
        let members = &self.0.members;
        members.iter().position(|member| member.name == name).ok_or_else(|| unknown(name, self.names()))
    }
}

/// Who can change a node.
enum Reach<'a> {
    /// It was started here.
    Ours(&'a Arc<Supervisor>),
    /// It was not.
    Hands(&'a dyn Hands),
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
