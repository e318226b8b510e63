//! A ground for tests: hosts that are network namespaces around one bridge, without an emulator, and the user's cache
//! at a place that the nodes' user can reach. All of it is gone when the test thread and its descriptors are.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{
    ffi::CString,
    fs::{self, File},
    io,
    net::Ipv4Addr,
    os::{fd::AsRawFd, unix::fs::PermissionsExt, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use brownout_cluster::{Distribution, Owner, Paths, Place, cache, cassandra, java};

/// One cluster at a time: two would have each other's CPU.
static TURN: Mutex<()> = Mutex::new(());

/// Nodes see the cache here, whoever's it is: a fixed path, since class-data archives are tied to it.
const CACHE: &str = "/mnt/brownout-cache";

pub struct Ground {
    pub hosts: Vec<TestHost>,
    pub distribution: Distribution,
    pub java: java::Java,
    pub cache: PathBuf,
    folder: tempfile::TempDir,
    _hub: File,
    _turn: MutexGuard<'static, ()>,
}

pub struct TestHost {
    name: String,
    address: Ipv4Addr,
    network: File,
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

        let hub = new_network();
        in_network(&hub, "ip link set lo up");
        in_network(&hub, "ip link add bridge type bridge");
        in_network(&hub, "ip link set bridge up");
        let hosts = (1..=hosts).map(|number| TestHost::new(&hub, number)).collect();
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Ground { hosts, distribution, java, cache, folder, _hub: hub, _turn: turn }
    }

    pub fn places(&self) -> Vec<&dyn Place> {
        self.hosts.iter().map(|host| host as &dyn Place).collect()
    }

    /// Fresh folders for the cluster called `name`.
    pub fn paths(&self, name: &str) -> Paths {
        let folder = self.folder.path().join(name);
        Paths { scratch: folder.join("scratch"), logs: folder.join("logs"), owner: owner() }
    }
}

impl TestHost {
    fn new(hub: &File, number: u8) -> TestHost {
        let network = new_network();
        let address = Ipv4Addr::new(10, 78, 0, number);
        let peer = format!("/proc/{}/fd/{}", process::id(), network.as_raw_fd());
        in_network(hub, &format!("ip link add port{number} type veth peer name lab0 netns {peer}"));
        in_network(hub, &format!("ip link set port{number} master bridge up"));
        in_network(&network, "ip link set lo up");
        in_network(&network, &format!("ip address add {address}/24 dev lab0"));
        in_network(&network, "ip link set lab0 up");
        TestHost { name: format!("n{number}"), address, network }
    }

    /// Runs `work` inside of this host.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(|| self.enter().map(|()| work()).unwrap()).join().unwrap())
    }
}

impl Place for TestHost {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> Ipv4Addr {
        self.address
    }

    fn enter(&self) -> io::Result<()> {
        set_network(self.network.as_raw_fd())
    }

    fn prepare(&self, command: &mut Command) {
        let network = self.network.as_raw_fd();
        // SAFETY: setns is async-signal-safe.
        unsafe { command.pre_exec(move || set_network(network)) };
    }
}

/// Whom the nodes run as: nobody; or, where a user namespace has no such user, the one that its root stands for.
pub fn owner() -> Option<Owner> {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    let ids: u64 = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum();
    (ids > u64::from(Owner::NOBODY.uid)).then_some(Owner::NOBODY)
}

fn set_network(fd: i32) -> io::Result<()> {
    // SAFETY: setns touches no memory of ours.
    match unsafe { libc::setns(fd, libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn new_network() -> File {
    let make = || {
        // SAFETY: unshare touches no memory of ours.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "{}", io::Error::last_os_error());
        File::open("/proc/thread-self/ns/net").unwrap()
    };
    thread::spawn(make).join().unwrap()
}

fn in_network(network: &File, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = Command::new(words[0]);
    let fd = network.as_raw_fd();
    // SAFETY: setns is async-signal-safe.
    unsafe { command.args(&words[1..]).pre_exec(move || set_network(fd)) };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
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
