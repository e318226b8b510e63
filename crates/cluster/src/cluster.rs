use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Access, AttachedNode, ClusterControl, ClusterError, DatabaseKind, Death, EnterableHost, Hands, Node,
    NodeDirectories, Owner, Paths, Readiness, SystemSettings, Variables,
    database::{ClusterView, Database, Member, Start},
    directories::{check_names, make_directories},
    host::Network,
    parts::Parts,
    readiness,
    supervisor::Supervisor,
};

/// A cluster of database processes. Dropping it kills them (SIGKILL) and reaps them; nodes that are not ours stay as they are.
pub struct Cluster {
    parts: Arc<Parts>,
    nodes: Vec<Node>,
    logs: PathBuf,
    /// When the first process was started, or the nodes were attached; `CLOCK_MONOTONIC`.
    begun_ns: u64,
}

/// What a caller does with a node's directories before its first start; the variables that it answers with are set at
/// every start of that node.
type Prepare<'a> = dyn FnMut(&NodeDirectories) -> io::Result<Variables> + 'a;

impl Cluster {
    /// Starts a node of `database` on each of `hosts`; they are not ready yet (see [`Cluster::wait_ready`]).
    ///
    /// Whatever the database reads besides its own directories must be readable for `paths.owner`.
    ///
    /// `prepare` is called once for each node, after all directories were made and before any node is started: it may mount
    /// something over them, and returns environment variables for that node, now and whenever it is started again.
    ///
    /// # Errors
    /// When a directory cannot be made (one left from an earlier cluster is not reused), a setting is not allowed,
    /// `prepare` fails, or a process cannot be spawned. Nothing runs then. A database whose nodes are not ours to run is
    /// [`ClusterError::NotOurs`].
    pub fn start(
        database: Box<dyn Database>,
        hosts: &[&dyn EnterableHost],
        paths: &Paths,
        prepare: &mut Prepare<'_>,
    ) -> Result<Cluster, ClusterError> {
        check_names(hosts)?;
        // A node works in its own directory, where a relative path would mean another place.
        let absolute = |path: &Path| std::path::absolute(path).map_err(ClusterError::files("find", path));
        let (scratch, logs) = (absolute(&paths.scratch)?, absolute(&paths.logs)?);
        let kind = database.kind();
        let members: Vec<Member> = hosts
            .iter()
            .map(|host| Member {
                name: host.name().to_owned(),
                address: host.address(),
                client: (host.address(), kind.client_port()).into(),
                home: scratch.join(host.name()),
                logs: logs.join(host.name()),
            })
            .collect();
        let first = || ClusterError::NotOurs { node: members[0].name.clone() };
        let program = database.program().ok_or_else(first)?;
        program.check(&members)?;
        let mut networks = Vec::new();
        for host in hosts {
            let network = Network::of(*host);
            networks.push(network.map_err(|source| ClusterError::Network { node: host.name().to_owned(), source })?);
        }
        for member in &members {
            make_directories(member, program.directories(), paths.owner)?;
        }
        if let Some(owner) = paths.owner {
            let theirs = members.iter().flat_map(|member| [&member.home, &member.logs]).cloned();
            for path in theirs.chain(program.reads()) {
                owner.check_reach(&path)?;
            }
        }
        let mut variables = Vec::new();
        for (index, member) in members.iter().enumerate() {
            program.configure(&members, index)?;
            let prepared = prepare(&NodeDirectories::of(kind, member));
            variables.push(prepared.map_err(|source| ClusterError::Prepare { node: member.name.clone(), source })?);
        }
        let log_files = program.log_files();
        let hands = members.iter().map(|_| None).collect();
        let grounds = Grounds { members, networks, hands, variables, logs, owner: paths.owner };
        let cluster = Cluster::of(database, log_files, grounds);
        // From here on an early return drops, and so kills, what runs.
        for index in 0..hosts.len() {
            cluster.parts.start(index, Start::First)?;
        }
        Ok(cluster)
    }

    /// A cluster that runs already, on these nodes. Each is asked from within its host, or else from the network that this
    /// process is in. They are only asked, except by those who have their [`Hands`]: nothing of them is started, ended or
    /// configured here, nor when the cluster is dropped.
    ///
    /// # Errors
    /// When there is no node, or two share a name or an address.
    pub fn attach(database: Box<dyn Database>, nodes: Vec<AttachedNode>) -> Result<Cluster, ClusterError> {
        if nodes.is_empty() {
            return Err(ClusterError::NoHosts);
        }
        for (index, AttachedNode { name, address, .. }) in nodes.iter().enumerate() {
            if nodes[..index].iter().any(|other| other.name == *name) {
                return Err(ClusterError::SameHost(format!("the name {name}")));
            }
            if nodes[..index].iter().any(|other| other.address == *address) {
                return Err(ClusterError::SameHost(format!("the address {address}")));
            }
        }
        let (mut members, mut networks, mut all_hands) = (Vec::new(), Vec::new(), Vec::new());
        for AttachedNode { name, address, host, hands } in nodes {
            members.push(Member {
                name,
                address: match address.ip() {
                    IpAddr::V4(address) => address,
                    IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
                },
                client: address,
                home: PathBuf::new(),
                logs: PathBuf::new(),
            });
            networks.push(host.map_or(Network::Own, Network::Present));
            all_hands.push(hands);
        }
        let variables = members.iter().map(|_| Variables::new()).collect();
        let grounds = Grounds { members, networks, hands: all_hands, variables, logs: PathBuf::new(), owner: None };
        Ok(Cluster::of(database, &[], grounds))
    }

    /// Of parts that are there; none of its nodes is started yet.
    fn of(database: Box<dyn Database>, log_files: &'static [&'static str], grounds: Grounds) -> Cluster {
        let Grounds { members, networks, hands, variables, logs, owner } = grounds;
        let supervisor =
            |member: &Member| Arc::new(Supervisor::new(member.name.clone(), member.logs.clone(), log_files));
        let supervisors: Vec<_> = members.iter().map(supervisor).collect();
        let owners = supervisors.iter().zip(&hands);
        let nodes = members.iter().zip(owners).map(|(member, (supervisor, hands))| Node {
            name: member.name.clone(),
            address: member.address,
            logs: member.logs.clone(),
            supervisor: Arc::clone(supervisor),
            hands: hands.clone(),
        });
        let nodes = nodes.collect();
        let parts = Parts { database, members, networks, supervisors, hands, variables, owner };
        Cluster { parts: Arc::new(parts), nodes, logs, begun_ns: brownout_base::clock::monotonic_ns() }
    }

    /// Which database its nodes run.
    pub fn kind(&self) -> DatabaseKind {
        self.parts.database.kind()
    }

    /// What a client needs beside the nodes' addresses.
    pub fn access(&self) -> Access {
        self.parts.database.access()
    }

    /// A handle by which the nodes are controlled, from any thread and while others use the cluster.
    pub fn control(&self) -> ClusterControl {
        ClusterControl::new(Arc::clone(&self.parts))
    }

    /// Waits until every node answers clients and lacks nothing by its own [`Database::view`] of the cluster (Cassandra: it knows
    /// every other node's place in the ring and takes it for up, shown by a read through each node from each other), and all
    /// hold one schema version.
    ///
    /// `progress` is called with one line whenever what is missing changes.
    ///
    /// # Errors
    /// At once when a node is dead or `interrupted` says so; when `deadline` (from now) passes, with what is missing.
    pub fn wait_ready(
        &mut self,
        deadline: Duration,
        interrupted: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Readiness, ClusterError> {
        let Parts { database, members, .. } = &*self.parts;
        let schema = self.wait(&|index| database.view(members, index), deadline, interrupted, progress)?;
        Ok(Readiness {
            took: Duration::from_nanos(brownout_base::clock::monotonic_ns().saturating_sub(self.begun_ns)),
            schema,
        })
    }

    /// Waits until every node is ready as in [`Cluster::wait_ready`], holds nothing that clients have written, and works on
    /// nothing that they have left behind: no compaction, no hint, no queue.
    ///
    /// # Errors
    /// As [`Cluster::wait_ready`].
    pub fn wait_rest(&mut self, deadline: Duration, interrupted: &dyn Fn() -> bool) -> Result<(), ClusterError> {
        let Parts { database, members, .. } = &*self.parts;
        self.wait(&|index| database.rest(members, index), deadline, interrupted, &mut |_| {}).map(drop)
    }

    /// Has every node forget what it has learned of the others and would go on deciding by (Cassandra: its scores of them, by
    /// which it chooses replicas; it collects its heap before that), and verifies that it has.
    ///
    /// To be called while clients ask nothing, and not before [`Cluster::wait_rest`], whose questions make nodes read from one
    /// another.
    ///
    /// # Errors
    /// When a node cannot be asked, or has not forgotten.
    pub fn forget(&mut self) -> Result<(), ClusterError> {
        let Parts { database, members, networks, .. } = &*self.parts;
        let forget = |index: usize| {
            networks[index].enter().map_err(|error| format!("its network cannot be entered: {error}"))?;
            database.forget(members, index)
        };
        let forget = &forget;
        // All at once: one that reads from another would have it scored again.
        let done: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..members.len()).map(|index| scope.spawn(move || forget(index))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("its thread ended".into()))).collect()
        });
        for (member, done) in members.iter().zip(done) {
            done.map_err(|why| ClusterError::NotForgotten { node: member.name.clone(), why })?;
        }
        Ok(())
    }

    /// Waits until all members lack nothing of what `ask` asks the one at a place for; returns the schema that they hold.
    fn wait(
        &self,
        ask: &(dyn Fn(usize) -> ClusterView + Sync),
        deadline: Duration,
        interrupted: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<String, ClusterError> {
        let begun = Instant::now();
        let Parts { members, networks, supervisors, .. } = &*self.parts;
        let mut shown = String::new();
        readiness::wait(ask, members, networks, |missing| {
            if let Some(death) = supervisors.iter().find_map(|supervisor| supervisor.tell_death()) {
                return Err(ClusterError::NodeDied(death));
            }
            if interrupted() {
                return Err(ClusterError::Interrupted);
            }
            if missing.is_empty() {
                return Ok(());
            }
            let after = begun.elapsed();
            if after >= deadline {
                // Nodes that are not ours log where they were started.
                let is_here = !self.logs.as_os_str().is_empty();
                let logs = if is_here { self.logs.display().to_string() } else { "places of their own".to_owned() };
                return Err(ClusterError::NotReady { after, missing: missing.to_vec(), logs });
            }
            let line = missing.join("; ");
            if line != shown {
                progress(&line);
                shown = line;
            }
            Ok(())
        })
    }

    /// The nodes, in the order of the places given at the start.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The settings in force, for the record of the run.
    pub fn settings_in_force(&self) -> SystemSettings {
        self.parts.database.settings_in_force(&self.parts.members)
    }

    /// Deaths not told before, those that were asked for too; never blocks. A death that ended [`Cluster::wait_ready`]
    /// has been told by its error.
    pub fn deaths(&mut self) -> Vec<Death> {
        let mut deaths: Vec<Death> =
            self.parts.supervisors.iter().flat_map(|supervisor| supervisor.take_deaths()).collect();
        deaths.sort_by_key(|death| death.at_ns);
        deaths
    }

    /// Asks all nodes that were started here to end (SIGTERM; a paused one is let go on) and waits for it up to `deadline`;
    /// kills those that remain. True when all ended by themselves.
    pub fn stop(self, deadline: Duration) -> bool {
        let begun = Instant::now();
        for supervisor in &self.parts.supervisors {
            supervisor.ask_to_end();
        }
        while self.parts.supervisors.iter().any(|supervisor| supervisor.life().living_pid().is_some()) {
            if begun.elapsed() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
        true
    }
}

/// What the nodes of a cluster stand on.
struct Grounds {
    members: Vec<Member>,
    networks: Vec<Network>,
    hands: Vec<Option<Arc<dyn Hands>>>,
    variables: Vec<Variables>,
    logs: PathBuf,
    owner: Option<Owner>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // All at once, before each is waited for: a dying cluster should not see itself shrink.
        for supervisor in &self.parts.supervisors {
            supervisor.end();
        }
        for supervisor in &self.parts.supervisors {
            supervisor.reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{
        Question,
        database::{Heartbeat, Looker, Program},
    };

    /// A database that ends as soon as it is started, and of which others think the best.
    struct ShortLived;

    impl Database for ShortLived {
        fn kind(&self) -> DatabaseKind {
            DatabaseKind::Etcd
        }
        fn program(&self) -> Option<&dyn Program> {
            Some(self)
        }
        fn answers(&self, _: &[Member], _: usize) -> Result<(), String> {
            Ok(())
        }
        fn view(&self, _: &[Member], _: usize) -> ClusterView {
            ClusterView { missing: Vec::new(), schema: Some("a".to_owned()) }
        }
        fn rest(&self, members: &[Member], index: usize) -> ClusterView {
            self.view(members, index)
        }
        fn heartbeat(&self, _: &[Member], _: usize, _: Question) -> Box<dyn Heartbeat> {
            unreachable!("nobody asks in these tests")
        }
        fn looker(&self, _: &[Member], _: usize, _: bool) -> Option<Box<dyn Looker>> {
            None
        }
        fn settings_in_force(&self, _: &[Member]) -> SystemSettings {
            SystemSettings::default()
        }
    }

    impl Program for ShortLived {
        fn directories(&self) -> &[&str] {
            &[]
        }
        fn reads(&self) -> Vec<PathBuf> {
            Vec::new()
        }
        fn check(&self, _: &[Member]) -> Result<(), ClusterError> {
            Ok(())
        }
        fn configure(&self, _: &[Member], _: usize) -> Result<(), ClusterError> {
            Ok(())
        }
        fn command(&self, _: &[Member], _: usize, _: Start) -> Command {
            Command::new("false")
        }
        fn tool(&self, _: &[Member], _: usize, _: &[String]) -> Option<Command> {
            None
        }
        fn log_files(&self) -> &'static [&'static str] {
            &[]
        }
    }

    struct Here;

    impl EnterableHost for Here {
        fn name(&self) -> &str {
            "n1"
        }
        fn address(&self) -> Ipv4Addr {
            Ipv4Addr::LOCALHOST
        }
        fn enter(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_cluster_with_a_dead_node_is_not_ready_whatever_the_views_say() {
        let directory = tempfile::tempdir().unwrap();
        let paths =
            Paths { scratch: directory.path().join("scratch"), logs: directory.path().join("logs"), owner: None };
        let mut cluster = Cluster::start(Box::new(ShortLived), &[&Here], &paths, &mut |_| Ok(Vec::new()))
            .unwrap_or_else(|error| panic!("this test starts a confined process: run it as root: {error}"));
        while cluster.nodes()[0].alive() {
            thread::sleep(Duration::from_millis(1));
        }
        match cluster.wait_ready(Duration::from_secs(60), &|| false, &mut |_| ()) {
            Err(ClusterError::NodeDied(death)) => assert_eq!(death.status, "exit code 1"),
            other => panic!("{other:?}"),
        }
    }
}
