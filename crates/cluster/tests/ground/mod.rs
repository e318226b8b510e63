//! A ground for tests: an emulated network without impairments, and the user's cache at a place that the nodes' user
//! can reach. All of it is gone when the test thread and its descriptors are.

#![allow(clippy::unwrap_used, dead_code, unused_imports, reason = "a test may; not every one uses all")]

mod client;

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs::{self, File},
    io,
    os::{fd::AsRawFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use brownout_cluster::{
    Cassandra, CassandraSpec, Cluster, ClusterError, Distribution, EnterableHost, Jit, Owner, Paths, Readiness, cache,
    cassandra::{self, Installed, archive},
    java,
};
use brownout_network::{HostSpec, Network, NetworkSpec};

pub use client::{ALL, Client, ONE, QUORUM};

/// For three nodes; many times what an idle machine takes.
pub const PATIENCE: Duration = Duration::from_secs(180);

pub fn quick() -> CassandraSpec {
    CassandraSpec { jit: Jit::C1, ..CassandraSpec::default() }
}

pub fn start(ground: &Ground, spec: &CassandraSpec, paths: &Paths) -> Cluster {
    let start = || {
        let database = Cassandra::new(spec, &ground.installed(), &BTreeMap::new())?;
        Cluster::start(Box::new(database), &ground.hosts(), paths, &mut |_| Ok(Vec::new()))
    };
    // The thread that starts a cluster may end: the nodes' death signal must not be tied to it.
    thread::scope(|scope| scope.spawn(start).join().unwrap()).unwrap()
}

pub fn wait(cluster: &mut Cluster) -> Result<Readiness, ClusterError> {
    cluster.wait_ready(PATIENCE, &|| false, &mut |line| eprintln!("waiting: {line}"))
}

/// Waits for what must come.
pub fn eventually(what: &str, mut there: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < end, "never came: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// One cluster at a time: two would have each other's CPU.
static TURN: Mutex<()> = Mutex::new(());

/// Nodes see the cache here, whoever's it is: a fixed path, since class-data archives are tied to it.
const CACHE: &str = "/mnt/brownout-cache";

pub struct Ground {
    pub network: Network,
    pub distribution: Distribution,
    pub java: java::Java,
    pub cache: PathBuf,
    directory: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Ground {
    pub fn new(hosts: u8) -> Ground {
        // SAFETY: geteuid cannot fail.
        let root = unsafe { libc::geteuid() } == 0;
        assert!(root, "this test makes network namespaces and starts databases as another user: run it as root");
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let real_cache = cache::directory().unwrap();
        let distribution =
            cassandra::maven::resolve(cassandra::DEFAULT, &real_cache, &|line| eprintln!("{line}"), &|| false).unwrap();
        show_cache(&real_cache);
        let cache = PathBuf::from(CACHE);
        let distribution = cassandra::maven::resolve(&distribution.version, &cache, &|_| (), &|| false).unwrap();
        let java = java::find(distribution.java()).unwrap();

        let host = |number| HostSpec::new(format!("n{number}"), [10, 78, 0, number].into());
        let network = Network::start(NetworkSpec {
            hosts: (1..=hosts).map(host).collect(),
            mtu: 1500,
            congestion_control: None,
            seed: 1,
            realtime: false,
            overlay: None,
        })
        .unwrap();
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Ground { network, distribution, java, cache, directory, _turn: turn }
    }

    pub fn installed(&self) -> Installed {
        Installed {
            distribution: self.distribution.clone(),
            java: self.java.clone(),
            archive: archive::find(&self.distribution, &self.java, &self.cache),
        }
    }

    pub fn hosts(&self) -> Vec<&dyn EnterableHost> {
        self.network.hosts().iter().map(|host| host as &dyn EnterableHost).collect()
    }

    /// Fresh directories for the cluster called `name`.
    pub fn paths(&self, name: &str) -> Paths {
        let directory = self.directory.path().join(name);
        Paths { scratch: directory.join("scratch"), logs: directory.join("logs"), owner: owner() }
    }
}

/// Whom the nodes run as: nobody; or, where a user namespace has no such user, the one that its root stands for.
pub fn owner() -> Option<Owner> {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    let ids: u64 = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum();
    (ids > u64::from(Owner::NOBODY.uid)).then_some(Owner::NOBODY)
}

/// Shows `real` at [`CACHE`] to this thread and those it starts: root's home is closed to other users.
fn show_cache(real: &Path) {
    let text = |path: &str| CString::new(path).unwrap();
    let check = |result| assert_eq!(result, 0, "{}", io::Error::last_os_error());
    let (root, none, mnt, tmpfs) = (text("/"), std::ptr::null(), text("/mnt"), text("tmpfs"));
    // SAFETY: all strings live until the calls are done.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNS));
        check(libc::mount(none, root.as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()));
        // The real cache may lie below what is about to be covered, so it is held by a descriptor.
        let held = File::open(real).unwrap();
        let source = text(&format!("/proc/thread-self/fd/{}", held.as_raw_fd()));
        check(libc::mount(tmpfs.as_ptr(), mnt.as_ptr(), tmpfs.as_ptr(), 0, none.cast()));
        fs::create_dir(CACHE).unwrap();
        check(libc::mount(source.as_ptr(), text(CACHE).as_ptr(), none, libc::MS_BIND, none.cast()));
    }
}
