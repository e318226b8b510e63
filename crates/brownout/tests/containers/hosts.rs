//! Three hosts on a bridge, as container runtimes make them: a network namespace and a veth pair each, the other ends of
//! which are the machine's. To be made in a network of its own (`apart`).

use std::{
    fs, io,
    net::Ipv4Addr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use brownout_cluster::{
    Cluster, EnterableHost, NodeDirectories, Paths, Variables, cache,
    etcd::{self, Etcd, EtcdSpec, Installed, Wanted},
};

use super::{
    apart::network_of,
    common::both,
    look::{Connection, Setup, enter},
};

/// The bridge's own, which is the machine's.
const MACHINE: &str = "172.30.0.1/24";

/// A host that others have made.
pub struct Host {
    name: String,
    pub address: Ipv4Addr,
    pub namespace: PathBuf,
}

impl EnterableHost for Host {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> Ipv4Addr {
        self.address
    }

    fn enter(&self) -> io::Result<()> {
        enter(&self.namespace)
    }
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", both(&output));
}

/// Makes the bridge, and hosts 172.30.0.11 and on.
pub fn three() -> Vec<Host> {
    ip("link add shop type bridge");
    ip(&format!("address add {MACHINE} dev shop"));
    ip("link set shop up");
    let host = |number: u8| {
        let (name, address) = (format!("shop-{number}"), Ipv4Addr::new(172, 30, 0, 10 + number));
        ip(&format!("netns add {name}"));
        ip(&format!("link add veth{number} type veth peer name eth0 netns {name}"));
        ip(&format!("link set veth{number} master shop up"));
        ip(&format!("-n {name} link set lo up"));
        ip(&format!("-n {name} address add {address}/24 dev eth0"));
        ip(&format!("-n {name} link set eth0 up"));
        ip(&format!("-n {name} route add default via 172.30.0.1"));
        Host { namespace: Path::new("/run/netns").join(&name), name, address }
    };
    (1..=3).map(host).collect()
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// A process that does nothing in a host, and ends with this.
pub struct Idle(Child);

impl Idle {
    pub fn within(host: &Host) -> Idle {
        let network = format!("--net={}", host.namespace.display());
        let sleep = Command::new("nsenter").arg(network).args(["sleep", "600"]).stdin(Stdio::null()).spawn();
        let idle = Idle(sleep.unwrap());
        // It moves there when it has begun.
        let is_there = || inode(&network_of(idle.pid())) == inode(&host.namespace);
        let begun = Instant::now();
        while !is_there() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it does not arrive in {}", host.namespace.display());
            thread::sleep(Duration::from_millis(5));
        }
        idle
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// An etcd on each of three hosts, which runs until it is dropped.
pub struct Shop {
    cluster: Cluster,
    pub hosts: Vec<Host>,
    _directory: tempfile::TempDir,
}

/// etcd from the cache, or built into it.
pub fn etcd() -> Installed {
    let cache = cache::directory().unwrap();
    etcd::provide(&Wanted::Version("3".to_owned()), &cache, &|line| eprintln!("{line}"), &|| false).unwrap()
}

impl Shop {
    /// Starts it, and waits until it answers.
    pub fn open() -> Shop {
        let hosts = three();
        let database = Etcd::new(&EtcdSpec::default(), &etcd()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let paths =
            Paths { scratch: directory.path().join("scratch"), logs: directory.path().join("logs"), owner: None };
        let mut prepare = |_: &NodeDirectories| -> io::Result<Variables> { Ok(Variables::new()) };
        let all: Vec<&dyn EnterableHost> = hosts.iter().map(|host| host as &dyn EnterableHost).collect();
        let mut cluster = Cluster::start(Box::new(database), &all, &paths, &mut prepare).unwrap();
        cluster.wait_ready(Duration::from_secs(120), &|| false, &mut |line| eprintln!("waiting: {line}")).unwrap();
        Shop { cluster, hosts, _directory: directory }
    }

    /// The process of each, in the order of the hosts.
    pub fn pids(&self) -> Vec<u32> {
        let control = self.cluster.control();
        self.hosts.iter().map(|host| control.pid(&host.name).unwrap().unwrap()).collect()
    }

    /// The same, with commas between.
    pub fn pids_in_words(&self) -> String {
        self.pids().iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }

    /// What is set up in the machine's network, and in those of the hosts.
    pub fn setup(&self) -> Setup {
        let hosts = self.hosts.iter().map(|host| host.namespace.clone());
        Setup::of(&hosts.chain([network_of(std::process::id())]).collect::<Vec<_>>())
    }

    /// A connection from one host to another, by their indices.
    pub fn connection(&self, from: usize, to: usize) -> Connection {
        let (from, to) = (&self.hosts[from], &self.hosts[to]);
        Connection::between(&from.namespace, &to.namespace, to.address)
    }

    /// None of the nodes has ended.
    pub fn assert_all_live(&mut self) {
        assert_eq!(self.cluster.deaths().len(), 0, "a node has ended");
    }
}
