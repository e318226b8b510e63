//! A network that others have made, as a container runtime makes one: three hosts `a`, `b` and `c`, each with an `eth0`, on a
//! bridge of a fourth, `load`. All of it is in namespaces of its own, and vanishes with them.

// Each test program uses its part of it; helpers may fail a test as it may itself.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Write},
    net::{IpAddr, TcpListener, TcpStream},
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    process::{Command, id},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use brownout_network::{AttachSpec, AttachedKind, AttachedSpec, Exit, Link, Network, Way, attach_trials};

use super::common::PATIENCE;

pub const CONTAINERS: [&str; 3] = ["a", "b", "c"];
pub const LOAD: &str = "load";

/// All ways to divert that this machine has; at least one.
pub fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for (way, tried) in attach_trials() {
        match tried {
            Ok(()) => ways.push(way),
            Err(error) => println!("not tested: {}, since {error}", way.name()),
        }
    }
    assert!(!ways.is_empty(), "this test needs root, /dev/net/tun and a way to divert packets");
    ways
}

/// The links of a network that can be impaired by the way that it was attached to.
pub fn links(network: &Network) -> Vec<Link> {
    let reaches_outside = network.way().is_some_and(|way| way.refuses_outside().is_none());
    let can_be = |link: &Link| reaches_outside || network.name(link.from) != Some(LOAD);
    network.links().into_iter().filter(can_be).collect()
}

/// A network namespace.
#[derive(Clone)]
pub struct Namespace(pub Arc<OwnedFd>);

impl Namespace {
    pub fn new() -> Namespace {
        let make = || {
            // SAFETY: takes a number alone; it concerns this thread, which does nothing else.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "{}", std::io::Error::last_os_error());
            File::open("/proc/thread-self/ns/net").unwrap()
        };
        Namespace(Arc::new(thread::spawn(make).join().unwrap().into()))
    }

    /// One that another process has open.
    pub fn at(path: &str) -> Namespace {
        Namespace(Arc::new(File::open(path).unwrap().into()))
    }

    /// Where any process finds it, as long as this one has it open.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", id(), self.0.as_raw_fd())
    }

    /// Runs `work` on a thread inside of it.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = || {
                // SAFETY: takes numbers alone; it concerns this thread.
                let entered = unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) };
                assert_eq!(entered, 0, "{}", std::io::Error::last_os_error());
                work()
            };
            scope.spawn(inside).join().unwrap()
        })
    }

    /// What a command of iproute2 or nftables prints in it.
    pub fn says(&self, words: &str) -> String {
        let (program, arguments) = words.split_once(' ').unwrap();
        let output = self.run(|| Command::new(program).args(arguments.split(' ')).output());
        let output = output.unwrap_or_else(|error| panic!("this test needs {program}: {error}"));
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// All that somebody could have changed in it, by what was asked.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for words in [
            "ip address show",
            "ip -6 address show",
            "ip link show",
            "ip route show table all",
            "ip -6 route show table all",
            "ip rule show",
            "ip -6 rule show",
            "tc qdisc show",
            "nft list ruleset",
        ] {
            // When something will be forgotten changes all the time.
            let said = self.says(words);
            let lines: Vec<_> = said.lines().filter(|line| !line.contains("expires")).collect();
            all.insert(words.to_owned(), lines.join("\n"));
        }
        self.run(|| sysctls(Path::new("/proc/sys/net"), &mut all));
        all
    }
}

/// All settings of the calling thread's namespace.
fn sysctls(directory: &Path, all: &mut BTreeMap<String, String>) {
    // An interface may go at this moment.
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sysctls(&path, all);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let name = path.display().to_string();
            // How many connections are tracked at the moment is no setting.
            if !name.ends_with("nf_conntrack_count") {
                all.insert(name, text);
            }
        }
    }
}

/// The namespaces: of the containers, in order, and then of the load.
pub struct Others {
    pub containers: Vec<Namespace>,
    pub load: Namespace,
}

impl Others {
    pub fn new() -> Others {
        let load = Namespace::new();
        load.says("ip link set lo up");
        load.says("ip link add br0 type bridge");
        // In one command, the interface would be up first, and its link-local address tentative for a second.
        load.says("ip link set br0 addrgenmode none");
        load.says("ip link set br0 up");
        load.says("ip address add 10.99.0.1/24 dev br0");
        load.says("ip -6 address add fd99::1/64 dev br0 nodad");
        let others = Others { containers: CONTAINERS.iter().map(|_| Namespace::new()).collect(), load };
        (0..CONTAINERS.len()).for_each(|number| others.plug(number));
        others.await_interfaces();
        others
    }

    /// One that can be attached to in this way, whatever this machine's namespaces are like.
    pub fn of(way: Way) -> Others {
        let others = Others::new();
        if way == Way::Route {
            let loosen = || fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "2").unwrap();
            others.containers.iter().for_each(|container| container.run(loosen));
        }
        others
    }

    /// Waits until all interfaces are up: kernels say so some time later.
    fn await_interfaces(&self) {
        let end = Instant::now() + PATIENCE;
        // Those have no carrier that a kernel would look for.
        let is_without = |line: &str| line.contains(": lo:") || line.contains(": brownout");
        let is_up = |line: &str| is_without(line) || line.contains("state UP");
        while !self.all().all(|namespace| namespace.says("ip -oneline link show").lines().all(is_up)) {
            assert!(Instant::now() < end, "an interface does not come up");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Connects a container.
    fn plug(&self, number: usize) {
        let (container, load) = (&self.containers[number], &self.load);
        load.says(&format!("ip link add veth{number} type veth peer name eth0 netns {}", container.path()));
        load.says(&format!("ip link set veth{number} addrgenmode none master br0"));
        load.says(&format!("ip link set veth{number} up"));
        container.says("ip link set lo up");
        container.says("ip link set eth0 addrgenmode none");
        container.says("ip link set eth0 up");
        container.says(&format!("ip address add 10.99.0.{}/24 dev eth0", number + 2));
        container.says(&format!("ip -6 address add fd99::{}/64 dev eth0 nodad", number + 2));
        container.says("ip route add default via 10.99.0.1");
    }

    /// Starts a container again: another namespace, another interface, the same addresses.
    pub fn restart(&mut self, number: usize) {
        self.load.says(&format!("ip link delete veth{number}"));
        self.containers[number] = Namespace::new();
        self.plug(number);
        self.await_interfaces();
    }

    /// Those that another process has made, by the paths that it told.
    pub fn at(paths: &str) -> Others {
        let mut all: Vec<_> = paths.split(' ').map(Namespace::at).collect();
        Others { load: all.pop().unwrap(), containers: all }
    }

    pub fn paths(&self) -> String {
        let all: Vec<_> = self.all().map(Namespace::path).collect();
        all.join(" ")
    }

    pub fn all(&self) -> impl Iterator<Item = &Namespace> {
        self.containers.iter().chain([&self.load])
    }

    pub fn snapshots(&self) -> Vec<BTreeMap<String, String>> {
        self.all().map(Namespace::snapshot).collect()
    }

    /// What is to be known of a container.
    pub fn container(&self, number: usize) -> AttachedSpec {
        AttachedSpec {
            name: CONTAINERS[number].into(),
            addresses: vec![address(number + 2), format!("fd99::{}", number + 2).parse().unwrap()],
            namespace: Arc::clone(&self.containers[number].0),
            exits: vec![Exit { interface: "eth0".into(), to: None }],
            kind: AttachedKind::Host,
        }
    }

    /// The same of what is outside.
    pub fn outside(&self) -> AttachedSpec {
        let exit =
            |number: usize| Exit { interface: format!("veth{number}"), to: Some(vec![CONTAINERS[number].to_owned()]) };
        AttachedSpec {
            name: LOAD.into(),
            addresses: vec![address(1), "fd99::1".parse().unwrap()],
            namespace: Arc::clone(&self.load.0),
            exits: (0..CONTAINERS.len()).map(exit).collect(),
            kind: AttachedKind::Outside,
        }
    }

    pub fn spec(&self) -> AttachSpec {
        let hosts = (0..CONTAINERS.len()).map(|number| self.container(number)).chain([self.outside()]).collect();
        AttachSpec { hosts, seed: 20_111, realtime: true }
    }

    /// In this way and no other.
    pub fn attach_by(&self, way: Way) -> Network {
        Network::attach_by(way, self.spec(), None).unwrap_or_else(|error| panic!("{}: {error}", way.name()))
    }

    pub fn attach(&self) -> Network {
        Network::attach(self.spec()).unwrap_or_else(|error| panic!("this test needs root and /dev/net/tun: {error}"))
    }
}

fn address(last: usize) -> IpAddr {
    IpAddr::from([10, 99, 0, last as u8])
}

/// Fails unless all is as it was, in time.
pub fn await_as_before(others: &Others, before: &[BTreeMap<String, String>], what: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        let now = others.snapshots();
        let differs = |(before, now): (&BTreeMap<String, String>, &BTreeMap<String, String>)| {
            let keys = before.keys().chain(now.keys());
            keys.filter(|key| before.get(*key) != now.get(*key)).cloned().collect::<Vec<_>>()
        };
        let differing: Vec<_> = before.iter().zip(&now).map(differs).collect();
        if differing.iter().all(Vec::is_empty) {
            return;
        }
        assert!(Instant::now() < end, "{what}: {differing:?}\n{before:#?}\n{now:#?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A connection by which one host asks and another answers.
pub struct Talk(TcpStream);

impl Talk {
    pub fn between(from: &Namespace, to: &Namespace, address: &str) -> Talk {
        let listener = to.run(|| TcpListener::bind((address, 0)).unwrap());
        let at = listener.local_addr().unwrap();
        let stream = from.run(|| TcpStream::connect(at).unwrap());
        let (mut answering, _) = listener.accept().unwrap();
        for stream in [&stream, &answering] {
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        thread::spawn(move || {
            let mut byte = [0];
            while answering.read_exact(&mut byte).is_ok() && answering.write_all(&byte).is_ok() {}
        });
        Talk(stream)
    }

    /// How long an answer takes. Fails when the connection is dead.
    pub fn ask(&mut self) -> Duration {
        let (asked, mut byte) = (Instant::now(), [7]);
        self.0.write_all(&byte).unwrap();
        self.0.read_exact(&mut byte).unwrap();
        asked.elapsed()
    }

    /// The shortest of a few: what the links take, and not what the machine's other work adds.
    pub fn shortest(&mut self) -> Duration {
        (0..5).map(|_| self.ask()).min().unwrap()
    }

    /// Asks until answers are that quick, or that slow; fails when they do not become so.
    pub fn await_answers(&mut self, what: &str, is_so: impl Fn(Duration) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let took = self.ask();
            if is_so(took) {
                return;
            }
            assert!(Instant::now() < end, "{what}: answers still take {took:?}");
        }
    }
}
