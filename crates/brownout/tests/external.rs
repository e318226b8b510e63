//! Clusters that were started by hand, outside of any lab: put under load, told as what they are, and left as they were.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use brownout_clock::{
    HostClock,
    ntp::{PORT as NTP_PORT, Responder},
};
use brownout_cluster::{
    Access, Cluster, DatabaseKind, EnterableHost, NodeDirectories, Paths, Variables, cache,
    etcd::{self, Etcd, EtcdSpec, Wanted},
    external::External,
};
use common::{
    Machine, Running, both, brownout, cassandra::Cassandra, certificates::certificates, only_run, require_root, text,
    undisturbed,
};
use serde_json::Value;

/// On a cluster of one node.
const ONE_COPY: &str = ", replication: 1";

/// A load that fills little, on a cluster at these addresses; `load` is what else is said of it.
fn experiment(directory: &Path, cluster: &str, load: &str) -> PathBuf {
    let file = directory.join("external.yaml");
    let text = format!(
        "question: What does this cluster carry?\n\
         cluster: {{ {cluster} }}\n\
         load: {{ rate: 200/s, population: 1_000{load} }}\n\
         phases: {{ warm-up: 16s, baseline: 8s }}\n\
         trials: 1\n\
         attempts: 1\n\
         objective: {{ p99: 2s }}\n"
    );
    fs::write(&file, text).unwrap();
    file
}

fn run(file: &Path, out: &Path, more: &[&str]) -> Output {
    let mut arguments = vec!["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"];
    arguments.extend(more);
    brownout(&arguments)
}

/// The first value of each row.
fn texts(node: &Cassandra, query: &str) -> Vec<String> {
    let rows = node.cql(&[query]);
    let mut all: Vec<String> =
        rows.iter().map(|row| row.columns[0].as_ref().unwrap().as_text().unwrap().clone()).collect();
    all.sort();
    all
}

fn keyspaces(node: &Cassandra) -> Vec<String> {
    texts(node, "SELECT keyspace_name FROM system_schema.keyspaces")
}

/// What the findings say of the cluster, whichever it is, and of its node's clock, which is ahead by so much.
fn is_told_as_what_it_is(findings: &Value, database: &str, address: &SocketAddr, ahead_ns: f64) {
    let cell = &findings["cells"][0];
    assert!(cell["database"].as_str().unwrap().starts_with(database), "{cell}");
    assert_eq!(cell["external"], true);
    assert_eq!(cell["hosts"][0]["address"], address.to_string());
    assert_eq!(cell["hosts"][1]["name"], "load");
    assert_eq!(cell["hosts"][1]["address"], "");
    assert_eq!(cell["network"].as_array().unwrap().len(), 0);
    assert_eq!(cell["overlay"], "");
    let environment = &findings["environment"];
    assert_eq!(environment["privilege"], "none needed");
    assert_eq!(environment["emulator_scheduling"], "no emulator");
    assert!(environment["system_settings"].as_str().unwrap().contains("it ran before"), "{environment}");
    let trial = &findings["trials"][0];
    assert_eq!(trial["balance"]["balances"], true, "{}", trial["balance"]);
    let baseline = trial["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "baseline").unwrap();
    assert!(baseline["counts"]["ok"].as_u64().unwrap() >= 8 * 190, "{}", baseline["counts"]);
    assert_eq!(baseline["coordinators"][0]["name"], "n1");
    // By whom it was asked, and what time it had.
    let clocks = trial["clocks"][0]["pairs"].as_array().unwrap();
    let pair = &clocks[0];
    assert!(clocks.len() == 1 && pair["host"] == "load" && pair["server"] == "n1", "{clocks:?}");
    let (offset, bound) = (pair["offset_ns"].as_f64().unwrap(), pair["bound_ns"].as_f64().unwrap());
    assert!((offset - ahead_ns).abs() <= bound && bound > 0.0, "{pair}");
}

/// The page shows nothing of a lab.
fn no_lab_is_made_up(out: &Path) {
    let page = fs::read_to_string(only_run(out).join("report.html")).unwrap();
    assert!(!page.contains("10.77.") && page.contains("which ran before"), "the page shows addresses of a lab");
}

#[test]
fn a_cassandra_that_runs_already_is_measured_and_left_as_it_was_after_ctrl_c_too() {
    require_root();
    let node = Cassandra::start("5.0", Ipv4Addr::new(127, 0, 0, 61));
    let theirs = "CREATE KEYSPACE theirs WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    node.cql(&[
        theirs,
        "CREATE TABLE theirs.rows (name text PRIMARY KEY)",
        "INSERT INTO theirs.rows (name) VALUES ('precious')",
    ]);
    let (before, machine) = (keyspaces(&node), Machine::now());
    let directory = tempfile::tempdir().unwrap();
    let file = experiment(directory.path(), &format!("external: ['{}']", node.socket()), ONE_COPY);

    let out = tempfile::tempdir().unwrap();
    let mut running = Running::start(&[file.to_str().unwrap(), "--out", out.path().to_str().unwrap()]);
    running.wait_for_any(&["warm-up (flood)", "warm-up (settling)"]);
    assert!(running.seen.contains("the load makes the keyspace brownout"), "{}", running.seen);
    assert!(keyspaces(&node).contains(&"brownout".to_owned()));
    running.signal(libc::SIGINT);
    let (code, seen) = running.finish();
    assert_eq!(code, Some(130), "{seen}");
    assert!(seen.contains("the keyspace brownout dropped; nothing else of the cluster was changed"), "{seen}");
    let is_as_it_was = || {
        assert_eq!(keyspaces(&node), before);
        assert_eq!(texts(&node, "SELECT name FROM theirs.rows"), ["precious"]);
        assert_eq!(Machine::now(), machine);
    };
    is_as_it_was();

    let Some((out, output, findings)) = undisturbed(|out| run(&file, out, &[])) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
    is_told_as_what_it_is(&findings, "Cassandra 5.0.", &node.socket(), 0.0);
    let told = &findings["trials"][0]["database"]["phases"][0]["by_node"][0];
    assert!(told["readings"].as_u64().unwrap() > 0, "its virtual tables were looked at: {told}");
    no_lab_is_made_up(out.path());
    is_as_it_was();
}

#[test]
fn a_plan_for_an_external_cluster_is_checked_without_it_and_a_run_says_who_does_not_answer() {
    let directory = tempfile::tempdir().unwrap();
    let file = experiment(directory.path(), "external: ['127.0.0.1:1']", ONE_COPY);
    let checked = brownout(&["check", file.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(0), "{}", both(&checked));
    let said = text(&checked.stdout);
    for words in [
        "n1 (127.0.0.1:1), which ran before",
        "network     the cluster's own, neither emulated nor measured",
        "leaves      nothing",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("10.77."), "{said}");
    let refused = run(&file, directory.path(), &[]);
    assert_eq!(refused.status.code(), Some(4), "{}", both(&refused));
    let said = text(&refused.stderr);
    assert!(said.contains("n1 (127.0.0.1:1) does not answer") && said.contains("cluster.external"), "{said}");
}

#[test]
#[ignore = "make test-long: what a killed run leaves is refused, two trials on one cluster, Ctrl-C in a phase, a node that ends"]
fn what_a_killed_run_left_is_refused_ctrl_c_drops_what_is_measured_and_a_node_that_ends_makes_a_trial_invalid() {
    require_root();
    let node = Cassandra::start("5.0", Ipv4Addr::new(127, 0, 0, 62));
    let directory = tempfile::tempdir().unwrap();
    let file = experiment(directory.path(), &format!("external: ['{}']", node.socket()), ONE_COPY);
    let arguments = [file.to_str().unwrap(), "--out", directory.path().to_str().unwrap()];

    let mut killed = Running::start(&arguments);
    killed.wait_for("warm-up");
    killed.signal(libc::SIGKILL);
    killed.child.wait().unwrap();
    assert!(keyspaces(&node).contains(&"brownout".to_owned()), "nobody could drop it");
    let out = tempfile::tempdir().unwrap();
    let refused = run(&file, out.path(), &[]);
    assert_eq!(refused.status.code(), Some(4), "{}", both(&refused));
    assert!(text(&refused.stderr).contains("DROP KEYSPACE \"brownout\""), "{}", both(&refused));
    assert!(keyspaces(&node).contains(&"brownout".to_owned()), "it is dropped by no run but its own");
    node.cql(&["DROP KEYSPACE brownout"]);

    let Some((_, output, findings)) = undisturbed(|out| run(&file, out, &["--set=trials=2"])) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert_eq!(findings["cells"][0]["valid_trials"].as_array().unwrap().len(), 2, "{}", findings["verdict"]);
    assert!(!keyspaces(&node).contains(&"brownout".to_owned()));

    let before = keyspaces(&node);
    let out = tempfile::tempdir().unwrap();
    let mut running = Running::start(&[file.to_str().unwrap(), "--out", out.path().to_str().unwrap()]);
    running.wait_for("  baseline  ");
    assert!(keyspaces(&node).contains(&"brownout".to_owned()));
    running.signal(libc::SIGINT);
    let (code, seen) = running.finish();
    assert_eq!(code, Some(130), "{seen}");
    assert_eq!(keyspaces(&node), before, "{seen}");

    let out = tempfile::tempdir().unwrap();
    let mut running = Running::start(&[file.to_str().unwrap(), "--out", out.path().to_str().unwrap()]);
    running.wait_for("  baseline  ");
    node.kill();
    running.wait_for("has answered nothing for 5 s");
    let (code, seen) = running.finish();
    assert_eq!(code, Some(3), "{seen}");
    assert!(seen.contains("WARNING: the keyspace brownout could not be dropped"), "{seen}");
}

struct Loopback(Ipv4Addr);

impl EnterableHost for Loopback {
    fn name(&self) -> &str {
        "alone"
    }

    fn address(&self) -> Ipv4Addr {
        self.0
    }

    fn enter(&self) -> io::Result<()> {
        Ok(())
    }
}

/// What an etcd answers to a question in JSON; keys and values are in base64.
fn etcd_says(node: SocketAddr, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(node).unwrap();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    said
}

#[test]
fn an_etcd_that_runs_already_is_measured_and_keeps_the_keys_of_others_after_ctrl_c_too() {
    require_root();
    let address = Ipv4Addr::new(127, 0, 0, 63);
    let node: SocketAddr = (address, 2379).into();
    let cache = cache::directory().unwrap();
    let installed = etcd::provide(&Wanted::Version("3".to_owned()), &cache, &|line| eprintln!("{line}"), &|| false);
    let database = Etcd::new(&EtcdSpec::default(), &installed.unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let paths = Paths { scratch: directory.path().join("scratch"), logs: directory.path().join("logs"), owner: None };
    let place = Loopback(address);
    let mut prepare = |_: &NodeDirectories| -> io::Result<Variables> { Ok(Variables::new()) };
    let mut cluster = Cluster::start(Box::new(database), &[&place], &paths, &mut prepare).unwrap();
    cluster.wait_ready(Duration::from_secs(120), &|| false, &mut |line| eprintln!("waiting: {line}")).unwrap();

    // "theirs" and "precious".
    etcd_says(node, "/v3/kv/put", r#"{"key": "dGhlaXJz", "value": "cHJlY2lvdXM="}"#);
    let has_theirs = || etcd_says(node, "/v3/kv/range", r#"{"key": "dGhlaXJz"}"#).contains("cHJlY2lvdXM=");
    let external = External::new(DatabaseKind::Etcd, Access::default()).unwrap();
    let file = experiment(directory.path(), &format!("external: ['{node}'], etcd: '3'"), "");

    let out = tempfile::tempdir().unwrap();
    let mut running = Running::start(&[file.to_str().unwrap(), "--out", out.path().to_str().unwrap()]);
    running.wait_for_any(&["warm-up (flood)", "warm-up (settling)"]);
    assert_eq!(external.holds(node, "brownout/"), Ok(true));
    running.signal(libc::SIGINT);
    let (code, seen) = running.finish();
    assert_eq!(code, Some(130), "{seen}");
    assert!(seen.contains("nothing else of the cluster was changed"), "{seen}");
    assert_eq!(external.holds(node, "brownout/"), Ok(false));
    assert!(has_theirs());

    let Some((out, output, findings)) = undisturbed(|out| run(&file, out, &[])) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
    is_told_as_what_it_is(&findings, "etcd 3.", &node, 0.0);
    no_lab_is_made_up(out.path());
    assert_eq!(external.holds(node, "brownout/"), Ok(false), "its keys are gone");
    assert!(has_theirs());
    let versions = external.survey(&[("n1".to_owned(), node)], Duration::from_secs(5)).unwrap().versions;
    assert!(versions["n1"].starts_with("3."), "{versions:?}");
    assert_eq!(cluster.deaths().len(), 0, "it goes on");
}

/// How wrong a clock is.
const AHEAD_NS: i64 = 700_000_000;

/// A server by its program, with certificates; it ends with this.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "make test-long: TLS, with certificates of clients, and SNTP, as a cluster of one's own has them"]
fn an_etcd_that_wants_certificates_is_measured_and_asked_for_its_time_and_lets_in_nobody_else() {
    require_root();
    let address = Ipv4Addr::new(127, 0, 0, 64);
    let node: SocketAddr = (address, 2379).into();
    let cache = cache::directory().unwrap();
    let wanted = Wanted::Version("3".to_owned());
    let installed = etcd::provide(&wanted, &cache, &|line| eprintln!("{line}"), &|| false).unwrap();
    let directory = tempfile::tempdir().unwrap();
    certificates(directory.path(), address);
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (clients, peers) = (format!("https://{node}"), format!("http://{address}:2380"));
    let mut command = Command::new(installed.root().join("etcd"));
    command.args(["--name", "alone", "--data-dir", &path("data")]);
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("alone={peers}"), "--client-cert-auth"]);
    command.args(["--cert-file", &path("node.pem"), "--key-file", &path("node.pem")]);
    command.args(["--trusted-ca-file", &path("ours.pem")]);
    let log = fs::File::create(path("log")).unwrap();
    let _server = Served(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap());
    let serves = || fs::read_to_string(path("log")).unwrap().contains("ready to serve client requests");
    let begun = Instant::now();
    while !serves() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", fs::read_to_string(path("log")).unwrap());
        thread::sleep(Duration::from_millis(100));
    }

    // Its host answers for a clock that is wrong.
    let clock = HostClock::create(directory.path().join("clock")).unwrap();
    clock.shift(AHEAD_NS, 0).unwrap();
    let socket = UdpSocket::bind((address, NTP_PORT)).unwrap();
    let _answers = Responder::start(vec![(socket, clock)]).unwrap();

    let access = |access: &str| format!("external: ['{node}'], etcd: '3', access: {{ {access} }}");
    let (ours, theirs) = (path("ours.pem"), path("theirs.pem"));
    let own = format!("certificate: {}, key: {}", path("client.pem"), path("client.pem"));
    for refused in [format!("ca: {theirs}, {own}"), format!("ca: {ours}")] {
        let file = experiment(directory.path(), &access(&refused), "");
        let output = run(&file, directory.path(), &[]);
        assert_eq!(output.status.code(), Some(4), "{refused}: {}", both(&output));
        assert!(text(&output.stderr).contains("n1"), "{refused}: {}", both(&output));
    }
    let file = experiment(directory.path(), &access(&format!("ca: {ours}, {own}")), "");
    let Some((out, output, findings)) = undisturbed(|out| run(&file, out, &[])) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
    is_told_as_what_it_is(&findings, "etcd 3.", &node, AHEAD_NS as f64);
    let told = &findings["trials"][0]["database"]["phases"][0]["by_node"][0];
    assert!(told["readings"].as_u64().unwrap() > 0, "its metrics were looked at: {told}");
    no_lab_is_made_up(out.path());
}
