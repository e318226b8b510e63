//! A cluster that encrypts: proven by the nodes' logs and by links without clear text; and the same look without
//! encryption, which sees the clear text everywhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::fs;

use common::{brownout, byhand::Workspace, require_root, undisturbed};
use serde_json::Value;

/// One node would have nobody to encrypt to; a third would add nothing.
const FILE: &str = "
cluster: { nodes: 2 }
load: { rate: 200/s, replication: 2, population: 1_000, consistency: quorum }
phases: { warm-up: 16s, baseline: 5s }
objective: { p99: 5s }
";

fn run(encryption: &str) -> Option<Value> {
    run_on("{}", 2, encryption)
}

/// On this network, with so many copies of each row in each data centre.
fn run_on(network: &str, replication: u32, encryption: &str) -> Option<Value> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("encryption.yaml");
    fs::write(&file, FILE).unwrap();
    let (_, _, findings) = undisturbed(|out| {
        let encryption = format!("--set=cluster.encryption={encryption}");
        let (network, copies) = (format!("--set=network={network}"), format!("--set=load.replication={replication}"));
        let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
        brownout(&["run", file, "--json", "--out", out, "--set=attempts=1", &network, &copies, &encryption])
    })?;
    assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
    Some(findings)
}

/// The sightings on every ordered pair of hosts, by whether the link was to be encrypted.
fn sightings(findings: &Value) -> Vec<(bool, u64)> {
    let links = findings["trials"][0]["encryption"]["links"].as_array().unwrap();
    links.iter().map(|link| (link["encrypted"].as_bool().unwrap(), link["sightings"].as_u64().unwrap())).collect()
}

#[test]
#[ignore = "repeats in a valid run what slow_replica.rs sees in one that is wrong in other ways: make test-long"]
fn no_link_of_a_cluster_that_encrypts_holds_clear_text() {
    require_root();
    let Some(found) = run("{internode: all, clients: true}") else { return };
    assert_eq!(sightings(&found), [(true, 0); 6]);
    let encryption = &found["trials"][0]["encryption"];
    assert_eq!(encryption["verdict"], "proven", "{encryption}");
    assert!(encryption["writes"].as_u64().unwrap() > 0);
    let of_nodes = |connection: &&Value| connection["with"] != "clients" && connection["encrypted"] == true;
    assert_eq!(encryption["connections"].as_array().unwrap().iter().filter(of_nodes).count(), 2, "{encryption}");
    assert_eq!(found["cells"][0]["encryption"], serde_json::json!(["between all nodes", "to clients"]));
}

#[test]
#[ignore = "that the look sees clear text where there is some: make test-long"]
fn the_same_look_sees_clear_text_on_every_link_of_a_cluster_that_does_not_encrypt() {
    require_root();
    let Some(found) = run("{internode: none, clients: false}") else { return };
    let seen = sightings(&found);
    assert_eq!(seen.len(), 6);
    assert!(seen.iter().all(|(encrypted, times)| !encrypted && *times > 0), "{seen:?}");
    // Between the two: nodes encrypt, clients do not.
    let Some(found) = run("{internode: all}") else { return };
    let seen = sightings(&found);
    assert_eq!(seen.iter().filter(|(encrypted, _)| *encrypted).count(), 2, "{seen:?}");
    assert!(seen.iter().all(|(encrypted, times)| *encrypted == (*times == 0)), "{seen:?}");
}

#[test]
#[ignore = "encryption between some of the nodes, and nodes that take both: make test-long"]
fn nodes_encrypt_to_those_in_other_racks_or_data_centres_and_may_take_clear_text_too() {
    require_root();
    let racks = "{sites: {here: {racks: {r1: [n1], r2: [n2]}}}}";
    let centres = "{sites: {east: {hosts: [n1, load]}, west: {hosts: n2}}}";
    for (network, copies, between) in [(racks, 2, "rack"), (centres, 1, "dc")] {
        let Some(found) = run_on(network, copies, &format!("{{internode: {between}}}")) else { return };
        let seen = sightings(&found);
        // The two nodes to each other; clients speak in clear.
        assert_eq!(seen.iter().filter(|(encrypted, _)| *encrypted).count(), 2, "{between}: {seen:?}");
        assert!(seen.iter().all(|(encrypted, times)| *encrypted == (*times == 0)), "{between}: {seen:?}");
        let encryption = &found["trials"][0]["encryption"];
        assert_eq!(encryption["verdict"], "proven", "{between}: {encryption}");
    }
    let Some(found) = run("{internode: all, clients: true, optional: true}") else { return };
    assert_eq!(sightings(&found), [(true, 0); 6], "whoever can encrypts");
    assert_eq!(found["trials"][0]["encryption"]["verdict"], "proven");
    // One without TLS is answered, too, unlike where encryption is not optional.
    let space = Workspace::new();
    let optional = "cluster.encryption={internode: none, clients: true, optional: true}";
    space.up("both", &["--nodes", "1", "--set", optional, "--no-disk"]);
    let status = space.json(&["status", "--json"]);
    let hosts = status["hosts"].as_array().unwrap();
    let address = hosts.iter().find(|host| host["name"] == "n1").unwrap()["address"].as_str().unwrap();
    // Asks it for its options (a frame of version 4 of the protocol).
    let asks = format!(
        r"exec 3<>/dev/tcp/{address}/9042; printf '\x04\x00\x00\x00\x05\x00\x00\x00\x00' >&3; timeout 5 head -c 100 <&3 | tr -cd '[:print:]'"
    );
    let said = space.good(&["exec", "load", "--", "bash", "-c", &asks]);
    assert!(said.contains("COMPRESSION"), "a client in clear is not answered: {said}");
    space.good(&["destroy", "--name", "both"]);
}

#[test]
#[ignore = "the same clients over TLS, by hand; the run above has them, too: make test-long"]
fn statements_and_nodetool_by_hand_work_on_a_cluster_that_encrypts() {
    require_root();
    let space = Workspace::new();
    let encryption = "cluster.encryption={internode: all, clients: true}";
    space.up("sealed", &["--nodes", "2", "--set", encryption, "--no-disk"]);
    assert!(space.good(&["cql", "SELECT key FROM system.local"]).contains("(1 row)"));
    let status = space.good(&["nodetool", "n1", "status"]);
    assert_eq!(status.lines().filter(|line| line.starts_with("UN ")).count(), 2, "{status}");
    assert!(space.good(&["status"]).contains("UP"));
    space.good(&["destroy", "--name", "sealed"]);
}
