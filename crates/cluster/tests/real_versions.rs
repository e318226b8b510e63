//! Real Cassandras of several versions, alone and in one cluster, in clear and encrypted. Takes root, Java, Maven (or a
//! filled cache) and /dev/net/tun.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod fixture;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use brownout_base::clock::monotonic_ns;
use brownout_cluster::{
    Cassandra, CassandraSpec, Cluster, Encryption, Evidence, EvidenceWatch, Heartbeats, Internode, Paths, Question,
    cassandra::{Installed, Logged, LoggedPeer, archive, logged_connections, maven},
    java,
};
use fixture::{ALL, Client, Fixture, ONE, PATIENCE, eventually, quick, wait};

/// For a cluster that has just served somebody to have come to rest.
const REST_WITHIN: Duration = Duration::from_secs(120);
/// A clock that nobody has touched is right within what a busy machine takes for an answer.
const RIGHT_WITHIN_NS: i64 = 1_000_000_000;

/// A version with a Java for it; none, and it is said, where this machine has no such Java.
fn installed(fixture: &Fixture, version: &str) -> Option<Installed> {
    let distribution = maven::resolve(version, &fixture.cache, &|line| eprintln!("{line}"), &|| false).unwrap();
    match java::find(distribution.java()) {
        Ok(java) => {
            let archive = archive::find(&distribution, &java, &fixture.cache);
            Some(Installed { distribution, java, archive })
        }
        Err(error) => {
            eprintln!("Cassandra {version} is not tried here: {error}");
            None
        }
    }
}

fn start(
    fixture: &Fixture,
    spec: &CassandraSpec,
    most: &Installed,
    others: &BTreeMap<String, Installed>,
    paths: &Paths,
) -> Cluster {
    let start = || {
        let database = Cassandra::new(spec, most, others)?;
        Cluster::start(Box::new(database), &fixture.hosts(), paths, &mut |_| Ok(Vec::new()))
    };
    // The thread that starts a cluster may end: the nodes' death signal must not be tied to it.
    thread::scope(|scope| scope.spawn(start).join().unwrap()).unwrap()
}

/// What `nodetool` prints about a node.
fn nodetool(cluster: &Cluster, node: &str, argument: &str) -> String {
    let mut command = cluster.control().tool(node, &[argument.to_owned()]).unwrap();
    let done = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Every node tells its clock, over whatever connections clients have.
fn clocks_are_told(cluster: &Cluster) {
    let every = Duration::from_millis(100);
    let beats = Heartbeats::start(&cluster.control(), Question::Clock, every, Duration::from_secs(2)).unwrap();
    let mut told: BTreeMap<String, i64> = BTreeMap::new();
    eventually("the clock of every node", || {
        told.extend(beats.drain().into_iter().filter_map(|beat| Some((beat.node, beat.offset_ns?))));
        told.len() == cluster.nodes().len()
    });
    assert!(told.values().all(|offset| offset.abs() < RIGHT_WITHIN_NS), "{told:?}");
}

/// A node tells of another over JMX, by the name of its own version for that.
fn evidence_is_told(cluster: &Cluster) {
    let every = Duration::from_secs(1);
    let watch = EvidenceWatch::start(&cluster.control(), monotonic_ns(), every, &BTreeSet::new()).unwrap();
    let mut seen: Vec<Evidence> = Vec::new();
    eventually("that n1 takes n2 for up", || {
        seen.extend(watch.drain());
        seen.iter().any(|one| {
            (one.node.as_str(), one.name, one.subject.as_str(), one.value) == ("n1", "considered-up", "n2", 1.0)
        })
    });
}

#[test]
#[ignore = "versions other than the newest, which may have to be fetched: make test-long"]
fn every_older_version_serves_tells_of_itself_and_comes_to_rest() {
    for version in ["4.1", "4.0", "3.11"] {
        let fixture = Fixture::new(2);
        let Some(installed) = installed(&fixture, version) else { continue };
        let mut cluster = start(&fixture, &quick(), &installed, &BTreeMap::new(), &fixture.paths("older"));
        let ready = wait(&mut cluster).unwrap();
        eprintln!("Cassandra {version}: ready in {:.1} s", ready.took.as_secs_f64());
        let settings = cluster.settings_in_force();
        assert!(settings.version.starts_with(version), "{}", settings.version);

        let mut client = Client::connect(&fixture.network.hosts()[0]);
        for text in [
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}",
            "CREATE TABLE k.t (k int PRIMARY KEY, v text) WITH compression = {'enabled': 'false'}",
        ] {
            client.query_again(text, ONE);
        }
        client.query_again("INSERT INTO k.t (k, v) VALUES (1, 'one')", ALL);
        let row = Client::connect(&fixture.network.hosts()[1]).query_again("SELECT v FROM k.t WHERE k = 1", ALL);
        assert!(row.ends_with(b"\0\0\0\x03one"), "{row:?}");

        clocks_are_told(&cluster);
        evidence_is_told(&cluster);
        let status = nodetool(&cluster, "n1", "status");
        assert_eq!(status.lines().filter(|line| line.starts_with("UN ")).count(), 2, "{status}");

        let busy = cluster.wait_rest(Duration::from_secs(1), &|| false).unwrap_err().to_string();
        assert!(busy.contains("still has the keyspace k"), "{busy}");
        client.query_again("DROP KEYSPACE k", ONE);
        cluster.wait_rest(REST_WITHIN, &|| false).unwrap();
        cluster.forget().unwrap();
    }
}

#[test]
#[ignore = "two versions in one cluster, one of which may have to be fetched: make test-long"]
fn nodes_of_two_versions_share_tables_and_each_has_its_own_settings() {
    let fixture = Fixture::new(3);
    let old = installed(&fixture, "4.1").unwrap();
    let settings = |reads: &str| BTreeMap::from([("concurrent_reads".to_owned(), reads.to_owned())]);
    let spec = CassandraSpec {
        settings: settings("12"),
        settings_of: BTreeMap::from([("n2".to_owned(), settings("10"))]),
        ..quick()
    };
    let others = BTreeMap::from([("n3".to_owned(), old)]);
    let mut cluster = start(&fixture, &spec, &fixture.installed(), &others, &fixture.paths("mixed"));
    let ready = wait(&mut cluster).unwrap();
    assert!(ready.schema.starts_with("tables "), "versions describe their own tables differently: {}", ready.schema);
    let in_force = cluster.settings_in_force();
    assert!(in_force.versions["n1"].starts_with("5.0.") && in_force.versions["n3"].starts_with("4.1."));

    let hosts = fixture.network.hosts();
    let mut first = Client::connect(&hosts[0]);
    for text in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE k.t (k int PRIMARY KEY, v text)",
    ] {
        first.query_again(text, ONE);
    }
    // Made on a node of the one version, there on that of the other, and the same table.
    wait(&mut cluster).unwrap();
    let mut third = Client::connect(&hosts[2]);
    third.query_again("INSERT INTO k.t (k, v) VALUES (7, 'seven')", ALL);
    assert!(first.query_again("SELECT v FROM k.t WHERE k = 7", ALL).ends_with(b"\0\0\0\x05seven"));

    let reads = |host: usize| {
        let text = "SELECT value FROM system_views.settings WHERE name = 'concurrent_reads'";
        let answer = Client::connect(&hosts[host]).query_again(text, ONE);
        String::from_utf8_lossy(&answer[answer.len() - 2..]).into_owned()
    };
    assert_eq!([reads(0), reads(1), reads(2)], ["12", "10", "12"]);
    first.query_again("DROP KEYSPACE k", ONE);
    cluster.wait_rest(REST_WITHIN, &|| false).unwrap();
    cluster.forget().unwrap();
}

/// All between nodes and to clients.
const ENCRYPTED: Encryption = Encryption { internode: Internode::All, clients: true, optional: false };

/// Whoever speaks without encryption is not answered.
fn clear_text_is_refused(fixture: &Fixture) {
    let host = &fixture.network.hosts()[0];
    let mut stream = host.run(|| TcpStream::connect((host.address(), 9042)).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"\x04\0\0\0\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0").unwrap();
    let mut answer = [0; 5];
    // It closes the connection, or answers with an alert of TLS.
    let is_ready = stream.read_exact(&mut answer).is_ok() && answer[0] == 0x84 && answer[4] == 2;
    assert!(!is_ready, "a client in clear was let in");
}

/// The nodes' logs name encrypted connections with each other, an encrypted port for clients, and nothing in clear.
fn logs_name_encryption(logs: &Path, other: Ipv4Addr, names_peers: bool) {
    let peer = if names_peers { LoggedPeer::Node(other) } else { LoggedPeer::Nodes };
    let wanted = [peer, LoggedPeer::Clients].map(|peer| Logged { peer, encrypted: true });
    eventually("its connections to be logged", || {
        let told = logged_connections(&logs.join("system.log")).unwrap();
        assert!(told.iter().all(|logged| logged.encrypted), "{told:?}");
        wanted.iter().all(|logged| told.contains(logged))
    });
}

fn encrypts(fixture: &Fixture, installed: &Installed, name: &str, names_peers: bool) {
    let spec = CassandraSpec { encryption: ENCRYPTED, ..quick() };
    let mut cluster = start(fixture, &spec, installed, &BTreeMap::new(), &fixture.paths(name));
    wait(&mut cluster).unwrap();
    let wire = cluster.access().wire().unwrap();
    assert!(wire.tls.is_some(), "clients are told how to encrypt");
    clear_text_is_refused(fixture);
    let address = |node: u8| Ipv4Addr::new(10, 78, 0, node);
    let logs: Vec<_> = cluster.nodes().iter().map(|node| node.logs.clone()).collect();
    logs_name_encryption(&logs[0], address(2), names_peers);
    logs_name_encryption(&logs[1], address(1), names_peers);
    clocks_are_told(&cluster);
    evidence_is_told(&cluster);
    let status = nodetool(&cluster, "n2", "status");
    assert_eq!(status.lines().filter(|line| line.starts_with("UN ")).count(), 2, "{status}");
    let files = cluster.settings_in_force().files;
    assert!(!files.values().any(|text| text.contains("PRIVATE KEY")), "a key went into the record");
    cluster.wait_rest(REST_WITHIN, &|| false).unwrap();
}

#[test]
fn nodes_and_clients_encrypt_with_certificates_of_their_own_authority() {
    let fixture = Fixture::new(2);
    encrypts(&fixture, &fixture.installed(), "encrypted", true);
}

#[test]
#[ignore = "key stores of versions that read no PEM, and may have to be fetched: make test-long"]
fn older_versions_encrypt_with_key_stores() {
    for (version, names_peers) in [("4.0", true), ("3.11", false)] {
        let fixture = Fixture::new(2);
        let Some(installed) = installed(&fixture, version) else { continue };
        encrypts(&fixture, &installed, "key-stores", names_peers);
    }
}
