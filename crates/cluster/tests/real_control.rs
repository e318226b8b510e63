//! What is done to the nodes of a real Cassandra, in two data centres. Takes root, Java, Maven (or a filled cache) and
//! /dev/net/tun.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod fixture;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    time::{Duration, Instant},
};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::{
    Cassandra, CassandraSpec, Cluster, ClusterControl, Evidence, EvidenceWatch, NodeState, Site, cassandra::archive,
};
use brownout_units::Share;
use fixture::{ALL, Client, Fixture, ONE, PATIENCE, QUORUM, eventually, quick, start, wait};

fn site(dc: &str, rack: &str) -> Site {
    Site { dc: dc.to_owned(), rack: rack.to_owned() }
}

/// Two nodes in one data centre, in a rack each, and one in another.
fn spec() -> CassandraSpec {
    let sites = [("n1", "east", "r1"), ("n2", "east", "r2"), ("n3", "west", "r1")];
    let sites = sites.map(|(node, dc, rack)| (node.to_owned(), site(dc, rack))).into();
    CassandraSpec { sites, ..quick() }
}

struct Lab {
    cluster: Cluster,
    control: ClusterControl,
    client: Client,
    fixture: Fixture,
    began_ns: u64,
    written: u32,
}

impl Lab {
    fn start() -> Lab {
        let fixture = Fixture::new(3);
        let began_ns = monotonic_ns();
        let host = &fixture.network.hosts()[0];
        let archived = fixture.paths("archive");
        archive::build(&fixture.distribution, &fixture.java, &fixture.cache, host, &archived, &|| false).unwrap();
        let mut cluster = start(&fixture, &spec(), &fixture.paths("three"));
        wait(&mut cluster).unwrap();
        let client = Client::connect(host);
        Lab { control: cluster.control(), cluster, client, fixture, began_ns, written: 0 }
    }

    /// Of nodes that have served nobody yet; what they have served for it goes.
    fn who_was_slow_is_forgotten_and_what_nodes_do_shows(&mut self) {
        that_a_node_was_slow_is_forgotten_by_the_others_before_the_next_trial(&self.fixture, &mut self.cluster);
        what_nodes_do_shows_in_their_evidence_at_its_time(&self.fixture, &self.cluster, self.began_ns);
        wait(&mut self.cluster).unwrap();
        self.client.query_again("DROP KEYSPACE k", ONE);
        self.n2_has_told_of_starts(2);
        let deaths = self.cluster.deaths();
        assert!(deaths.len() == 1 && deaths[0].asked && deaths[0].node == "n2", "{deaths:?}");
    }

    fn make_table(&mut self) {
        for text in [
            "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'east': 2, 'west': 1}",
            "CREATE TABLE k.t (k int PRIMARY KEY, v int)",
        ] {
            self.client.query(text, ONE, None).unwrap();
        }
        wait(&mut self.cluster).unwrap();
    }

    /// All in one log.
    fn n2_has_told_of_starts(&self, count: usize) {
        let log = self.control.log_path("n2").unwrap();
        // It may answer clients before it says so.
        eventually(&format!("one log to tell of {count} starts"), || {
            fs::read_to_string(&log).unwrap().matches("Startup complete").count() == count
        });
    }

    /// Ten rows more, at QUORUM: two of the three replicas.
    fn write(&mut self) {
        for _ in 0..10 {
            let text = format!("INSERT INTO k.t (k, v) VALUES ({}, 1)", self.written);
            self.client.query_again(&text, QUORUM);
            self.written += 1;
        }
    }

    fn identity(&self, node: usize) -> Vec<u8> {
        let mut client = Client::connect(&self.fixture.network.hosts()[node]);
        client.query("SELECT host_id, tokens, data_center, rack FROM system.local", ONE, None).unwrap()
    }

    fn nodetool(&self, node: &str, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let begun = Instant::now();
        let output = self.control.tool(node, &arguments).unwrap().output().unwrap();
        eprintln!("nodetool {arguments:?}: {:.2} s", begun.elapsed().as_secs_f64());
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {}: {out}\n{err}", output.status);
        out.into_owned()
    }

    fn the_nodes_are_where_they_were_put(&mut self) {
        let status = self.nodetool("n1", &["status"]);
        let (east, west) = status.split_once("Datacenter: west").unwrap();
        let node = |text: &str, address: &str, rack: &str| {
            text.lines().any(|line| line.starts_with("UN") && line.contains(address) && line.trim_end().ends_with(rack))
        };
        assert!(east.contains("Datacenter: east"), "{status}");
        for (text, address, rack) in
            [(east, "10.78.0.1 ", "r1"), (east, "10.78.0.2 ", "r2"), (west, "10.78.0.3 ", "r1")]
        {
            assert!(node(text, address, rack), "{address} {rack}: {status}");
        }
    }

    fn nodetool_works_on_the_node_it_is_asked_for(&mut self) {
        self.write();
        let info = self.nodetool("n3", &["info"]);
        assert!(info.contains("Data Center") && info.contains(": west"), "{info}");
        self.nodetool("n3", &["flush", "k"]);
        let stats = self.nodetool("n3", &["tablestats", "k.t"]);
        assert!(stats.contains("Table: t") && stats.contains("SSTable count: 1"), "{stats}");
        let refused = self.control.tool("n3", &["nonsense".to_owned()]).unwrap().output().unwrap();
        assert!(!refused.status.success());
    }

    fn commands_run_in_the_nodes_network(&mut self) {
        let mut command = Command::new("cat");
        command.arg("/proc/self/net/tcp");
        self.fixture.network.hosts()[1].prepare(&mut command);
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        // 10.78.0.2:9042 and 127.0.0.1:7199, as the kernel writes them.
        assert!(output.contains("02004E0A:2352") && output.contains("0100007F:1C1F"), "{output}");
        assert!(!output.contains("01004E0A:2352"), "{output}");
    }

    fn a_paused_node_is_missed_by_nobody_at_quorum_and_comes_back(&mut self) {
        let change = self.control.pause("n3").unwrap();
        eprintln!("paused within ± {:.3} ms", change.error_ns as f64 / 1e6);
        assert_eq!(self.control.state("n3").unwrap(), NodeState::Paused);
        let pid = self.control.pid("n3").unwrap().unwrap();
        for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            assert!(stat.contains(") T "), "{stat}");
        }
        self.write();
        let error = self.control.wait_answers("n3", Duration::from_secs(2), &|| false).unwrap_err().to_string();
        assert!(error.contains("n3 does not answer clients"), "{error}");
        let change = self.control.unpause("n3").unwrap();
        eprintln!("going on within ± {:.3} ms", change.error_ns as f64 / 1e6);
        self.control.wait_answers("n3", PATIENCE, &|| false).unwrap();
        wait(&mut self.cluster).unwrap();
    }

    fn a_slow_node_answers_and_is_up(&mut self) {
        let share = "20%".parse::<Share>().unwrap();
        let limit = self.control.limit_cpu("n3", share).unwrap();
        self.control.wait_answers("n3", PATIENCE, &|| false).unwrap();
        self.nodetool("n3", &["flush"]);
        assert_eq!(self.control.cpu_share("n3").unwrap(), Some(share), "it was kept all the while");
        assert_eq!(self.control.state("n3").unwrap(), NodeState::Up);
        limit.heal();
    }

    fn a_killed_node_comes_back_as_the_one_it_was(&mut self) {
        let before = self.identity(1);
        let change = self.control.kill("n2", libc::SIGKILL).unwrap();
        eprintln!("killed within ± {:.3} ms", change.error_ns as f64 / 1e6);
        self.write();
        assert_eq!(self.control.state("n2").unwrap(), NodeState::Down);
        let deaths = self.cluster.deaths();
        assert!(deaths.len() == 1 && deaths[0].asked && deaths[0].node == "n2", "{deaths:?}");
        let begun = Instant::now();
        self.control.start("n2").unwrap();
        self.control.wait_answers("n2", PATIENCE, &|| false).unwrap();
        eprintln!("answers {:.1} s after its start", begun.elapsed().as_secs_f64());
        wait(&mut self.cluster).unwrap();
        eprintln!("ready {:.1} s after its start", begun.elapsed().as_secs_f64());
        assert_eq!(self.identity(1), before, "host id, tokens, site");
        self.everything_written_is_there();
    }

    fn a_stopped_node_ends_by_itself_and_comes_back(&mut self) {
        let stopped = self.control.stop("n2", PATIENCE).unwrap();
        eprintln!("{stopped:?}");
        assert!(!stopped.killed);
        self.write();
        self.control.start("n2").unwrap();
        wait(&mut self.cluster).unwrap();
        self.everything_written_is_there();
        self.n2_has_told_of_starts(4);
        assert_eq!(self.cluster.deaths().len(), 1);
    }

    fn everything_written_is_there(&mut self) {
        let mut client = Client::connect(&self.fixture.network.hosts()[1]);
        let answer = client.query_again("SELECT count(*) FROM k.t", ALL);
        let count = u64::from_be_bytes(answer[answer.len() - 8..].try_into().unwrap());
        assert_eq!(count, u64::from(self.written));
    }
}

/// One cluster for all: starting it takes longer than each of these.
#[test]
fn what_nodes_do_in_two_data_centres_shows_and_they_are_asked_paused_slowed_killed_stopped_and_started_again() {
    let mut lab = Lab::start();
    let tokens = lab.cluster.settings_in_force();
    assert!(tokens.deviations.iter().any(|what| what.starts_with("endpoint_snitch is GossipingPropertyFileSnitch")));
    lab.who_was_slow_is_forgotten_and_what_nodes_do_shows();
    lab.make_table();
    lab.the_nodes_are_where_they_were_put();
    lab.nodetool_works_on_the_node_it_is_asked_for();
    lab.commands_run_in_the_nodes_network();
    lab.a_slow_node_answers_and_is_up();
    lab.a_paused_node_is_missed_by_nobody_at_quorum_and_comes_back();
    lab.a_killed_node_comes_back_as_the_one_it_was();
    lab.a_stopped_node_ends_by_itself_and_comes_back();
    lab.everything_written_is_there();
}

/// What has been seen so far.
struct Seen {
    watch: EvidenceWatch,
    all: Vec<Evidence>,
}

impl Seen {
    /// Waits until `node` shows at least `value` of this, and returns the first such.
    fn eventually(&mut self, node: &str, name: &str, subject: &str, value: f64) -> Evidence {
        let mut found = None;
        eventually(&format!("{node}: {name} {subject} {value}"), || {
            self.all.extend(self.watch.drain());
            let mut all = self.all.iter();
            let is = |one: &&Evidence| one.node == node && one.name == name && one.subject == subject;
            found = all.find(|one| is(one) && one.value >= value).cloned();
            found.is_some()
        });
        found.unwrap()
    }
}

/// n1 and n2 have all of it, and n3 nothing.
const IN_THE_EAST: &str = "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'east': 2}";

fn what_nodes_do_shows_in_their_evidence_at_its_time(fixture: &Fixture, cluster: &Cluster, began_ns: u64) {
    let control = cluster.control();
    let every = Duration::from_secs(1);
    let watch = EvidenceWatch::start(&control, monotonic_ns(), every, &BTreeSet::new()).unwrap();
    let mut seen = Seen { watch, all: Vec::new() };
    seen.eventually("n2", "reading", "", 0.0);

    let mut client = Client::connect(&fixture.network.hosts()[0]);
    for text in [IN_THE_EAST, "CREATE TABLE k.t (k int PRIMARY KEY, v int)"] {
        client.query_again(text, ONE);
    }
    let mut write = |keys: std::ops::Range<u32>, consistency| {
        keys.for_each(|key| {
            drop(client.query_again(&format!("INSERT INTO k.t (k, v) VALUES ({key}, 1)"), consistency))
        });
        client.query_again("SELECT v FROM k.t WHERE k = 1", consistency);
    };
    write(0..200, ALL);
    seen.eventually("n2", "replica-writes", "", 200.0);
    seen.eventually("n1", "snitch-score", "n2", 0.0);
    seen.eventually("n1", "considered-up", "n2", 1.0);
    seen.eventually("n1", "messages-sent", "n2", 200.0);

    let killed = control.kill("n2", libc::SIGKILL).unwrap();
    let down = seen.eventually("n1", "marked-down", "n2", 1.0);
    assert!(down.at_ns > killed.at_ns && down.error_ns <= 1_000_000, "{killed:?} {down:?}");
    write(200..250, ONE);
    seen.eventually("n1", "hints-stored", "", 50.0);
    control.start("n2").unwrap();
    let up = seen.eventually("n1", "marked-up", "n2", 1.0);
    assert!(up.at_ns > down.at_ns, "{down:?} {up:?}");
    seen.eventually("n1", "hints-replayed", "", 50.0);
    let pauses: Vec<&Evidence> = seen.all.iter().filter(|one| one.name == "pause").collect();
    for pause in &pauses {
        assert!(pause.at_ns >= began_ns && pause.at_ns <= monotonic_ns() && pause.value >= 1e6, "{pause:?}");
    }
    // The one that was started again writes a new log.
    assert!(pauses.iter().any(|pause| pause.node == "n2" && pause.at_ns > killed.at_ns), "{pauses:?}");
}

/// The largest of the scores that `node` gives `other`, in three readings of each; `None` if it gives none.
fn largest_score(control: &ClusterControl, node: &str, other: &str) -> Option<f64> {
    let every = Duration::from_millis(300);
    let watch = EvidenceWatch::start(control, monotonic_ns(), every, &BTreeSet::new()).unwrap();
    let mut seen = Vec::new();
    eventually("three readings", || {
        seen.extend(watch.drain().into_iter().filter(|one| one.node == node));
        seen.iter().filter(|one| one.name == "reading").count() >= 3
    });
    let scores = seen.iter().filter(|one| one.name == "snitch-score" && one.subject == other);
    scores.map(|one| one.value).reduce(f64::max)
}

/// Reads from all replicas, of which `node` stands still for 300 ms.
fn read_while_paused(control: &ClusterControl, node: &str, client: &mut Client, text: &str) {
    control.pause(node).unwrap();
    std::thread::scope(|scope| {
        let read = scope.spawn(|| drop(client.query_again(text, ALL)));
        std::thread::sleep(Duration::from_millis(300));
        control.unpause(node).unwrap();
        read.join().unwrap();
    });
}

fn that_a_node_was_slow_is_forgotten_by_the_others_before_the_next_trial(fixture: &Fixture, cluster: &mut Cluster) {
    let control = cluster.control();
    let mut client = Client::connect(&fixture.network.hosts()[0]);
    let made = [IN_THE_EAST, "CREATE TABLE k.t (k int PRIMARY KEY, v int)", "INSERT INTO k.t (k, v) VALUES (1, 1)"];
    for text in made {
        client.query_again(text, ALL);
    }
    client.query_again("SELECT v FROM k.t WHERE k = 1", ALL);
    // A score is of medians, and of the slowest: reads of the start, and a slow one of another node, weigh as well.
    eventually("n2 to be by far the slowest to n1", || {
        for _ in 0..10 {
            read_while_paused(&control, "n2", &mut client, "SELECT v FROM k.t WHERE k = 1");
        }
        largest_score(&control, "n1", "n2").is_some_and(|score| score > 0.9)
    });
    client.query_again("DROP KEYSPACE k", ONE);
    cluster.wait_rest(PATIENCE, &|| false).unwrap();
    let still = largest_score(&control, "n1", "n2");
    assert!(still.is_some_and(|score| score > 0.0), "a cluster at rest remembers: {still:?}");

    // Left to itself, a node collects its heap some time later, stands still meanwhile, and is slow again.
    let collected = |node: &str| {
        let safepoints = control.log_path(node).unwrap().with_file_name("safepoints.log");
        std::fs::read_to_string(safepoints).unwrap().matches("CollectFull").count()
    };
    let collected_before = ["n1", "n2"].map(collected);
    let begun = Instant::now();
    cluster.forget().unwrap();
    eprintln!("forgotten within {:.2} s", begun.elapsed().as_secs_f64());
    assert_eq!(["n1", "n2"].map(collected), collected_before.map(|count| count + 1));
    for (node, other) in [("n1", "n2"), ("n2", "n1")] {
        let after = largest_score(&control, node, other);
        assert!(after.is_none_or(|score| score == 0.0), "{node}: {after:?}");
    }
    // Latencies are gathered as before: the interval of forgetting is not ours any more.
    read_while_paused(&control, "n2", &mut client, "SELECT role FROM system_auth.roles");
    eventually("n1 to score n2 again", || largest_score(&control, "n1", "n2").is_some_and(|score| score > 0.0));
}

#[test]
fn sites_that_do_not_fit_start_nothing() {
    let fixture = Fixture::new(2);
    let sites = BTreeMap::from([("n1".to_owned(), site("east", "r1"))]);
    let spec = CassandraSpec { sites, ..quick() };
    let paths = fixture.paths("none");
    let database = Cassandra::new(&spec, &fixture.installed(), &BTreeMap::new()).unwrap();
    let result = Cluster::start(Box::new(database), &fixture.hosts(), &paths, &mut |_| Ok(Vec::new()));
    assert!(result.is_err_and(|error| error.to_string().contains("n2 is in no data centre")));
    assert!(!paths.scratch.exists(), "nothing was made");
}
