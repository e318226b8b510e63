//! Real etcd on real namespaces. Takes root, /dev/net/tun, and Go (or a filled cache, or an installed etcd).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod fixture;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::{
    Cluster, ClusterError, EnterableHost, Evidence, EvidenceWatch, Heartbeats, Paths, Question, cache,
    etcd::{self, Etcd, EtcdSpec, Installed, Wanted},
};
use brownout_network::{Host, Network};
use fixture::{PATIENCE, eventually, network, owner, require_root};

/// One cluster at a time.
static TURN: Mutex<()> = Mutex::new(());

struct Fixture {
    network: Network,
    installed: Installed,
    directory: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Fixture {
    fn new(hosts: u8) -> Fixture {
        require_root();
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = Wanted::Version(etcd::DEFAULT.to_owned());
        let provided =
            etcd::provide(&wanted, &cache::directory().unwrap(), &|line| eprintln!("{line}"), &|| false).unwrap();
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // Where the servers' user can read them.
        let programs = directory.path().join("programs");
        fs::create_dir(&programs).unwrap();
        fs::set_permissions(&programs, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["etcd", "etcdctl"] {
            let from = provided.root().join(name);
            if from.exists() {
                fs::copy(&from, programs.join(name)).unwrap();
            }
        }
        let network = network(1, hosts);
        Fixture { network, installed: provided.seen_at(&programs), directory, _turn: turn }
    }

    fn start(&self, name: &str, settings: &[(&str, &str)]) -> Cluster {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let database = Etcd::new(&EtcdSpec { settings, settings_of: BTreeMap::new() }, &self.installed).unwrap();
        let directory = self.directory.path().join(name);
        let paths = Paths { scratch: directory.join("scratch"), logs: directory.join("logs"), owner: owner() };
        let hosts: Vec<&dyn EnterableHost> =
            self.network.hosts().iter().map(|host| host as &dyn EnterableHost).collect();
        Cluster::start(Box::new(database), &hosts, &paths, &mut |_| Ok(Vec::new())).unwrap()
    }

    fn host(&self, name: &str) -> &Host {
        self.network.hosts().iter().find(|host| host.name() == name).unwrap()
    }

    /// What the server of that host answers to a question in JSON.
    fn ask(&self, name: &str, path: &str, body: &str) -> String {
        let host = self.host(name);
        let mut stream = host.run(|| TcpStream::connect((host.address(), 2379)).unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let question = format!(
            "POST {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(question.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }
}

fn ready(cluster: &mut Cluster) -> String {
    let readiness = cluster.wait_ready(PATIENCE, &|| false, &mut |line| eprintln!("waiting: {line}")).unwrap();
    eprintln!("ready in {:.1} s: {}", readiness.took.as_secs_f64(), readiness.schema);
    readiness.schema
}

#[test]
fn three_servers_agree_on_a_leader_and_when_it_is_killed_on_another_until_all_are_back_and_at_rest() {
    let fixture = Fixture::new(3);
    let mut cluster = fixture.start("three", &[("snapshot-count", "5000")]);
    let control = cluster.control();
    let agreed = ready(&mut cluster);
    let first = control.leader().unwrap();
    assert!(agreed.starts_with(&format!("{first} leads, term ")), "{agreed}");
    let settings = cluster.settings_in_force();
    assert_eq!((settings.system.as_str(), &settings.version), ("etcd", &fixture.installed.version));
    assert_eq!(settings.settings["snapshot-count"], "5000");
    for node in cluster.nodes() {
        let status = fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
        for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
            assert!(status.contains(line), "{line} in {status}");
        }
        if owner().is_some() {
            assert!(status.contains("Uid:\t65534\t65534\t65534\t65534"), "{status}");
        }
        let home = fixture.directory.path().join("three/scratch").join(&node.name);
        for directory in ["data/etcd/member/snap/db", "wal/etcd"] {
            assert!(home.join(directory).exists(), "{directory} of {}", node.name);
        }
    }

    control.kill(&first, libc::SIGKILL).unwrap();
    eventually("another leader", || control.leader().is_ok_and(|leader| leader != first));
    let deaths = cluster.deaths();
    assert!(deaths.len() == 1 && deaths[0].asked && deaths[0].node == first, "{deaths:?}");
    control.start(&first).unwrap();
    control.wait_answers(&first, PATIENCE, &|| false).unwrap();
    ready(&mut cluster);

    cluster.wait_rest(PATIENCE, &|| false).unwrap();
    cluster.forget().unwrap();
    // "YQ==" is "a".
    fixture.ask("n1", "/v3/kv/put", r#"{"key":"YQ==","value":"YQ=="}"#);
    match cluster.wait_rest(Duration::from_secs(2), &|| false) {
        Err(ClusterError::NotReady { missing, .. }) => {
            assert!(missing.iter().any(|what| what.ends_with("still has 1 keys")), "{missing:?}");
        }
        other => panic!("{other:?}"),
    }
    fixture.ask("n2", "/v3/kv/deleterange", r#"{"key":"YQ=="}"#);
    cluster.wait_rest(PATIENCE, &|| false).unwrap();
    if fixture.installed.root().join("etcdctl").exists() {
        let tool = control.tool("n3", &["endpoint".to_owned(), "health".to_owned()]).unwrap().output().unwrap();
        let said = String::from_utf8_lossy(&tool.stdout).into_owned() + &String::from_utf8_lossy(&tool.stderr);
        assert!(tool.status.success() && said.contains("is healthy"), "{said}");
    }
    let pids: Vec<u32> = cluster.nodes().iter().map(|node| node.pid()).collect();
    drop(cluster);
    assert!(!pids.iter().any(|pid| fs::exists(format!("/proc/{pid}")).unwrap()), "a server outlived its cluster");
}

#[test]
fn servers_answer_heartbeats_with_their_clock_and_tell_who_leads_and_a_paused_leader_is_followed_by_another() {
    let fixture = Fixture::new(3);
    let mut cluster = fixture.start("told", &[]);
    let control = cluster.control();
    ready(&mut cluster);
    let first = control.leader().unwrap();
    let every = Duration::from_secs(1);
    let watch = EvidenceWatch::start(&control, monotonic_ns(), every, &BTreeSet::new()).unwrap();
    let beats =
        Heartbeats::start(&control, Question::Clock, Duration::from_millis(50), Duration::from_millis(500)).unwrap();
    let (mut answered, mut shown): (Vec<_>, Vec<Evidence>) = (Vec::new(), Vec::new());
    eventually("all to answer, and to say who leads", || {
        answered.extend(beats.drain().into_iter().filter(|beat| beat.answered_ns.is_some()));
        shown.extend(watch.drain());
        let of = |node: &str| answered.iter().filter(|beat| beat.node == node).count();
        let led = |node: &str| shown.iter().any(|one| one.node == node && one.name == "leader" && one.subject == first);
        control.names().iter().all(|node| of(node) > 10 && led(node))
    });
    for beat in &answered {
        // A clock that shows seconds is known to half of one.
        let offset = beat.offset_ns.unwrap();
        assert!(offset.unsigned_abs() <= beat.error_ns && beat.error_ns >= 500_000_000, "{beat:?}");
    }
    assert!(shown.iter().any(|one| one.name == "wal-fsyncs" && one.value > 0.0), "{shown:?}");
    assert!(shown.iter().any(|one| one.name == "wal-fsync-time" && one.value > 0.0), "{shown:?}");
    let streams = shown.iter().filter(|one| one.name == "connected" && one.value == 1.0);
    assert!(streams.count() >= 6, "each to each other: {shown:?}");

    control.pause(&first).unwrap();
    let (mut silent, mut elected) = (false, false);
    eventually("silence, and another leader", || {
        silent |= beats.drain().iter().any(|beat| beat.node == first && beat.answered_ns.is_none());
        let new = |one: &Evidence| one.source == "log" && one.name == "elected" && one.subject != first;
        elected |= watch.drain().iter().any(new);
        silent && elected
    });
    assert_ne!(control.leader().unwrap(), first);
    control.unpause(&first).unwrap();
    eventually("it to follow", || {
        thread::sleep(Duration::from_millis(100));
        cluster.wait_ready(Duration::from_secs(1), &|| false, &mut |_| ()).is_ok()
    });
}

#[test]
fn a_flag_that_this_etcd_does_not_have_fails_the_start_with_its_own_words() {
    let fixture = Fixture::new(1);
    let mut cluster = fixture.start("flag", &[("experimental-nonsense", "1")]);
    match cluster.wait_ready(PATIENCE, &|| false, &mut |_| ()) {
        Err(ClusterError::NodeDied(death)) => {
            assert!(death.log_tail.contains("experimental-nonsense"), "{}", death.log_tail);
        }
        other => panic!("{other:?}"),
    }
}
