//! Three hosts on a bridge, as container runtimes make them: a network namespace and a veth pair each, the other ends of
//! which are the machine's. To be made in a network of its own (`apart`).

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    net::Ipv4Addr,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use brownout_cluster::{
    Access, Cluster, DatabaseKind, EnterableHost, NodeDirectories, Paths, Variables, cache,
    etcd::{self, Etcd, EtcdSpec, Installed, Wanted},
    external::External,
};

use super::{
    apart::network_of,
    common::{both, kill},
    look::{Connection, Setup, enter, within},
};

/// The bridge's own, which is the machine's.
const MACHINE: &str = "172.30.0.1/24";
/// The last part of the address of the host before the first.
const BEFORE: u8 = 10;
/// Of etcd.
const CLIENT_PORT: u16 = 2379;
/// Drops what probes are: as a policy does that allows but what it knows.
const NO_UDP: &str = "\
    add table ip firewall
    add chain ip firewall received { type filter hook input priority 0; }
    add rule ip firewall received meta l4proto udp drop
    add chain ip firewall sent { type filter hook output priority 0; }
    add rule ip firewall sent meta l4proto udp drop";

/// A host that others have made.
pub struct Host {
    pub name: String,
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
    (1..=3).map(host).collect()
}

/// The machines of [`on_machines`], by the names of their network namespaces. Of the first two each has hosts.
pub const MACHINES: [&str; 4] = ["m1", "m2", "m3", "m4"];

/// Makes machines on one network, and on two of them hosts: two behind the bridge of the first, one behind that of the second.
pub fn on_machines() -> Vec<Host> {
    ip("link add floor type bridge");
    ip("link set floor up");
    for (number, machine) in (1..).zip(MACHINES) {
        ip(&format!("netns add {machine}"));
        ip(&format!("link add to-{machine} type veth peer name eth0 netns {machine}"));
        ip(&format!("link set to-{machine} master floor up"));
        ip(&format!("-n {machine} link set lo up"));
        ip(&format!("-n {machine} address add 172.31.0.{number}/24 dev eth0"));
        ip(&format!("-n {machine} link set eth0 up"));
        // As Kubernetes has it: each machine has a part of the network, and knows the way to the others'.
        for other in [1, 2].into_iter().filter(|other| *other != number) {
            ip(&format!("-n {machine} route add 172.31.{other}.0/24 via 172.31.0.{other}"));
        }
    }
    for machine in [1, 2] {
        let forwards = format!("--net=/run/netns/m{machine}");
        let output = Command::new("nsenter").arg(forwards).args(["sysctl", "-qw", "net.ipv4.ip_forward=1"]).output();
        assert!(output.unwrap().status.success());
        ip(&format!("-n m{machine} link add pods type bridge"));
        ip(&format!("-n m{machine} address add 172.31.{machine}.1/24 dev pods"));
        ip(&format!("-n m{machine} link set pods up"));
    }
    [(1, 11), (1, 12), (2, 13)].map(|(machine, last)| on_machine(machine, last)).into()
}

/// Makes the network of a host on one of the machines.
fn on_machine(machine: u8, last: u8) -> Host {
    let (name, address) = (format!("pod-{last}"), Ipv4Addr::new(172, 31, machine, last));
    ip(&format!("netns add {name}"));
    ip(&format!("-n m{machine} link add veth{last} type veth peer name eth0 netns {name}"));
    ip(&format!("-n m{machine} link set veth{last} master pods up"));
    ip(&format!("-n {name} link set lo up"));
    ip(&format!("-n {name} address add {address}/24 dev eth0"));
    ip(&format!("-n {name} link set eth0 up"));
    ip(&format!("-n {name} route add default via 172.31.{machine}.1"));
    Host { namespace: Path::new("/run/netns").join(&name), name, address }
}

/// Makes the network of a host. Its hardware address follows from its own, as Docker has it: others know it on.
fn host(number: u8) -> Host {
    let (name, last) = (format!("shop-{number}"), BEFORE + number);
    let address = Ipv4Addr::new(172, 30, 0, last);
    ip(&format!("netns add {name}"));
    ip(&format!("link add veth{number} type veth peer name eth0 netns {name}"));
    ip(&format!("link set veth{number} master shop up"));
    ip(&format!("-n {name} link set lo up"));
    ip(&format!("-n {name} link set eth0 address 02:42:ac:1e:00:{last:02x}"));
    ip(&format!("-n {name} address add {address}/24 dev eth0"));
    ip(&format!("-n {name} link set eth0 up"));
    ip(&format!("-n {name} route add default via 172.30.0.1"));
    Host { namespace: Path::new("/run/netns").join(&name), name, address }
}

impl Host {
    /// Takes its network away and makes it anew, as a runtime does for a container that it starts again.
    pub fn make_anew(&self) {
        let number = self.address.octets()[3] - BEFORE;
        ip(&format!("link delete veth{number}"));
        ip(&format!("netns delete {}", self.name));
        host(number);
    }

    /// A firewall of its own eats what probes send and are sent.
    pub fn eats_probes(&self) {
        let network = format!("--net={}", self.namespace.display());
        let output = Command::new("nsenter").arg(network).args(["nft", NO_UDP]).output().unwrap();
        assert!(output.status.success(), "{}", both(&output));
    }
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// A process in a host, which ends with this.
pub struct Idle(Child);

impl Idle {
    /// One that does nothing.
    pub fn within(host: &Host) -> Idle {
        Idle::of(host, OsStr::new("sleep"), |command| {
            command.arg("600");
        })
    }

    /// Of a program, with what else is said of it.
    fn of(host: &Host, program: &OsStr, more: impl FnOnce(&mut Command)) -> Idle {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", host.namespace.display())).arg(program).stdin(Stdio::null());
        more(&mut command);
        let idle = Idle(command.spawn().unwrap());
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
    /// Nodes that were started again.
    again: Vec<Idle>,
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
        Shop::on(three())
    }

    /// The same on these hosts.
    pub fn on(hosts: Vec<Host>) -> Shop {
        let database = Etcd::new(&EtcdSpec::default(), &etcd()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let paths =
            Paths { scratch: directory.path().join("scratch"), logs: directory.path().join("logs"), owner: None };
        let mut prepare = |_: &NodeDirectories| -> io::Result<Variables> { Ok(Variables::new()) };
        let all: Vec<&dyn EnterableHost> = hosts.iter().map(|host| host as &dyn EnterableHost).collect();
        let mut cluster = Cluster::start(Box::new(database), &all, &paths, &mut prepare).unwrap();
        cluster.wait_ready(Duration::from_secs(120), &|| false, &mut |line| eprintln!("waiting: {line}")).unwrap();
        Shop { cluster, hosts, again: Vec::new(), _directory: directory }
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

    /// Ends a node, makes its network anew, and starts it there as it was started before, as a runtime does; its new process.
    pub fn start_again(&mut self, index: usize) -> u32 {
        let (pid, host) = (self.pids()[index], &self.hosts[index]);
        let process = Path::new("/proc").join(pid.to_string());
        let texts = |file: &str| -> Vec<OsString> {
            let all = fs::read(process.join(file)).unwrap();
            let texts = all.split(|byte| *byte == 0).filter(|text| !text.is_empty());
            texts.map(|text| OsStr::from_bytes(text).to_owned()).collect()
        };
        let (words, variables) = (texts("cmdline"), texts("environ"));
        let program = fs::read_link(process.join("exe")).unwrap();
        let home = fs::read_link(process.join("cwd")).unwrap();
        kill(pid, libc::SIGKILL);
        let begun = Instant::now();
        let lives = || fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
        while lives() {
            assert!(begun.elapsed() < Duration::from_secs(10), "{} does not end", host.name);
            thread::sleep(Duration::from_millis(5));
        }
        host.make_anew();
        let pairs = variables.iter().filter_map(|variable| variable.to_str()?.split_once('='));
        let again = Idle::of(host, program.as_os_str(), |command| {
            command.args(&words[1..]).env_clear().envs(pairs).current_dir(home);
            command.stdout(Stdio::null()).stderr(Stdio::null());
        });
        let pid = again.pid();
        self.again.push(again);
        pid
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

    /// What loads have put is gone.
    pub fn assert_holds_nothing_of_ours(&self) {
        let host = &self.hosts[0];
        let node = (host.address, CLIENT_PORT).into();
        let holds = within(&host.namespace, || {
            External::new(DatabaseKind::Etcd, Access::default()).unwrap().holds(node, "brownout/")
        });
        assert_eq!(holds, Ok(false));
    }

    /// None of the nodes has ended.
    pub fn assert_all_live(&mut self) {
        assert_eq!(self.cluster.deaths().len(), 0, "a node has ended");
    }
}
