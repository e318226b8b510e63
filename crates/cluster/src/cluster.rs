use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, Permissions},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use crate::{
    CassandraSpec, ClusterError, Death, Distribution, InForce, Node, Owner, Place, Readiness,
    cassandra::Cassandra,
    confine::confine,
    java::Java,
    logs,
    node::Process,
    place::Network,
    readiness,
    system::{Member, System},
};

/// Where a cluster's files go, and whose they are.
#[derive(Debug, Clone)]
pub struct Paths {
    /// A folder per node is made here, for its configuration and data. Must be reachable for `owner`.
    pub scratch: PathBuf,
    /// A folder per node is made here, for its logs, which outlive the cluster. Must be reachable for `owner`.
    pub logs: PathBuf,
    /// The user that the nodes run as; `None`: the one we are. Anything but `None` takes root.
    pub owner: Option<Owner>,
}

/// A cluster of database processes. Dropping it kills them.
pub struct Cluster {
    system: Box<dyn System>,
    members: Vec<Member>,
    networks: Vec<Network>,
    nodes: Vec<Node>,
    logs: PathBuf,
}

impl Cluster {
    /// Starts a Cassandra node on each of `places`; they are not ready yet (see [`Cluster::wait_ready`]).
    ///
    /// `archive` is a class-data archive of [`crate::cassandra::archive`]; a JVM that cannot use it starts without.
    /// The jars, Java and the archive must be readable for `paths.owner`.
    ///
    /// # Errors
    /// When a folder cannot be made (one left from an earlier cluster is not reused), a setting is not allowed,
    /// or a process cannot be spawned. Nothing runs then.
    pub fn start(
        spec: &CassandraSpec,
        distribution: &Distribution,
        java: &Java,
        places: &[&dyn Place],
        paths: &Paths,
        archive: Option<&Path>,
    ) -> Result<Cluster, ClusterError> {
        let system = Cassandra::new(spec, distribution, java, archive)?;
        Cluster::start_system(Box::new(system), places, paths)
    }

    pub(crate) fn start_system(
        system: Box<dyn System>,
        places: &[&dyn Place],
        paths: &Paths,
    ) -> Result<Cluster, ClusterError> {
        check_names(places)?;
        // A node works in its own folder, where a relative path would mean another place.
        let absolute = |path: &Path| std::path::absolute(path).map_err(ClusterError::files("find", path));
        let (scratch, logs) = (absolute(&paths.scratch)?, absolute(&paths.logs)?);
        let members: Vec<Member> = places
            .iter()
            .map(|place| Member {
                name: place.name().to_owned(),
                address: place.address(),
                home: scratch.join(place.name()),
                logs: logs.join(place.name()),
            })
            .collect();
        let mut networks = Vec::new();
        for place in places {
            let network = Network::of(*place);
            networks.push(network.map_err(|source| ClusterError::Network { node: place.name().to_owned(), source })?);
        }
        for member in &members {
            make_folders(member, system.folders(), paths.owner)?;
        }
        if let Some(owner) = paths.owner {
            let theirs = members.iter().flat_map(|member| [&member.home, &member.logs]).cloned();
            for path in theirs.chain(system.reads()) {
                owner.check_reach(&path)?;
            }
        }
        // Nodes are pushed as they are spawned: an early return drops, and so kills, those that run.
        let mut cluster = Cluster { system, members, networks, nodes: Vec::new(), logs };
        for (index, place) in places.iter().enumerate() {
            let node = cluster.spawn(index, *place, paths.owner)?;
            cluster.nodes.push(node);
        }
        Ok(cluster)
    }

    fn spawn(&self, index: usize, place: &dyn Place, owner: Option<Owner>) -> Result<Node, ClusterError> {
        let member = &self.members[index];
        let console = member.logs.join(logs::CONSOLE);
        let open = || -> std::io::Result<(File, File)> {
            let file = OpenOptions::new().create(true).append(true).open(&console)?;
            Ok((file.try_clone()?, file))
        };
        let (stdout, stderr) = open().map_err(ClusterError::files("open", &console))?;

        let mut command = self.system.command(&self.members, index)?;
        let program = PathBuf::from(command.get_program());
        let failed = |source| ClusterError::Spawn { node: member.name.clone(), program: program.clone(), source };
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).current_dir(&member.home);
        place.prepare(&mut command);
        confine(&mut command, &member.name, owner).map_err(failed)?;
        let started_ns = brownout_network::monotonic_ns();
        let process = Process::spawn(command, &member.name).map_err(failed)?;
        Ok(Node {
            name: member.name.clone(),
            address: member.address,
            pid: process.pid(),
            started_ns,
            logs: member.logs.clone(),
            process,
            told: false,
        })
    }

    /// Waits until every node answers clients, knows every other node's place in the ring and takes it for up
    /// (shown by a read through each node from each other), and all hold one schema version.
    ///
    /// `progress` is called with one line whenever what is missing changes.
    ///
    /// # Errors
    /// At once when a node dies or `interrupted` says so; when `deadline` (from now) passes, with what is missing.
    pub fn wait_ready(
        &mut self,
        deadline: Duration,
        interrupted: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Readiness, ClusterError> {
        let begun = Instant::now();
        let started_ns =
            self.nodes.iter().map(|node| node.started_ns).min().unwrap_or_else(brownout_network::monotonic_ns);
        let Cluster { system, members, networks, nodes, logs } = self;
        let mut shown = String::new();
        let schema = readiness::wait(system.as_ref(), members, networks, |missing| {
            for node in nodes.iter_mut() {
                if let Some(death) = node.death(system.log_files()) {
                    node.told = true;
                    return Err(ClusterError::NodeDied(death));
                }
            }
            if interrupted() {
                return Err(ClusterError::Interrupted);
            }
            if missing.is_empty() {
                return Ok(());
            }
            let after = begun.elapsed();
            if after >= deadline {
                let logs = logs.display().to_string();
                return Err(ClusterError::NotReady { after, missing: missing.to_vec(), logs });
            }
            let line = missing.join("; ");
            if line != shown {
                progress(&line);
                shown = line;
            }
            Ok(())
        })?;
        Ok(Readiness {
            took: Duration::from_nanos(brownout_network::monotonic_ns().saturating_sub(started_ns)),
            schema,
        })
    }

    /// The nodes, in the order of the places given at the start.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The settings in force, for the record of the run.
    pub fn in_force(&self) -> InForce {
        self.system.in_force(&self.members)
    }

    /// Deaths not told before; never blocks. A death that ended [`Cluster::wait_ready`] has been told by its error.
    pub fn deaths(&mut self) -> Vec<Death> {
        let mut deaths = Vec::new();
        for node in self.nodes.iter_mut().filter(|node| !node.told) {
            if let Some(death) = node.death(self.system.log_files()) {
                node.told = true;
                deaths.push(death);
            }
        }
        deaths.sort_by_key(|death| death.at_ns);
        deaths
    }

    /// Asks all nodes to end (SIGTERM) and waits for it up to `deadline`; kills those that remain.
    /// True when all ended by themselves.
    pub fn stop(self, deadline: Duration) -> bool {
        let begun = Instant::now();
        self.signal(libc::SIGTERM);
        while self.nodes.iter().any(Node::alive) {
            if begun.elapsed() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// Kills all nodes (SIGKILL) and reaps them; so does dropping the cluster.
    pub fn kill(self) {}

    fn signal(&self, signal: libc::c_int) {
        for node in &self.nodes {
            node.process.signal(signal);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // All at once, before each is waited for: a dying cluster should not see itself shrink.
        self.signal(libc::SIGKILL);
    }
}

fn check_names(places: &[&dyn Place]) -> Result<(), ClusterError> {
    if places.is_empty() {
        return Err(ClusterError::NoPlaces);
    }
    let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for place in places {
        // The name becomes a folder and a host name.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if place.name().is_empty() || place.name().len() > 63 || !place.name().chars().all(plain) {
            return Err(ClusterError::Name(place.name().to_owned()));
        }
        if !names.insert(place.name()) {
            return Err(ClusterError::SamePlace(format!("the name {}", place.name())));
        }
        if !addresses.insert(place.address()) {
            return Err(ClusterError::SamePlace(format!("the address {}", place.address())));
        }
    }
    Ok(())
}

/// Makes a member's folders. Its home must be new: data of an earlier cluster would change this one's behaviour.
fn make_folders(member: &Member, folders: &[&str], owner: Option<Owner>) -> Result<(), ClusterError> {
    for parent in [&member.home, &member.logs].into_iter().filter_map(|path| path.parent()) {
        fs::create_dir_all(parent).map_err(ClusterError::files("create", parent))?;
    }
    fs::create_dir(&member.home).map_err(ClusterError::files("create", &member.home))?;
    fs::create_dir_all(&member.logs).map_err(ClusterError::files("create", &member.logs))?;
    let mut own = vec![member.home.clone(), member.logs.clone()];
    for folder in folders {
        let path = member.home.join(folder);
        fs::create_dir_all(&path).map_err(ClusterError::files("create", &path))?;
        own.push(path);
    }
    for path in &own {
        // Whatever our umask is, the owner must get in.
        fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(ClusterError::files("open up", path))?;
        if let Some(Owner { uid, gid }) = owner {
            chown(path, Some(uid), Some(gid))
                .map_err(ClusterError::files(format!("give to user {uid}, group {gid},"), path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, process::Command};

    use super::*;
    use crate::system::View;

    /// A database that ends as soon as it is started, and of which others think the best.
    struct ShortLived;

    impl System for ShortLived {
        fn folders(&self) -> &[&str] {
            &[]
        }
        fn log_files(&self) -> &[&str] {
            &[]
        }
        fn reads(&self) -> Vec<PathBuf> {
            Vec::new()
        }
        fn command(&self, _: &[Member], _: usize) -> Result<Command, ClusterError> {
            Ok(Command::new("false"))
        }
        fn view(&self, _: &[Member], _: usize) -> View {
            View { missing: Vec::new(), schema: Some("a".to_owned()) }
        }
        fn in_force(&self, _: &[Member]) -> InForce {
            InForce {
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
        fn prepare(&self, _: &mut Command) {}
    }

    #[test]
    fn a_cluster_with_a_dead_node_is_not_ready_whatever_the_views_say() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths { scratch: folder.path().join("scratch"), logs: folder.path().join("logs"), owner: None };
        let mut cluster = Cluster::start_system(Box::new(ShortLived), &[&Here], &paths)
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
