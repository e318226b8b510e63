use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    CassandraSpec, ClusterControl, ClusterError, Death, Distribution, Node, NodeDirectories, Paths, Place, Readiness,
    SystemSettings, Variables,
    cassandra::Cassandra,
    directories::{check_names, make_directories},
    host::Network,
    java::Java,
    parts::Parts,
    readiness,
    supervisor::Supervisor,
    system::{ClusterView, Member, Start, System},
};

/// A cluster of database processes. Dropping it kills them (SIGKILL) and reaps them.
pub struct Cluster {
    parts: Arc<Parts>,
    nodes: Vec<Node>,
    logs: PathBuf,
}

/// What a caller does with a node's directories before its first start; the variables that it answers with are set at
/// every start of that node.
type Prepare<'a> = dyn FnMut(&NodeDirectories) -> io::Result<Variables> + 'a;

impl Cluster {
    /// Starts a Cassandra node on each of `hosts`; they are not ready yet (see [`Cluster::wait_ready`]).
    ///
    /// `archive` is a class-data archive of [`crate::cassandra::archive`]; a JVM that cannot use it starts without.
    /// The jars, Java and the archive must be readable for `paths.owner`.
    ///
    /// `prepare` is called once for each node, after all directories were made and before any node is started: it may mount
    /// something over them, and returns environment variables for that node, now and whenever it is started again.
    ///
    /// # Errors
    /// When a directory cannot be made (one left from an earlier cluster is not reused), a setting is not allowed,
    /// `prepare` fails, or a process cannot be spawned. Nothing runs then.
    pub fn start(
        spec: &CassandraSpec,
        distribution: &Distribution,
        java: &Java,
        hosts: &[&dyn Place],
        paths: &Paths,
        archive: Option<&Path>,
        prepare: &mut dyn FnMut(&NodeDirectories) -> io::Result<Variables>,
    ) -> Result<Cluster, ClusterError> {
        let system = Cassandra::new(spec, distribution, java, archive)?;
        Cluster::start_system(Box::new(system), hosts, paths, prepare)
    }

    pub(crate) fn start_system(
        system: Box<dyn System>,
        hosts: &[&dyn Place],
        paths: &Paths,
        prepare: &mut Prepare<'_>,
    ) -> Result<Cluster, ClusterError> {
        check_names(hosts)?;
        // A node works in its own directory, where a relative path would mean another place.
        let absolute = |path: &Path| std::path::absolute(path).map_err(ClusterError::files("find", path));
        let (scratch, logs) = (absolute(&paths.scratch)?, absolute(&paths.logs)?);
        let members: Vec<Member> = hosts
            .iter()
            .map(|host| Member {
                name: host.name().to_owned(),
                address: host.address(),
                home: scratch.join(host.name()),
                logs: logs.join(host.name()),
            })
            .collect();
        system.check(&members)?;
        let mut networks = Vec::new();
        for host in hosts {
            let network = Network::of(*host);
            networks.push(network.map_err(|source| ClusterError::Network { node: host.name().to_owned(), source })?);
        }
        for member in &members {
            make_directories(member, system.directories(), paths.owner)?;
        }
        if let Some(owner) = paths.owner {
            let theirs = members.iter().flat_map(|member| [&member.home, &member.logs]).cloned();
            for path in theirs.chain(system.reads()) {
                owner.check_reach(&path)?;
            }
        }
        let mut variables = Vec::new();
        for (index, member) in members.iter().enumerate() {
            system.configure(&members, index)?;
            let prepared = prepare(&NodeDirectories::of(member));
            variables.push(prepared.map_err(|source| ClusterError::Prepare { node: member.name.clone(), source })?);
        }
        let supervisor =
            |member: &Member| Arc::new(Supervisor::new(member.name.clone(), member.logs.clone(), system.log_files()));
        let supervisors: Vec<_> = members.iter().map(supervisor).collect();
        let node = |(member, supervisor): (&Member, &Arc<Supervisor>)| Node {
            name: member.name.clone(),
            address: member.address,
            logs: member.logs.clone(),
            supervisor: Arc::clone(supervisor),
        };
        let nodes = members.iter().zip(&supervisors).map(node).collect();
        let parts = Parts { system, members, networks, supervisors, variables, owner: paths.owner };
        // From here on an early return drops, and so kills, what runs.
        let cluster = Cluster { parts: Arc::new(parts), nodes, logs };
        for index in 0..hosts.len() {
            cluster.parts.start(index, Start::First)?;
        }
        Ok(cluster)
    }

    /// A handle by which the nodes are controlled, from any thread and while others use the cluster.
    pub fn control(&self) -> ClusterControl {
        ClusterControl::new(Arc::clone(&self.parts))
    }

    /// Waits until every node answers clients, knows every other node's place in the ring and takes it for up
    /// (shown by a read through each node from each other), and all hold one schema version.
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
        let started_ns =
            self.nodes.iter().map(Node::started_ns).min().unwrap_or_else(brownout_base::clock::monotonic_ns);
        let schema =
            self.wait(&|index| self.parts.system.view(&self.parts.members, index), deadline, interrupted, progress)?;
        Ok(Readiness {
            took: Duration::from_nanos(brownout_base::clock::monotonic_ns().saturating_sub(started_ns)),
            schema,
        })
    }

    /// Waits until every node is ready as in [`Cluster::wait_ready`], holds nothing that clients have written, and works on
    /// nothing that they have left behind: no compaction, no hint, no queue.
    ///
    /// # Errors
    /// As [`Cluster::wait_ready`].
    pub fn wait_rest(&mut self, deadline: Duration, interrupted: &dyn Fn() -> bool) -> Result<(), ClusterError> {
        self.wait(&|index| self.parts.system.rest(&self.parts.members, index), deadline, interrupted, &mut |_| {})
            .map(drop)
    }

    /// Has every node forget what it has learned of the others and would go on deciding by (Cassandra: its scores of them, by
    /// which it chooses replicas), and verifies that it has.
    ///
    /// To be called after [`Cluster::wait_rest`], whose questions make nodes read from one another.
    ///
    /// # Errors
    /// When a node cannot be asked, or has not forgotten.
    pub fn forget(&mut self) -> Result<(), ClusterError> {
        let Parts { system, members, networks, .. } = &*self.parts;
        let forget = |network: &Network| {
            network.enter().map_err(|error| format!("its network cannot be entered: {error}"))?;
            system.forget()
        };
        let forget = &forget;
        // All at once: one that reads from another would have it scored again.
        let done: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = networks.iter().map(|network| scope.spawn(move || forget(network))).collect();
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
                let logs = self.logs.display().to_string();
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
        self.parts.system.settings_in_force(&self.parts.members)
    }

    /// Deaths not told before, those that were asked for too; never blocks. A death that ended [`Cluster::wait_ready`]
    /// has been told by its error.
    pub fn deaths(&mut self) -> Vec<Death> {
        let mut deaths: Vec<Death> =
            self.parts.supervisors.iter().flat_map(|supervisor| supervisor.take_deaths()).collect();
        deaths.sort_by_key(|death| death.at_ns);
        deaths
    }

    /// Asks all nodes to end (SIGTERM; a paused one is let go on) and waits for it up to `deadline`; kills those that
    /// remain. True when all ended by themselves.
    pub fn stop(self, deadline: Duration) -> bool {
        let begun = Instant::now();
        for supervisor in &self.parts.supervisors {
            supervisor.ask_to_end();
        }
        while self.nodes.iter().any(Node::alive) {
            if begun.elapsed() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
        true
    }
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
    use std::{net::Ipv4Addr, process::Command};

    use super::*;

    /// A database that ends as soon as it is started, and of which others think the best.
    struct ShortLived;

    impl System for ShortLived {
        fn directories(&self) -> &[&str] {
            &[]
        }
        fn log_files(&self) -> &'static [&'static str] {
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
        fn tool(&self, _: &[Member], _: usize, _: &[String]) -> Command {
            Command::new("false")
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
        fn forget(&self) -> Result<(), String> {
            Err("it is no database".to_owned())
        }
        fn settings_in_force(&self, _: &[Member]) -> SystemSettings {
            SystemSettings {
                system: String::new(),
                version: String::new(),
                origin: String::new(),
                settings: Default::default(),
                deviations: Vec::new(),
                options: Vec::new(),
                files: Default::default(),
            }
        }
    }

    struct Here;

    impl Place for Here {
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
        let mut cluster = Cluster::start_system(Box::new(ShortLived), &[&Here], &paths, &mut |_| Ok(Vec::new()))
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
