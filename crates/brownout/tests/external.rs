//! Clusters that were started by hand, outside of any lab: put under load, told as what they are, and left as they were.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use brownout_cluster::{
    Access, Cluster, DatabaseKind, NodeDirectories, Paths, Place, Variables, cache,
    etcd::{self, Etcd, EtcdSpec, Wanted},
    external::External,
};
use common::{Machine, Running, both, brownout, cassandra::Cassandra, only_run, require_root, text, undisturbed};
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

/// What the findings say of the cluster, whichever it is.
fn is_told_as_what_it_is(findings: &Value, database: &str, address: &SocketAddr) {
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
    // By whom it was asked, and what time it had: the same machine's.
    let clocks = trial["clocks"][0]["pairs"].as_array().unwrap();
    let pair = &clocks[0];
    assert!(clocks.len() == 1 && pair["host"] == "load" && pair["server"] == "n1", "{clocks:?}");
    let (offset, bound) = (pair["offset_ns"].as_f64().unwrap(), pair["bound_ns"].as_f64().unwrap());
    assert!(offset.abs() <= bound && bound > 0.0, "{pair}");
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
    assert_eq!(keyspaces(&node), before);

    let Some((out, output, findings)) = undisturbed(|out| run(&file, out, &[])) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
    is_told_as_what_it_is(&findings, "Cassandra 5.0.", &node.socket());
    let told = &findings["trials"][0]["database"]["phases"][0]["by_node"][0];
    assert!(told["readings"].as_u64().unwrap() > 0, "its virtual tables were looked at: {told}");
    no_lab_is_made_up(out.path());
    assert_eq!(keyspaces(&node), before);
    assert_eq!(texts(&node, "SELECT name FROM theirs.rows"), ["precious"]);
    assert_eq!(Machine::now(), machine);
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
#[ignore = "make test-long: what a killed run leaves is refused, two trials on one cluster, and a node that ends"]
fn what_a_killed_run_left_is_refused_and_a_node_that_ends_makes_a_trial_invalid() {
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

impl Place for Loopback {
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

#[test]
fn an_etcd_that_runs_already_is_measured_and_keeps_the_keys_of_others() {
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

    let file = experiment(directory.path(), &format!("external: ['{node}'], etcd: '3'"), "");
    let Some((out, output, findings)) = undisturbed(|out| run(&file, out, &[])) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
    is_told_as_what_it_is(&findings, "etcd 3.", &node);
    no_lab_is_made_up(out.path());
    let external = External::new(DatabaseKind::Etcd, Access::default()).unwrap();
    assert_eq!(external.holds(node, "brownout/"), Ok(false), "its keys are gone");
    let versions = external.survey(&[("n1".to_owned(), node)], Duration::from_secs(5)).unwrap().versions;
    assert!(versions["n1"].starts_with("3."), "{versions:?}");
    assert_eq!(cluster.deaths().len(), 0, "it goes on");
}
